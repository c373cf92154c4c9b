//! `Pool`: the readers of a `Database`, lent to one thread at a time each.

use std::time::Instant;

use oxlite_core::{Mutex, Pool as Core, PoolError, timeout_from_seconds};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::error::from_core;
use crate::exceptions::ProgrammingError;
use crate::gil::{current_thread, is_signalled, patience, raise_kept, without};
use crate::loan::{Lender, Lends, Loan};

/// A fixed number of connections to lend, opened when they are first lent; those who wait for one are served
/// in order.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Pool {
    core: Core<Option<Py<Connection>>>,
    count: usize,
    lent: Mutex<Lent>,
}

/// Who has what.
#[derive(Default)]
struct Lent {
    loans: Vec<Entry>,
    /// The number of the latest loan.
    latest: u64,
}

struct Entry {
    number: u64,
    thread: u64,
    since: Instant,
    /// None as long as it is being opened.
    connection: Option<Py<Connection>>,
}

impl Lends for Pool {
    fn note_opened(&self, number: u64, connection: &Bound<'_, Connection>) {
        let mut lent = self.lent.lock();
        if let Some(entry) = lent.loans.iter_mut().find(|entry| entry.number == number) {
            entry.connection = Some(connection.clone().unbind());
        }
    }

    fn give_back(
        &self,
        py: Python<'_>,
        number: u64,
        connection: Option<Py<Connection>>,
        is_usable: bool,
    ) {
        let usable = connection.filter(|connection| {
            if let Ok(core) = connection.get().core() {
                core.deadline().wait_at_most(None);
            }
            if !is_usable {
                // What it had to say it has said.
                let _ = connection.bind(py).call_method0("close");
            }
            is_usable
        });
        let entry = {
            let mut lent = self.lent.lock();
            let place = lent.loans.iter().position(|entry| entry.number == number);
            place.map(|place| lent.loans.swap_remove(place))
        };
        drop(entry);
        if let Some(Some(left)) = self.core.give(usable) {
            // The pool is closed.
            let _ = left.bind(py).call_method0("close");
        }
    }
}

#[pymethods]
impl Pool {
    #[new]
    fn new(count: usize) -> Self {
        Self {
            core: Core::new((0..count).map(|_| None).collect()),
            count,
            lent: Mutex::default(),
        }
    }

    /// Borrows the connection that came back last; waits for one for `timeout` seconds. How long that has
    /// taken, in seconds, 0 if one was idle; `None` if none came back. The loan has no connection yet where
    /// one is still to be opened.
    fn take(slf: &Bound<'_, Self>, loan: &Bound<'_, Loan>, timeout: f64) -> PyResult<Option<f64>> {
        let py = slf.py();
        let this = slf.get();
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        let mut waited = 0.0;
        let taken = match this.core.try_take() {
            Ok(Some(connection)) => Ok(connection),
            Ok(None) => {
                let began = Instant::now();
                let timeout = patience(py, timeout);
                let taken = without(py, || this.core.take(timeout, || !is_signalled()));
                waited = began.elapsed().as_secs_f64();
                taken
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(connection) => {
                let number = {
                    let mut lent = this.lent.lock();
                    lent.latest += 1;
                    let number = lent.latest;
                    lent.loans.push(Entry {
                        number,
                        thread: current_thread(),
                        since: Instant::now(),
                        connection: connection
                            .as_ref()
                            .map(|connection| connection.clone_ref(py)),
                    });
                    number
                };
                loan.get().begin(Lender::new(slf, number), connection);
                Ok(Some(waited))
            }
            Err(PoolError::TimedOut) => Ok(None),
            Err(PoolError::Cancelled) => raise_kept().map(|()| None),
            Err(PoolError::Closed) => Err(ProgrammingError::new_err(
                "Cannot operate on a closed Database.",
            )),
        }
    }

    /// The threads that have connections, and for how many seconds each.
    fn holders(&self) -> Vec<(u64, f64)> {
        let lent = self.lent.lock();
        let entries = lent.loans.iter();
        entries
            .map(|entry| (entry.thread, entry.since.elapsed().as_secs_f64()))
            .collect()
    }

    /// Whether this thread has all of them.
    fn lends_all_to_this_thread(&self) -> bool {
        let this = current_thread();
        let lent = self.lent.lock();
        lent.loans.len() == self.count && lent.loans.iter().all(|entry| entry.thread == this)
    }

    /// The connections that are lent.
    fn lent(&self, py: Python<'_>) -> Vec<Py<Connection>> {
        let lent = self.lent.lock();
        let connections = lent
            .loans
            .iter()
            .filter_map(|entry| entry.connection.as_ref());
        connections
            .map(|connection| connection.clone_ref(py))
            .collect()
    }

    /// Lends nothing any more; the connections that are idle, to be closed by the caller.
    fn close(&self) -> Vec<Py<Connection>> {
        self.core.close().into_iter().flatten().collect()
    }

    /// Waits for `timeout` seconds until all that is lent has come back to the closed pool; whether it
    /// has.
    fn wait_for_all(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        let timeout = patience(py, timeout);
        let have_all = without(py, || self.core.wait_for_all(timeout, || !is_signalled()));
        raise_kept()?;
        Ok(have_all)
    }

    /// How many places are idle and how many lent, and how many threads wait for one.
    fn statistics(&self) -> (usize, usize, usize) {
        let statistics = self.core.statistics();
        (statistics.idle, statistics.lent, statistics.waiting)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut outcome = Ok(());
        self.core.look(|connection| {
            if outcome.is_ok() {
                outcome = visit.call(connection);
            }
        });
        outcome?;
        match self.lent.try_lock() {
            Some(lent) => lent
                .loans
                .iter()
                .try_for_each(|entry| visit.call(&entry.connection)),
            None => Ok(()),
        }
    }
}
