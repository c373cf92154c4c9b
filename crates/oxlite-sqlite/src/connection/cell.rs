//! A cell whose key is a connection's lock: what is used only while its connection is, such as the statements
//! that are kept.
//!
//! It costs a look at a flag where a mutex costs two atomic exchanges.
//!
//! Invariant: open for moments only. Nothing is called in between that may use the connection, and so
//! find the cell in use.

use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;

use super::{Connection, Handle, Locked};

/// A value that whoever has locked a certain connection may use.
pub struct ConnectionCell<T> {
    value: RefCell<T>,
    /// Only compared. It does not keep the connection open.
    handle: *const Handle,
}

// SAFETY: the value is reached with the guard of a handle at this address, which one thread at a time has;
// should the connection be gone, and another one's handle be there, then with that one's, in the same way. The
// lock orders what one thread has done before what the next one does, the flag of the cell included. The
// pointer is never followed.
unsafe impl<T: Send> Send for ConnectionCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ConnectionCell<T> {}

impl Connection {
    /// A cell that is opened with this connection's guards.
    pub fn cell<T>(&self, value: T) -> ConnectionCell<T> {
        ConnectionCell {
            value: RefCell::new(value),
            handle: Arc::as_ptr(&self.handle),
        }
    }
}

impl<T> ConnectionCell<T> {
    /// Does `work` on the value, which must not use the connection.
    ///
    /// # Panics
    ///
    /// If the guard is another connection's.
    #[inline]
    pub fn with<R>(&self, locked: &Locked<'_>, work: impl FnOnce(&mut T) -> R) -> R {
        let is_ours = ptr::eq(self.handle, Arc::as_ptr(locked.handle()));
        assert!(is_ours, "the guard of another connection");
        work(&mut self.value.borrow_mut())
    }

    /// For whoever has the cell for himself.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}
