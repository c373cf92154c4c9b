//! Waiting: for locks, for connections, for threads that do the work, for the end of a time limit.

pub(crate) mod baton;
pub(crate) mod bell;
pub(crate) mod busy;
pub(crate) mod deadline;
pub(crate) mod dispatcher;
pub(crate) mod pool;
pub(crate) mod workers;
