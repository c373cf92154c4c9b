//! `Connection`, and `connect`: opening, closing, and what users set. Its other methods stand in the
//! rooms below, by subject.
//!
//! Invariant: the connection's own lock is never waited for with the GIL held (see `gil.rs`), and
//! whatever may wait for the disk or for another process runs without the GIL.

mod attributes;
mod callbacks;
mod copying;
mod functions;
mod shortcuts;
mod switches;
mod transactions;

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxlite_core::{
    Connection as Core, IsolationLevel, JournalConversion, LockError, OpenOptions,
    TransactionControl,
};
use oxlite_sqlite::Locked;
use parking_lot::Mutex;
use pyo3::PyTraverseError;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyResourceWarning, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::callback::{self, Callable, Callables, Kind};
use crate::error::{ProgrammingError, from_core, lock_failed};
use crate::extension;
use crate::gil::{close, current_thread, detached, wait_for};
use crate::options::{self, DetectTypes, Extras, Truth};
use crate::signature::{hand_on, warn_of_positions};
use crate::values::TextFactory;
use crate::version;

pub(crate) use transactions::LEGACY_TRANSACTION_CONTROL;
use transactions::{Autocommit, ImplicitLevel};

/// The thread identity that stands for "any thread".
const ANY_THREAD: u64 = 0;

/// A connection to a database, as PEP 249 and the standard library define it.
#[pyclass(module = "oxlite.sqlite3", subclass, frozen, weakref)]
pub(crate) struct Connection {
    /// Set by `__init__`, which a subclass may forget to call.
    core: Mutex<Option<Arc<Core>>>,
    /// The only thread that may use it, unless `ANY_THREAD`.
    owner_thread: AtomicU64,
    attributes: Mutex<Attributes>,
}

/// What users set. The lock is held for moments only, never across a call into Python.
struct Attributes {
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
        Self {
            isolation_level: Some(IsolationLevel::Default),
            transaction_control: TransactionControl::Legacy,
            row_factory: None,
            text_factory: None,
            detect_types: DetectTypes::default(),
            statement_timeout: None,
            callables: Callables::default(),
        }
    }
}

/// What an execution has to know of its connection.
pub(crate) struct ExecutionSettings {
    pub(crate) detect_types: DetectTypes,
    pub(crate) statement_timeout: Option<Duration>,
}

/// Locks the connection; while another thread has it, waits without the GIL.
pub(crate) fn lock<'c>(py: Python<'_>, core: &'c Core) -> PyResult<Locked<'c>> {
    try_to_lock(py, core).map_err(lock_failed)
}

fn try_to_lock<'c>(py: Python<'_>, core: &'c Core) -> Result<Locked<'c>, LockError> {
    match core.try_lock() {
        Some(locked) => locked,
        None => wait_for(py, core),
    }
}

impl Connection {
    pub(crate) fn core(&self) -> PyResult<Arc<Core>> {
        self.core
            .lock()
            .clone()
            .ok_or_else(|| ProgrammingError::new_err("Base Connection.__init__ not called."))
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
        self.on_locked(py, |_, _| Ok(()))
    }

    pub(crate) fn row_factory_object(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let attributes = self.attributes.lock();
        attributes
            .row_factory
            .as_ref()
            .map(|factory| factory.clone_ref(py))
    }

    pub(crate) fn text_factory_value<'py>(&self, py: Python<'py>) -> TextFactory<'py> {
        match &self.attributes.lock().text_factory {
            None => TextFactory::Str,
            Some(factory) => TextFactory::from_object(factory.bind(py)),
        }
    }

    #[inline]
    pub(crate) fn execution_settings(&self) -> ExecutionSettings {
        let attributes = self.attributes.lock();
        ExecutionSettings {
            detect_types: attributes.detect_types,
            statement_timeout: attributes.statement_timeout,
        }
    }

    /// Checks the thread, locks the connection and does `work`, with the GIL.
    fn on_locked<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Core, &Locked<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.check_thread()?;
        let core = self.core()?;
        let locked = lock(py, &core)?;
        work(&core, &locked)
    }

    /// Puts the connection that `__init__` has opened in place.
    fn install(&self, core: Core, attributes: Attributes, check_same_thread: bool) {
        drop(std::mem::replace(&mut *self.attributes.lock(), attributes));
        let owner = if check_same_thread {
            current_thread()
        } else {
            ANY_THREAD
        };
        self.owner_thread.store(owner, Ordering::Relaxed);
        *self.core.lock() = Some(Arc::new(core));
    }
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            core: Mutex::new(None),
            owner_thread: AtomicU64::new(ANY_THREAD),
            attributes: Mutex::new(Attributes::new()),
        }
    }

    #[pyo3(signature = (*arguments, **keywords))]
    fn __init__<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        warn_of_positions(slf.py(), "_sqlite3.Connection", arguments.len())?;
        hand_on!(initialize, slf, arguments, keywords).map(drop)
    }

    /// Closes the database. An open transaction is rolled back. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_thread()?;
        let core = self.core()?;
        let locked = match try_to_lock(py, &core) {
            Ok(locked) => locked,
            Err(LockError::Closed) => return Ok(()),
            Err(error) => return Err(lock_failed(error)),
        };
        if self.transaction_control() == TransactionControl::AlwaysOpen && !locked.is_autocommit() {
            detached(py, &locked, |locked| core.run(locked, "ROLLBACK"))
                .map_err(|error| from_core(py, error))?;
        }
        close(py, &core, locked).map_err(|error| from_core(py, error))
    }

    /// Makes the statements that run on this connection now fail with `OperationalError:
    /// interrupted`, also while they wait for a lock. May be called from any thread.
    fn interrupt(&self) -> PyResult<()> {
        if self.core()?.interrupt() {
            return Ok(());
        }
        Err(lock_failed(LockError::Closed))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The lock is free whenever the collector runs: nobody calls Python with it held.
        if let Some(attributes) = self.attributes.try_lock() {
            visit.call(&attributes.row_factory)?;
            visit.call(&attributes.text_factory)?;
            attributes.callables.traverse(&visit)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        if let Some(mut attributes) = self.attributes.try_lock() {
            let cleared = (
                attributes.row_factory.take(),
                attributes.text_factory.take(),
                attributes.callables.take_all(),
            );
            drop(attributes);
            drop(cleared);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(core) = self.core.get_mut().take() else {
            return;
        };
        // The last reference closes the database, which may run a checkpoint: not with the GIL.
        // Without an interpreter (it is shutting down) there is nobody to be kind to.
        let mut core = Some(core);
        Python::try_attach(|py| {
            if version::warns_of_unclosed_connections(py)
                && core.as_ref().is_some_and(|core| core.is_open())
            {
                warn_of_unclosed(py);
            }
            py.detach(|| drop(core.take()));
        });
    }
}

/// Opens the database of a connection; whatever it was connected to before, it is no more.
#[pyfunction]
#[pyo3(name = "Connection", signature = (
    object, database, timeout = 5.0, detect_types = 0, isolation_level = ImplicitLevel::DEFAULT,
    check_same_thread = Truth(true), factory = None, cached_statements = 128, uri = Truth(false), *,
    autocommit = Autocommit::LEGACY, profile = "stock", pragmas = None, journal = "profile",
    busy = None, busy_handler = None, statement_timeout = None, extensions = None,
    allow_no_locking = false,
))]
#[expect(
    clippy::too_many_arguments,
    reason = "the standard library's signature and more"
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
    profile: &str,
    pragmas: Option<&Bound<'_, PyDict>>,
    journal: &str,
    busy: Option<&str>,
    busy_handler: Option<Py<PyAny>>,
    statement_timeout: Option<f64>,
    extensions: Option<&Bound<'_, PyAny>>,
    allow_no_locking: bool,
) -> PyResult<()> {
    let py = object.py();
    let _ = factory; // `connect` has already chosen this class by it.
    let mut attributes = Attributes {
        isolation_level: isolation_level.0,
        transaction_control: autocommit.0,
        detect_types: DetectTypes::from_flags(detect_types),
        statement_timeout: options::statement_timeout(statement_timeout)?,
        ..Attributes::new()
    };
    let busy_handler = busy_handler.map(Callable::new);
    let extras = Extras {
        profile,
        pragmas,
        journal,
        busy,
        busy_handler: busy_handler.clone().map(callback::busy_handler),
        allow_no_locking,
    };
    drop(attributes.callables.replace(Kind::Busy, busy_handler));
    let options = options::build(database, timeout, cached_statements, uri.0, extras)?;
    let extensions = extension::named(py, extensions)?;
    // Whatever this connection was before, it is that no more, also if opening fails.
    let connection = object.get();
    let replaced = connection.core.lock().take();
    py.detach(|| drop(replaced));
    audit(py, ("sqlite3.connect", database))?;
    let core = py
        .detach(|| open(&options, autocommit.0))
        .map_err(|error| from_core(py, error))?;
    extension::load_all(py, &core, &extensions)?;
    let conversion = core.converted().cloned();
    connection.install(core, attributes, check_same_thread.0);
    audit(py, ("sqlite3.connect/handle", object))?;
    match conversion {
        Some(conversion) => tell_of_conversion(database, &conversion),
        None => Ok(()),
    }
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
    warn_of_positions(py, "sqlite3.connect", args.len())?;
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
    py.import("sys")?.call_method1("audit", event).map(drop)
}

/// A name for SQLite.
fn c_name(name: &str) -> PyResult<CString> {
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

/// Logs, once, that the file's journal mode has changed for good, with the way back.
fn tell_of_conversion(database: &Bound<'_, PyAny>, conversion: &JournalConversion) -> PyResult<()> {
    let JournalConversion { before, after } = conversion;
    let py = database.py();
    let logger = py
        .import("logging")?
        .call_method1("getLogger", ("oxlite",))?;
    let message = "The journal mode of %s was %s and is now %s; it stays so for every program \
                   that opens the file. Back: PRAGMA journal_mode = %s. To leave a file as it is: \
                   journal=\"keep\".";
    let (before, after) = (before.to_ascii_uppercase(), after.to_ascii_uppercase());
    logger.call_method1("warning", (message, database, &before, after, &before))?;
    Ok(())
}

/// Warns that a connection is being collected which nobody has closed.
fn warn_of_unclosed(py: Python<'_>) {
    let category = PyType::new::<PyResourceWarning>(py);
    let text = c"unclosed database: close() the connection, or use contextlib.closing";
    if let Err(error) = PyErr::warn(py, &category, text, 1) {
        error.write_unraisable(py, None);
    }
}
