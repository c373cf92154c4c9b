//! A connection handed over to its next user: it waits as a `Parked` in between.
//!
//! Invariant: the next one gets a `Connection` of his own, with the attributes that it was opened with. The object of
//! the one before, and what he has made of it, is closed for good.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

use oxlite_core::{Connection as Core, LockError, Mutex};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use super::{ANY_THREAD, Attributes, Connection, OpenedWith};
use crate::callback::Callables;
use crate::error::{from_core, lock_failed};
use crate::exceptions::ProgrammingError;
use crate::gil::{at_the_end, close, hand_over as hand_over_core, raise_kept, without};
use crate::gil_cell::GilCell;
use crate::lock::{lock, try_to_lock};
use crate::options::DetectTypes;

/// A connection that nobody uses, until it is lent or closed. Whoever forgets it closes it.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Parked {
    held: Mutex<Option<Held>>,
}

struct Held {
    core: Core,
    opened_with: OpenedWith,
    detect_types: DetectTypes,
    callables: Callables,
}

#[pymethods]
impl Parked {
    /// The connection, as it was prepared, for any thread.
    ///
    /// Raises `ProgrammingError` if it was lent or closed already.
    fn lend(&self, py: Python<'_>) -> PyResult<Py<Connection>> {
        let held = self.held.lock().take();
        let held = held.ok_or_else(|| {
            ProgrammingError::new_err("this connection was lent or closed already")
        })?;
        let connection = Connection {
            opened: OnceLock::new(),
            owner_thread: AtomicU64::new(ANY_THREAD),
            only_reads: AtomicBool::new(false),
            attributes: GilCell::new(Attributes {
                callables: held.callables,
                ..Attributes::as_opened(held.opened_with, held.detect_types)
            }),
        };
        connection.connect_to(Some(held.core));
        Py::new(py, connection)
    }

    /// Closes the database. Nothing happens if it was lent or closed already.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.held.lock().take();
        let Some(Held {
            core, callables, ..
        }) = held
        else {
            return Ok(());
        };
        match try_to_lock(py, &core)? {
            Ok(locked) => close(py, &core, locked).map_err(|error| from_core(py, error))?,
            Err(LockError::Forked) => {} // it is the parent's
            Err(error) => return Err(lock_failed(error)),
        }
        drop(callables);
        raise_kept()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The lock is free whenever the collector runs: nobody calls Python with it held.
        if let Some(held) = self.held.try_lock()
            && let Some(held) = held.as_ref()
        {
            held.callables.traverse(&visit)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let held = self.held.try_lock();
        let taken = held.and_then(|mut held| Some(held.as_mut()?.callables.take_all()));
        drop(taken);
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        if let Some(held) = self.held.lock().take() {
            let Held {
                core, callables, ..
            } = held;
            let mut core = Some(core);
            at_the_end(|py| without(py, || drop(core.take())));
            drop(callables);
        }
    }
}

/// Says that a connection is ready for its user: as it is now it may be handed over to the next. Whether it refuses
/// to write.
#[pyfunction]
pub(crate) fn note_prepared(py: Python<'_>, connection: &Bound<'_, Connection>) -> PyResult<bool> {
    connection.get().on_locked(py, |core, locked| {
        core.note_prepared(locked)
            .map_err(|error| from_core(py, error))
    })
}

/// Closes a connection for whoever has it, and keeps the database open for the next one. An open transaction is
/// rolled back, and reads in the middle of their rows are ended.
///
/// `None` if that cannot be, so that it was closed: something was set, registered or attached since
/// `note_prepared`, or the database is in memory.
#[pyfunction]
pub(crate) fn hand_over(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
) -> PyResult<Option<Parked>> {
    let old = connection.get();
    old.check_thread()?;
    let core = old.core()?;
    let locked = lock(py, core)?;
    let next = match connection.get_type().is(py.get_type::<Connection>()) {
        true => hand_over_core(py, core, locked),
        false => {
            drop(locked);
            None
        }
    };
    let Some(next) = next else {
        old.close(py)?;
        return Ok(None);
    };
    let mut attributes = old.attributes.get_mut(py);
    let held = Held {
        core: next,
        opened_with: attributes.opened_with,
        detect_types: attributes.detect_types,
        callables: std::mem::take(&mut attributes.callables),
    };
    drop(attributes);
    raise_kept()?;
    Ok(Some(Parked {
        held: Mutex::new(Some(held)),
    }))
}
