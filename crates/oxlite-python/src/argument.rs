//! What a caller passes, or leaves out.

use pyo3::prelude::*;

/// An argument that may be left out: `None` is an object like any other, absence is not.
pub(crate) enum Argument<'py> {
    Absent,
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Argument<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(object.to_owned()))
    }
}
