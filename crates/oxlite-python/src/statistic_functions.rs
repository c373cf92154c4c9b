//! The statistical aggregates that web frameworks write in Python for SQLite, as aggregates that need
//! neither Python nor the GIL, with Python's own behind them.
//!
//! Invariant: a group that has anything but numbers, or whose result is not certainly that of the
//! original, is given to an instance of the original from its first value on.

use std::cell::RefCell;
use std::collections::HashMap;

use oxlite_functions::Answer;
use oxlite_functions::statistics::{Number, Statistic};
use oxlite_sqlite::{Aggregate, FunctionContext, ValueRef};
use pyo3::prelude::*;

use crate::buffers::SingleValues;
use crate::connection::{Connection, c_name};
use crate::function::PythonAggregate;

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
                statistic,
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

struct WithOriginal {
    statistic: Statistic,
    original: PythonAggregate,
}

/// What is kept for a group.
enum Group {
    Numbers(Vec<Number>),
    Original(Py<PyAny>),
    /// The original could not be made, as its statement has been told.
    Failed,
}

fn values(numbers: &[Number]) -> impl Iterator<Item = ValueRef<'static>> {
    numbers.iter().map(|number| match *number {
        Number::Integer(integer) => ValueRef::Integer(integer),
        Number::Real(real) => ValueRef::Real(real),
    })
}

impl Aggregate for WithOriginal {
    type Instance = RefCell<Group>;

    fn create(&self, _: &FunctionContext<'_>) -> Option<RefCell<Group>> {
        Some(RefCell::new(Group::Numbers(Vec::new())))
    }

    fn step(&self, instance: &RefCell<Group>, context: &FunctionContext<'_>) {
        if let Group::Numbers(numbers) = &mut *instance.borrow_mut() {
            let number = match context.argument(0) {
                Ok(ValueRef::Integer(integer)) => Some(Number::Integer(integer)),
                Ok(ValueRef::Real(real)) => Some(Number::Real(real)),
                _ => None,
            };
            if let Some(number) = number {
                if numbers.try_reserve(1).is_err() {
                    return context.set_error_no_memory();
                }
                return numbers.push(number);
            }
        }
        // Not borrowed while Python runs.
        let original = match instance.replace(Group::Failed) {
            Group::Numbers(numbers) => self.original.create_with(context, values(&numbers)),
            Group::Original(original) => Some(original),
            Group::Failed => None,
        };
        if let Some(original) = original {
            self.original.step(&original, context);
            instance.replace(Group::Original(original));
        }
    }

    fn inverse(&self, _: &RefCell<Group>, _: &FunctionContext<'_>) {}

    fn value(&self, _: &RefCell<Group>, _: &FunctionContext<'_>) {}

    fn finalize(&self, instance: RefCell<Group>, context: &FunctionContext<'_>) {
        let original = match instance.into_inner() {
            Group::Numbers(numbers) => match self.statistic.of(&numbers) {
                Some(Answer::Integer(integer)) => {
                    return context.set_result(ValueRef::Integer(integer));
                }
                Some(Answer::Real(real)) => return context.set_result(ValueRef::Real(real)),
                _ => self.original.create_with(context, values(&numbers)),
            },
            Group::Original(original) => Some(original),
            Group::Failed => None,
        };
        if let Some(original) = original {
            self.original.finalize(original, context);
        }
    }
}
