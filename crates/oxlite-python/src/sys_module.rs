//! What Python's module `sys` has, without an import: it is there until the interpreter ends.

use std::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

/// What `sys` has under a name; nothing when it has been emptied already.
pub(crate) fn sys_object<'py>(py: Python<'py>, name: &CStr) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held; a borrowed reference, or NULL.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(name.as_ptr())) }
}
