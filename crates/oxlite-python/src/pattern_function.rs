//! `REGEXP` as web frameworks write it in Python for SQLite, as a function that needs neither Python
//! nor the GIL, with Python's own behind it.
//!
//! Invariant: NULL has NULL for its answer; all else that is no text, or of which nothing is certainly
//! known, is given to the original.

use std::cell::RefCell;
use std::sync::Arc;

use oxlite_functions::pattern::Pattern as Core;
use oxlite_sqlite::{FunctionContext, ValueRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::buffers::SingleValues;
use crate::callback;
use crate::connection::{Connection, c_name};
use crate::function::scalar;
use crate::gil::attached;

/// A regular expression in the language of Rust's `regex`; `ValueError` for one that is wrong or too
/// large. With `is_of_ascii` it is said of texts in ASCII alone.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Pattern(Arc<Core>);

#[pymethods]
impl Pattern {
    #[new]
    #[pyo3(signature = (expression, is_of_ascii, ignores_case, /))]
    fn new(expression: &str, is_of_ascii: bool, ignores_case: bool) -> PyResult<Self> {
        let pattern = Core::new(expression, is_of_ascii, ignores_case);
        let pattern =
            pattern.ok_or_else(|| PyValueError::new_err("not an expression to be used"))?;
        Ok(Self(Arc::new(pattern)))
    }

    /// Whether a text has a match; `None` where that is not certainly known.
    #[pyo3(signature = (text, /))]
    fn is_in(&self, text: &[u8]) -> Option<bool> {
        self.0.is_in(text)
    }
}

/// Creates `REGEXP` with the original behind it. `pattern_of` is called with a pattern in Python's
/// language, and returns a `Pattern`, or `None` where the original is to be called. With
/// `searches_integers` an integer is searched as the text that it is written as.
#[pyfunction]
#[pyo3(signature = (connection, original, pattern_of, /, *, searches_integers))]
pub(crate) fn create_pattern_function(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    original: Py<PyAny>,
    pattern_of: Py<PyAny>,
    searches_integers: bool,
) -> PyResult<()> {
    let connection = connection.get();
    let original = scalar(original, SingleValues::of(connection.core()?));
    let patterns = Patterns {
        latest: RefCell::default(),
        pattern_of,
        searches_integers,
    };
    let name = c_name("regexp")?;
    connection.define(py, "Error creating function", move |locked| {
        let function = move |context: &FunctionContext<'_>| match patterns.answer(context) {
            Some(value) => context.set_result(value),
            None => original(context),
        };
        locked.create_function(&name, 2, true, Some(Box::new(function)))
    })
}

/// A pattern, and what it is compiled; `None` for one that is the original's.
type Latest = (Box<[u8]>, Option<Arc<Core>>);

/// The pattern that was asked for last: a statement asks for the same at each row.
struct Patterns {
    latest: RefCell<Option<Latest>>,
    pattern_of: Py<PyAny>,
    searches_integers: bool,
}

impl Patterns {
    fn answer(&self, context: &FunctionContext<'_>) -> Option<ValueRef<'static>> {
        let ValueRef::Text(pattern) = context.argument(0).ok()? else {
            return None;
        };
        let is_match = match context.argument(1).ok()? {
            ValueRef::Text(text) => self.pattern(pattern)?.is_in(text)?,
            ValueRef::Integer(integer) if self.searches_integers => self
                .pattern(pattern)?
                .is_in(integer.to_string().as_bytes())?,
            ValueRef::Null => return std::str::from_utf8(pattern).ok().map(|_| ValueRef::Null),
            _ => return None,
        };
        Some(ValueRef::Integer(i64::from(is_match)))
    }

    fn pattern(&self, pattern: &[u8]) -> Option<Arc<Core>> {
        if let Some((latest, compiled)) = &*self.latest.borrow()
            && **latest == *pattern
        {
            return compiled.clone();
        }
        let compiled = self.ask(pattern);
        // Not borrowed while Python runs, which may call this function.
        *self.latest.borrow_mut() = Some((pattern.into(), compiled.clone()));
        compiled
    }

    #[cold]
    fn ask(&self, pattern: &[u8]) -> Option<Arc<Core>> {
        let pattern = std::str::from_utf8(pattern).ok()?;
        attached(|py| {
            let pattern_of = self.pattern_of.bind(py);
            let compiled = pattern_of.call1((pattern,)).and_then(|compiled| {
                let compiled: Option<PyRef<'_, Pattern>> = compiled.extract()?;
                Ok(compiled.map(|compiled| Arc::clone(&compiled.0)))
            });
            compiled.unwrap_or_else(|error| {
                callback::report(py, error, pattern_of);
                None
            })
        })
    }
}
