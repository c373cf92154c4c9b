//! Converters of days, times and truth that need no call, with the Python original behind each.
//!
//! Invariants:
//! - What is not written in the one form that databases have of it is the original's, as are errors.
//! - No code of the user's runs before the original is called.

use oxlite_functions::text::{Said, read};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyTime};

#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Date,
    Time,
    DateTime,
}

/// A converter for `register_converter`: of `bool`, `date`, `time` or `datetime`, as `kind` says.
///
/// A `bool` is whether the bytes are `1`. Of the others they are `2026-11-26`, `01:02:03` with up to six digits
/// after a point, or both with a space between them; `original` is called with all else.
///
/// Raises `ValueError` for any other kind.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct NativeConverter {
    kind: Kind,
    original: Py<PyAny>,
}

#[pymethods]
impl NativeConverter {
    #[new]
    #[pyo3(signature = (kind, original, /))]
    fn new(kind: &str, original: Py<PyAny>) -> PyResult<Self> {
        let kind = match kind {
            "bool" => Kind::Bool,
            "date" => Kind::Date,
            "time" => Kind::Time,
            "datetime" => Kind::DateTime,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "a native converter is of bool, date, time or datetime, not {kind:?}"
                )));
            }
        };
        Ok(Self { kind, original })
    }

    /// What the original makes of the bytes. Raises what it raises.
    #[pyo3(signature = (stored, /))]
    fn __call__<'py>(&self, stored: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
        let py = stored.py();
        match self.convert(py, stored.as_bytes())? {
            Some(made) => Ok(made),
            None => self.original.bind(py).call1((stored,)),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.original)
    }
}

impl NativeConverter {
    /// What the original makes of the bytes, where that is certain.
    pub(crate) fn convert<'py>(
        &self,
        py: Python<'py>,
        stored: &[u8],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if matches!(self.kind, Kind::Bool) {
            return Ok(Some(PyBool::new(py, stored == b"1").to_owned().into_any()));
        }
        // Numbers of the calendar fit.
        Ok(Some(match (self.kind, read(stored)) {
            (Kind::Date, Some(Said::Date(date))) => {
                PyDate::new(py, date.year as i32, date.month as u8, date.day as u8)?.into_any()
            }
            (Kind::Time, Some(Said::Time(time))) => PyTime::new(
                py,
                time.hour as u8,
                time.minute as u8,
                time.second as u8,
                time.microsecond as u32,
                None,
            )?
            .into_any(),
            (Kind::DateTime, Some(Said::Moment(moment))) => {
                let (date, time) = (moment.date, moment.time);
                PyDateTime::new(
                    py,
                    date.year as i32,
                    date.month as u8,
                    date.day as u8,
                    time.hour as u8,
                    time.minute as u8,
                    time.second as u8,
                    time.microsecond as u32,
                    None,
                )?
                .into_any()
            }
            _ => return Ok(None),
        }))
    }
}
