//! Columns to Python objects: the current row as a tuple, and the description of its columns.

use oxlite_core::CachedStatement;
use oxlite_sqlite::{Locked, Row, ValueRef};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::error::{OperationalError, from_sqlite};

/// How TEXT becomes a Python object: `Connection.text_factory`.
pub(crate) enum TextFactory<'py> {
    /// `str`, the default.
    Str,
    /// `bytes`, as stored.
    Bytes,
    /// Anything else is called with the bytes.
    Callable(Bound<'py, PyAny>),
}

impl<'py> TextFactory<'py> {
    /// Recognises the two common factories, which need no call.
    pub(crate) fn from_object(factory: &Bound<'py, PyAny>) -> Self {
        let py = factory.py();
        if factory.is(PyType::new::<PyString>(py)) {
            Self::Str
        } else if factory.is(PyType::new::<PyBytes>(py)) {
            Self::Bytes
        } else {
            Self::Callable(factory.clone())
        }
    }

    /// Whether rows are to be made with bytes in place of text.
    pub(crate) fn wants_bytes(&self) -> bool {
        !matches!(self, Self::Str)
    }
}

/// A row, and which of its items are text that was made into bytes.
pub(crate) struct RowTuple<'py> {
    pub(crate) tuple: Bound<'py, PyTuple>,
    texts: Vec<usize>,
}

impl<'py> RowTuple<'py> {
    /// The row with each text made by `factory`: code of the user's, so the connection must be
    /// unlocked.
    pub(crate) fn with_texts_from(
        self,
        factory: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut texts = self.texts.into_iter().peekable();
        tuple_of(self.tuple.py(), self.tuple.len(), |index| {
            let item = self.tuple.get_item(index)?;
            match texts.next_if_eq(&index) {
                Some(_) => factory.call1((item,)),
                None => Ok(item),
            }
        })
    }
}

/// The row as a tuple. Runs no code of the user's.
#[inline]
pub(crate) fn row_to_tuple<'py>(
    py: Python<'py>,
    cached: &CachedStatement,
    locked: &Locked<'_>,
    row: &Row<'_>,
    text_as_bytes: bool,
) -> PyResult<RowTuple<'py>> {
    let mut texts = Vec::new();
    let tuple = tuple_of(py, row.len(), |index| {
        let value = row.get(index).map_err(|error| from_sqlite(py, &error))?;
        Ok(match value {
            ValueRef::Text(text) if text_as_bytes => {
                texts.push(index);
                PyBytes::new(py, text).into_any()
            }
            ValueRef::Text(text) => match PyString::from_bytes(py, text) {
                Ok(text) => text.into_any(),
                Err(_) => return Err(undecodable(cached, locked, index, text)),
            },
            other => object_of_value(py, other)?,
        })
    })?;
    Ok(RowTuple { tuple, texts })
}

/// The object of a value; text must be UTF-8.
#[inline]
pub(crate) fn object_of_value<'py>(
    py: Python<'py>,
    value: ValueRef<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Integer(integer) => PyInt::new(py, integer).into_any(),
        ValueRef::Real(real) => PyFloat::new(py, real).into_any(),
        ValueRef::Blob(bytes) => PyBytes::new(py, bytes).into_any(),
        ValueRef::Text(text) => PyString::from_bytes(py, text)?.into_any(),
    })
}

/// A tuple of `length` items made one by one, without a vector in between.
#[inline]
fn tuple_of<'py>(
    py: Python<'py>,
    length: usize,
    mut item: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: the GIL is held; NULL (with an exception set) becomes an error.
    let tuple = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(length as ffi::Py_ssize_t))?
            .cast_into_unchecked::<PyTuple>()
    };
    for index in 0..length {
        let object = item(index)?;
        // SAFETY: a fresh tuple that nobody else has seen, an index below its length, set once; the
        // reference is handed over. If an item fails, the tuple is dropped with NULLs in it, which
        // deallocating a tuple allows.
        unsafe {
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), index as ffi::Py_ssize_t, object.into_ptr());
        }
    }
    Ok(tuple)
}

fn undecodable(cached: &CachedStatement, locked: &Locked<'_>, index: usize, text: &[u8]) -> PyErr {
    let name = cached
        .statement
        .column_name(locked, index)
        .unwrap_or_default();
    OperationalError::new_err(format!(
        "Could not decode to UTF-8 column '{}' with text '{}'",
        String::from_utf8_lossy(name),
        String::from_utf8_lossy(text),
    ))
}

/// A statement's description, kept with it until SQLite prepares it anew.
struct DescriptionNote {
    description: Py<PyTuple>,
    reprepare_count: i32,
}

/// PEP 249's description of the statement's columns: 7-tuples of which SQLite knows the name only.
pub(crate) fn description<'py>(
    py: Python<'py>,
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
) -> PyResult<Bound<'py, PyTuple>> {
    let reprepare_count = cached.statement.reprepare_count(locked);
    if let Some(note) = &cached.note
        && let Some(note) = note.downcast_ref::<DescriptionNote>()
        && note.reprepare_count == reprepare_count
    {
        return Ok(note.description.bind(py).clone());
    }
    let none = py.None();
    let description = tuple_of(py, cached.statement.column_count(locked), |index| {
        let name = cached
            .statement
            .column_name(locked, index)
            .map_err(|error| from_sqlite(py, &error))?;
        let name = PyString::new(py, &String::from_utf8_lossy(name));
        let none = none.bind(py);
        Ok((name, none, none, none, none, none, none)
            .into_pyobject(py)?
            .into_any())
    })?;
    cached.note = Some(Box::new(DescriptionNote {
        description: description.clone().unbind(),
        reprepare_count,
    }));
    Ok(description)
}
