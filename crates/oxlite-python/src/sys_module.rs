//! What Python's module `sys` has, without an import: it is there until the interpreter ends.

use std::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

/// What `sys` has under a name; nothing when it has been emptied already.
pub(crate) fn sys_object<'py>(py: Python<'py>, name: &CStr) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held, as the caller's token shows, so nothing takes the object out of `sys` before the
    // result has a reference of its own; the name is NUL-terminated; NULL becomes `None`.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(name.as_ptr())) }
}
