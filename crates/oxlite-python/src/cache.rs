//! The seals of a cache's values as Python sees them.
//!
//! Invariant: nothing here waits or runs code of the user's, so the GIL is held.

use oxlite_core::{SealKey, Seals as Core, number_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The number of 64 bits under which a cache looks for a key. `ValueError` for text that is no valid Unicode.
#[pyfunction]
#[pyo3(signature = (key, /))]
pub(crate) fn cache_number(key: &Bound<'_, PyString>) -> PyResult<i64> {
    text_of(key).map(number_of)
}

/// Seals what a cache keeps, and opens it again: with the first of its keys of 16 bytes, and with all of them.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Seals(Core);

#[pymethods]
impl Seals {
    #[new]
    #[pyo3(signature = (keys, /))]
    fn new(keys: Vec<SealKey>) -> Self {
        Self(Core::new(keys))
    }

    /// What is stored of a value of that kind.
    #[pyo3(signature = (kind, key, expires_at, content, /))]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        kind: u8,
        key: &Bound<'py, PyString>,
        expires_at: i64,
        content: &Bound<'py, PyBytes>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let content = content.as_bytes();
        let header = self.0.header(kind, text_of(key)?, expires_at, content);
        PyBytes::new_with(py, header.len() + content.len(), |stored| {
            let (head, tail) = stored.split_at_mut(header.len());
            head.copy_from_slice(&header);
            tail.copy_from_slice(content);
            Ok(())
        })
    }

    /// The kind and content of a value that is stored; `None` if it is not what was sealed for that key and expiry.
    #[pyo3(signature = (key, expires_at, value, /))]
    fn open<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyString>,
        expires_at: i64,
        value: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<(u8, Bound<'py, PyBytes>)>> {
        let opened = self.0.opened(text_of(key)?, expires_at, value.as_bytes());
        Ok(opened.map(|(kind, content)| (kind, PyBytes::new(py, content))))
    }
}

fn text_of<'a>(key: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    key.to_str()
        .map_err(|_| PyValueError::new_err("a key is valid Unicode, which this one is not"))
}
