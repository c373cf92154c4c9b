//! How a connection is interrupted from any thread, and when that has to wait.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use libsqlite3_sys as ffi;

use super::Locked;
use super::handle::Handle;

/// Interrupts a connection from any thread (<https://sqlite.org/c3ref/interrupt.html>).
#[derive(Clone)]
pub struct InterruptHandle {
    pub(super) handle: Weak<Handle>,
}

impl InterruptHandle {
    /// Makes the statements running now, if any, fail with `SQLITE_INTERRUPT`; `false` if the
    /// connection is closed or inherited.
    pub fn interrupt(&self) -> bool {
        let Some(handle) = self.handle.upgrade() else {
            return false;
        };
        if handle.leak_inherited() {
            return false;
        }
        let target = handle.interruptible.lock();
        if target.database.is_null() {
            return false;
        }
        if target.applications > 0 {
            target.is_postponed.store(true, Ordering::Relaxed);
            return true;
        }
        target.interruptions.fetch_add(1, Ordering::SeqCst);
        // SAFETY: not NULL, so not closed yet: closing waits for this mutex and empties it.
        unsafe { ffi::sqlite3_interrupt(target.database) };
        true
    }
}

impl<'c> Locked<'c> {
    /// Postpones interruptions until the result is dropped. The progress handler, if there is one,
    /// stops statements meanwhile.
    pub(crate) fn postpone_interruptions(&self) -> Postponement<'c> {
        self.handle.interruptible.lock().applications += 1;
        Postponement {
            handle: self.handle,
        }
    }
}

/// While it lives, interruptions wait.
pub(crate) struct Postponement<'c> {
    handle: &'c Handle,
}

impl Drop for Postponement<'_> {
    fn drop(&mut self) {
        if self.handle.is_inherited() {
            return; // a callback has forked
        }
        let mut target = self.handle.interruptible.lock();
        target.applications -= 1;
        if target.applications == 0
            && target.is_postponed.swap(false, Ordering::Relaxed)
            && !target.database.is_null()
        {
            // SAFETY: not NULL, so not closed yet: closing waits for this mutex and empties it.
            unsafe { ffi::sqlite3_interrupt(target.database) };
        }
    }
}
