//! The functions of days and times that web frameworks write in Python for SQLite, as functions
//! that need neither Python nor the GIL, with Python's own behind them.
//!
//! Invariant: where `oxlite_functions` answers nothing, the Python original is called with the same
//! arguments, and what it returns or raises is the outcome. So there is no result that is not the
//! original's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use oxlite_functions::zone::{Change, Zone};
use oxlite_functions::{Answer, Argument, dates, differences};
use oxlite_sqlite::{FunctionContext, Scalar, ValueRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::callback;
use crate::connection::Connection;
use crate::gil::attached;
use crate::native_function::{argument, create, null, set_answer};

/// What is done to the clock before a question is answered: it shows the time of a zone, is put
/// forward by some microseconds, and then shows the time of another zone, if there is one.
///
/// The zones are the bytes of TZif files; `ValueError` for those that are not certainly understood
/// as `zoneinfo` does.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct ClockChange(Arc<Change>);

#[pymethods]
impl ClockChange {
    #[new]
    #[pyo3(signature = (source, shift, target, /))]
    fn new(source: &[u8], shift: i64, target: Option<&[u8]>) -> PyResult<Self> {
        let zone = |file| {
            let unknown = || PyValueError::new_err("not a TZif file that is understood here");
            Zone::from_file(file).ok_or_else(unknown)
        };
        Ok(Self(Arc::new(Change {
            source: zone(source)?,
            shift,
            target: target.map(zone).transpose()?,
        })))
    }
}

/// Answers to the name of a part or a period, a text, and a change of clocks.
type Zoned = fn(&[u8], &[u8], Option<&Change>) -> Option<Answer>;

/// Which function it is.
#[derive(Clone, Copy)]
enum Kind {
    /// Of a name, a text and two zones.
    Zoned(Zoned),
    /// Of a text and two zones.
    ZonedCast(fn(&[u8], Option<&Change>) -> Option<Answer>),
    /// Of a name and a text.
    Named(fn(&[u8], &[u8]) -> Option<Answer>),
    /// Of two texts.
    Between(fn(&[u8], &[u8]) -> Option<Answer>),
    /// Of an operator and two values.
    Combined,
}

/// The functions by their names in SQL, with the number of their arguments.
const FUNCTIONS: [(&str, i32, Kind); 11] = [
    (
        "django_date_extract",
        2,
        Kind::Named(|part, text| dates::extract(part, text, None)),
    ),
    ("django_date_trunc", 4, Kind::Zoned(dates::begin_as_date)),
    (
        "django_datetime_cast_date",
        3,
        Kind::ZonedCast(dates::date_of),
    ),
    (
        "django_datetime_cast_time",
        3,
        Kind::ZonedCast(dates::time_of),
    ),
    ("django_datetime_extract", 4, Kind::Zoned(dates::extract)),
    ("django_datetime_trunc", 4, Kind::Zoned(dates::begin)),
    (
        "django_time_extract",
        2,
        Kind::Named(dates::extract_of_time),
    ),
    ("django_time_trunc", 4, Kind::Zoned(dates::begin_as_time)),
    (
        "django_time_diff",
        2,
        Kind::Between(differences::between_times),
    ),
    (
        "django_timestamp_diff",
        2,
        Kind::Between(differences::between),
    ),
    ("django_format_dtdelta", 3, Kind::Combined),
];

/// Creates those of the functions that `originals` has, by their names in SQL, each with its original
/// behind it. `clock_change` is called with the names of two zones, the one that is asked for and the
/// connection's, and returns a `ClockChange`, or `None` where the originals are to be called.
#[pyfunction]
#[pyo3(signature = (connection, originals, clock_change, /))]
pub(crate) fn create_date_functions(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    originals: HashMap<String, Py<PyAny>>,
    clock_change: Py<PyAny>,
) -> PyResult<()> {
    create(py, connection, &FUNCTIONS, &originals, |kind, original| {
        with_original(kind, original, clock_change.clone_ref(py))
    })
}

fn with_original(kind: Kind, original: Scalar, clock_change: Py<PyAny>) -> Scalar {
    let clocks = Clocks {
        latest: RefCell::default(),
        clock_change,
    };
    Box::new(move |context| match answer(kind, context, &clocks) {
        Some(answer) => set_answer(context, answer),
        None => original(context),
    })
}

fn answer(kind: Kind, context: &FunctionContext<'_>, clocks: &Clocks) -> Option<Answer> {
    match kind {
        Kind::Zoned(function) => {
            let Some(text) = text_or_null(context, 1)? else {
                return null(context);
            };
            let name = text_or_null(context, 0)??;
            let zones = (text_or_null(context, 2)?, text_or_null(context, 3)?);
            clocks.with(zones, |change| function(name, text, change))
        }
        Kind::ZonedCast(function) => {
            let Some(text) = text_or_null(context, 0)? else {
                return null(context);
            };
            let zones = (text_or_null(context, 1)?, text_or_null(context, 2)?);
            clocks.with(zones, |change| function(text, change))
        }
        Kind::Named(function) => {
            let Some(text) = text_or_null(context, 1)? else {
                return null(context);
            };
            function(text_or_null(context, 0)??, text)
        }
        Kind::Between(function) => {
            let (left, right) = (argument(context, 0)?, argument(context, 1)?);
            match (left, right) {
                (Argument::Null, _) | (_, Argument::Null) => null(context),
                (Argument::Text(left), Argument::Text(right)) => function(left, right),
                _ => None,
            }
        }
        Kind::Combined => {
            let (left, right) = (argument(context, 1)?, argument(context, 2)?);
            match (argument(context, 0)?, left, right) {
                (Argument::Null, _, _) | (_, Argument::Null, _) | (_, _, Argument::Null) => {
                    null(context)
                }
                (Argument::Text(operator), left, right) => {
                    differences::combine(operator, left, right)
                }
                _ => None,
            }
        }
    }
}

/// A text, or `Some(None)` for NULL.
#[inline]
fn text_or_null<'a>(context: &'a FunctionContext<'_>, index: usize) -> Option<Option<&'a [u8]>> {
    match context.argument(index).ok()? {
        ValueRef::Null => Some(None),
        ValueRef::Text(text) => Some(Some(text)),
        _ => None,
    }
}

/// The change of clocks that a function was asked for last: a statement asks for the same at each row.
struct Clocks {
    latest: RefCell<Latest>,
    clock_change: Py<PyAny>,
}

/// The zone that is asked for and the connection's, as a function's arguments have them.
type Zones<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

#[derive(Default)]
struct Latest {
    zone: Option<Box<[u8]>>,
    connections: Option<Box<[u8]>>,
    change: Option<Arc<Change>>,
}

impl Clocks {
    fn with(
        &self,
        zones: Zones<'_>,
        work: impl FnOnce(Option<&Change>) -> Option<Answer>,
    ) -> Option<Answer> {
        if let (None, None) = zones {
            return work(None);
        }
        {
            let latest = self.latest.borrow();
            if (latest.zone.as_deref(), latest.connections.as_deref()) == zones {
                return work(Some(latest.change.as_deref()?));
            }
        }
        let change = self.ask(zones);
        // Not borrowed while Python runs, which may call this function.
        *self.latest.borrow_mut() = Latest {
            zone: zones.0.map(Into::into),
            connections: zones.1.map(Into::into),
            change: change.clone(),
        };
        work(Some(&*change?))
    }

    #[cold]
    fn ask(&self, zones: Zones<'_>) -> Option<Arc<Change>> {
        let text = |name: Option<&[u8]>| match name {
            Some(name) => std::str::from_utf8(name)
                .ok()
                .map(|name| Some(name.to_owned())),
            None => Some(None),
        };
        let names = (text(zones.0)?, text(zones.1)?);
        attached(|py| {
            let clock_change = self.clock_change.bind(py);
            let change = clock_change.call1(names).and_then(|change| {
                let change: Option<PyRef<'_, ClockChange>> = change.extract()?;
                Ok(change.map(|change| Arc::clone(&change.0)))
            });
            change.unwrap_or_else(|error| {
                callback::report(py, error, clock_change);
                None
            })
        })
    }
}
