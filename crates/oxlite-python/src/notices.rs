//! What is logged when a database is opened, under the name `oxlite`: what an application should know
//! and can do something about, though nothing has failed.
//!
//! Invariant: what is told once is told once in each process. Native threads log too, so a forked child does
//! not look at what its parent has told, which one of them may have had locked.

use std::collections::HashSet;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use oxlite_core::{
    Connection as Core, JournalConversion, Mutex, OtherUsers, PerProcess, REPEATED, SlowStatement,
    cut, harmless, in_a_line,
};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::adaptation::converters;
use crate::gil::{attached, keep_for_caller};
use crate::gil_once::interned;
use crate::lock::lock;
use crate::sys_module::sys_object;

/// The files of which [`tell_of_other_users`] has told.
static TOLD: PerProcess<Mutex<HashSet<PathBuf>>> = PerProcess::new();

/// What has been logged once: the texts of the core, the names of converters.
static LOGGED: PerProcess<Mutex<HashSet<String>>> = PerProcess::new();

/// Hands what the core logs on to Python's logger.
struct ToPython;

impl log::Log for ToPython {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = harmless(&record.args().to_string()).into_owned();
        // What is repeated says when it has something to say.
        let is_repeated = record.target() == REPEATED;
        if !is_repeated && !is_first(&LOGGED, text.clone()) {
            return;
        }
        attached(|py| {
            if let Err(error) = warn(py, ("%s", text)) {
                error.write_unraisable(py, None);
            }
        });
    }

    fn flush(&self) {}
}

/// Has what the core logs handed on.
pub(crate) fn install() {
    if log::set_logger(&ToPython).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// Logs what is to be known of a database that has just been opened.
pub(crate) fn tell(database: &Bound<'_, PyAny>, core: &Core) -> PyResult<()> {
    if let Some(conversion) = core.converted() {
        tell_of_conversion(database, conversion)?;
    }
    let py = database.py();
    if !has_other_sqlite(py) {
        return Ok(());
    }
    // An audit hook may have closed it meanwhile.
    let users = lock(py, core)
        .ok()
        .and_then(|locked| core.other_users(&locked, |file| !was_told(file)));
    match users {
        Some(users) if is_news(&users.file) => tell_of_other_users(py, &users),
        _ => Ok(()),
    }
}

/// Whether another SQLite has been imported; not while the interpreter ends, when nobody listens.
fn has_other_sqlite(py: Python<'_>) -> bool {
    // Python modules that bring a SQLite of their own.
    let others = [
        interned!(py, "_sqlite3"),
        interned!(py, "apsw"),
        interned!(py, "pysqlite3._sqlite3"),
        interned!(py, "sqlcipher3._sqlite3"),
    ];
    sys_object(py, c"modules").is_some_and(|modules| {
        let is_imported = |name: &Bound<'_, PyString>| modules.contains(name).unwrap_or(false);
        others.into_iter().any(is_imported)
    })
}

/// Whether it has been told of this file, so that nobody need look.
fn was_told(file: &Path) -> bool {
    TOLD.get().is_some_and(|told| told.lock().contains(file))
}

/// Whether nobody has been told of this file; now somebody is.
fn is_news(file: &Path) -> bool {
    is_first(&TOLD, file.to_path_buf())
}

/// Whether this process sees it for the first time.
fn is_first<T: Eq + Hash>(seen: &PerProcess<Mutex<HashSet<T>>>, this: T) -> bool {
    let seen = seen.get_or_make(Mutex::default);
    seen.is_none_or(|seen| seen.lock().insert(this))
}

/// The file's journal mode has changed for good; there is a way back.
fn tell_of_conversion(database: &Bound<'_, PyAny>, conversion: &JournalConversion) -> PyResult<()> {
    let JournalConversion { before, after } = conversion;
    let message = "The journal mode of %s was %s and is now %s; it stays so for every program \
                   that opens the file. Back: PRAGMA journal_mode = %s. To leave a file as it is: \
                   journal=\"keep\".";
    let (before, after) = (before.to_ascii_uppercase(), after.to_ascii_uppercase());
    let py = database.py();
    let database = shown(&database.str()?.to_string_lossy());
    warn(py, (message, database, &before, after, &before))
}

/// Something else in this process has the file open.
fn tell_of_other_users(py: Python<'_>, users: &OtherUsers) -> PyResult<()> {
    let libraries: Vec<_> = users
        .libraries
        .iter()
        .filter_map(|library| library.file_name().and_then(|name| name.to_str()))
        .collect();
    let libraries = match libraries.is_empty() {
        true => "none".to_owned(),
        false => libraries.join(", "),
    };
    let message = "%s is open in this process beside Oxlite, through the file descriptors %s (other \
                   SQLite libraries that are loaded: %s). Oxlite keeps its locks; those of another \
                   SQLite are dropped whenever anybody in the process closes the file. Open it \
                   through one of them only.";
    warn(
        py,
        (
            message,
            shown(&users.file.to_string_lossy()),
            users.descriptors.clone(),
            shown(&libraries),
        ),
    )
}

/// No more of a statement than this stands in a message, in characters; all of it in the record's `sql`.
const STATEMENT_AT_MOST: usize = 1000;

/// A statement has taken long: logged under the name `oxlite.slow_statements`, with what is known of it as
/// attributes of the record. What a handler raises that is no `Exception` (`KeyboardInterrupt`) is for whoever runs
/// the statement.
pub(crate) fn tell_of_slow_statement(statement: &SlowStatement) {
    attached(|py| match log_slow_statement(py, statement) {
        Err(error) if error.is_instance_of::<PyException>(py) => error.write_unraisable(py, None),
        Err(error) => keep_for_caller(error),
        Ok(()) => {}
    });
}

fn log_slow_statement(py: Python<'_>, statement: &SlowStatement) -> PyResult<()> {
    let SlowStatement {
        database,
        sql,
        took,
        waited,
        plan,
    } = statement;
    let database = database.as_deref().map(Path::to_string_lossy);
    let (took, waited) = (took.as_secs_f64(), waited.as_secs_f64());
    let steps: Vec<_> = plan
        .iter()
        .map(|(depth, step)| format!("{}{step}", "  ".repeat(*depth)))
        .collect();
    let extra = PyDict::new(py);
    extra.set_item("database", &database)?;
    extra.set_item("sql", sql)?;
    extra.set_item("seconds", took)?;
    extra.set_item("seconds_waited", waited)?;
    extra.set_item("plan", &steps)?;
    let mut told = cut(in_a_line(sql), STATEMENT_AT_MOST);
    if !plan.is_empty() {
        let steps: Vec<_> = plan.iter().map(|(_, step)| in_a_line(step)).collect();
        told = format!("{told} [{}]", steps.join("; "));
    }
    let database = shown(&database.unwrap_or_else(|| "a database that is in no file".into()));
    let keywords = PyDict::new(py);
    keywords.set_item("extra", extra)?;
    let message = "%.3f s, of which %.3f s waiting for locks, in %s: %s";
    logger(py, "oxlite.slow_statements")?.call_method(
        "warning",
        (message, took, waited, database, told),
        Some(&keywords),
    )?;
    Ok(())
}

/// The standard library's module has converters that ours has not: a connection that looks for
/// converters by type reads the columns of these types as if there were none. Told once of each set
/// of them; nothing is told while the interpreter ends, when nobody listens.
pub(crate) fn tell_of_converters_elsewhere(py: Python<'_>) -> PyResult<()> {
    let Some(modules) = sys_object(py, c"modules") else {
        return Ok(());
    };
    // Somebody may have put another module there, or ours.
    let Ok(theirs) = modules
        .get_item("sqlite3")
        .and_then(|module| module.getattr("converters"))
        .and_then(|converters| Ok(converters.cast_into::<PyDict>()?))
    else {
        return Ok(());
    };
    let ours = converters(py);
    let mut missing = Vec::new();
    for name in theirs.keys() {
        if !ours.contains(&name)? {
            missing.push(name.str()?.to_string());
        }
    }
    missing.sort_unstable();
    let names = missing.join(", ");
    if missing.is_empty() || !is_first(&LOGGED, names.clone()) {
        return Ok(());
    }
    let message = "The standard library's sqlite3 has converters that oxlite.sqlite3 has not: %s. \
                   A connection with detect_types reads columns of these types without one. Register \
                   them with oxlite.sqlite3, or all at once: oxlite.sqlite3.register_all_from(sqlite3).";
    warn(py, (message, shown(&names)))
}

/// A name in a message.
fn shown(name: &str) -> String {
    harmless(name).into_owned()
}

fn warn<'py>(py: Python<'py>, arguments: impl PyCallArgs<'py>) -> PyResult<()> {
    logger(py, "oxlite")?.getattr("warning")?.call1(arguments)?;
    Ok(())
}

fn logger<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logging")?.call_method1("getLogger", (name,))
}
