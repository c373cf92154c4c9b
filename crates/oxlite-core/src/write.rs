//! Writing: who writes next, which writes share a COMMIT or a sync, and what becomes of the WAL.

pub(crate) mod group_commit;
pub(crate) mod queue;
pub(crate) mod shared_commit;
pub(crate) mod transaction;
pub(crate) mod wal;
