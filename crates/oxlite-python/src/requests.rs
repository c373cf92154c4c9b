//! Requests from what an application has given, and rows from what has come of them: for work that another
//! thread does, without the GIL.

use oxlite_core::{Parameters, Request, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::buffers::SingleValues;
use crate::connection::Connection;
use crate::cursor::Cursor;
use crate::parameters;
use crate::values::{described_by, object_of_value, rows_of};

/// Sets of parameters beyond this number are not put together with other requests: they would be held in
/// memory, and hold the others up.
const SETS_AT_MOST: usize = 1000;

/// The request for one execution, or for one with each of many sets; `None` if only the statement, or the
/// user's own code, can tell what the parameters are.
pub(crate) fn request(
    sql: &str,
    parameters: &Bound<'_, PyAny>,
    is_many: bool,
    single_values: SingleValues,
) -> PyResult<Option<Request>> {
    let sets = if is_many {
        // Any other iterable may be endless, or look at the database.
        let sets = if let Ok(list) = parameters.cast_exact::<PyList>() {
            list.to_tuple()
        } else if let Ok(tuple) = parameters.cast_exact::<PyTuple>() {
            tuple.clone()
        } else {
            return Ok(None);
        };
        if sets.len() > SETS_AT_MOST {
            return Ok(None);
        }
        let owned = sets.iter().map(|set| owned(&set, single_values));
        owned.collect::<PyResult<Option<Vec<_>>>>()?
    } else {
        owned(parameters, single_values)?.map(|set| vec![set])
    };
    Ok(sets.map(|sets| Request {
        sql: sql.into(),
        sets,
        is_many,
        announces: None,
    }))
}

/// The values of a parameter set, without the statement that they are for; `None` if only that, or the
/// user's own code, can tell what they are.
fn owned(set: &Bound<'_, PyAny>, single_values: SingleValues) -> PyResult<Option<Parameters>> {
    if let Some(objects) = parameters::collect_items(set, single_values)? {
        let mut values = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            values.push(parameters::supported(index, &object)?.into());
        }
        return Ok(Some(Parameters::Positional(values)));
    }
    let Ok(dict) = set.cast_exact::<PyDict>() else {
        return Ok(None);
    };
    let mut values = Vec::with_capacity(dict.len());
    for (name, object) in dict {
        // What the statement has no parameter for may be anything.
        let Ok(name) = name.cast_into::<PyString>() else {
            return Ok(None);
        };
        let Some(object) = parameters::plain(&object) else {
            return Ok(None);
        };
        values.push((Box::from(name.to_str()?), Value::from(object)));
    }
    Ok(Some(Parameters::Named(values)))
}

/// Whether a data modification may return rows.
pub(crate) fn may_return_rows(sql: &str) -> bool {
    const RETURNING: &[u8] = b"RETURNING";
    let mut windows = sql.as_bytes().windows(RETURNING.len());
    windows.any(|part| part.eq_ignore_ascii_case(RETURNING))
}

/// Makes rows of values: tuples, or what a connection's factory makes of them.
#[derive(Default)]
pub(crate) struct RowMaker {
    /// With the cursor that it is called with.
    factory: Option<(Py<PyAny>, Py<Cursor>)>,
}

impl RowMaker {
    /// As the connection is set now.
    pub(crate) fn of(connection: &Bound<'_, Connection>, columns: &[Box<[u8]>]) -> PyResult<Self> {
        let py = connection.py();
        let Some(factory) = connection.get().row_factory_object(py) else {
            return Ok(Self::default());
        };
        let cursor = Cursor::create(connection)?;
        cursor.get().describe(py, described_by(py, columns)?);
        Ok(Self {
            factory: Some((factory, cursor.unbind())),
        })
    }

    /// The rows of these values, which stand one after the other.
    pub(crate) fn rows<'py>(
        &self,
        py: Python<'py>,
        columns: &[Box<[u8]>],
        values: &[Value],
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = rows_of(py, columns, values)?;
        let Some((factory, cursor)) = &self.factory else {
            return Ok(rows);
        };
        let made = rows
            .iter()
            .map(|row| factory.bind(py).call1((cursor, row)))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, made)
    }
}

/// A set of parameters as Python objects again.
pub(crate) fn objects_of<'py>(py: Python<'py>, set: &Parameters) -> PyResult<Bound<'py, PyAny>> {
    match set {
        Parameters::Positional(values) => {
            let objects = values
                .iter()
                .map(|value| object_of_value(py, value.as_ref()))
                .collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, objects)?.into_any())
        }
        Parameters::Named(values) => {
            let dict = PyDict::new(py);
            for (name, value) in values {
                dict.set_item(&**name, object_of_value(py, value.as_ref())?)?;
            }
            Ok(dict.into_any())
        }
    }
}
