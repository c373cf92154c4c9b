//! Where outcomes wait for the event loop that they are for.
//!
//! Invariants:
//! - The loop is told as long as something is here, and with one call of the system for all of it.
//! - Futures are touched by the loop's own thread alone, in `collect`.
//! - Neither many results nor a long one keep the loop: they are handed over piece by piece.
//! - What is lent is accepted by a future, or goes back.
//! - A mailbox that is closed, or a parent's in a forked child, keeps nothing that comes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxlite_core::{Answer, Bell, Error, Mutex, fork_generation};
use pyo3::PyTraverseError;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::connection::Connection;
use crate::error::from_core;
use crate::exceptions::{InternalError, ProgrammingError};
use crate::gil_once::interned;
use crate::requests::RowMaker;

/// How many values become objects before other callbacks of the loop have their turn: some 200
/// microseconds.
const VALUES_AT_ONCE: usize = 4000;

/// How many futures are resolved before other callbacks have their turn: who awaits them goes on, all in
/// the same turn of the loop, and a timer that is due meanwhile comes after them. With 64 tasks that did
/// nothing but read, a sleep overran by 1.1 ms (95th percentile) without a limit, by .21 ms with this one,
/// and as many rows were read.
pub(super) const FUTURES_AT_ONCE: usize = 8;

/// What has come of a job.
pub(super) enum Outcome {
    /// It was given up; nobody waits.
    GivenUp,
    /// It could not be done, for want of a thread or because of a panic.
    Lost,
    /// What it was for has been closed.
    Closed,
    /// What a function has returned.
    Returned(Py<PyAny>),
    /// What a function has raised, or what says that the time was up.
    Raised(PyErr),
    Failed(Error),
    /// What a read has found, and whether only the first row is wanted.
    Found(Answer, Option<Py<Connection>>, bool),
    /// What a write came to.
    Written(Answer, Option<Py<Connection>>),
    /// Something lent.
    Lent(Arc<Handover>),
}

impl Outcome {
    /// Nobody takes it any more, though somebody may still know of it: a task that is gone with its loop.
    fn go_unwanted(self) {
        if let Self::Lent(handover) = self {
            handover.take_back();
        }
    }
}

/// Something that is lent, on its way to whoever borrows it: he takes it, or it is taken back.
#[derive(Default)]
pub(super) struct Handover(Mutex<Option<Lent>>);

struct Lent {
    object: Py<PyAny>,
    /// Puts it back where it came from.
    back: Box<dyn FnOnce() + Send>,
}

impl Handover {
    pub(super) fn put(&self, object: Py<PyAny>, back: impl FnOnce() + Send + 'static) {
        let back = Box::new(back);
        *self.0.lock() = Some(Lent { object, back });
    }

    /// If nobody has taken it.
    pub(super) fn take_back(&self) {
        let lent = self.0.lock().take();
        if let Some(lent) = lent {
            (lent.back)();
        }
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        self.take_back();
    }
}

struct Delivery {
    future: Py<PyAny>,
    outcome: Outcome,
}

/// What native threads know of a mailbox.
pub(super) struct Inbox {
    bell: Bell,
    delivered: Mutex<VecDeque<Delivery>>,
    /// Whether the loop knows that something is here.
    is_told: AtomicBool,
    /// Set with `delivered` locked.
    is_closed: AtomicBool,
    /// That of the process whose loop it is.
    generation: u32,
}

impl Inbox {
    /// Whether its loop has been closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn deliver(&self, future: Py<PyAny>, outcome: Outcome) {
        if self.generation != fork_generation() {
            return; // the parent's, with a lock that one of its threads may have had
        }
        {
            let mut delivered = self.delivered.lock();
            if self.is_closed.load(Ordering::Relaxed) {
                drop(delivered);
                outcome.go_unwanted();
                return;
            }
            delivered.push_back(Delivery { future, outcome });
        }
        if !self.is_told.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }
}

/// A long result on its way.
struct Long {
    future: Py<PyAny>,
    answer: Answer,
    maker: RowMaker,
    rows: Py<PyList>,
    /// How many values are in `rows`.
    done: usize,
}

/// The outcomes for one event loop.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Mailbox {
    pub(super) inbox: Arc<Inbox>,
    long: Mutex<VecDeque<Long>>,
}

#[pymethods]
impl Mailbox {
    /// An empty one. `OSError` if the system has no descriptor for it.
    #[new]
    fn new() -> PyResult<Self> {
        let bell = Bell::new().map_err(|error| {
            PyOSError::new_err(format!("no descriptor to wake an event loop with: {error}"))
        })?;
        Ok(Self {
            inbox: Arc::new(Inbox {
                bell,
                delivered: Mutex::new(VecDeque::new()),
                is_told: AtomicBool::new(false),
                is_closed: AtomicBool::new(false),
                generation: fork_generation(),
            }),
            long: Mutex::new(VecDeque::new()),
        })
    }

    /// The descriptor that is readable when something is to be collected.
    fn fileno(&self) -> i32 {
        self.inbox.bell.descriptor()
    }

    /// Gives those who wait what is here for them; from the loop's thread, which is told of the rest again.
    fn collect(&self, py: Python<'_>) {
        let long = self.long.lock().pop_front();
        if let Some(long) = long {
            self.go_on(py, long);
        }
        let delivered: Vec<_> = {
            let mut delivered = self.inbox.delivered.lock();
            let count = delivered.len().min(FUTURES_AT_ONCE);
            delivered.drain(..count).collect()
        };
        for delivery in delivered {
            self.hand_over(py, delivery);
        }
        let delivered = self.inbox.delivered.lock();
        if delivered.is_empty() && self.long.lock().is_empty() {
            // In this order: what comes once the lock is free rings again.
            self.inbox.bell.silence();
            self.inbox.is_told.store(false, Ordering::Release);
        }
    }

    /// For a loop that has been closed: lets go of what is here and of all that comes.
    fn close(&self) {
        if self.inbox.generation != fork_generation() {
            return; // the parent's
        }
        let delivered = {
            let mut delivered = self.inbox.delivered.lock();
            self.inbox.is_closed.store(true, Ordering::Relaxed);
            std::mem::take(&mut *delivered)
        };
        for delivery in delivered {
            delivery.outcome.go_unwanted();
        }
        let long = std::mem::take(&mut *self.long.lock());
        drop(long);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What is under way is soon handed over: only what waits is looked at.
        if let Some(delivered) = self.inbox.delivered.try_lock() {
            for delivery in delivered.iter() {
                visit.call(&delivery.future)?;
            }
        }
        Ok(())
    }
}

impl Mailbox {
    /// Makes some more of a long result.
    fn go_on(&self, py: Python<'_>, mut long: Long) {
        if is_done(py, &long.future) {
            return;
        }
        match long.go_on(py) {
            Ok(true) => resolve(py, &long.future, Ok(long.rows.bind(py).as_any())),
            Ok(false) => self.long.lock().push_front(long),
            Err(error) => resolve(py, &long.future, Err(error)),
        }
    }

    fn hand_over(&self, py: Python<'_>, delivery: Delivery) {
        let Delivery { future, outcome } = delivery;
        let object = match outcome {
            Outcome::GivenUp => return,
            Outcome::Lost => Err(InternalError::new_err(
                "It was not done, or not to its end: no thread could be started, or one has panicked.",
            )),
            Outcome::Closed => Err(ProgrammingError::new_err(
                "Cannot operate on a closed Database.",
            )),
            Outcome::Returned(object) => Ok(object.into_bound(py)),
            Outcome::Raised(error) => Err(error),
            Outcome::Failed(error) => Err(from_core(py, error)),
            Outcome::Found(answer, connection, is_one) => {
                match found(py, answer, connection, is_one) {
                    Ok(Found::Now(object)) => Ok(object),
                    Ok(Found::Long(answer, maker)) => {
                        self.long.lock().push_back(Long {
                            future,
                            answer,
                            maker,
                            rows: PyList::empty(py).unbind(),
                            done: 0,
                        });
                        return;
                    }
                    Err(error) => Err(error),
                }
            }
            Outcome::Written(answer, connection) => written(py, &answer, connection),
            Outcome::Lent(handover) => {
                let lent = handover.0.lock().take();
                if let Some(lent) = lent
                    && !set(py, &future, Ok(lent.object.bind(py)))
                {
                    (lent.back)();
                }
                return;
            }
        };
        resolve(
            py,
            &future,
            object.as_ref().map_err(|error| error.clone_ref(py)),
        );
    }
}

enum Found<'py> {
    Now(Bound<'py, PyAny>),
    Long(Answer, RowMaker),
}

fn maker(
    py: Python<'_>,
    answer: &Answer,
    connection: Option<Py<Connection>>,
) -> PyResult<RowMaker> {
    match connection {
        Some(connection) if !answer.rows.is_empty() => {
            RowMaker::of(connection.bind(py), &answer.columns)
        }
        _ => Ok(RowMaker::default()),
    }
}

fn found(
    py: Python<'_>,
    answer: Answer,
    connection: Option<Py<Connection>>,
    is_one: bool,
) -> PyResult<Found<'_>> {
    let maker = maker(py, &answer, connection)?;
    if answer.rows.len() > VALUES_AT_ONCE && !is_one {
        return Ok(Found::Long(answer, maker));
    }
    let rows = maker.rows(py, &answer.columns, &answer.rows)?;
    Ok(Found::Now(match is_one {
        false => rows.into_any(),
        true if rows.is_empty() => py.None().into_bound(py),
        true => rows.get_item(0)?,
    }))
}

fn written<'py>(
    py: Python<'py>,
    answer: &Answer,
    connection: Option<Py<Connection>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = maker(py, answer, connection)?.rows(py, &answer.columns, &answer.rows)?;
    let written = (answer.rowcount, answer.last_insert_rowid, rows);
    Ok(written.into_pyobject(py)?.into_any())
}

impl Long {
    /// Makes some more rows; whether these were the last.
    fn go_on(&mut self, py: Python<'_>) -> PyResult<bool> {
        let width = self.answer.columns.len().max(1);
        let step = (VALUES_AT_ONCE / width).max(1) * width;
        let end = (self.done + step).min(self.answer.rows.len());
        let values = &self.answer.rows[self.done..end];
        let rows = self.maker.rows(py, &self.answer.columns, values)?;
        let all = self.rows.bind(py);
        all.set_slice(all.len(), all.len(), &rows)?;
        self.done = end;
        Ok(end == self.answer.rows.len())
    }
}

/// Whether nobody waits any more.
fn is_done(py: Python<'_>, future: &Py<PyAny>) -> bool {
    let is_done = future.bind(py).call_method0(interned!(py, "done"));
    is_done.is_ok_and(|is_done| is_done.is_truthy().unwrap_or(true))
}

/// Gives a future its outcome; one that was cancelled needs none.
fn resolve(py: Python<'_>, future: &Py<PyAny>, outcome: PyResult<&Bound<'_, PyAny>>) {
    set(py, future, outcome);
}

/// Whether the future took it.
fn set(py: Python<'_>, future: &Py<PyAny>, outcome: PyResult<&Bound<'_, PyAny>>) -> bool {
    let future = future.bind(py);
    let outcome = match outcome {
        Ok(object) => future.call_method1(interned!(py, "set_result"), (object,)),
        Err(error) => {
            // A future does not take it: it would end the coroutine that awaits it.
            let error = match error.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) {
                true => {
                    let raised = PyRuntimeError::new_err("a function has raised StopIteration");
                    raised.set_cause(py, Some(error));
                    raised
                }
                false => error,
            };
            future.call_method1(interned!(py, "set_exception"), (error.value(py),))
        }
    };
    // InvalidStateError, of one that was cancelled; or RuntimeError, of a loop that has been closed.
    outcome.is_ok()
}
