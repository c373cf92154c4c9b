//! The statistical aggregates that web frameworks write in Python for SQLite, as aggregates that need
//! neither Python nor the GIL, with Python's own behind them.
//!
//! Invariant: a group that has anything but numbers, or whose result is not certainly that of the
//! original, is given to an instance of the original from its first value on.

use std::collections::HashMap;

use oxlite_functions::Answer;
use oxlite_functions::statistics::{Number, Statistic};
use oxlite_sqlite::ValueRef;
use pyo3::prelude::*;

use crate::buffers::SingleValues;
use crate::connection::{Connection, c_name};
use crate::function::PythonAggregate;
use crate::native_aggregate::{Native, Taken, WithOriginal};

/// The aggregates by their names in SQL: of which statistic, and whether of a sample.
const AGGREGATES: [(&str, bool, bool); 4] = [
    ("STDDEV_POP", true, false),
    ("STDDEV_SAMP", true, true),
    ("VAR_POP", false, false),
    ("VAR_SAMP", false, true),
];

/// Creates those of the statistical aggregates that `originals` has, by their names in SQL, each with
/// its original behind it: a class of `create_aggregate`.
#[pyfunction]
#[pyo3(signature = (connection, originals, /))]
pub(crate) fn create_statistic_functions(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    originals: HashMap<String, Py<PyAny>>,
) -> PyResult<()> {
    let connection = connection.get();
    let single_values = SingleValues::of(connection.core()?);
    let mut aggregates = Vec::with_capacity(AGGREGATES.len());
    for (name, is_deviation, is_of_sample) in AGGREGATES {
        if let Some(original) = originals.get(name) {
            let statistic = Statistic {
                is_deviation,
                is_of_sample,
            };
            let original = PythonAggregate::new(original.clone_ref(py), single_values);
            let aggregate = WithOriginal {
                native: statistic,
                original,
            };
            aggregates.push((c_name(name)?, aggregate));
        }
    }
    connection.define(py, "Error creating aggregate", move |locked| {
        aggregates
            .into_iter()
            .try_for_each(|(name, aggregate)| locked.create_aggregate(&name, 1, Some(aggregate)))
    })
}

impl Native for Statistic {
    type Kept = Vec<Number>;

    fn take(&self, numbers: &mut Vec<Number>, value: ValueRef<'_>) -> Taken {
        let number = match value {
            ValueRef::Integer(integer) => Number::Integer(integer),
            ValueRef::Real(real) => Number::Real(real),
            _ => return Taken::No,
        };
        if numbers.try_reserve(1).is_err() {
            return Taken::NoMemory;
        }
        numbers.push(number);
        Taken::Yes
    }

    fn values<'k>(&self, numbers: &'k Vec<Number>) -> impl Iterator<Item = ValueRef<'k>> {
        numbers.iter().map(|number| match *number {
            Number::Integer(integer) => ValueRef::Integer(integer),
            Number::Real(real) => ValueRef::Real(real),
        })
    }

    fn answer<'k>(&self, numbers: &'k Vec<Number>) -> Option<ValueRef<'k>> {
        match self.of(numbers)? {
            Answer::Integer(integer) => Some(ValueRef::Integer(integer)),
            Answer::Real(real) => Some(ValueRef::Real(real)),
            _ => None,
        }
    }
}
