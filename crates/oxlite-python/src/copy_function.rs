//! The SQL function by which SQLite writes lines of PostgreSQL's COPY.
//!
//! Invariant: it is NULL for NULL, and for what no text of PostgreSQL's can be; it never fails but for memory.

use oxlite_functions::copy;
use oxlite_sqlite::{Scalar, ValueRef};
use pyo3::prelude::*;

use crate::connection::{Connection, c_name};

/// Creates `oxlite_copy_text(text)`: a text as a column of a line of PostgreSQL's COPY, or NULL for one with a
/// NUL in it, for one that is no UTF-8, and for what is no text.
#[pyfunction]
#[pyo3(signature = (connection, /))]
pub(crate) fn create_copy_function(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
) -> PyResult<()> {
    let name = c_name("oxlite_copy_text")?;
    connection
        .get()
        .define(py, "Error creating function", move |locked| {
            let function: Scalar = Box::new(|context| {
                let made = match context.argument(0) {
                    Ok(ValueRef::Text(text)) => copy::column(text),
                    _ => None,
                };
                context.set_result(match &made {
                    Some(text) => ValueRef::Text(text),
                    None => ValueRef::Null,
                });
            });
            locked.create_function(&name, 1, true, Some(function))
        })
}
