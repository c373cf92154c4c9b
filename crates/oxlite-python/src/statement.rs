//! `Statement`: what calling a connection returns.

use oxlite_core::CachedStatement;
use pyo3::prelude::*;

/// A prepared statement. It shows that the SQL could be prepared, and has no use of its own; the
/// standard library's is the same.
#[pyclass(module = "oxlite.sqlite3", frozen)]
pub(crate) struct Statement {
    /// Finalised with this object. None for SQL that holds only space and comments.
    _prepared: Option<Box<CachedStatement>>,
}

impl Statement {
    pub(crate) fn new(prepared: Option<Box<CachedStatement>>) -> Self {
        Self {
            _prepared: prepared,
        }
    }
}
