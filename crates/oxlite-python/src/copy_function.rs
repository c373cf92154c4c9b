//! The SQL functions by which SQLite writes rows for PostgreSQL: `oxlite_copy_text` a text, `oxlite_copy_row` and
//! `oxlite_compared_row` whole rows.
//!
//! Invariant: they are NULL for what does not certainly fit; they never fail but for memory.

use oxlite_functions::copy::{self, Form};
use oxlite_sqlite::{FunctionContext, Scalar, ValueRef};
use pyo3::prelude::*;

use crate::connection::{Connection, c_name};
use crate::native_function::argument;

/// As many arguments as there are.
const ANY: i32 = -1;

/// Creates `oxlite_copy_text(text)`: a text as a column of a line of PostgreSQL's COPY, or NULL for one with a
/// NUL in it, for one that is no UTF-8, and for what is no text; and `oxlite_copy_row(kinds, column, …)` and
/// `oxlite_compared_row(kinds, column, …)`: a line, and what stands for a row where it is compared, or NULL where a
/// value does not certainly fit. `kinds` has a letter for each column.
#[pyfunction]
#[pyo3(signature = (connection, /))]
pub(crate) fn create_copy_functions(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
) -> PyResult<()> {
    let functions: [(_, _, Scalar); 3] = [
        (c_name("oxlite_copy_text")?, 1, Box::new(text)),
        (c_name("oxlite_copy_row")?, ANY, row(Form::Copied)),
        (c_name("oxlite_compared_row")?, ANY, row(Form::Compared)),
    ];
    connection
        .get()
        .define(py, "Error creating function", move |locked| {
            functions
                .into_iter()
                .try_for_each(|(name, count, function)| {
                    locked.create_function(&name, count, true, Some(function))
                })
        })
}

fn text(context: &FunctionContext<'_>) {
    let made = match context.argument(0) {
        Ok(ValueRef::Text(text)) => copy::column(text),
        _ => None,
    };
    context.set_result(match &made {
        Some(text) => ValueRef::Text(text),
        None => ValueRef::Null,
    });
}

fn row(form: Form) -> Scalar {
    Box::new(move |context| {
        let mut made = Vec::new();
        let is_made = match context.argument(0) {
            Ok(ValueRef::Text(kinds)) => std::str::from_utf8(kinds).is_ok_and(|kinds| {
                let value = |index| argument(context, index + 1);
                copy::row(kinds, form, value, &mut made).is_some()
            }),
            _ => false,
        };
        context.set_result(match is_made {
            true => ValueRef::Text(&made),
            false => ValueRef::Null,
        });
    })
}
