//! Python objects to bound parameters, in two phases.
//!
//! 1. **Collecting** turns a sequence or mapping into objects of SQLite's own types. It may run the
//!    user's code (a mapping's `__getitem__`, a buffer's export), so it happens with the connection
//!    unlocked, unless the objects are such that no code of the user's can run.
//! 2. **Binding** takes the values, borrowed from those objects. With them in between
//!    ([`push_values`]) it needs no GIL.

use std::ffi::CString;

use oxlite_core::{CachedStatement, Error};
use oxlite_sqlite::{Locked, ValueRef};
use pyo3::exceptions::{PyDeprecationWarning, PyLookupError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType,
};
use smallvec::SmallVec;

use crate::adaptation::{adapt_to_bind, adapts_base_types};
use crate::buffers::{self, SingleValues};
use crate::error::from_core;
use crate::exceptions::ProgrammingError;
use crate::type_names::type_name;
use crate::version;

/// Values borrowed from the objects of one or more parameter sets, one after the other.
pub(crate) type Values<'a> = SmallVec<[ValueRef<'a>; 8]>;

/// The parameter set as a tuple, if no code of the user's can run meanwhile: a tuple or list, exactly,
/// of objects exactly of types SQLite has, for parameters without names.
#[inline]
pub(crate) fn collect_plain<'py>(
    parameters: &Bound<'py, PyAny>,
    minds_sequences: bool,
) -> Option<Bound<'py, PyTuple>> {
    if minds_sequences || adapts_base_types() {
        return None;
    }
    let tuple = if let Ok(tuple) = parameters.cast_exact::<PyTuple>() {
        tuple.clone()
    } else {
        parameters.cast_exact::<PyList>().ok()?.to_tuple()
    };
    tuple.as_slice().iter().all(is_plain).then_some(tuple)
}

#[inline]
fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_none()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBytes>()
}

/// The parameters' names as the statement has them, prefix included; `None` for a plain `?`.
pub(crate) fn names(cached: &CachedStatement, locked: &Locked<'_>) -> Vec<Option<String>> {
    (1..=cached.statement.parameter_count())
        .map(|index| Some(cached.statement.parameter_name(locked, index)?.to_owned()))
        .collect()
}

/// Whether a sequence for this statement's parameters is warned of or refused: some have names, and this
/// version of Python does so.
#[inline]
pub(crate) fn minds_sequences(cached: &CachedStatement) -> bool {
    cached.has_named_parameters && version::MINDS_SEQUENCES_FOR_NAMES
}

/// Warns of each parameter that has a name, since a sequence was supplied, or refuses the first.
fn warn_of_names(py: Python<'_>, names: &[Option<String>]) -> PyResult<()> {
    if !version::MINDS_SEQUENCES_FOR_NAMES {
        return Ok(());
    }
    let category = PyType::new::<PyDeprecationWarning>(py);
    for (position, name) in names.iter().enumerate() {
        let Some(name) = name.as_deref().filter(|name| !name.starts_with('?')) else {
            continue;
        };
        let which = format!(
            "Binding {} ('{name}') is a named parameter, but you supplied a sequence which requires",
            position + 1
        );
        if version::REFUSES_SEQUENCES_FOR_NAMES {
            return Err(ProgrammingError::new_err(format!(
                "{which} nameless (qmark) placeholders."
            )));
        }
        let text = CString::new(format!(
            "{which} nominal (qmark) placeholders. Starting with Python 3.14 an \
             sqlite3.ProgrammingError will be raised."
        ))?;
        PyErr::warn(py, &category, &text, 1)?;
    }
    Ok(())
}

/// The parameter set as a tuple, from any sequence or mapping, with adapters applied. Runs the user's
/// code, which may change the very set: so each object is taken when its turn has come.
pub(crate) fn collect<'py>(
    parameters: &Bound<'py, PyAny>,
    names: &[Option<String>],
    single_values: SingleValues,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = parameters.py();
    let ready = |object| ready(object, single_values);
    let is_plain_sequence =
        parameters.is_exact_instance_of::<PyTuple>() || parameters.is_exact_instance_of::<PyList>();
    if !is_plain_sequence && !parameters.hasattr("__getitem__")? {
        return Err(ProgrammingError::new_err(
            "parameters are of unsupported type",
        ));
    }
    let is_mapping = !is_plain_sequence
        && (parameters.is_instance_of::<PyDict>()
            || parameters.cast::<PyMapping>().is_ok()
            || !parameters.hasattr("__len__")?);
    let objects: Vec<Bound<'py, PyAny>> = if is_mapping {
        let named = names.iter().enumerate();
        named
            .map(|(position, name)| ready(named_object(parameters, position, name.as_deref())?))
            .collect::<PyResult<_>>()?
    } else {
        // A sequence by its behaviour, as the standard library takes it.
        let supplied = parameters.len()?;
        if supplied != names.len() {
            return Err(wrong_count(names.len(), supplied));
        }
        warn_of_names(py, names)?;
        (0..supplied)
            .map(|index| ready(parameters.get_item(index)?))
            .collect::<PyResult<_>>()?
    };
    PyTuple::new(py, objects)
}

/// The objects of a tuple or list, exactly, ready to be bound whatever the statement; `None` for any other
/// set of parameters. May run the user's code.
pub(crate) fn collect_items<'py>(
    parameters: &Bound<'py, PyAny>,
    single_values: SingleValues,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if let Some(objects) = collect_plain(parameters, false) {
        return Ok(Some(objects));
    }
    let items = if let Ok(tuple) = parameters.cast_exact::<PyTuple>() {
        tuple.clone()
    } else if let Ok(list) = parameters.cast_exact::<PyList>() {
        list.to_tuple()
    } else {
        return Ok(None);
    };
    let objects = items.iter().map(|object| ready(object, single_values));
    let objects = objects.collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(parameters.py(), objects).map(Some)
}

/// An object as it is to be bound: adapted, and a buffer as its bytes or as the number that it is.
fn ready(object: Bound<'_, PyAny>, single_values: SingleValues) -> PyResult<Bound<'_, PyAny>> {
    let object = match is_plain(&object) && !adapts_base_types() {
        true => return Ok(object),
        false => adapt_to_bind(object)?,
    };
    storable(object, single_values)
}

/// Whether an object is of a class that has a storage class, or of one derived from it; whatever else such a
/// class offers, a buffer for instance, is not asked for. Only of `bytes` the buffer is what counts.
fn is_storable(object: &Bound<'_, PyAny>) -> bool {
    is_plain(object)
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>()
}

/// An object with a buffer as what SQLite stores of it; any other as it is. May run the user's code.
pub(crate) fn storable(
    object: Bound<'_, PyAny>,
    single_values: SingleValues,
) -> PyResult<Bound<'_, PyAny>> {
    if is_storable(&object) {
        return Ok(object);
    }
    if single_values == SingleValues::Numbers && buffers::is_single_value(&object) {
        return buffers::number_of(&object);
    }
    match buffers::bytes_of(&object)? {
        Some(bytes) => Ok(bytes.into_any()),
        None => Ok(object),
    }
}

fn named_object<'py>(
    mapping: &Bound<'py, PyAny>,
    position: usize,
    name: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    // `?2` goes by the name `2`; `?` has none.
    let Some(name) = name.and_then(|name| name.strip_prefix([':', '@', '$', '?'])) else {
        return Err(from_core(mapping.py(), Error::no_name(position + 1)));
    };
    mapping.get_item(name).map_err(|error| {
        if !error.is_instance_of::<PyLookupError>(mapping.py()) {
            return error;
        }
        from_core(mapping.py(), Error::no_value(name))
    })
}

fn wrong_count(wanted: usize, supplied: usize) -> PyErr {
    ProgrammingError::new_err(Error::wrong_count(wanted, supplied).to_string())
}

/// Appends the values of one parameter set, in the storage class of each object's type. Runs no code
/// of the user's.
#[inline]
pub(crate) fn push_values<'a>(
    values: &mut Values<'a>,
    objects: &'a [Bound<'_, PyAny>],
    cached: &CachedStatement,
) -> PyResult<()> {
    let wanted = cached.statement.parameter_count();
    if wanted != objects.len() {
        return Err(wrong_count(wanted, objects.len()));
    }
    for (index, object) in objects.iter().enumerate() {
        values.push(supported(index, object)?);
    }
    Ok(())
}

/// The value of the object in a position (from 0), or the error for a type SQLite does not have.
#[inline]
pub(crate) fn supported<'a>(index: usize, object: &'a Bound<'_, PyAny>) -> PyResult<ValueRef<'a>> {
    match value(object)? {
        Some(value) => Ok(value),
        None => Err(ProgrammingError::new_err(format!(
            "Error binding parameter {}: type '{}' is not supported",
            index + 1,
            type_name(object)
        ))),
    }
}

/// The value of an object exactly of a type SQLite has, for which no adapter is asked.
pub(crate) fn plain<'a>(object: &'a Bound<'_, PyAny>) -> Option<ValueRef<'a>> {
    match is_plain(object) && !adapts_base_types() {
        true => value(object).ok().flatten(),
        false => None,
    }
}

/// One value; `None` for a type SQLite does not have.
#[inline]
pub(crate) fn value<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<ValueRef<'a>>> {
    Ok(Some(if let Ok(text) = object.cast::<PyString>() {
        ValueRef::Text(text.to_str()?.as_bytes())
    } else if let Ok(integer) = object.cast::<PyInt>() {
        ValueRef::Integer(integer.extract().map_err(|_| {
            PyOverflowError::new_err("Python int too large to convert to SQLite INTEGER")
        })?)
    } else if object.is_none() {
        ValueRef::Null
    } else if let Ok(real) = object.cast::<PyFloat>() {
        ValueRef::Real(real.value())
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        ValueRef::Blob(bytes.as_bytes())
    } else {
        return Ok(None);
    }))
}

/// Binds one parameter set, each by its number (from 1) and value. Runs no code of the user's.
#[inline]
pub(crate) fn bind_each<'a>(
    objects: &'a [Bound<'_, PyAny>],
    wanted: usize,
    mut bind: impl FnMut(usize, ValueRef<'a>) -> PyResult<()>,
) -> PyResult<()> {
    if wanted != objects.len() {
        return Err(wrong_count(wanted, objects.len()));
    }
    for (position, object) in objects.iter().enumerate() {
        bind(position + 1, supported(position, object)?)?;
    }
    Ok(())
}
