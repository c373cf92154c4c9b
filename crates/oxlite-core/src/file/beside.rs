//! The files that lie beside a database's and have its name with something behind it.

use std::path::{Path, PathBuf};

/// The rollback journal (<https://sqlite.org/fileformat2.html#the_rollback_journal>).
pub(crate) fn journal(database: &Path) -> PathBuf {
    with_suffix(database, "-journal")
}

/// The write-ahead log (<https://sqlite.org/walformat.html>).
pub(crate) fn wal(database: &Path) -> PathBuf {
    with_suffix(database, "-wal")
}

/// The WAL's index, in memory that processes share.
pub(crate) fn shared_memory(database: &Path) -> PathBuf {
    with_suffix(database, "-shm")
}

/// The file of Oxlite's gate between processes.
pub(crate) fn gate(database: &Path) -> PathBuf {
    with_suffix(database, "-gate")
}

/// The file of who replicates the database, made and locked by `oxlite.replication`.
pub(crate) fn replica(database: &Path) -> PathBuf {
    with_suffix(database, "-replica")
}

/// The file of those who watch what is done with the database.
pub(crate) fn activity(database: &Path) -> PathBuf {
    with_suffix(database, "-activity")
}

fn with_suffix(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
