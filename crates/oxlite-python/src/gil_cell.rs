//! A cell whose key is the GIL: what users set on connections and cursors lives in one.
//!
//! It costs a look at a flag where a mutex costs two atomic exchanges, and an execution opens some ten
//! of them: a tenth of the time of a look-up by key.
//!
//! Invariant: open for moments only, but for cells that are always asked whether they are in use
//! (`try_hold`). Nothing is called in between that may run code of the user's or let the GIL go, not even the
//! drop of a Python object; a second opening would find the cell in use and panic.

use std::cell::{Ref, RefCell, RefMut};

use pyo3::gc::PyVisit;
use pyo3::prelude::*;

/// A value that whoever holds the GIL may use.
pub(crate) struct GilCell<T>(RefCell<T>);

// SAFETY: the cell is opened and closed with a token that shows the GIL held, so by one thread at a time; and
// the GIL orders what one thread has done before what the next one does, the flag included. Whoever keeps the
// cell open without the GIL has set the flag, which lets nobody else in. An interpreter
// that has switched the GIL off is refused when the module is imported (see `lib.rs`).
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    #[inline]
    pub(crate) fn get<'a>(&'a self, _py: Python<'a>) -> Ref<'a, T> {
        self.0.borrow()
    }

    #[inline]
    pub(crate) fn get_mut<'a>(&'a self, _py: Python<'a>) -> RefMut<'a, T> {
        self.0.borrow_mut()
    }

    /// For whoever keeps it open, also while it lets the GIL go; `None` while another one does.
    #[inline]
    pub(crate) fn try_hold<'a>(&'a self, _py: Python<'a>) -> Option<RefMut<'a, T>> {
        self.0.try_borrow_mut().ok()
    }

    /// For the cycle collector, which may run while the cell is open.
    pub(crate) fn get_to_visit(&self, _visit: &PyVisit<'_>) -> Option<Ref<'_, T>> {
        self.0.try_borrow().ok()
    }

    /// For the cycle collector, which may run while the cell is open.
    pub(crate) fn get_to_clear<'a>(&'a self, _py: Python<'a>) -> Option<RefMut<'a, T>> {
        self.0.try_borrow_mut().ok()
    }

    /// For whoever has the cell for itself.
    pub(crate) fn inner_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
