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
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{PyClass, PyTraverseError};

use crate::connection::Connection;
use crate::gil::at_the_end;

/// A class that lends connections, and what it does about a loan, by the number that it knows it by.
pub(crate) trait Lends: PyClass<Frozen = True> + Sync {
    /// A connection was opened for the loan.
    fn note_opened(&self, number: u64, connection: &Bound<'_, Connection>);

    /// The loan has ended: what it had is to be lent again, or closed and opened anew.
    fn give_back(
        &self,
        py: Python<'_>,
        number: u64,
        connection: Option<Py<Connection>>,
        is_usable: bool,
    );
}

/// Where a connection is borrowed from.
pub(crate) struct Lender {
    owner: Py<PyAny>,
    number: u64,
    note_opened: fn(&Bound<'_, PyAny>, u64, &Bound<'_, Connection>),
    give_back: fn(&Bound<'_, PyAny>, u64, Option<Py<Connection>>, bool),
}

impl Lender {
    pub(crate) fn new<T: Lends>(owner: &Bound<'_, T>, number: u64) -> Self {
        Self {
            owner: owner.clone().into_any().unbind(),
            number,
            note_opened: |owner, number, connection| {
                if let Ok(lender) = owner.cast::<T>() {
                    lender.get().note_opened(number, connection);
                }
            },
            give_back: |owner, number, connection, is_usable| {
                if let Ok(lender) = owner.cast::<T>() {
                    let py = owner.py();
                    lender.get().give_back(py, number, connection, is_usable);
                }
            },
        }
    }
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
    pub(crate) fn set_connection(&self, connection: &Bound<'_, Connection>) {
        let mut lent = self.lent.lock();
        if let Some(Lent {
            lender,
            connection: place,
        }) = lent.as_mut()
        {
            (lender.note_opened)(
                lender.owner.bind(connection.py()),
                lender.number,
                connection,
            );
            *place = Some(connection.clone().unbind());
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
        let lender = self.lender;
        let owner = lender.owner.bind(py);
        (lender.give_back)(owner, lender.number, self.connection, is_usable);
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
