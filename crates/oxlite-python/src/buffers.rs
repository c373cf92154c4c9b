//! Objects that export a buffer (PEP 3118), as what SQLite stores.
//!
//! A buffer is bytes: `bytearray`, `memoryview`, `array`, an array of numpy's. One without dimensions is
//! not: it is a single value, such as a scalar of numpy's or ctypes', whose bytes nobody means to store.
//! The standard library stores them all the same, and so does the drop-in module; a connection with a
//! production profile takes the number that it is, or refuses it.
//!
//! Invariant: only `bytes_of` looks into a buffer, and it lets it go before it returns.

use std::mem::MaybeUninit;

use oxlite_core::{Connection as Core, Profile};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyTuple};

use crate::exceptions::ProgrammingError;
use crate::type_names::{is_of_class, type_name};

/// What becomes of an object that is a single value and no instance of Python's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SingleValues {
    /// Its bytes, as in the standard library.
    Bytes,
    /// The number that it is; what is none is refused.
    Numbers,
}

impl SingleValues {
    /// As the profile of a connection has it.
    #[inline]
    pub(crate) fn of(connection: &Core) -> Self {
        Self::with(connection.profile())
    }

    /// As a profile has it.
    #[inline]
    pub(crate) fn with(profile: &Profile) -> Self {
        match profile.is_strict {
            true => Self::Numbers,
            false => Self::Bytes,
        }
    }
}

/// The formats of the struct module that stand for one number SQLite has.
const NUMBERS: &str = "?bBhHiIlLqQnNefd";

/// The bytes of an object that exports a buffer; `None` for one that exports none. Runs code of the
/// user's.
pub(crate) fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if !exports_buffer(object) {
        return Ok(None);
    }
    let py = object.py();
    let mut view = MaybeUninit::<ffi::Py_buffer>::uninit();
    // SAFETY: the GIL is held; a live object and room for a view, which is there if the answer is 0.
    let status =
        unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_SIMPLE) };
    if status != 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: the call above has filled it in, as its status 0 says.
    let mut view = unsafe { view.assume_init() };
    // SAFETY: the GIL is held; a simple view has `len` bytes at `buf`; NULL (with an exception set)
    // becomes an error.
    let copied = unsafe {
        let bytes = ffi::PyBytes_FromStringAndSize(view.buf.cast(), view.len);
        Bound::from_owned_ptr_or_err(py, bytes)
    };
    // SAFETY: the view that was filled in above, let go once.
    unsafe { ffi::PyBuffer_Release(&raw mut view) };
    Ok(Some(copied?.cast_into::<PyBytes>()?))
}

/// The bytes of any object with a buffer.
pub(crate) fn bytes_like<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = data.cast_exact::<PyBytes>() {
        return Ok(bytes.clone());
    }
    bytes_of(data)?.ok_or_else(|| {
        let found = type_name(data);
        PyTypeError::new_err(format!("a bytes-like object is required, not '{found}'"))
    })
}

fn exports_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the GIL is held; a live object, whose type alone is looked at.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// Whether the object is one value and not a row of bytes: its buffer has no dimensions, or it is a
/// scalar of numpy's, some of which export an array of bytes. Runs code of the user's.
pub(crate) fn is_single_value(object: &Bound<'_, PyAny>) -> bool {
    let is_bytes =
        object.is_instance_of::<PyBytes>() || object.is_exact_instance_of::<PyByteArray>();
    !is_bytes
        && exports_buffer(object)
        && (is_of_class(object, "numpy.generic") || dimensions(object) == Some(0))
}

fn dimensions(object: &Bound<'_, PyAny>) -> Option<usize> {
    let view = PyMemoryView::from(object).ok()?;
    view.getattr("ndim").ok()?.extract().ok()
}

/// The number that a single value is, as one of Python's own.
pub(crate) fn number_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let unpacked = || -> PyResult<Option<Bound<'py, PyAny>>> {
        let view = PyMemoryView::from(object)?;
        let format = view.getattr("format")?.cast_into::<PyString>()?;
        let kind = format
            .to_str()?
            .trim_start_matches(['@', '=', '<', '>', '!']);
        if kind.len() != 1 || !NUMBERS.contains(kind) {
            return Ok(None);
        }
        let values = object
            .py()
            .import("struct")?
            .call_method1("unpack", (&format, &view))?;
        values.cast::<PyTuple>()?.get_item(0).map(Some)
    };
    // What has no view, or none that can be read, is no number.
    match unpacked() {
        Ok(Some(number)) => Ok(number),
        Ok(None) | Err(_) => Err(ProgrammingError::new_err(format!(
            "a single value of type '{}' is no number that SQLite has, and its bytes are not stored by \
             accident: bind value.item(), str(value) or bytes(value), or register an adapter for its type",
            type_name(object)
        ))),
    }
}
