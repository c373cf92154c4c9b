//! The online backup of one database into another (<https://sqlite.org/c3ref/backup_finish.html>).
//!
//! Invariants:
//! - A backup is stepped with the guards of both connections, always target and source, and both
//!   count it: neither can be closed before the backup is finished.
//! - The two connections are different ones.
//! - From beginning to end the target is the backup's alone, also between its steps: SQLite does not
//!   look whether somebody uses it, and crashes. So it takes part in one backup only, and nobody up
//!   the stack is in the middle of using it.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::sync::Arc;

use libsqlite3_sys as ffi;

use crate::commit_guard::refuse_backup;
use crate::connection::{BackupTarget, Handle, Locked};
use crate::error::{Error, Result};

/// What a step of a backup came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupStep {
    /// Pages remain.
    More,
    /// All pages are copied.
    Done,
    /// Somebody holds a lock (`SQLITE_BUSY` or `SQLITE_LOCKED`); try again.
    Locked(i32),
}

/// A backup in progress. It must be given to [`Backup::finish`]; dropped, it leaks, and its
/// connections stay open, its target for nobody.
pub struct Backup {
    raw: NonNull<ffi::sqlite3_backup>,
    target: Arc<Handle>,
    source: Arc<Handle>,
}

// SAFETY: a backup handle has no thread affinity; every use holds the locks of both connections.
unsafe impl Send for Backup {}

impl Backup {
    /// Begins to copy `source_schema` of `source` over `main` of `target`, which cannot be locked by
    /// others from now until the backup is finished.
    pub fn begin(target: Locked<'_>, source: &Locked<'_>, source_schema: &CStr) -> Result<Self> {
        if Arc::ptr_eq(target.handle(), source.handle()) {
            return Err(Error::new(
                ffi::SQLITE_MISUSE,
                "target cannot be the same connection instance",
            ));
        }
        target.require_outermost("copying over it")?;
        target.callbacks().check_may_write()?;
        if target.has_commit_guard() {
            return Err(refuse_backup());
        }
        if target.has_backups() {
            return Err(Error::new(
                ffi::SQLITE_BUSY,
                "target is in use by another backup that is not finished",
            ));
        }
        // SAFETY: two different open connections, both locked; errors are left on the target.
        let raw = unsafe {
            ffi::sqlite3_backup_init(
                target.database(),
                c"main".as_ptr(),
                source.database(),
                source_schema.as_ptr(),
            )
        };
        let Some(raw) = NonNull::new(raw) else {
            // SAFETY: open and locked.
            let code = unsafe { ffi::sqlite3_errcode(target.database()) };
            // SAFETY: open and locked.
            return Err(unsafe { Error::of(target.database(), code) });
        };
        let backup = Self {
            raw,
            target: Arc::clone(target.handle()),
            source: Arc::clone(source.handle()),
        };
        source.count_backups(1);
        target.become_backup_target();
        Ok(backup)
    }

    fn check_owners(&self, target: &BackupTarget<'_>, source: &Locked<'_>) -> Result<()> {
        if Arc::ptr_eq(&self.target, target.handle()) && Arc::ptr_eq(&self.source, source.handle())
        {
            return Ok(());
        }
        Err(Error::new(
            ffi::SQLITE_MISUSE,
            "the backup belongs to other connections",
        ))
    }

    /// Copies up to `pages` pages; all that remain if negative.
    pub fn step(
        &mut self,
        target: &BackupTarget<'_>,
        source: &Locked<'_>,
        pages: i32,
    ) -> Result<BackupStep> {
        self.check_owners(target, source)?;
        // SAFETY: in progress, since `finish` consumes it; both connections are open and locked by the two
        // guards, which were found above to be of them.
        match unsafe { ffi::sqlite3_backup_step(self.raw.as_ptr(), pages) } {
            ffi::SQLITE_OK => Ok(BackupStep::More),
            ffi::SQLITE_DONE => Ok(BackupStep::Done),
            // SQLITE_LOCKED_SHAREDCACHE does not pass by waiting: the lock may be this thread's own.
            code if code & 0xff == ffi::SQLITE_BUSY || code == ffi::SQLITE_LOCKED => {
                Ok(BackupStep::Locked(code))
            }
            code => Err(Error::from_code(code)),
        }
    }

    /// Pages that remain, and pages in all, as of the latest step.
    pub fn progress(&self) -> (i32, i32) {
        let raw = self.raw.as_ptr();
        // SAFETY: in progress, since `finish` consumes it; these read two integers that only `step` changes,
        // which takes it mutably.
        unsafe {
            (
                ffi::sqlite3_backup_remaining(raw),
                ffi::sqlite3_backup_pagecount(raw),
            )
        }
    }

    /// Ends the backup: committed if all pages are copied, otherwise rolled back.
    pub fn finish(self, target: &BackupTarget<'_>, source: &Locked<'_>) -> Result<()> {
        self.check_owners(target, source)?;
        // SAFETY: in progress, both connections open and locked; `self` is consumed.
        let code: c_int = unsafe { ffi::sqlite3_backup_finish(self.raw.as_ptr()) };
        target.release();
        source.count_backups(-1);
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        // SAFETY: open and locked; the target carries the backup's errors.
        Err(unsafe { Error::of(target.database(), code) })
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.target.leak_inherited();
        self.source.leak_inherited();
    }
}
