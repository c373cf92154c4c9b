//! The small functions of texts and integers that web frameworks write in Python for SQLite, as
//! functions that need neither Python nor the GIL, with Python's own behind them.
//!
//! Invariant: NULL has NULL for its answer; all else that is no text or number where one is wanted, or
//! whose answer is not certainly the original's, is given to the original.

use std::borrow::Cow;
use std::collections::HashMap;

use oxlite_functions::{Answer, Argument, numbers, strings};
use oxlite_sqlite::{FunctionContext, ValueRef};
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::native_function::{argument, create, null, set_answer};

/// Of a text, a number of code points, and what is to be filled in.
type Padding = for<'a> fn(&'a str, i64, &str) -> Option<Cow<'a, [u8]>>;

/// Which function it is.
#[derive(Clone, Copy)]
enum Kind {
    Padding(Padding),
    Repeat,
    Reverse,
    Sign,
    ExclusiveOr,
}

/// The functions by their names in SQL, with the number of their arguments.
const FUNCTIONS: [(&str, i32, Kind); 6] = [
    ("BITXOR", 2, Kind::ExclusiveOr),
    ("LPAD", 3, Kind::Padding(strings::pad_left)),
    ("REPEAT", 2, Kind::Repeat),
    ("REVERSE", 1, Kind::Reverse),
    ("RPAD", 3, Kind::Padding(strings::pad_right)),
    ("SIGN", 1, Kind::Sign),
];

/// Creates those of the small functions that `originals` has, by their names in SQL, each with its
/// original behind it: `BITXOR`, `LPAD`, `REPEAT`, `REVERSE`, `RPAD` and `SIGN`.
#[pyfunction]
#[pyo3(signature = (connection, originals, /))]
pub(crate) fn create_small_functions(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    originals: HashMap<String, Py<PyAny>>,
) -> PyResult<()> {
    create(py, connection, &FUNCTIONS, &originals, |kind, original| {
        Box::new(move |context| {
            if answer(kind, context).is_none() {
                original(context);
            }
        })
    })
}

/// Sets the result of a call; `None` where the original is to do that.
fn answer(kind: Kind, context: &FunctionContext<'_>) -> Option<()> {
    for index in 0..context.len() {
        if argument(context, index)? == Argument::Null {
            set_answer(context, null(context)?);
            return Some(());
        }
    }
    let made = match kind {
        Kind::Sign => return number(context, numbers::sign(argument(context, 0)?)),
        Kind::ExclusiveOr => {
            let (left, right) = (argument(context, 0)?, argument(context, 1)?);
            return number(context, numbers::exclusive_or(left, right));
        }
        Kind::Padding(padding) => {
            padding(text(context, 0)?, integer(context, 1)?, text(context, 2)?)?
        }
        Kind::Repeat => strings::repeat(text(context, 0)?, integer(context, 1)?)?,
        Kind::Reverse => strings::reverse(text(context, 0)?)?,
    };
    context.set_result(ValueRef::Text(&made));
    Some(())
}

fn number(context: &FunctionContext<'_>, answer: Option<Answer>) -> Option<()> {
    set_answer(context, answer?);
    Some(())
}

fn text<'a>(context: &'a FunctionContext<'_>, index: usize) -> Option<&'a str> {
    match argument(context, index)? {
        Argument::Text(text) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

fn integer(context: &FunctionContext<'_>, index: usize) -> Option<i64> {
    match argument(context, index)? {
        Argument::Integer(integer) => Some(integer),
        _ => None,
    }
}
