//! The Python face of Oxlite's core: conversions, the GIL policy, the mapping of errors. No other
//! policy lives here.
//!
//! This file is the one export list. The package `oxlite` re-exports from it by name; `_native.pyi`
//! declares it, and a test holds the two against each other.

mod activity;
mod adaptation;
mod aio;
mod any_value_function;
mod argument;
mod backup;
mod baton;
mod blob;
mod buffers;
mod cache;
mod callback;
mod changeset;
mod connection;
mod copy_function;
mod cursor;
mod date_functions;
mod error;
mod exceptions;
mod execution;
mod extension;
#[cfg(all(target_os = "linux", target_env = "gnu", not(Py_3_14)))]
mod forced_unwind;
mod function;
mod gil;
mod gil_cell;
mod gil_once;
mod loan;
mod lock;
mod native_aggregate;
mod native_converter;
mod native_function;
mod notices;
mod notifications;
mod options;
mod parameter_sets;
mod parameters;
mod pattern_function;
mod pool;
mod requests;
mod row;
mod session;
mod shared_commit;
mod signature;
mod small_functions;
mod statement;
mod statistic_functions;
mod sys_module;
mod thread_entry;
mod type_names;
mod values;
mod version;
mod writer;

use pyo3::prelude::*;

/// The private extension module behind the package `oxlite`.
#[pymodule]
// The GIL policy (gil.rs) presumes a GIL: a free-threaded interpreter turns it on for this module.
#[pyo3(name = "_native", gil_used = true)]
mod native {
    use std::ffi::CString;
    use std::time::Duration;

    use oxlite_core::{
        LEGACY_TRANSACTION_CONTROL, NETWORK_FILE_SYSTEMS, NO_ROWID, PROFILES, PragmaValue,
    };
    use oxlite_sqlite::{CONSTANTS, RESULT_CODES, build, is_complete_statement};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyString, PyTuple};

    use crate::lock::lock;
    use crate::options::DetectTypes;

    #[pymodule_export]
    use crate::activity::ActivityWatcher;
    #[pymodule_export]
    use crate::adaptation::{PrepareProtocol, adapt, register_adapter, register_converter};
    #[pymodule_export]
    use crate::aio::{Connections, Job, Mailbox, SerialExecutor};
    #[pymodule_export]
    use crate::any_value_function::create_any_value_function;
    #[pymodule_export]
    use crate::blob::Blob;
    #[pymodule_export]
    use crate::cache::{Seals, cache_number};
    #[pymodule_export]
    use crate::callback::enable_callback_tracebacks;
    #[pymodule_export]
    use crate::changeset::{
        Absent, Change, Conflict, concat_changesets, invert_changeset, read_changeset,
    };
    #[pymodule_export]
    use crate::connection::{Connection, Parked, connect, hand_over, note_prepared};
    #[pymodule_export]
    use crate::copy_function::create_copy_functions;
    #[pymodule_export]
    use crate::cursor::Cursor;
    #[pymodule_export]
    use crate::date_functions::{ClockChange, create_date_functions};
    #[pymodule_export]
    use crate::exceptions::{
        CommitOutcomeUnknown, DataError, DatabaseError, Error, IntegrityError, InterfaceError,
        InternalError, LockedError, NotSupportedError, NotificationsLost, OperationalError,
        PoolTimeout, ProgrammingError, StaleSnapshotError, StatementTimeout, SyncFailedError,
        Warning, WriterInUse,
    };
    #[pymodule_export]
    use crate::loan::Loan;
    #[pymodule_export]
    use crate::native_converter::NativeConverter;
    #[pymodule_export]
    use crate::notifications::{Announcement, Feed, Hearing, Subscription, prepare_notifications};
    #[pymodule_export]
    use crate::options::enable_shared_cache;
    #[pymodule_export]
    use crate::pattern_function::{Pattern, create_pattern_function};
    #[pymodule_export]
    use crate::pool::Pool;
    #[pymodule_export]
    use crate::row::Row;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::shared_commit::shared_commit_group;
    #[pymodule_export]
    use crate::small_functions::create_small_functions;
    #[pymodule_export]
    use crate::statement::Statement;
    #[pymodule_export]
    use crate::statistic_functions::create_statistic_functions;
    #[pymodule_export]
    use crate::thread_entry::{close_to_threads, open_to_threads};
    #[pymodule_export]
    use crate::writer::Writer;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        crate::gil::refuse_subinterpreters()?;
        crate::gil::refuse_without_gil(py)?;
        // Forks are counted and seen to from here on, by this one thread.
        oxlite_sqlite::prepare_for_forks();
        module.add("ABSENT", crate::changeset::absent(py)?)?;
        module.add("adapters", crate::adaptation::adapters(py))?;
        module.add("Setting", crate::connection::setting_class(py)?)?;
        module.add("converters", crate::adaptation::converters(py))?;
        module.add("PARSE_DECLTYPES", DetectTypes::PARSE_DECLTYPES)?;
        module.add("PARSE_COLNAMES", DetectTypes::PARSE_COLNAMES)?;
        module.add("LEGACY_TRANSACTION_CONTROL", LEGACY_TRANSACTION_CONTROL)?;
        for (name, value) in RESULT_CODES.iter().chain(CONSTANTS) {
            module.add(*name, *value)?;
        }
        let network_file_systems = NETWORK_FILE_SYSTEMS.iter().map(|known| known.name);
        module.add(
            "NETWORK_FILE_SYSTEMS",
            PyFrozenSet::new(py, network_file_systems)?,
        )?;
        // As the standard library's module has it.
        #[cfg(Py_3_15)]
        module.add("SQLITE_KEYWORDS", PyTuple::new(py, build::keywords())?)?;
        module.add("sqlite_version", build::version())?;
        module.add("sqlite_source_id", build::source_id())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::gil::note_main_thread(py)?;
        crate::notices::install();
        oxlite_sqlite::call_before_waiting(crate::gil::on_waiting);
        let connection = module.getattr("Connection")?;
        connection.setattr("__call__", connection.getattr("_call")?)?;
        connection.delattr("_call")?;
        // PEP 249's optional extension: the exceptions as attributes of the connection.
        for exception in crate::exceptions::NAMES {
            connection.setattr(exception, module.getattr(exception)?)?;
        }
        crate::gil_once::make_those_of_pyo3(module);
        Ok(())
    }

    /// Forgets which row a connection has inserted last, for `latest_rowid`.
    #[pyfunction]
    fn forget_rowid(connection: &Bound<'_, Connection>) -> PyResult<()> {
        let core = connection.get().core()?;
        lock(connection.py(), core)?.set_last_insert_rowid(NO_ROWID);
        Ok(())
    }

    /// The row id of its latest insert since it was forgotten; `None` if there was none.
    #[pyfunction]
    fn latest_rowid(connection: &Bound<'_, Connection>) -> PyResult<Option<i64>> {
        let core = connection.get().core()?;
        let rowid = lock(connection.py(), core)?.last_insert_rowid();
        Ok((rowid != NO_ROWID).then_some(rowid))
    }

    /// From now on the connection waits for locks no longer than `seconds`, all together, since its call has
    /// waited for something else before; with `None` for as long as its timeout says.
    #[pyfunction]
    fn wait_at_most(connection: &Bound<'_, Connection>, seconds: Option<f64>) -> PyResult<()> {
        let remaining = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
        let remaining = remaining.and_then(Result::ok);
        connection.get().core()?.deadline().wait_at_most(remaining);
        Ok(())
    }

    /// From now on only this thread uses the connection, or any may again: for who sees to that himself, with
    /// `check_same_thread` switched off.
    #[pyfunction]
    fn confine(connection: &Bound<'_, Connection>, to_this_thread: bool) -> PyResult<()> {
        connection.get().core()?.confine(to_this_thread);
        Ok(())
    }

    /// Has a connection only read, until it is closed.
    #[pyfunction]
    fn only_read(connection: &Bound<'_, Connection>) -> PyResult<()> {
        connection.get().only_read(connection.py())
    }

    /// Has a connection refuse what writes, or ends that.
    #[pyfunction]
    fn refuse_writes(connection: &Bound<'_, Connection>, refuses: bool) -> PyResult<()> {
        let py = connection.py();
        connection.get().on_locked(py, |_, locked| {
            let done = locked.refuse_writes(refuses);
            done.map_err(|error| crate::error::from_sqlite(py, &error))
        })
    }

    /// A text that others have written, for a terminal or a log: on one line, and with nothing in it that a
    /// terminal obeys. What is no Unicode (a surrogate) is written out as well.
    #[pyfunction]
    fn harmless(text: &Bound<'_, PyString>) -> PyResult<String> {
        let encoded = text.call_method1("encode", ("utf-8", "backslashreplace"))?;
        let encoded = encoded.cast::<PyBytes>()?;
        Ok(oxlite_core::harmless(&String::from_utf8_lossy(encoded.as_bytes())).into_owned())
    }

    /// The threading mode SQLite was compiled with: 0, 1 or 2.
    #[pyfunction]
    fn sqlite_threadsafe() -> i32 {
        build::threadsafe()
    }

    /// Whether `statement` ends in a complete SQL statement: a semicolon that no string, comment or
    /// trigger body holds.
    #[pyfunction]
    fn complete_statement(statement: &str) -> PyResult<bool> {
        let statement = CString::new(statement)
            .map_err(|_| PyValueError::new_err("embedded null character"))?;
        Ok(is_complete_statement(&statement))
    }

    /// What an opening takes at a door (`"sqlite3.connect"`, `"connect"` or `"Database"`), one tuple for each
    /// option: its name, its kind, what it takes in words, its default, whether it takes `None`, its
    /// choices, the least number, the number it takes only more than, and what it is for.
    #[pyfunction]
    fn options<'py>(py: Python<'py>, door: &str) -> PyResult<Bound<'py, PyTuple>> {
        crate::options::declared(py, door)
    }

    /// Each profile's pragmas, and SQLite's switches and limits by their names in C, in the order in which they are
    /// applied.
    #[pyfunction]
    fn profiles(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let all = PyDict::new(py);
        for profile in &PROFILES {
            let settings = PyDict::new(py);
            let pragmas = profile.pragmas();
            let pragmas = pragmas.map(|(name, value)| (name, value.to_owned()));
            for (name, value) in profile.precautions().chain(pragmas) {
                match PragmaValue::from(value.as_str()) {
                    PragmaValue::Integer(number) => settings.set_item(name, number)?,
                    other => settings.set_item(name, other.to_string())?,
                }
            }
            all.set_item(profile.name, settings)?;
        }
        Ok(all)
    }
}
