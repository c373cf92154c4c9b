//! A database's file, seen from outside: on what file system it lies, and what lies beside it.

pub(crate) mod beside;
pub(crate) mod network;
pub(crate) mod numbers;
