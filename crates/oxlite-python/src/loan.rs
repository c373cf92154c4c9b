//! `Loan`: a connection of a `Database` that a thread has borrowed, from the wish for it on.
//!
//! A signal handler may raise between any two steps of Python, also in the middle of a `finally`. So the loan
//! is there before anything is lent, and what is still lent when nobody knows of the loan any more is closed,
//! and its place given back: a new connection is opened in it.
//!
//! Invariants:
//! - It is given back once.
//! - In a forked child it is the parent's: nothing of it is touched there, nor let go.

use oxlite_core::Mutex;
use oxlite_sqlite::fork_generation;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::gil::at_the_end;

/// Where a connection is borrowed from, by the number that it knows the loan by.
pub(crate) struct Lender {
    owner: Py<PyAny>,
    number: u64,
    kind: &'static dyn Lends,
}

impl Lender {
    pub(crate) fn new(owner: Py<PyAny>, number: u64, kind: &'static dyn Lends) -> Self {
        Self {
            owner,
            number,
            kind,
        }
    }
}

/// What a lender does, which is named by its class.
pub(crate) trait Lends: Sync {
    /// A connection was opened for the loan.
    fn note_opened(&self, owner: &Bound<'_, PyAny>, number: u64, connection: &Py<Connection>);

    /// The loan has ended: what it had is to be lent again, or closed and opened anew.
    fn give_back(
        &self,
        owner: &Bound<'_, PyAny>,
        number: u64,
        connection: Option<Py<Connection>>,
        is_usable: bool,
    );
}

/// What a thread has borrowed, if anything.
#[pyclass(module = "oxlite._native", frozen, weakref)]
pub(crate) struct Loan {
    lent: Mutex<Option<Lent>>,
    /// That of the process that made it.
    generation: u32,
}

struct Lent {
    lender: Lender,
    /// None if it is still to be opened.
    connection: Option<Py<Connection>>,
}

impl Loan {
    pub(crate) fn begin(&self, lender: Lender, connection: Option<Py<Connection>>) {
        *self.lent.lock() = Some(Lent { lender, connection });
    }

    fn is_inherited(&self) -> bool {
        self.generation != fork_generation()
    }

    fn take(&self) -> Option<Lent> {
        match self.is_inherited() {
            true => None,
            false => self.lent.lock().take(),
        }
    }
}

#[pymethods]
impl Loan {
    #[new]
    fn new() -> Self {
        Self {
            lent: Mutex::new(None),
            generation: fork_generation(),
        }
    }

    /// The connection; `None` if nothing is lent, it is still to be opened, or a fork has brought it here.
    #[getter]
    fn connection(&self, py: Python<'_>) -> Option<Py<Connection>> {
        if self.is_inherited() {
            return None;
        }
        let lent = self.lent.lock();
        let connection = lent.as_ref().and_then(|lent| lent.connection.as_ref());
        connection.map(|connection| connection.clone_ref(py))
    }

    /// The connection that was opened for it.
    #[setter]
    pub(crate) fn set_connection(&self, py: Python<'_>, connection: Py<Connection>) {
        let mut lent = self.lent.lock();
        if let Some(lent) = lent.as_mut() {
            let Lender {
                owner,
                number,
                kind,
            } = &lent.lender;
            kind.note_opened(owner.bind(py), *number, &connection);
            lent.connection = Some(connection);
        }
    }

    /// Gives it back, if anything is lent: to be lent again, or closed and opened anew.
    pub(crate) fn give_back(&self, py: Python<'_>, is_usable: bool) {
        if let Some(lent) = self.take() {
            lent.give_back(py, is_usable);
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(lent) = self.lent.try_lock() else {
            return Ok(());
        };
        let Some(lent) = lent.as_ref() else {
            return Ok(());
        };
        visit.call(&lent.lender.owner)?;
        visit.call(&lent.connection)
    }
}

impl Lent {
    fn give_back(self, py: Python<'_>, is_usable: bool) {
        let Lender {
            owner,
            number,
            kind,
        } = self.lender;
        kind.give_back(owner.bind(py), number, self.connection, is_usable);
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let lent = self.lent.lock().take();
        if lent.is_none() {
            return;
        }
        if self.is_inherited() {
            std::mem::forget(lent);
            return;
        }
        at_the_end(|py| {
            if let Some(lent) = lent {
                lent.give_back(py, false);
            }
        });
    }
}
