//! What functions of our own have in common: their arguments, their answers, and the Python original
//! behind each.
//!
//! Invariant: a function that knows no answer gives the whole call to its original.

use std::collections::HashMap;

use oxlite_functions::{Answer, Argument};
use oxlite_sqlite::{FunctionContext, Scalar, ValueRef};
use pyo3::prelude::*;

use crate::buffers::SingleValues;
use crate::connection::{Connection, c_name};
use crate::function::scalar;

/// Creates those of `functions` that `originals` has, by their names in SQL, with the number of their
/// arguments; `with_original` puts a function and its original together.
pub(crate) fn create<K: Copy>(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    functions: &[(&str, i32, K)],
    originals: &HashMap<String, Py<PyAny>>,
    with_original: impl Fn(K, Scalar) -> Scalar,
) -> PyResult<()> {
    let connection = connection.get();
    let single_values = SingleValues::of(connection.core()?);
    let known = functions
        .iter()
        .filter_map(|(name, count, kind)| Some((name, *count, *kind, originals.get(*name)?)));
    let functions = known.map(|(name, count, kind, original)| {
        let original = scalar(original.clone_ref(py), single_values);
        Ok((c_name(name)?, count, with_original(kind, original)))
    });
    let functions: Vec<_> = functions.collect::<PyResult<_>>()?;
    connection.define(py, "Error creating function", move |locked| {
        functions
            .into_iter()
            .try_for_each(|(name, count, function)| {
                locked.create_function(&name, count, true, Some(function))
            })
    })
}

/// Sets the result of a call.
#[inline]
pub(crate) fn set_answer(context: &FunctionContext<'_>, answer: Answer) {
    context.set_result(match &answer {
        Answer::Null => ValueRef::Null,
        Answer::Integer(integer) => ValueRef::Integer(*integer),
        Answer::Real(real) => ValueRef::Real(*real),
        Answer::Text(text) => ValueRef::Text(text.as_bytes()),
    });
}

/// NULL, unless an argument is a text that is no Unicode: no Python function can be called with that.
pub(crate) fn null(context: &FunctionContext<'_>) -> Option<Answer> {
    for index in 0..context.len() {
        if let ValueRef::Text(text) = context.argument(index).ok()? {
            std::str::from_utf8(text).ok()?;
        }
    }
    Some(Answer::Null)
}

/// An argument; `None` if there is no memory for it.
#[inline]
pub(crate) fn argument<'a>(context: &'a FunctionContext<'_>, index: usize) -> Option<Argument<'a>> {
    Some(match context.argument(index).ok()? {
        ValueRef::Null => Argument::Null,
        ValueRef::Integer(integer) => Argument::Integer(integer),
        ValueRef::Real(real) => Argument::Real(real),
        ValueRef::Text(text) => Argument::Text(text),
        ValueRef::Blob(bytes) => Argument::Blob(bytes),
    })
}
