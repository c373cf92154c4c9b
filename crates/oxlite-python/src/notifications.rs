//! NOTIFY and LISTEN as Python sees them: what a write announces, and what one takes who listens.
//!
//! Invariants:
//! - Whoever waits has let go of the GIL, and hears of signals of the operating system.
//! - A payload becomes an object when it is taken, by whoever takes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_core::{
    Announcement as Announced, Channel, End, Feed as Core, Hearing as Heard, Mutex, Notification,
    Pattern, Position, Signals, Subscription as Subscribed, Topic, Value, timeout_from_seconds,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::connection::Connection;
use crate::error::from_core;
use crate::exceptions::{NotificationsLost, ProgrammingError};
use crate::gil::without;
use crate::lock::lock;
use crate::values::object_of_value;

/// Makes the table of notifications if it is not there, in the transaction that is open or in one of its own.
#[pyfunction]
pub(crate) fn prepare_notifications(py: Python<'_>, connection: &Connection) -> PyResult<()> {
    let core = connection.core()?;
    let locked = lock(py, core)?;
    let outcome = crate::gil::detached(py, &locked, |locked| oxlite_core::prepare(core, locked));
    outcome.map_err(|error| from_core(py, error))
}

/// What is signalled when a notification in `channel` of the database at `path` has been committed.
///
/// `ValueError` for what is no name of a channel. Where processes have no memory in common nothing is signalled:
/// whoever watches the files finds it.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Announcement {
    path: PathBuf,
    of: Announces,
    signals: Option<Arc<Signals>>,
}

enum Announces {
    Notification(Channel),
    /// Each row that a statement returns has the end of a topic's name in its first column, after this.
    Rows(String),
}

#[pymethods]
impl Announcement {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, channel: &str) -> PyResult<Self> {
        let channel = Channel::named(channel).map_err(|error| from_core(py, error))?;
        Ok(Self::of(py, path, Announces::Notification(channel)))
    }

    /// What is signalled when a statement is committed: the topics that its rows name in their first column, after
    /// `prefix`.
    #[staticmethod]
    fn of_rows(py: Python<'_>, path: PathBuf, prefix: String) -> Self {
        Self::of(py, path, Announces::Rows(prefix))
    }

    /// `ProgrammingError` if the main database of `connection` is not the one at the path.
    fn check(&self, py: Python<'_>, connection: &Connection) -> PyResult<()> {
        let path = {
            let locked = lock(py, connection.core()?)?;
            locked.path()
        };
        let is_same = path.as_ref().is_some_and(|path| {
            without(py, || {
                let (here, there) = (
                    std::fs::canonicalize(path),
                    std::fs::canonicalize(&self.path),
                );
                matches!((here, there), (Ok(here), Ok(there)) if here == there)
            })
        });
        if is_same {
            return Ok(());
        }
        let of = path.map_or_else(|| "no file".into(), |path| path.display().to_string());
        Err(ProgrammingError::new_err(format!(
            "a notification is part of a transaction on {}, and connection= is one to {of}",
            self.path.display()
        )))
    }

    /// Announces it when the transaction ends that is open on `connection`, which has inserted it. `names`: what was
    /// returned in the first column of the rows, if topics are named there.
    #[pyo3(signature = (connection, names=Vec::new()))]
    fn follow(&self, py: Python<'_>, connection: &Connection, names: Vec<String>) -> PyResult<()> {
        let Some(signals) = &self.signals else {
            return Ok(());
        };
        let topics = match &self.of {
            Announces::Notification(channel) => channel.topics().into(),
            Announces::Rows(prefix) => {
                let topic = |name: &String| Topic::named(&format!("{prefix}{name}"));
                names.iter().map(topic).collect()
            }
        };
        let locked = lock(py, connection.core()?)?;
        oxlite_core::announce(&locked, topics, Arc::clone(signals));
        Ok(())
    }
}

impl Announcement {
    fn of(py: Python<'_>, path: PathBuf, of: Announces) -> Self {
        Self {
            signals: without(py, || Signals::of(&path)).ok(),
            of,
            path,
        }
    }

    pub(crate) fn announced(&self) -> Option<Announced> {
        let signals = Arc::clone(self.signals.as_ref()?);
        Some(match &self.of {
            Announces::Notification(channel) => Announced::of(channel, signals),
            Announces::Rows(prefix) => Announced::of_rows(prefix, signals),
        })
    }
}

/// Reads the notifications of a database, by a connection that is used for nothing else.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Feed {
    core: Core,
    /// Kept open.
    _connection: Py<Connection>,
}

#[pymethods]
impl Feed {
    #[new]
    fn new(connection: &Bound<'_, Connection>) -> PyResult<Self> {
        let py = connection.py();
        let core = Arc::clone(connection.get().core()?);
        let feed = without(py, || Core::new(core)).map_err(|error| from_core(py, error))?;
        Ok(Self {
            core: feed,
            _connection: connection.clone().unbind(),
        })
    }

    /// Whether the table of notifications is there. Raises `LockedError` soon, as the others do, where another program
    /// has the file for itself: whoever asks waits by himself, so that nobody waits for him meanwhile.
    fn has_table(&self, py: Python<'_>) -> PyResult<bool> {
        let outcome = without(py, || self.core.is_prepared());
        outcome.map_err(|error| from_core(py, error))
    }

    /// Listens to `channels` from now on, or from after the position `since`.
    fn listen(
        &self,
        py: Python<'_>,
        channels: Vec<String>,
        since: Option<&str>,
    ) -> PyResult<Subscription> {
        let core = |error| from_core(py, error);
        let patterns = channels.iter().map(|channel| Pattern::of(channel));
        let patterns = patterns.collect::<Result<_, _>>().map_err(core)?;
        let since = since.map(str::parse::<Position>).transpose();
        let since = since.map_err(core)?;
        match without(py, || self.core.listen(patterns, since)).map_err(core)? {
            Ok(subscription) => Ok(Subscription(subscription)),
            Err(lost) => Err(raised(py, &End::Lost(lost))),
        }
    }

    /// Hears whenever rows come to a table of Oxlite's that names one of `topics`, whoever commits them.
    fn hear(&self, py: Python<'_>, topics: Vec<String>) -> PyResult<Hearing> {
        let topics = topics.iter().map(|topic| Topic::named(topic)).collect();
        let hearing = without(py, || self.core.hear(topics));
        let hearing = hearing.map_err(|error| from_core(py, error))?;
        Ok(Hearing(Mutex::new(Some(hearing))))
    }

    /// Ends all who listen. With `quietly` that is no error to them.
    #[pyo3(signature = (quietly=false))]
    fn close(&self, py: Python<'_>, quietly: bool) {
        without(py, || match quietly {
            true => self.core.leave(),
            false => self.core.close(),
        });
    }
}

/// What one takes who listens.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Subscription(Subscribed);

#[pymethods]
impl Subscription {
    /// The next notification: channel, payload and position; waits for `timeout` seconds at most, for ever with
    /// `None`. `None` if none has come.
    fn take<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let ends = match timeout {
            Some(seconds) => {
                let timeout =
                    timeout_from_seconds(seconds).map_err(|error| from_core(py, error))?;
                Instant::now().checked_add(timeout)
            }
            None => None,
        };
        loop {
            match self.0.take() {
                Ok(Some(taken)) => return described(py, &taken).map(Some),
                Ok(None) => {}
                Err(End::Left) => return Ok(None),
                Err(end) => return Err(raised(py, &end)),
            }
            let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            without(py, || self.0.wait(left))?;
            py.check_signals()?;
        }
    }

    /// Whether it has come to its end, and nothing waits any more.
    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Readable while one waits, and after the end.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        let descriptor = without(py, || self.0.descriptor());
        descriptor.map_err(|error| from_core(py, error))
    }

    /// Listens no longer, and wakes whoever waits.
    fn close(&self, py: Python<'_>) {
        without(py, || self.0.close());
    }
}

/// Hears of rows in tables of Oxlite's.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Hearing(Mutex<Option<Heard>>);

#[pymethods]
impl Hearing {
    /// The number of the latest signal, to be asked for before one looks at the database.
    fn seen(&self) -> PyResult<u64> {
        self.with(|hearing| Ok(hearing.seen()))
    }

    /// Whether there is a signal with a greater number; if not, the descriptor is readable when there is one.
    fn has_newer(&self, py: Python<'_>, seen: u64) -> PyResult<bool> {
        self.with(|hearing| {
            let newer = hearing.has_newer(seen);
            newer.map_err(|error| from_core(py, error))
        })
    }

    /// Whether the name of the database leads to another file, or to none.
    fn is_replaced(&self) -> PyResult<bool> {
        self.with(|hearing| Ok(hearing.is_replaced()))
    }

    /// Readable when there is news.
    fn fileno(&self) -> PyResult<i32> {
        self.with(|hearing| Ok(hearing.descriptor()))
    }

    /// Hears no longer.
    fn close(&self, py: Python<'_>) {
        let ended = self.0.lock().take();
        without(py, || drop(ended));
    }
}

impl Hearing {
    fn with<T>(&self, ask: impl FnOnce(&Heard) -> PyResult<T>) -> PyResult<T> {
        match &*self.0.lock() {
            Some(hearing) => ask(hearing),
            None => Err(ProgrammingError::new_err(
                "Cannot operate on a closed Database.",
            )),
        }
    }
}

fn described<'py>(py: Python<'py>, taken: &Notification) -> PyResult<Bound<'py, PyTuple>> {
    let payload = match &taken.payload {
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into_pyobject(py)?.into_any(),
            // As SQLite lets others write it.
            Err(_) => String::from_utf8_lossy(bytes).into_pyobject(py)?.into_any(),
        },
        other => object_of_value(py, other.as_ref())?,
    };
    (&*taken.channel, payload, taken.position.to_string()).into_pyobject(py)
}

fn raised(py: Python<'_>, end: &End) -> PyErr {
    match end {
        End::Lost(lost) => {
            let exception = NotificationsLost::new_err(lost.to_string());
            let position = lost.resume_from.to_string();
            match exception.value(py).setattr("resume_from", position) {
                Ok(()) => exception,
                Err(error) => error,
            }
        }
        End::Failed(error) => from_core(py, error.clone()),
        End::Closed | End::Left => {
            ProgrammingError::new_err("Cannot operate on a closed Database.")
        }
    }
}
