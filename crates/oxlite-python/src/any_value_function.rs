//! `ANY_VALUE` as web frameworks write it in Python for SQLite, as an aggregate that needs neither
//! Python nor the GIL, with Python's own behind it.
//!
//! Invariant: it is the first value of a group, and a text that is no Unicode is an error wherever it
//! is, since Python cannot be given it.

use oxlite_sqlite::{Value, ValueRef};
use pyo3::prelude::*;

use crate::buffers::SingleValues;
use crate::connection::{Connection, c_name};
use crate::function::PythonAggregate;
use crate::native_aggregate::{Native, Taken, WithOriginal};

/// Creates `ANY_VALUE` with the original behind it: a class of `create_aggregate` whose result is the
/// first value.
#[pyfunction]
#[pyo3(signature = (connection, original, /))]
pub(crate) fn create_any_value_function(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    original: Py<PyAny>,
) -> PyResult<()> {
    let connection = connection.get();
    let single_values = SingleValues::of(connection.core()?);
    let aggregate = WithOriginal {
        native: AnyValue,
        original: PythonAggregate::new(original, single_values),
    };
    let name = c_name("ANY_VALUE")?;
    connection.define(py, "Error creating aggregate", move |locked| {
        locked.create_aggregate(&name, 1, Some(aggregate))
    })
}

struct AnyValue;

impl Native for AnyValue {
    /// The first value, once there is one.
    type Kept = Option<Value>;

    fn take(&self, kept: &mut Option<Value>, value: ValueRef<'_>) -> Taken {
        if let ValueRef::Text(text) = value
            && std::str::from_utf8(text).is_err()
        {
            return Taken::No;
        }
        if kept.is_none() {
            *kept = owned(value);
        }
        match kept {
            Some(_) => Taken::Yes,
            None => Taken::NoMemory,
        }
    }

    fn values<'k>(&self, kept: &'k Option<Value>) -> impl Iterator<Item = ValueRef<'k>> {
        kept.iter().map(Value::as_ref)
    }

    fn answer<'k>(&self, kept: &'k Option<Value>) -> Option<ValueRef<'k>> {
        kept.as_ref().map(Value::as_ref)
    }
}

/// A copy, or `None` if there is no memory for it.
fn owned(value: ValueRef<'_>) -> Option<Value> {
    let copy = |bytes: &[u8]| {
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len()).ok()?;
        copy.extend_from_slice(bytes);
        Some(copy.into_boxed_slice())
    };
    Some(match value {
        ValueRef::Text(text) => Value::Text(copy(text)?),
        ValueRef::Blob(bytes) => Value::Blob(copy(bytes)?),
        number => Value::from(number),
    })
}
