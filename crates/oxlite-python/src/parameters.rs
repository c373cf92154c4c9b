//! Python objects to bound parameters: one positional or named set for one execution.

use oxlite_core::CachedStatement;
use oxlite_sqlite::{Locked, ValueRef};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView, PySequence,
    PyString, PyTuple,
};

use crate::error::{ProgrammingError, from_sqlite};

/// Binds every parameter of the statement; a number or a name that does not fit is an error.
pub(crate) fn bind(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    parameters: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = parameters.py();
    if let Ok(tuple) = parameters.cast_exact::<PyTuple>() {
        check_count(cached, tuple.len())?;
        for (index, value) in tuple.iter_borrowed().enumerate() {
            bind_one(cached, locked, index + 1, &value)?;
        }
        Ok(())
    } else if let Ok(list) = parameters.cast_exact::<PyList>() {
        check_count(cached, list.len())?;
        bind_items(cached, locked, |index| list.get_item(index))
    } else if let Ok(dict) = parameters.cast_exact::<PyDict>() {
        bind_named(cached, locked, py, |name| match dict.get_item(name)? {
            Some(value) => Ok(value),
            None => Err(PyKeyError::new_err(name.to_owned())),
        })
    } else if let Ok(sequence) = parameters.cast::<PySequence>() {
        check_count(cached, sequence.len()?)?;
        bind_items(cached, locked, |index| sequence.get_item(index))
    } else if let Ok(mapping) = parameters.cast::<PyMapping>() {
        bind_named(cached, locked, py, |name| mapping.get_item(name))
    } else {
        bind_duck_typed(cached, locked, parameters)
    }
}

/// Objects that are registered neither as sequences nor as mappings but behave like one.
fn bind_duck_typed(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    parameters: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if !parameters.hasattr("__getitem__")? {
        return Err(ProgrammingError::new_err(
            "parameters are of unsupported type",
        ));
    }
    if let Ok(length) = parameters.len() {
        check_count(cached, length)?;
        return bind_items(cached, locked, |index| parameters.get_item(index));
    }
    bind_named(cached, locked, parameters.py(), |name| {
        parameters.get_item(name)
    })
}

fn check_count(cached: &CachedStatement, supplied: usize) -> PyResult<()> {
    let wanted = cached.statement.parameter_count();
    if wanted == supplied {
        return Ok(());
    }
    Err(ProgrammingError::new_err(format!(
        "Incorrect number of bindings supplied. The current statement uses {wanted}, and there are \
         {supplied} supplied."
    )))
}

fn bind_items<'py>(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    item: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<()> {
    for index in 0..cached.statement.parameter_count() {
        bind_one(cached, locked, index + 1, &item(index)?)?;
    }
    Ok(())
}

fn bind_named<'py>(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    py: Python<'py>,
    item: impl Fn(&str) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<()> {
    for index in 1..=cached.statement.parameter_count() {
        // Without its prefix, as Python code spells it. `?2` is a number, not a name.
        let name = cached
            .statement
            .parameter_name(locked, index)
            .and_then(|name| name.strip_prefix([':', '@', '$']))
            .map(str::to_owned);
        let Some(name) = name else {
            return Err(ProgrammingError::new_err(format!(
                "Binding {index} has no name, but you supplied a dictionary (which has only names)."
            )));
        };
        let value = match item(&name) {
            Ok(value) => value,
            Err(error) if is_lookup_error(&error, py) => {
                return Err(ProgrammingError::new_err(format!(
                    "You did not supply a value for binding parameter :{name}."
                )));
            }
            Err(error) => return Err(error),
        };
        bind_one(cached, locked, index, &value)?;
    }
    Ok(())
}

/// Binds one value in the storage class of its Python type.
#[inline]
fn bind_one(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    index: usize,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if let Ok(text) = value.cast::<PyString>() {
        put(
            cached,
            locked,
            index,
            value,
            ValueRef::Text(text.to_str()?.as_bytes()),
        )
    } else if let Ok(integer) = value.cast::<PyInt>() {
        let integer = integer.extract().map_err(|_| {
            PyOverflowError::new_err("Python int too large to convert to SQLite INTEGER")
        })?;
        put(cached, locked, index, value, ValueRef::Integer(integer))
    } else if value.is_none() {
        put(cached, locked, index, value, ValueRef::Null)
    } else if let Ok(real) = value.cast::<PyFloat>() {
        put(cached, locked, index, value, ValueRef::Real(real.value()))
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        put(
            cached,
            locked,
            index,
            value,
            ValueRef::Blob(bytes.as_bytes()),
        )
    } else if let Ok(bytes) = value.cast::<PyByteArray>() {
        put(
            cached,
            locked,
            index,
            value,
            ValueRef::Blob(&bytes.to_vec()),
        )
    } else if let Ok(view) = PyMemoryView::from(value) {
        let bytes = view.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?;
        put(
            cached,
            locked,
            index,
            value,
            ValueRef::Blob(bytes.as_bytes()),
        )
    } else {
        Err(ProgrammingError::new_err(format!(
            "Error binding parameter {}: type '{}' is not supported",
            parameter_label(cached, locked, index),
            value.get_type().name()?
        )))
    }
}

#[inline]
fn put(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    index: usize,
    value: &Bound<'_, PyAny>,
    converted: ValueRef<'_>,
) -> PyResult<()> {
    if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = converted {
        cached.bound_bytes += bytes.len();
    }
    cached
        .statement
        .bind(locked, index, converted)
        .map_err(|error| from_sqlite(value.py(), &error))
}

/// The parameter as the user wrote it: its quoted name, or its number.
fn parameter_label(cached: &CachedStatement, locked: &Locked<'_>, index: usize) -> String {
    cached
        .statement
        .parameter_name(locked, index)
        .map_or_else(|| index.to_string(), |name| format!("'{name}'"))
}

fn is_lookup_error(error: &PyErr, py: Python<'_>) -> bool {
    error.is_instance_of::<PyKeyError>(py) || error.is_instance_of::<PyIndexError>(py)
}
