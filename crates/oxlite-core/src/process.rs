//! This process and others: what there is once for each of them, and which of them lock a file.

pub(crate) mod namespace;
pub(crate) mod per_file;
pub(crate) mod per_process;
pub(crate) mod processes;
