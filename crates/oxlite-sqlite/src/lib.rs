//! Owned, safe handles over SQLite's C interface: the only unsafe SQLite code of Oxlite.
//!
//! Three steps lead from C to the rest of the house: the raw bindings (`libsqlite3-sys`), one owner
//! type per C handle with a `Drop` ([`Connection`], [`Statement`]), and the safe methods on them.
//! No raw pointer leaves this crate.
//!
//! # The invariant everything rests on
//!
//! SQLite is compiled with `SQLITE_THREADSAFE=2`: it locks nothing per connection, its caller must.
//! So **the lock is the key**: a connection is used only through the [`Locked`] guard that
//! [`Connection::lock`] returns, and a statement only together with the guard of the connection it
//! was prepared on. The guard is re-entrant, since SQLite calls back into code that may use the same
//! connection, and it stays on its thread. Closing needs the outermost guard, so nobody up the stack
//! can be left with a dangling row or statement.
//!
//! # Compile-time options
//!
//! The options of the bundled SQLite come from the environment variable `LIBSQLITE3_FLAGS`, which
//! this workspace sets in `.cargo/config.toml`. Cargo applies that file to builds *inside* the
//! workspace only. **A crate that depends on this one (or on `oxlite-core`) must set the same
//! variable in its own `.cargo/config.toml`**; otherwise it gets the bundled defaults: foreign keys
//! on, `file:` parsed as a URI, extension loading open, `fsync` instead of `fdatasync` at each
//! durable commit. [`build::compile_options`] tells what one has. Memory safety does not depend on
//! it.

mod apply;
mod backup;
mod blob;
mod callbacks;
mod changeset;
mod checkpoint;
mod clock;
mod code;
mod commit_guard;
mod connection;
mod constants;
mod error;
mod file_locks;
mod fork;
mod fork_duties;
mod function;
mod gathered_frames;
mod index_locks;
mod lock_file;
mod log_sync;
mod mutex;
mod observer;
mod preupdate;
mod quiet_thread;
mod read_only;
mod serialize;
mod session;
mod shared_page;
mod shared_page_view;
mod sql;
mod statement;
mod transaction_end;
mod usage;
mod value;
mod vfs;
mod write_queue;

pub mod build;

pub use apply::{Conflict, ConflictAction, ConflictHandler, TableFilter};
pub use backup::{Backup, BackupStep};
pub use blob::Blob;
pub use callbacks::{
    Authorization, Authorizer, BusyWait, CommitHook, ProgressHandler, RollbackHook, RowChange,
    Traced, Tracer, UpdateHook, WalHook,
};
pub use changeset::{
    Change, Changes, ChangesetPosition, concat_changesets, invert_changeset, read_changeset,
    read_changeset_from,
};
pub use checkpoint::{Checkpoint, CheckpointMode, LogKeeper, QueuePlace};
pub use clock::coarse_milliseconds;
pub use code::{RESULT_CODES, code_name};
pub use commit_guard::CommitGuard;
pub use connection::{
    BackupTarget, Connection, ConnectionCell, Glance, InterruptHandle, LockError, Locked,
    OpenFlags, TransactionState,
};
pub use constants::CONSTANTS;
pub use error::{Error, Result};
pub use file_locks::{OtherUsers, is_write_locked, other_users_of};
pub use fork::generation as fork_generation;
pub use fork_duties::prepare_for_forks;
pub use function::{Aggregate, Collation, FunctionContext, Scalar};
pub use lock_file::{Byte, LockFile, SLOT_BYTES};
pub use mutex::{Condvar, Mutex, MutexGuard};
pub use observer::{Attention, EndedStatement, Observer};
pub use preupdate::{Preupdate, PreupdateHook};
pub use quiet_thread::spawn_quietly;
pub use serialize::Serialized;
pub use session::Session;
pub use shared_page::{PageKind, SharedBell, SharedPage};
pub use shared_page_view::SharedPageView;
pub use sql::{begins_with_one_of, first_statement, without_leading_space};
pub use statement::{Lending, Prepared, Row, Statement, Step};
pub use transaction_end::EndedTransactions;
pub use usage::{Reading, Watch};
pub use value::{Value, ValueRef};
pub use vfs::{about_to_wait, call_after_failed_sync, call_before_waiting};
pub use write_queue::WriteQueue;

/// Whether `sql` ends in a complete statement (<https://sqlite.org/c3ref/complete.html>).
pub fn is_complete_statement(sql: &std::ffi::CStr) -> bool {
    // SAFETY: a NUL-terminated text, only read.
    unsafe { libsqlite3_sys::sqlite3_complete(sql.as_ptr()) == 1 }
}

/// SQLite's result codes and switches, under SQLite's own names.
pub mod codes {
    pub use libsqlite3_sys::{
        SQLITE_ABORT, SQLITE_AUTH, SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_CANTOPEN,
        SQLITE_CHANGESET_ABORT, SQLITE_CHANGESET_OMIT, SQLITE_CHANGESET_REPLACE, SQLITE_CONSTRAINT,
        SQLITE_CONSTRAINT_FOREIGNKEY, SQLITE_CONSTRAINT_TRIGGER, SQLITE_CONSTRAINT_UNIQUE,
        SQLITE_CORRUPT, SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_DQS_DDL,
        SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE,
        SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, SQLITE_DBCONFIG_ENABLE_FKEY,
        SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
        SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
        SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
        SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_WRITABLE_SCHEMA, SQLITE_DELETE,
        SQLITE_DENY, SQLITE_DONE, SQLITE_EMPTY, SQLITE_ERROR, SQLITE_FORMAT, SQLITE_FULL,
        SQLITE_INSERT, SQLITE_INTERNAL, SQLITE_INTERRUPT, SQLITE_IOERR, SQLITE_IOERR_FSYNC,
        SQLITE_LIMIT_ATTACHED, SQLITE_LIMIT_COLUMN, SQLITE_LIMIT_COMPOUND_SELECT,
        SQLITE_LIMIT_EXPR_DEPTH, SQLITE_LIMIT_FUNCTION_ARG, SQLITE_LIMIT_LENGTH,
        SQLITE_LIMIT_LIKE_PATTERN_LENGTH, SQLITE_LIMIT_SQL_LENGTH, SQLITE_LIMIT_TRIGGER_DEPTH,
        SQLITE_LIMIT_VARIABLE_NUMBER, SQLITE_LIMIT_VDBE_OP, SQLITE_LOCKED, SQLITE_MISMATCH,
        SQLITE_MISUSE, SQLITE_NOLFS, SQLITE_NOMEM, SQLITE_NOTADB, SQLITE_NOTFOUND, SQLITE_OK,
        SQLITE_PERM, SQLITE_PROTOCOL, SQLITE_RANGE, SQLITE_READONLY, SQLITE_READONLY_DBMOVED,
        SQLITE_READONLY_ROLLBACK, SQLITE_SCHEMA, SQLITE_TOOBIG, SQLITE_UPDATE,
    };
}
