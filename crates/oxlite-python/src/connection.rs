//! `Connection`, and `connect`: opening, closing, and what users set. Its other methods stand in the
//! rooms below, by subject.
//!
//! Invariant: the connection's own lock is never waited for with the GIL held (see `gil.rs`), and
//! whatever may wait for the disk or for another process runs without the GIL.

mod attributes;
mod callbacks;
mod checkpoints;
mod copies;
mod functions;
mod handover;
mod sessions;
mod shortcuts;
mod switches;
mod transactions;

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oxlite_core::{
    CachedStatement, Connection as Core, IsolationLevel, LockError, OpenOptions, TransactionControl,
};
use oxlite_sqlite::Locked;
use pyo3::PyTraverseError;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyResourceWarning, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::callback::{self, Callable, Callables, Kind};
use crate::error::{from_core, from_sqlite, lock_failed};
use crate::exceptions::ProgrammingError;
use crate::extension;
use crate::gil::{at_the_end, close, current_thread, detached, raise_kept, without};
use crate::gil_cell::GilCell;
use crate::lock::{glance, lock, try_to_lock};
use crate::notices;
use crate::options::{self, DetectTypes, Extras, Truth};
use crate::signature::{check_database, check_positions_of_connect, hand_on, warn_of_positions};
use crate::sys_module::sys_object;
use crate::values::TextFactory;
use crate::version;

pub(crate) use attributes::setting_class;
pub(crate) use handover::{Parked, hand_over, note_prepared};
use transactions::{Autocommit, ImplicitLevel};

/// The thread identity that stands for "any thread".
const ANY_THREAD: u64 = 0;

/// A connection to a database, as PEP 249 and the standard library define it.
#[pyclass(module = "oxlite.sqlite3", subclass, frozen, weakref)]
pub(crate) struct Connection {
    /// Set by `__init__`, which a subclass may forget to call.
    opened: OnceLock<Opened>,
    /// The only thread that may use it, unless `ANY_THREAD`.
    owner_thread: AtomicU64,
    /// Whether it only reads, and so is not to be connected to anything else.
    only_reads: AtomicBool,
    attributes: GilCell<Attributes>,
}

/// What `__init__` has opened. It is kept when `__init__` is called again, since it may be in use, by a
/// call that waits or runs code of the user's: about a kilobyte when the database is closed. To know
/// that nobody uses it would take a count at every execution.
struct Opened {
    /// None if opening has failed.
    core: Option<Arc<Core>>,
    replaced_by: OnceLock<Box<Opened>>,
}

impl Opened {
    fn next(&self) -> Option<&Self> {
        self.replaced_by.get().map(Box::as_ref)
    }
}

/// How a connection begins and ends its transactions, as it was opened.
#[derive(Clone, Copy)]
struct OpenedWith {
    isolation_level: Option<IsolationLevel>,
    transaction_control: TransactionControl,
    statement_timeout: Option<Duration>,
}

/// What users set.
struct Attributes {
    opened_with: OpenedWith,
    isolation_level: Option<IsolationLevel>,
    transaction_control: TransactionControl,
    row_factory: Option<Py<PyAny>>,
    /// `None` is `str`.
    text_factory: Option<Py<PyAny>>,
    detect_types: DetectTypes,
    statement_timeout: Option<Duration>,
    callables: Callables,
}

impl Attributes {
    fn new() -> Self {
        Self::as_opened(
            OpenedWith {
                isolation_level: Some(IsolationLevel::Default),
                transaction_control: TransactionControl::Legacy,
                statement_timeout: None,
            },
            DetectTypes::default(),
        )
    }

    fn as_opened(opened_with: OpenedWith, detect_types: DetectTypes) -> Self {
        Self {
            opened_with,
            isolation_level: opened_with.isolation_level,
            transaction_control: opened_with.transaction_control,
            row_factory: None,
            text_factory: None,
            detect_types,
            statement_timeout: opened_with.statement_timeout,
            callables: Callables::default(),
        }
    }
}

/// What an execution has to know of its connection.
pub(crate) struct ExecutionSettings {
    pub(crate) detect_types: DetectTypes,
    pub(crate) statement_timeout: Option<Duration>,
}

impl Connection {
    /// The database it is connected to.
    #[inline]
    pub(crate) fn core(&self) -> PyResult<&Arc<Core>> {
        self.opened()
            .and_then(|opened| opened.core.as_ref())
            .ok_or_else(|| ProgrammingError::new_err("Base Connection.__init__ not called."))
    }

    /// The database that a statement is of, which may be an earlier one.
    pub(crate) fn core_of(&self, cached: &CachedStatement) -> Option<&Arc<Core>> {
        let mut all = std::iter::successors(self.opened.get(), |opened| opened.next());
        all.find_map(|opened| {
            opened
                .core
                .as_ref()
                .filter(|core| core.has_prepared(cached))
        })
    }

    #[inline]
    fn opened(&self) -> Option<&Opened> {
        std::iter::successors(self.opened.get(), |opened| opened.next()).last()
    }

    /// Refuses a thread other than the one that opened the connection, where that is asked for.
    #[inline]
    pub(crate) fn check_thread(&self) -> PyResult<()> {
        let owner = self.owner_thread.load(Ordering::Relaxed);
        let current = current_thread();
        if owner == current || owner == ANY_THREAD {
            return Ok(());
        }
        Err(ProgrammingError::new_err(format!(
            "SQLite objects created in a thread can only be used in that same thread. The object \
             was created in thread id {owner} and this is thread id {current}."
        )))
    }

    /// Refuses the wrong thread and a closed connection.
    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        self.check_thread()?;
        drop(glance(py, self.core()?)?);
        Ok(())
    }

    pub(crate) fn row_factory_object(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let attributes = self.attributes.get(py);
        attributes
            .row_factory
            .as_ref()
            .map(|factory| factory.clone_ref(py))
    }

    pub(crate) fn text_factory_value<'py>(&self, py: Python<'py>) -> TextFactory<'py> {
        match &self.attributes.get(py).text_factory {
            None => TextFactory::Str,
            Some(factory) => TextFactory::from_object(factory.bind(py)),
        }
    }

    /// Whether rows are tuples of what SQLite holds, but for a row factory.
    pub(crate) fn makes_plain_rows(&self, py: Python<'_>) -> bool {
        matches!(self.text_factory_value(py), TextFactory::Str)
            && !self.execution_settings(py).detect_types.is_on()
    }

    #[inline]
    pub(crate) fn execution_settings(&self, py: Python<'_>) -> ExecutionSettings {
        let attributes = self.attributes.get(py);
        ExecutionSettings {
            detect_types: attributes.detect_types,
            statement_timeout: attributes.statement_timeout,
        }
    }

    /// Checks the thread, locks the connection and does `work`, with the GIL.
    pub(crate) fn on_locked<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Core, &Locked<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.check_thread()?;
        let core = self.core()?;
        let locked = lock(py, core)?;
        let done = work(core, &locked)?;
        raise_kept()?;
        Ok(done)
    }

    /// Has it only read, until it is closed.
    pub(crate) fn only_read(&self, py: Python<'_>) -> PyResult<()> {
        let locked = lock(py, self.core()?)?;
        self.core()?.note_change();
        locked
            .only_read()
            .map_err(|error| from_sqlite(py, &error))?;
        self.only_reads.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Closes what it is connected to, as far as that can be, since it is to be connected anew.
    fn disconnect(&self, py: Python<'_>) {
        // Cursors may fetch what they are in the middle of to the end, and blobs be read: then it stays
        // open until this object goes, as it does in its own callback or in a backup.
        if let Ok(core) = self.core()
            && let Ok(locked) = lock(py, core)
            && !locked.is_in_use()
        {
            let _ = close(py, core, locked);
        }
    }

    /// Is connected to another database from now on; to none if opening has failed.
    fn connect_to(&self, core: Option<Core>) {
        let opened = Opened {
            core: core.map(Arc::new),
            replaced_by: OnceLock::new(),
        };
        // Nobody else can be the first meanwhile: the GIL is held.
        match self.opened() {
            Some(latest) => drop(latest.replaced_by.set(Box::new(opened))),
            None => drop(self.opened.set(opened)),
        }
    }
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            opened: OnceLock::new(),
            owner_thread: AtomicU64::new(ANY_THREAD),
            only_reads: AtomicBool::new(false),
            attributes: GilCell::new(Attributes::new()),
        }
    }

    #[pyo3(signature = (*arguments, **keywords))]
    fn __init__<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        check_database("Connection", arguments, keywords)?;
        warn_of_positions(slf.py(), "_sqlite3.Connection", arguments.len())?;
        hand_on!(initialize, slf, arguments, keywords).map(drop)
    }

    /// Closes the database. An open transaction is rolled back. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_thread()?;
        let core = self.core()?;
        let locked = match try_to_lock(py, core)? {
            Ok(locked) => locked,
            Err(LockError::Closed) => return Ok(()),
            Err(error) => return Err(lock_failed(error)),
        };
        if self.transaction_control(py) == TransactionControl::AlwaysOpen && !locked.is_autocommit()
        {
            detached(py, &locked, |locked| core.run(locked, "ROLLBACK"))
                .map_err(|error| from_core(py, error))?;
        }
        close(py, core, locked).map_err(|error| from_core(py, error))?;
        let callables = std::mem::take(&mut self.attributes.get_mut(py).callables);
        drop(callables);
        raise_kept()
    }

    /// Makes the statements that run on this connection now fail with `OperationalError:
    /// interrupted`, also while they wait for a lock. May be called from any thread.
    fn interrupt(&self) -> PyResult<()> {
        let core = self.core()?;
        if core.interrupt() {
            return Ok(());
        }
        Err(lock_failed(match core.is_inherited() {
            true => LockError::Forked,
            false => LockError::Closed,
        }))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(attributes) = self.attributes.get_to_visit(&visit) {
            visit.call(&attributes.row_factory)?;
            visit.call(&attributes.text_factory)?;
            attributes.callables.traverse(&visit)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        Python::attach(|py| {
            let cleared = self.attributes.get_to_clear(py).map(|mut attributes| {
                (
                    attributes.row_factory.take(),
                    attributes.text_factory.take(),
                    attributes.callables.take_all(),
                )
            });
            drop(cleared);
        });
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let is_open = self.core().is_ok_and(|core| core.is_open());
        let mut opened = self.opened.take();
        if opened.is_none() {
            return;
        }
        // The last reference closes the database, which may run a checkpoint: not with the GIL.
        // Without an interpreter (it is shutting down) there is nobody to be kind to.
        at_the_end(|py| {
            if is_open && version::WARNS_OF_UNCLOSED_CONNECTIONS {
                warn_of_unclosed(py);
            }
            without(py, || drop(opened.take()));
        });
    }
}

/// Opens the database of a connection; whatever it was connected to before, it is no more.
#[pyfunction]
#[pyo3(name = "Connection", signature = (
    object, database, timeout = 5.0, detect_types = 0, isolation_level = ImplicitLevel::DEFAULT,
    check_same_thread = Truth(true), factory = None, cached_statements = 128, uri = Truth(false), *,
    autocommit = Autocommit::LEGACY, **keywords,
))]
#[expect(
    clippy::too_many_arguments,
    reason = "the standard library's signature"
)]
fn initialize(
    object: &Bound<'_, Connection>,
    database: &Bound<'_, PyAny>,
    timeout: f64,
    detect_types: i32,
    isolation_level: ImplicitLevel,
    check_same_thread: Truth,
    factory: Option<&Bound<'_, PyAny>>,
    cached_statements: i64,
    uri: Truth,
    autocommit: Autocommit,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let py = object.py();
    let _ = factory; // `connect` has already chosen this class by it.
    let mut extras = Extras::named(py, keywords)?;
    let opened_with = OpenedWith {
        isolation_level: isolation_level.0,
        transaction_control: autocommit.0,
        statement_timeout: extras.statement_timeout,
    };
    let mut attributes = Attributes::as_opened(opened_with, DetectTypes::from_flags(detect_types));
    let busy_handler = extras.busy_handler.take().map(Callable::new);
    let extensions = extras.extensions.take();
    let wait = busy_handler.clone().map(callback::busy_handler);
    drop(attributes.callables.replace(Kind::Busy, busy_handler));
    let looks_for_converters = attributes.detect_types.is_on();
    let options = options::build(database, timeout, cached_statements, uri.0, extras, wait)?;
    let extensions = extension::named(py, extensions.as_ref())?;
    let connection = object.get();
    if connection.only_reads.load(Ordering::Relaxed) {
        return Err(ProgrammingError::new_err(
            "This connection only reads, and belongs to a Database or an engine: it cannot be connected \
             anew. Open another one with oxlite.connect().",
        ));
    }
    // Whatever this connection was before, it is that no more, also if opening fails.
    connection.disconnect(py);
    audit(py, ("sqlite3.connect", database))?;
    let opened = without(py, || open(&options, autocommit.0))
        .map_err(|error| from_core(py, error))
        .and_then(|core| extension::load_all(py, &core, &extensions).map(|()| core));
    let core = match opened {
        Ok(core) => core,
        Err(error) => {
            connection.connect_to(None);
            return Err(error);
        }
    };
    let replaced = std::mem::replace(&mut *connection.attributes.get_mut(py), attributes);
    drop(replaced);
    let owner = match check_same_thread.0 {
        true => current_thread(),
        false => ANY_THREAD,
    };
    connection.owner_thread.store(owner, Ordering::Relaxed);
    core.confine(check_same_thread.0);
    connection.connect_to(Some(core));
    audit(py, ("sqlite3.connect/handle", object))?;
    if looks_for_converters {
        notices::tell_of_converters_elsewhere(py)?;
    }
    notices::tell(database, connection.core()?)
}

/// Opens a database: `factory(database, …)`, which is `Connection` by default.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
pub(crate) fn connect<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    /// Where `factory` stands among the positional arguments.
    const FACTORY: usize = 5;
    check_positions_of_connect(py, args.len())?;
    let factory = match kwargs {
        Some(kwargs) => kwargs.get_item("factory")?,
        None => None,
    };
    match factory.or_else(|| args.get_item(FACTORY).ok()) {
        Some(factory) if !factory.is_none() => factory.call(args, kwargs),
        _ => PyType::new::<Connection>(py).call(args, kwargs),
    }
}

/// Raises an auditing event (PEP 578), as the standard library does: the event's name and what it is
/// about.
fn audit<'py>(py: Python<'py>, event: impl PyCallArgs<'py>) -> PyResult<()> {
    match sys_object(py, c"audit") {
        Some(audit) => audit.call1(event).map(drop),
        None => Ok(()),
    }
}

/// A name for SQLite.
pub(crate) fn c_name(name: &str) -> PyResult<CString> {
    CString::new(name).map_err(|_| PyValueError::new_err("embedded null character"))
}

/// Opens the database, arranges for long steps to let the GIL go and to end in time, and begins the
/// transaction that is to be always open.
fn open(options: &OpenOptions, control: TransactionControl) -> oxlite_core::Result<Core> {
    let core = Core::open(options)?;
    // Nobody else knows the connection yet.
    if let Ok(locked) = core.lock() {
        let (operations, handler) = callback::progress_handler(core.deadline(), None, 0);
        locked.set_progress_handler(operations, Some(handler));
        if control == TransactionControl::AlwaysOpen {
            core.run(&locked, TransactionControl::BEGIN)?;
        }
    }
    Ok(core)
}

/// Warns that a connection is being collected which nobody has closed.
fn warn_of_unclosed(py: Python<'_>) {
    let category = PyType::new::<PyResourceWarning>(py);
    let text = c"unclosed database: close() the connection, or use contextlib.closing";
    if let Err(error) = PyErr::warn(py, &category, text, 1) {
        error.write_unraisable(py, None);
    }
}
