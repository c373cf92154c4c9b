//! The parameter sets of `executemany`, taken so many at a time that they are bound and stepped in
//! one crossing.
//!
//! Invariant: code of the user's in a set does not run before the sets ahead of it are executed.

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyTuple};

use crate::buffers::SingleValues;
use crate::parameters;

/// How many parameter sets of a list or tuple are bound and stepped in one crossing.
const SETS_PER_CROSSING: usize = 64;

/// Where `executemany` takes its parameter sets from.
pub(crate) struct ParameterSets<'py> {
    iterator: Bound<'py, PyIterator>,
    /// From a list or tuple many sets are taken at once. An iterator may look at what the set before
    /// has done, so it is asked for one at a time.
    at_once: usize,
    /// A set that needs code of the user's, which must not run before the sets ahead of it.
    pending: Option<Bound<'py, PyAny>>,
}

/// The sets of one crossing.
pub(crate) struct Crossing<'py> {
    pub(crate) sets: Vec<Bound<'py, PyTuple>>,
    pub(crate) end: End,
}

/// Whether more sets may follow.
pub(crate) enum End {
    No,
    Exhausted,
    Failed(PyErr),
}

impl<'py> ParameterSets<'py> {
    /// May run code of the user's.
    pub(crate) fn new(parameter_sets: &Bound<'py, PyAny>) -> PyResult<Self> {
        let is_plain = parameter_sets.is_exact_instance_of::<PyList>()
            || parameter_sets.is_exact_instance_of::<PyTuple>();
        Ok(Self {
            iterator: parameter_sets.try_iter()?,
            at_once: if is_plain { SETS_PER_CROSSING } else { 1 },
            pending: None,
        })
    }

    /// Takes the sets of the next crossing, for a statement whose parameters have these names. May run
    /// code of the user's.
    pub(crate) fn take(
        &mut self,
        names: &[Option<String>],
        minds_sequences: bool,
        single_values: SingleValues,
    ) -> Crossing<'py> {
        let mut crossing = Crossing {
            sets: Vec::with_capacity(self.at_once),
            end: End::No,
        };
        while crossing.sets.len() < self.at_once {
            let set = match self.pending.take().map(Ok).or_else(|| self.iterator.next()) {
                Some(Ok(set)) => set,
                Some(Err(error)) => {
                    crossing.end = End::Failed(error);
                    break;
                }
                None => {
                    crossing.end = End::Exhausted;
                    break;
                }
            };
            if let Some(objects) = parameters::collect_plain(&set, minds_sequences) {
                crossing.sets.push(objects);
                continue;
            }
            if !crossing.sets.is_empty() {
                self.pending = Some(set);
                break;
            }
            match parameters::collect(&set, names, single_values) {
                Ok(objects) => crossing.sets.push(objects),
                Err(error) => crossing.end = End::Failed(error),
            }
            break;
        }
        crossing
    }
}
