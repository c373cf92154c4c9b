//! Sessions of a connection, and applying what they have recorded.
//!
//! Invariants:
//! - The filter is asked with the connection unlocked, and the changeset is known to be well-formed
//!   then.
//! - The conflict handler runs inside SQLite, as SQL functions do: with the connection locked, which
//!   it may use.
//! - An application that fails leaves everything as it was, also whether a transaction is open (but
//!   for one case: see the end of `apply_changeset`).

use std::collections::HashSet;
use std::ffi::{CStr, CString};

use oxlite_core::Connection as Core;
use oxlite_sqlite::{Conflict, ConflictAction, Error, Locked, codes, read_changeset};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use super::{Connection, c_name};
use crate::buffers::bytes_like;
use crate::changeset;
use crate::error::{from_core, from_sqlite};
use crate::gil::{attached, detached, without};
use crate::session::Session;

impl Connection {
    /// Does `work`, which fails when it takes longer than a statement may.
    fn in_time<T>(
        &self,
        py: Python<'_>,
        core: &Core,
        work: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let timeout = self.execution_settings(py).statement_timeout;
        let _stretch = timeout.map(|timeout| core.deadline().begin(timeout));
        work()
    }

    /// Lets a session read the database without the GIL.
    pub(crate) fn read_in_time<T: Send>(
        &self,
        py: Python<'_>,
        core: &Core,
        locked: &Locked<'_>,
        work: impl FnOnce(&Locked<'_>) -> oxlite_sqlite::Result<T> + Send,
    ) -> PyResult<T> {
        self.in_time(py, core, || {
            detached(py, locked, work).map_err(|error| from_core(py, core.explain(locked, error)))
        })
    }
}

#[pymethods]
impl Connection {
    /// Begins to record the changes of rows in the database `name`: of the `tables` named, or of all,
    /// also of those made later.
    ///
    /// Only tables with a declared primary key are recorded. A connection with a preupdate hook cannot
    /// have sessions.
    #[pyo3(signature = (*, name = "main", tables = None))]
    fn create_session<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        tables: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Session>> {
        let py = slf.py();
        let connection = slf.get();
        connection.check_thread()?;
        let schema = c_name(name)?;
        let tables = tables.map(names).transpose()?;
        let session = connection.on_locked(py, |_, locked| {
            let attached = || {
                let session = locked.create_session(&schema)?;
                match &tables {
                    None => session.attach(locked, None)?,
                    Some(tables) => tables
                        .iter()
                        .try_for_each(|table| session.attach(locked, Some(table)))?,
                }
                Ok(session)
            };
            attached().map_err(|error| from_sqlite(py, &error))
        })?;
        Bound::new(py, Session::new(slf.clone().unbind(), session))
    }

    /// Applies a changeset or patchset to the database `main`: all of it, or, if that raises, nothing.
    /// Like a data modification it begins a transaction where the connection is to have one.
    ///
    /// `filter` is asked with the name of each table whether its changes are wanted. Tables that the
    /// database does not have, or that have other primary keys, are passed over in silence.
    ///
    /// `on_conflict` says what becomes of a change that cannot be made as recorded. It is called with
    /// an `oxlite.changeset.Conflict` and answers `"omit"` (leave the change out), `"replace"`
    /// (overwrite the row that is there; for the kinds `"data"` and `"conflict"` only) or `"abort"`, or
    /// SQLite's numbers for these. One of these in place of a callable is the answer to every conflict;
    /// `"replace"` then aborts where there is no row to replace. By default every conflict aborts.
    ///
    /// An exception of either is raised here. `on_conflict` may use this connection, but not close it;
    /// other threads wait meanwhile.
    #[pyo3(signature = (changeset, *, filter = None, on_conflict = None))]
    fn apply_changeset(
        &self,
        py: Python<'_>,
        changeset: &Bound<'_, PyAny>,
        filter: Option<&Bound<'_, PyAny>>,
        on_conflict: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let changeset = bytes_like(changeset)?;
        let changeset = changeset.as_bytes();
        if filter.is_some_and(|filter| !filter.is_callable()) {
            return Err(PyTypeError::new_err("filter must be callable or None"));
        }
        let mut resolver = Resolver::new(on_conflict)?;
        self.check_open(py)?;
        let tables = without(py, || tables(changeset)).map_err(|error| from_sqlite(py, &error))?;
        let wanted = filter
            .map(|filter| ask_filter(filter, tables))
            .transpose()?;
        self.on_locked(py, |core, locked| {
            self.in_time(py, core, || {
                let has_begun = self.begin_implicitly(py, core, locked)?;
                let applied = detached(py, locked, |locked| {
                    let mut is_wanted =
                        |table: &CStr| Ok(wanted.as_ref().is_some_and(|all| all.contains(table)));
                    let filter = wanted.as_ref().map(|_| &mut is_wanted as _);
                    let mut resolve = |conflict: &Conflict<'_>| resolver.resolve(conflict);
                    locked.apply_changeset(changeset, filter, &mut resolve)
                });
                let Err(error) = applied else { return Ok(()) };
                let error = match resolver.raised.take() {
                    Some(raised) => raised,
                    None => from_core(py, core.explain(locked, resolver.explain(error))),
                };
                if has_begun && !locked.is_autocommit() {
                    // After an interruption this fails while a query is unread. The transaction is
                    // empty.
                    let _ = detached(py, locked, |locked| core.run(locked, "ROLLBACK"));
                }
                Err(error)
            })
        })
    }
}

/// Names of tables for SQLite.
fn names(tables: &Bound<'_, PyAny>) -> PyResult<Vec<CString>> {
    if tables.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "tables takes a list of names, not one string",
        ));
    }
    let name = |table: PyResult<Bound<'_, PyAny>>| c_name(table?.extract()?);
    tables.try_iter()?.map(name).collect()
}

/// The tables that have changes, each once, in their order.
fn tables(changeset: &[u8]) -> oxlite_sqlite::Result<Vec<&CStr>> {
    let mut tables: Vec<&CStr> = Vec::new();
    for change in read_changeset(changeset) {
        let table = change?.table;
        if tables.last() != Some(&table) && !tables.contains(&table) {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// The tables that the filter wants.
fn ask_filter<'a>(filter: &Bound<'_, PyAny>, tables: Vec<&'a CStr>) -> PyResult<HashSet<&'a CStr>> {
    let mut wanted = HashSet::new();
    for table in tables {
        let name = changeset::decoded(filter.py(), table.to_bytes())?;
        if filter.call1((name,))?.is_truthy()? {
            wanted.insert(table);
        }
    }
    Ok(wanted)
}

/// Who decides about conflicts.
enum OnConflict {
    Always(ConflictAction),
    Ask(Py<PyAny>),
}

/// The conflict handler of one application.
struct Resolver {
    on_conflict: OnConflict,
    /// What the callable has raised.
    raised: Option<PyErr>,
    /// The conflict that was answered by an abort.
    aborted_by: Option<String>,
}

impl Resolver {
    fn new(on_conflict: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let on_conflict = match on_conflict {
            None => OnConflict::Always(ConflictAction::Abort),
            Some(callable) if callable.is_callable() => OnConflict::Ask(callable.clone().unbind()),
            Some(answer) => OnConflict::Always(action(answer)?),
        };
        Ok(Self {
            on_conflict,
            raised: None,
            aborted_by: None,
        })
    }

    fn resolve(&mut self, conflict: &Conflict<'_>) -> ConflictAction {
        let has_row = matches!(conflict, Conflict::Data { .. } | Conflict::Conflict { .. });
        let decided = match &self.on_conflict {
            OnConflict::Always(ConflictAction::Replace) if !has_row => Ok(ConflictAction::Abort),
            OnConflict::Always(action) => Ok(*action),
            OnConflict::Ask(callable) => attached(|py| {
                let conflict = changeset::Conflict::new(py, conflict)?;
                action(&callable.bind(py).call1((conflict,))?)
            }),
        };
        match decided {
            Ok(ConflictAction::Abort) => {
                self.aborted_by = Some(changeset::describe(conflict));
                ConflictAction::Abort
            }
            Ok(action) => action,
            Err(raised) => {
                self.raised = Some(raised);
                ConflictAction::Abort
            }
        }
    }

    /// The error of an abort says what there was a conflict about.
    fn explain(&self, error: Error) -> Error {
        let is_abort = matches!(
            error.primary_code(),
            codes::SQLITE_ABORT | codes::SQLITE_CONSTRAINT
        );
        match &self.aborted_by {
            Some(conflict) if is_abort => Error::new(
                error.code(),
                format!("{conflict}; nothing has been applied (see on_conflict)"),
            ),
            _ => error,
        }
    }
}

/// An answer to a conflict: a word, or SQLite's number.
fn action(answer: &Bound<'_, PyAny>) -> PyResult<ConflictAction> {
    let found = if let Ok(word) = answer.cast::<PyString>() {
        match word.to_str()? {
            "omit" => Some(ConflictAction::Omit),
            "replace" => Some(ConflictAction::Replace),
            "abort" => Some(ConflictAction::Abort),
            _ => None,
        }
    } else if answer.is_instance_of::<PyInt>() && !answer.is_instance_of::<PyBool>() {
        // A number too large for an i32 is none of them either.
        match answer.extract::<i32>() {
            Ok(codes::SQLITE_CHANGESET_OMIT) => Some(ConflictAction::Omit),
            Ok(codes::SQLITE_CHANGESET_REPLACE) => Some(ConflictAction::Replace),
            Ok(codes::SQLITE_CHANGESET_ABORT) => Some(ConflictAction::Abort),
            _ => None,
        }
    } else {
        return Err(PyTypeError::new_err(format!(
            "a conflict is answered by 'omit', 'replace' or 'abort', not by an object of type {}",
            answer.get_type().qualname()?
        )));
    };
    found.ok_or_else(|| {
        let answer = answer.repr().map(|text| text.to_string());
        PyValueError::new_err(format!(
            "a conflict is answered by 'omit', 'replace' or 'abort', not by {}",
            answer.unwrap_or_default()
        ))
    })
}
