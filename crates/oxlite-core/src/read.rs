//! Reading: which statements and scripts are kept, what a statement is for, and queries run to their end.

pub(crate) mod requests;
pub(crate) mod scripts;
pub(crate) mod sql;
pub(crate) mod statement_cache;
