//! Columns to Python objects: the current row as a tuple, and the description of its columns.
//!
//! A row is made in two phases. Reading it runs no code of the user's. Finishing it gives the items
//! that converters and the text factory are for to these, which are the user's code, with the
//! connection unlocked. Where nothing is left to them, a row is finished when it has been read.

use std::mem::MaybeUninit;
use std::sync::Arc;

use oxlite_core::{CachedStatement, Value};
use oxlite_sqlite::{Locked, Row, ValueRef};
use pyo3::PyTraverseError;
use pyo3::ffi;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::adaptation;
use crate::error::from_sqlite;
use crate::exceptions::{InternalError, OperationalError};
use crate::native_converter::NativeConverter;
use crate::options::DetectTypes;

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

    /// Whether rows are to be read with bytes in place of text.
    fn wants_bytes(&self) -> bool {
        !matches!(self, Self::Str)
    }
}

/// The converter of a column.
pub(crate) enum Converter {
    /// The user's.
    Callable(Py<PyAny>),
    /// One that is asked before its original is called.
    Native(Py<NativeConverter>),
}

impl Converter {
    fn from_object(converter: Bound<'_, PyAny>) -> Self {
        match converter.cast_into_exact::<NativeConverter>() {
            Ok(native) => Self::Native(native.unbind()),
            Err(other) => Self::Callable(other.into_inner().unbind()),
        }
    }

    /// What it makes of the bytes without a call.
    #[inline]
    fn convert<'py>(&self, py: Python<'py>, stored: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Callable(_) => Ok(None),
            Self::Native(native) => native.get().convert(py, stored),
        }
    }

    fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        match self {
            Self::Callable(callable) => callable.bind(py),
            Self::Native(native) => native.bind(py),
        }
    }

    /// For the cycle collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Callable(callable) => visit.call(callable),
            Self::Native(native) => visit.call(native),
        }
    }
}

/// The converters of a row's columns, where there are any.
pub(crate) type Converters = Arc<[Option<Converter>]>;

/// A row, and which of its items are bytes still to be made into something else.
pub(crate) struct RowTuple<'py> {
    tuple: Bound<'py, PyTuple>,
    unfinished: SmallVec<[usize; 4]>,
}

impl<'py> RowTuple<'py> {
    /// Whether nothing is left to code of the user's.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// The row as it is.
    pub(crate) fn into_tuple(self) -> Bound<'py, PyTuple> {
        self.tuple
    }

    /// The row with its unfinished items made by the column's converter or the text factory: code of
    /// the user's, so the connection must be unlocked.
    pub(crate) fn finished(
        self,
        converters: Option<&Converters>,
        text_factory: &TextFactory<'py>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        if self.unfinished.is_empty() {
            return Ok(self.tuple);
        }
        let py = self.tuple.py();
        let converter = |index: usize| converters?.get(index)?.as_ref();
        let mut unfinished = self.unfinished.into_iter().peekable();
        tuple_of(py, self.tuple.len(), |index| {
            let item = self.tuple.get_item(index)?;
            if unfinished.next_if_eq(&index).is_none() {
                return Ok(item);
            }
            match (converter(index), text_factory) {
                (Some(converter), _) => converter.object(py).call1((item,)),
                (None, TextFactory::Callable(factory)) => factory.call1((item,)),
                (None, TextFactory::Str | TextFactory::Bytes) => Ok(item),
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
    converters: Option<&Converters>,
    text_factory: &TextFactory<'_>,
) -> PyResult<RowTuple<'py>> {
    let undecodable = |index, text| {
        let name = cached.statement.column_name(locked, index);
        undecodable(name.unwrap_or_default(), text)
    };
    let mut unfinished = SmallVec::new();
    if converters.is_none() && matches!(text_factory, TextFactory::Str) {
        let tuple = tuple_of(py, row.len(), |index| match row.get(index) {
            Ok(ValueRef::Text(text)) => match text_object(py, text) {
                Ok(text) => Ok(text.into_any()),
                Err(_) => Err(undecodable(index, text)),
            },
            Ok(other) => object_of_value(py, other),
            Err(error) => Err(from_sqlite(py, &error)),
        })?;
        return Ok(RowTuple { tuple, unfinished });
    }
    let tuple = tuple_of(py, row.len(), |index| {
        if let Some(converters) = converters
            && let Some(Some(converter)) = converters.get(index)
        {
            // Converters get what is stored as bytes, whatever it is, but NULL is `None`.
            let bytes = row.bytes(index).map_err(|error| from_sqlite(py, &error))?;
            let Some(bytes) = bytes else {
                return Ok(py.None().into_bound(py));
            };
            if let Some(made) = converter.convert(py, bytes)? {
                return Ok(made);
            }
            unfinished.push(index);
            return Ok(PyBytes::new(py, bytes).into_any());
        }
        let value = row.get(index).map_err(|error| from_sqlite(py, &error))?;
        Ok(match value {
            ValueRef::Text(text) if text_factory.wants_bytes() => {
                if matches!(text_factory, TextFactory::Callable(_)) {
                    unfinished.push(index);
                }
                PyBytes::new(py, text).into_any()
            }
            ValueRef::Text(text) => match text_object(py, text) {
                Ok(text) => text.into_any(),
                Err(_) => return Err(undecodable(index, text)),
            },
            other => object_of_value(py, other)?,
        })
    })?;
    Ok(RowTuple { tuple, unfinished })
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
        ValueRef::Text(text) => text_object(py, text)?.into_any(),
    })
}

/// The `str` of UTF-8. Text of ASCII alone, most of what databases hold, is copied as it is; Python's
/// decoder would look at each byte again to find that out.
#[inline]
fn text_object<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    /// The highest character of a `str` that holds one byte for each.
    const ASCII: u32 = 127;
    // Of strings of one character Python keeps one each.
    if text.len() < 2 || !text.is_ascii() {
        return PyString::from_bytes(py, text);
    }
    // SAFETY: the GIL is held; NULL (with an exception set) becomes an error. The fresh object, which
    // nobody else has seen, has room for `len` bytes and a NUL, which is there already; the empty
    // string is shared, and nothing is written to it.
    unsafe {
        let raw = ffi::PyUnicode_New(text.len() as ffi::Py_ssize_t, ASCII);
        let string = Bound::from_owned_ptr_or_err(py, raw)?.cast_into_unchecked::<PyString>();
        let content = ffi::PyUnicode_DATA(raw).cast::<u8>();
        std::ptr::copy_nonoverlapping(text.as_ptr(), content, text.len());
        Ok(string)
    }
}

/// `bytes` of `length` that `fill` writes in place, and returns to show that it has.
pub(crate) fn filled_bytes<'py, E>(
    py: Python<'py>,
    length: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<&mut [u8], E>,
) -> PyResult<Result<Bound<'py, PyBytes>, E>> {
    // SAFETY: the GIL is held; NULL as the source leaves the content for us to write; NULL as the
    // result (with an exception set) becomes an error.
    let bytes = unsafe {
        let raw = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, raw)?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: a fresh object that nobody else has seen, with room for `length` bytes.
    let buffer = unsafe {
        let content = ffi::PyBytes_AsString(bytes.as_ptr()).cast();
        std::slice::from_raw_parts_mut(content, length)
    };
    let outcome = fill(buffer).map(|filled| {
        assert_eq!(filled.len(), length, "all of the bytes have been written");
    });
    // If it failed, the object goes without having been seen.
    Ok(outcome.map(|()| bytes))
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

fn undecodable(column: &[u8], text: &[u8]) -> PyErr {
    OperationalError::new_err(format!(
        "Could not decode to UTF-8 column '{}' with text '{}'",
        String::from_utf8_lossy(column),
        String::from_utf8_lossy(text),
    ))
}

/// Rows that were kept, one value after the other, as a list of tuples.
pub(crate) fn rows_of<'py>(
    py: Python<'py>,
    columns: &[Box<[u8]>],
    values: &[Value],
) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for row in values.chunks(columns.len().max(1)) {
        rows.append(tuple_of(py, row.len(), |index| {
            let value = row[index].as_ref();
            object_of_value(py, value).map_err(|error| match (value, columns.get(index)) {
                (ValueRef::Text(text), Some(column)) => undecodable(column, text),
                _ => error,
            })
        })?)?;
    }
    Ok(rows)
}

/// PEP 249's description of columns of these names.
pub(crate) fn described_by<'py>(
    py: Python<'py>,
    columns: &[Box<[u8]>],
) -> PyResult<Bound<'py, PyTuple>> {
    tuple_of(py, columns.len(), |index| {
        describe_column(py, &columns[index])
    })
}

/// A 7-tuple of which only the name is known.
fn describe_column<'py>(py: Python<'py>, name: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // Interned: looking a column up in a `Row` compares addresses first.
    let name = PyString::intern(py, &String::from_utf8_lossy(name));
    let none = py.None();
    let none = none.bind(py);
    let described = (name, none, none, none, none, none, none);
    Ok(described.into_pyobject(py)?.into_any())
}

/// What is known of a statement's columns, kept with it until SQLite prepares it anew.
struct ColumnsNote {
    description: Py<PyTuple>,
    /// For each column the names, in capitals, under which a converter is looked for, in order.
    type_names: Vec<SmallVec<[Py<PyString>; 2]>>,
    reprepare_count: i32,
}

/// The note about the statement's columns, made if it is not there or no longer true.
fn columns_note<'n>(
    py: Python<'_>,
    cached: &'n mut CachedStatement,
    locked: &Locked<'_>,
    detect_types: DetectTypes,
) -> PyResult<&'n ColumnsNote> {
    let reprepare_count = cached.statement.reprepare_count(locked);
    let is_true = cached
        .note
        .as_ref()
        .and_then(|note| note.downcast_ref::<ColumnsNote>())
        .is_some_and(|note| note.reprepare_count == reprepare_count);
    if !is_true {
        cached.note = Some(Box::new(ColumnsNote {
            description: described(py, cached, locked, detect_types)?.unbind(),
            type_names: type_names(py, cached, locked, detect_types)?,
            reprepare_count,
        }));
    }
    let note = cached.note.as_ref();
    note.and_then(|note| note.downcast_ref())
        .ok_or_else(|| InternalError::new_err("the statement's note is somebody else's"))
}

/// PEP 249's description of the statement's columns, 7-tuples of which SQLite knows the name only;
/// and the converters of the columns, if any have one.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    detect_types: DetectTypes,
) -> PyResult<(Bound<'py, PyTuple>, Option<Converters>)> {
    let note = columns_note(py, cached, locked, detect_types)?;
    let description = note.description.bind(py).clone();
    if !detect_types.is_on() {
        return Ok((description, None));
    }
    // Looked up anew each time: converters may be registered at any moment.
    let registry = adaptation::converters(py);
    let converter = |names: &SmallVec<[Py<PyString>; 2]>| -> PyResult<Option<Converter>> {
        for name in names {
            // `None` takes a converter away.
            let converter = registry.get_item(name)?;
            if let Some(converter) = converter.filter(|converter| !converter.is_none()) {
                return Ok(Some(Converter::from_object(converter)));
            }
        }
        Ok(None)
    };
    let converters = note.type_names.iter().map(converter);
    let converters: Converters = converters.collect::<PyResult<_>>()?;
    let has_any = converters.iter().any(Option::is_some);
    Ok((description, has_any.then_some(converters)))
}

fn described<'py>(
    py: Python<'py>,
    cached: &CachedStatement,
    locked: &Locked<'_>,
    detect_types: DetectTypes,
) -> PyResult<Bound<'py, PyTuple>> {
    tuple_of(py, cached.statement.column_count(locked), |index| {
        let mut name = column_name(py, cached, locked, index)?;
        if detect_types.by_name
            && let Some(bracket) = name.iter().position(|byte| *byte == b'[')
        {
            // `price [decimal]` is the column `price`.
            name = name[..bracket]
                .strip_suffix(b" ")
                .unwrap_or(&name[..bracket]);
        }
        describe_column(py, name)
    })
}

fn type_names(
    py: Python<'_>,
    cached: &CachedStatement,
    locked: &Locked<'_>,
    detect_types: DetectTypes,
) -> PyResult<Vec<SmallVec<[Py<PyString>; 2]>>> {
    if !detect_types.is_on() {
        return Ok(Vec::new());
    }
    let capitals = |name: &[u8]| -> PyResult<Py<PyString>> {
        let name = PyString::from_bytes(py, name)?.call_method0("upper")?;
        Ok(name.cast_into::<PyString>()?.unbind())
    };
    (0..cached.statement.column_count(locked))
        .map(|index| {
            let mut names = SmallVec::new();
            if detect_types.by_name {
                let name = column_name(py, cached, locked, index)?;
                if let Some(bracketed) = bracketed(name) {
                    names.push(capitals(bracketed)?);
                }
            }
            if detect_types.by_declaration
                && let Some(declared) = cached.statement.column_declared_type(locked, index)
            {
                let first_word = declared.split(|byte| matches!(byte, b' ' | b'(')).next();
                names.push(capitals(first_word.unwrap_or_default())?);
            }
            Ok(names)
        })
        .collect()
}

/// What stands in the brackets of `name [type]`: up to the first `]` after a `[`, from the last `[`
/// before it.
fn bracketed(name: &[u8]) -> Option<&[u8]> {
    let mut start = None;
    for (position, byte) in name.iter().enumerate() {
        match (byte, start) {
            (b'[', _) => start = Some(position + 1),
            (b']', Some(start)) => return Some(&name[start..position]),
            _ => {}
        }
    }
    None
}

fn column_name<'l>(
    py: Python<'_>,
    cached: &'l CachedStatement,
    locked: &'l Locked<'_>,
    index: usize,
) -> PyResult<&'l [u8]> {
    let name = cached.statement.column_name(locked, index);
    name.map_err(|error| from_sqlite(py, &error))
}
