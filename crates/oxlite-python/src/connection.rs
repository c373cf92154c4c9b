//! `Connection`, and `connect`.
//!
//! Invariant: the connection's own lock is never waited for with the GIL held (see `gil.rs`), and
//! whatever may wait for the disk or for another process runs without the GIL.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxlite_core::{Connection as Core, IsolationLevel, JournalConversion, LockError, OpenOptions};
use oxlite_sqlite::{Locked, codes};
use parking_lot::Mutex;
use pyo3::PyTraverseError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::blob::Blob;
use crate::callback;
use crate::copying::{self, Pace};
use crate::cursor::Cursor;
use crate::error::{
    NotSupportedError, OperationalError, ProgrammingError, from_core, from_sqlite, lock_failed,
};
use crate::function::{self, PythonAggregate};
use crate::gil::{close, detached, wait_for};
use crate::options::{self, Extras, Truth};
use crate::parameters::{Parameters, bytes_like};
use crate::values::TextFactory;

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
    row_factory: Option<Py<PyAny>>,
    /// `None` is `str`.
    text_factory: Option<Py<PyAny>>,
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

    pub(crate) fn row_factory_object(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let attributes = self.attributes.lock();
        attributes
            .row_factory
            .as_ref()
            .map(|factory| factory.clone_ref(py))
    }

    pub(crate) fn isolation_level_value(&self) -> Option<IsolationLevel> {
        self.attributes.lock().isolation_level
    }

    pub(crate) fn text_factory_value<'py>(&self, py: Python<'py>) -> TextFactory<'py> {
        match &self.attributes.lock().text_factory {
            None => TextFactory::Str,
            Some(factory) => TextFactory::from_object(factory.bind(py)),
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

    /// Ends an open transaction with `statement`; nothing if none is open.
    fn end_transaction(&self, py: Python<'_>, statement: &'static str) -> PyResult<()> {
        self.on_locked(py, |core, locked| {
            if locked.is_autocommit() {
                return Ok(());
            }
            detached(py, locked, |locked| core.run(locked, statement))
                .map_err(|error| from_core(py, error))
        })
    }

    fn config(&self, py: Python<'_>, switch: i32, enabled: Option<bool>) -> PyResult<bool> {
        self.on_locked(py, |_, locked| {
            locked.config(switch, enabled).map_err(|error| {
                if error.code() == codes::SQLITE_MISUSE {
                    return PyValueError::new_err(format!("unknown config 'op': {switch}"));
                }
                from_sqlite(py, &error)
            })
        })
    }

    /// Defines something on the locked connection; an error is SQLite's.
    fn define_by(
        &self,
        py: Python<'_>,
        define: impl FnOnce(&Locked<'_>) -> oxlite_sqlite::Result<()>,
    ) -> PyResult<()> {
        self.on_locked(py, |_, locked| {
            define(locked).map_err(|error| from_sqlite(py, &error))
        })
    }

    /// Defines something on the locked connection; an error is an `OperationalError` of this text.
    fn define(
        &self,
        py: Python<'_>,
        failure: &'static str,
        define: impl FnOnce(&Locked<'_>) -> oxlite_sqlite::Result<()>,
    ) -> PyResult<()> {
        self.on_locked(py, |_, locked| {
            define(locked).map_err(|_| OperationalError::new_err(failure))
        })
    }

    /// A cursor for one of the shortcuts, which honour a subclass's own `cursor()`.
    fn shortcut_cursor<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get_type().is(PyType::new::<Self>(slf.py())) {
            slf.get().check_thread()?;
            return Ok(Cursor::create(slf)?.into_any());
        }
        slf.call_method0("cursor")
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
            attributes: Mutex::new(Attributes {
                isolation_level: Some(IsolationLevel::Default),
                row_factory: None,
                text_factory: None,
            }),
        }
    }

    #[pyo3(signature = (
        database, timeout = 5.0, detect_types = 0, isolation_level = Some(""),
        check_same_thread = Truth(true), factory = None, cached_statements = 128, uri = Truth(false), *,
        profile = "stock", pragmas = None, journal = "profile", busy = None,
        allow_no_locking = false,
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the standard library's signature and more"
    )]
    fn __init__(
        slf: &Bound<'_, Self>,
        database: &Bound<'_, PyAny>,
        timeout: f64,
        detect_types: i32,
        isolation_level: Option<&str>,
        check_same_thread: Truth,
        factory: Option<&Bound<'_, PyAny>>,
        cached_statements: i64,
        uri: Truth,
        profile: &str,
        pragmas: Option<&Bound<'_, PyDict>>,
        journal: &str,
        busy: Option<&str>,
        allow_no_locking: bool,
    ) -> PyResult<()> {
        let py = slf.py();
        let _ = factory; // `connect` has already chosen this class by it.
        if detect_types != 0 {
            return Err(NotSupportedError::new_err(
                "detect_types is not supported yet; pass 0",
            ));
        }
        let isolation_level = isolation_level
            .map(IsolationLevel::named)
            .transpose()
            .map_err(|error| from_core(py, error))?;
        let extras = Extras {
            profile,
            pragmas,
            journal,
            busy,
            allow_no_locking,
        };
        let options = options::build(database, timeout, cached_statements, uri.0, &extras)?;
        // Whatever this connection was before, it is that no more, also if opening fails.
        let connection = slf.get();
        let replaced = connection.core.lock().take();
        py.detach(|| drop(replaced));
        let core = py
            .detach(|| open(&options))
            .map_err(|error| from_core(py, error))?;
        let conversion = core.converted().cloned();
        let attributes = Attributes {
            isolation_level,
            row_factory: None,
            text_factory: None,
        };
        drop(std::mem::replace(
            &mut *connection.attributes.lock(),
            attributes,
        ));
        let owner = if check_same_thread.0 {
            current_thread()
        } else {
            ANY_THREAD
        };
        connection.owner_thread.store(owner, Ordering::Relaxed);
        *connection.core.lock() = Some(Arc::new(core));
        match conversion {
            Some(conversion) => tell_of_conversion(database, &conversion),
            None => Ok(()),
        }
    }

    /// A new cursor; `factory` is called with the connection and must return a `Cursor`.
    #[pyo3(signature = (factory = None))]
    fn cursor<'py>(
        slf: &Bound<'py, Self>,
        factory: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let connection = slf.get();
        connection.check_thread()?;
        drop(lock(py, &*connection.core()?)?);
        let Some(factory) = factory else {
            return Ok(Cursor::create(slf)?.into_any());
        };
        let cursor = factory.call1((slf,))?;
        if !cursor.is_instance_of::<Cursor>() {
            return Err(PyTypeError::new_err(format!(
                "factory must return a cursor, not {}",
                cursor.get_type().name()?
            )));
        }
        if let Some(row_factory) = connection.row_factory_object(py) {
            cursor.setattr("row_factory", row_factory)?;
        }
        Ok(cursor)
    }

    /// Makes a cursor, executes on it and returns it.
    #[pyo3(signature = (sql, parameters = Parameters::Absent, /))]
    fn execute<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        parameters: Parameters<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cursor = Self::shortcut_cursor(slf)?;
        if let (Ok(plain), Ok(sql)) = (cursor.cast_exact::<Cursor>(), sql.cast::<PyString>()) {
            plain.get().execute_sql(slf.py(), sql, &parameters)?;
            return Ok(cursor);
        }
        match parameters {
            Parameters::Given(parameters) => cursor.call_method1("execute", (sql, parameters)),
            Parameters::Absent => cursor.call_method1("execute", (sql,)),
        }
    }

    /// Makes a cursor, executes on it with each set of parameters and returns it.
    #[pyo3(signature = (sql, parameters, /))]
    fn executemany<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        parameters: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::shortcut_cursor(slf)?.call_method1("executemany", (sql, parameters))
    }

    /// Makes a cursor, executes a script on it and returns it.
    #[pyo3(signature = (sql_script, /))]
    fn executescript<'py>(
        slf: &Bound<'py, Self>,
        sql_script: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::shortcut_cursor(slf)?.call_method1("executescript", (sql_script,))
    }

    /// Commits the open transaction; nothing if none is open.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end_transaction(py, "COMMIT")
    }

    /// Rolls the open transaction back; nothing if none is open.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end_transaction(py, "ROLLBACK")
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
        close(py, &core, locked).map_err(|error| from_core(py, error))
    }

    /// Makes the statements that run on this connection now fail with `OperationalError:
    /// interrupted`. May be called from any thread.
    fn interrupt(&self) -> PyResult<()> {
        if self.core()?.interrupt_handle().interrupt() {
            return Ok(());
        }
        Err(lock_failed(LockError::Closed))
    }

    /// Copies the database `name` over the main database of `target`, while both may be in use.
    ///
    /// `pages` are copied at a time (all at once if 0 or less); after each step `progress` is called
    /// with SQLite's code, the pages that remain and the pages in all. A step that meets a lock is
    /// tried again after `sleep` seconds.
    #[pyo3(signature = (target, *, pages = -1, progress = None, name = "main", sleep = 0.25))]
    fn backup(
        slf: &Bound<'_, Self>,
        target: &Bound<'_, Self>,
        pages: i32,
        progress: Option<&Bound<'_, PyAny>>,
        name: &str,
        sleep: f64,
    ) -> PyResult<()> {
        let py = slf.py();
        slf.get().check_thread()?;
        target.get().check_thread()?;
        if slf.is(target) {
            return Err(PyValueError::new_err(
                "target cannot be the same connection instance",
            ));
        }
        if let Some(progress) = progress
            && !progress.is_callable()
        {
            return Err(PyTypeError::new_err("progress argument must be a callable"));
        }
        let pause = Duration::try_from_secs_f64(sleep.max(0.0))
            .map_err(|error| PyValueError::new_err(format!("sleep: {error}")))?;
        let pace = Pace {
            pages: if pages == 0 { -1 } else { pages },
            progress,
            pause,
        };
        let (source, target) = (slf.get().core()?, target.get().core()?);
        copying::back_up(py, &source, &target, &c_name(name)?, &pace)
    }

    /// The content of the database `name`, as its file would be.
    #[pyo3(signature = (*, name = "main"))]
    fn serialize<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let schema = c_name(name)?;
        self.on_locked(py, |_, locked| {
            let content = detached(py, locked, |locked| locked.serialize(&schema));
            let content = content.map_err(|error| {
                let message = format!("unable to serialize '{name}': {}", error.message());
                OperationalError::new_err(message)
            })?;
            Ok(PyBytes::new(py, &content))
        })
    }

    /// Replaces the database `name` by one in memory with this content.
    #[pyo3(signature = (data, /, *, name = "main"))]
    fn deserialize(&self, py: Python<'_>, data: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
        let schema = c_name(name)?;
        let content = bytes_like(data)?;
        let content = content.as_bytes();
        self.on_locked(py, |_, locked| {
            detached(py, locked, |locked| locked.deserialize(&schema, content))
                .map_err(|error| from_sqlite(py, &error))
        })
    }

    /// Opens the BLOB or TEXT value in `column` of the row `row` of `table` for reading and, unless
    /// `readonly`, writing in place.
    #[pyo3(signature = (table, column, row, /, *, readonly = Truth(false), name = "main"))]
    fn blobopen<'py>(
        slf: &Bound<'py, Self>,
        table: &str,
        column: &str,
        row: i64,
        readonly: Truth,
        name: &str,
    ) -> PyResult<Bound<'py, Blob>> {
        let py = slf.py();
        let connection = slf.get();
        connection.check_thread()?;
        let (schema, table, column) = (c_name(name)?, c_name(table)?, c_name(column)?);
        let core = connection.core()?;
        let blob = {
            let locked = lock(py, &core)?;
            detached(py, &locked, |locked| {
                locked.open_blob(&schema, &table, &column, row, readonly.0)
            })
            .map_err(|error| from_sqlite(py, &error))?
        };
        Bound::new(py, Blob::new(slf.clone().unbind(), core, blob))
    }

    /// Creates an SQL function of `narg` arguments (-1: any number); `None` removes it.
    ///
    /// A `deterministic` function lets SQLite reuse its results and use it in indexes.
    #[pyo3(signature = (name, narg, func, *, deterministic = false))]
    fn create_function(
        &self,
        py: Python<'_>,
        name: &str,
        narg: i32,
        func: Option<Py<PyAny>>,
        deterministic: bool,
    ) -> PyResult<()> {
        let name = c_name(name)?;
        let function = func.map(function::scalar);
        self.define(py, "Error creating function", move |locked| {
            locked.create_function(&name, narg, deterministic, function)
        })
    }

    /// Creates an aggregate from a class whose instances have `step(*args)` and `finalize()`;
    /// `None` removes it.
    #[pyo3(signature = (name, n_arg, aggregate_class))]
    fn create_aggregate(
        &self,
        py: Python<'_>,
        name: &str,
        n_arg: i32,
        aggregate_class: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let name = c_name(name)?;
        let aggregate = aggregate_class.map(PythonAggregate::new);
        self.define(py, "Error creating aggregate", move |locked| {
            locked.create_aggregate(&name, n_arg, aggregate)
        })
    }

    /// Creates an aggregate window function from a class whose instances have `step(*args)`,
    /// `inverse(*args)`, `value()` and `finalize()`; `None` removes it.
    #[pyo3(signature = (name, num_params, aggregate_class, /))]
    fn create_window_function(
        &self,
        py: Python<'_>,
        name: &str,
        num_params: i32,
        aggregate_class: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let name = c_name(name)?;
        let aggregate = aggregate_class.map(PythonAggregate::new);
        self.on_locked(py, |_, locked| {
            locked
                .create_window_function(&name, num_params, aggregate)
                // The standard library's class for wrong arguments here, unlike for the others.
                .map_err(|_| ProgrammingError::new_err("Error creating window function"))
        })
    }

    /// Creates a collation from a function that compares two `str` and returns a negative number,
    /// zero or a positive one; `None` removes it.
    #[pyo3(signature = (name, callback, /))]
    fn create_collation(
        &self,
        py: Python<'_>,
        name: &str,
        callback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let name = c_name(name)?;
        if let Some(callback) = &callback
            && !callback.bind(py).is_callable()
        {
            return Err(PyTypeError::new_err("parameter must be callable"));
        }
        let collation = callback.map(function::collation);
        self.define_by(py, move |locked| locked.create_collation(&name, collation))
    }

    /// Asks `authorizer_callback` about every access while a statement is prepared: it is called
    /// with an action code, two arguments that depend on it, the schema, and the trigger or view
    /// responsible; it answers `SQLITE_OK`, `SQLITE_DENY` or `SQLITE_IGNORE`. `None` removes it.
    #[pyo3(signature = (authorizer_callback))]
    fn set_authorizer(
        &self,
        py: Python<'_>,
        authorizer_callback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let authorizer = authorizer_callback.map(callback::authorizer);
        self.define(py, "Error setting authorizer callback", move |locked| {
            locked.set_authorizer(authorizer)
        })
    }

    /// Calls `progress_handler` about every `n` instructions of SQLite's virtual machine; a true
    /// answer interrupts the statement. `None` removes it.
    #[pyo3(signature = (progress_handler, n))]
    fn set_progress_handler(
        &self,
        py: Python<'_>,
        progress_handler: Option<Py<PyAny>>,
        n: i32,
    ) -> PyResult<()> {
        // As in SQLite, fewer than one instruction means none.
        let (operations, handler) =
            callback::progress_handler(progress_handler.filter(|_| n > 0), n);
        self.define_by(py, move |locked| {
            locked.set_progress_handler(operations, Some(handler));
            Ok(())
        })
    }

    /// The value of a run-time limit: `category` is one of the `SQLITE_LIMIT_` constants.
    #[pyo3(signature = (category, /))]
    fn getlimit(&self, py: Python<'_>, category: i32) -> PyResult<i32> {
        self.setlimit(py, category, -1)
    }

    /// Sets a run-time limit, at most to the bound it was compiled with, and returns the one
    /// before; a negative `limit` changes nothing.
    #[pyo3(signature = (category, limit, /))]
    fn setlimit(&self, py: Python<'_>, category: i32, limit: i32) -> PyResult<i32> {
        self.on_locked(py, |_, locked| {
            locked
                .set_limit(category, limit)
                .ok_or_else(|| ProgrammingError::new_err("'category' is out of bounds"))
        })
    }

    /// Whether one of SQLite's switches is on: `op` is one of the `SQLITE_DBCONFIG_` constants.
    #[pyo3(signature = (op, /))]
    fn getconfig(&self, py: Python<'_>, op: i32) -> PyResult<bool> {
        self.config(py, op, None)
    }

    /// Turns one of SQLite's switches on or off.
    #[pyo3(signature = (op, enable = true, /))]
    fn setconfig(&self, py: Python<'_>, op: i32, enable: bool) -> PyResult<()> {
        if self.config(py, op, Some(enable))? == enable {
            return Ok(());
        }
        Err(OperationalError::new_err("Unable to set config"))
    }

    /// Calls `trace_callback` with the text, parameters filled in, of each statement that begins
    /// to run; `None` removes it.
    #[pyo3(signature = (trace_callback))]
    fn set_trace_callback(
        &self,
        py: Python<'_>,
        trace_callback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let tracer = trace_callback.map(callback::tracer);
        self.define_by(py, move |locked| locked.set_trace(tracer))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        slf.get().check_thread()?;
        drop(lock(py, &*slf.get().core()?)?);
        Ok(slf.clone())
    }

    /// Commits if the block ended well, rolls back if it raised. The connection stays open.
    fn __exit__(
        slf: &Bound<'_, Self>,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if !exception_type.is_none() {
            slf.call_method0("rollback")?;
            return Ok(false);
        }
        if let Err(error) = slf.call_method0("commit") {
            // A commit that failed leaves the transaction open, and with it the lock.
            slf.call_method0("rollback")?;
            return Err(error);
        }
        Ok(false)
    }

    /// How an implicit transaction begins: `""`, `"DEFERRED"`, `"IMMEDIATE"`, `"EXCLUSIVE"`, or
    /// `None` for no implicit transactions.
    #[getter]
    fn isolation_level(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        drop(lock(py, &*self.core()?)?);
        Ok(self.isolation_level_value().map(IsolationLevel::name))
    }

    #[setter]
    fn set_isolation_level(&self, py: Python<'_>, level: Option<&str>) -> PyResult<()> {
        let level = level
            .map(IsolationLevel::named)
            .transpose()
            .map_err(|error| from_core(py, error))?;
        if level.is_none() {
            // As in the standard library: going over to autocommit commits what is open.
            self.end_transaction(py, "COMMIT")?;
        }
        self.attributes.lock().isolation_level = level;
        Ok(())
    }

    /// The row factory that new cursors get; `None` for tuples.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.row_factory_object(py)
    }

    #[setter]
    fn set_row_factory(&self, factory: Option<Py<PyAny>>) {
        let replaced = std::mem::replace(&mut self.attributes.lock().row_factory, factory);
        drop(replaced);
    }

    /// Called with the bytes of each TEXT value; `str` by default.
    #[getter]
    fn text_factory(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.attributes.lock().text_factory {
            Some(factory) => factory.clone_ref(py),
            None => PyType::new::<PyString>(py).into_any().unbind(),
        }
    }

    #[setter]
    fn set_text_factory(&self, factory: &Bound<'_, PyAny>) {
        let is_str = factory.is(PyType::new::<PyString>(factory.py()));
        let factory = (!is_str).then(|| factory.clone().unbind());
        let replaced = std::mem::replace(&mut self.attributes.lock().text_factory, factory);
        drop(replaced);
    }

    /// Whether a transaction is open.
    #[getter]
    fn in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        let core = self.core()?;
        let locked = lock(py, &core)?;
        Ok(!locked.is_autocommit())
    }

    /// How many rows have been changed since the connection was opened.
    #[getter]
    fn total_changes(&self, py: Python<'_>) -> PyResult<i64> {
        let core = self.core()?;
        let locked = lock(py, &core)?;
        Ok(locked.total_changes())
    }

    /// The name of the profile the connection was opened with.
    #[getter]
    fn profile(&self) -> PyResult<&'static str> {
        Ok(self.core()?.profile().name)
    }

    /// How the connection waits for locks: `"fair"`, `"backoff"` or `"none"`.
    #[getter]
    fn busy(&self) -> PyResult<&'static str> {
        Ok(self.core()?.busy().name())
    }

    /// For how long at most it waits for a lock, in seconds.
    #[getter]
    fn timeout(&self) -> PyResult<f64> {
        Ok(self.core()?.timeout().as_secs_f64())
    }

    /// What became of each pragma on opening: tuples of its name, the value asked for, the value in
    /// force, and the reason why it could not be applied (`None` if it was).
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let core = self.core()?;
        let settings = core.settings().iter().map(|setting| {
            (
                setting.name,
                setting.requested.as_str(),
                setting.effective.as_str(),
                setting.skipped,
            )
        });
        PyTuple::new(py, settings.collect::<Vec<_>>())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The lock is free whenever the collector runs: nobody calls Python with it held.
        if let Some(attributes) = self.attributes.try_lock() {
            visit.call(&attributes.row_factory)?;
            visit.call(&attributes.text_factory)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        if let Some(mut attributes) = self.attributes.try_lock() {
            let cleared = (
                attributes.row_factory.take(),
                attributes.text_factory.take(),
            );
            drop(attributes);
            drop(cleared);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(core) = self.core.get_mut().take() {
            // The last reference closes the database, which may run a checkpoint: not with the GIL.
            // Without an interpreter (it is shutting down) there is nobody to be kind to.
            let mut core = Some(core);
            Python::try_attach(|py| py.detach(|| drop(core.take())));
        }
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
    let factory = match kwargs {
        Some(kwargs) => kwargs.get_item("factory")?,
        None => None,
    };
    match factory.or_else(|| args.get_item(FACTORY).ok()) {
        Some(factory) if !factory.is_none() => factory.call(args, kwargs),
        _ => PyType::new::<Connection>(py).call(args, kwargs),
    }
}

/// A name for SQLite.
fn c_name(name: &str) -> PyResult<CString> {
    CString::new(name).map_err(|_| PyValueError::new_err("embedded null character"))
}

/// Opens the database and arranges for long steps to let the GIL go.
fn open(options: &OpenOptions) -> oxlite_core::Result<Core> {
    let core = Core::open(options)?;
    if let Ok(locked) = core.lock() {
        let (operations, handler) = callback::progress_handler(None, 0);
        locked.set_progress_handler(operations, Some(handler));
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

/// The identity of this thread, as `threading.get_ident()` gives it.
#[inline]
fn current_thread() -> u64 {
    // SAFETY: takes nothing, touches no Python object.
    unsafe { pyo3::ffi::PyThread_get_thread_ident() as u64 }
}
