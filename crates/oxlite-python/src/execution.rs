//! What a cursor does to its connection: preparing, binding, stepping, fetching.
//!
//! Locks, always in this order: the connection's (for which other threads wait), then the cursor's
//! statement. Whoever has the first finds the second taken only by itself, further up its own stack:
//! that is recursive use of the cursor, and refused.
//!
//! A statement is stepped once by `execute` and then one row ahead of what has been fetched, so it
//! is reset, and its snapshot let go, together with the fetch of the last row.

use std::sync::Arc;

use oxlite_core::{CachedStatement, Connection as Core};
use oxlite_sqlite::{Locked, Step};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyString, PyTuple};

use crate::connection::{Connection, lock};
use crate::error::{ProgrammingError, from_core, from_sqlite};
use crate::gil::{Hold, detached};
use crate::parameters;
use crate::values::{TextFactory, description, row_to_tuple};

/// What users see of a cursor. Its lock is held for moments, never across a call into Python or
/// SQLite, so a parameter generator may look at the very cursor that executes it.
pub(crate) struct Attributes {
    pub(crate) description: Option<Py<PyTuple>>,
    pub(crate) row_factory: Option<Py<PyAny>>,
    pub(crate) rowcount: i64,
    pub(crate) lastrowid: Option<i64>,
    pub(crate) arraysize: i64,
    pub(crate) is_closed: bool,
}

/// What changes as a cursor is used.
pub(crate) struct State {
    /// The statement that has a row to give. Locked for the whole of an execution.
    active: Mutex<Option<CachedStatement>>,
    attributes: Mutex<Attributes>,
}

impl State {
    pub(crate) fn new(row_factory: Option<Py<PyAny>>) -> Self {
        Self {
            active: Mutex::new(None),
            attributes: Mutex::new(Attributes {
                description: None,
                row_factory,
                rowcount: -1,
                lastrowid: None,
                arraysize: 1,
                is_closed: false,
            }),
        }
    }

    pub(crate) fn attributes(&self) -> MutexGuard<'_, Attributes> {
        self.attributes.lock()
    }

    /// The row factory, if rows are to be more than tuples.
    #[inline]
    pub(crate) fn row_factory<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let attributes = self.attributes.lock();
        attributes
            .row_factory
            .as_ref()
            .map(|factory| factory.bind(py).clone())
    }

    /// Takes the statement away from a cursor that is going.
    pub(crate) fn take_active(&mut self) -> Option<CachedStatement> {
        self.active.get_mut().take()
    }
}

/// A cursor in use: its connection locked, its statement ours.
pub(crate) struct Execution<'c> {
    // Fields are dropped in this order: the statement is given up before the connection.
    active: MutexGuard<'c, Option<CachedStatement>>,
    state: &'c State,
    locked: Locked<'c>,
    core: &'c Arc<Core>,
    connection: &'c Connection,
}

impl<'c> Execution<'c> {
    /// Takes both locks.
    pub(crate) fn begin(
        py: Python<'_>,
        connection: &'c Connection,
        core: &'c Arc<Core>,
        state: &'c State,
    ) -> PyResult<Self> {
        let locked = lock(py, core)?;
        let active = state
            .active
            .try_lock()
            .ok_or_else(|| ProgrammingError::new_err("Recursive use of cursors not allowed."))?;
        if state.attributes().is_closed {
            return Err(ProgrammingError::new_err(
                "Cannot operate on a closed cursor.",
            ));
        }
        Ok(Self {
            active,
            state,
            locked,
            core,
            connection,
        })
    }

    /// Executes one statement once.
    pub(crate) fn execute(
        &mut self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let Some(mut cached) = self.prepare(py, sql)? else {
            return Ok(());
        };
        let outcome = self.run_once(py, &mut cached, parameters);
        match outcome {
            Ok(step) => {
                let description = if cached.statement.column_count(&self.locked) > 0 {
                    Some(description(py, &mut cached, &self.locked)?.unbind())
                } else {
                    None
                };
                let rowcount = match (cached.is_data_modification, step) {
                    (true, Step::Done) => self.locked.changes(),
                    // RETURNING: counted when the last row has been fetched.
                    (true, Step::Row) => 0,
                    (false, _) => -1,
                };
                let mut attributes = self.state.attributes();
                attributes.description = description;
                attributes.rowcount = rowcount;
                attributes.lastrowid = Some(self.locked.last_insert_rowid());
                drop(attributes);
                match step {
                    Step::Row => *self.active = Some(cached),
                    Step::Done => self.core.keep(cached, &self.locked),
                }
                Ok(())
            }
            Err(error) => {
                self.core.keep(cached, &self.locked);
                Err(error)
            }
        }
    }

    fn run_once(
        &mut self,
        py: Python<'_>,
        cached: &mut CachedStatement,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Step> {
        self.begin_if_needed(py, cached)?;
        match parameters {
            Some(parameters) => parameters::bind(cached, &self.locked, parameters)?,
            None => parameters::bind(cached, &self.locked, PyTuple::empty(py).as_any())?,
        }
        detached(py, || cached.statement.step(&self.locked))
            .map_err(|error| from_sqlite(py, &error))
    }

    /// Executes one data modification statement with every set of parameters.
    pub(crate) fn execute_many(
        &mut self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        parameter_sets: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Some(mut cached) = self.prepare(py, sql)? else {
            return Ok(());
        };
        let outcome = self.run_many(py, &mut cached, parameter_sets);
        self.core.keep(cached, &self.locked);
        self.state.attributes().rowcount = outcome?;
        Ok(())
    }

    fn run_many(
        &mut self,
        py: Python<'_>,
        cached: &mut CachedStatement,
        parameter_sets: &Bound<'_, PyAny>,
    ) -> PyResult<i64> {
        if !cached.is_data_modification {
            return Err(ProgrammingError::new_err(
                "executemany() can only execute DML statements.",
            ));
        }
        let parameter_sets = parameter_sets.try_iter()?;
        self.begin_if_needed(py, cached)?;
        let mut rowcount = 0;
        let mut hold = Hold::default();
        for parameters in parameter_sets {
            parameters::bind(cached, &self.locked, &parameters?)?;
            let step = if self.locked.is_autocommit() {
                // Each step commits by itself: it waits for a lock and for the disk.
                detached(py, || run_to_end(cached, &self.locked))
            } else {
                hold.step(py, || run_to_end(cached, &self.locked))
            };
            step.map_err(|error| from_sqlite(py, &error))?;
            rowcount += self.locked.changes();
        }
        Ok(rowcount)
    }

    /// The statement for `sql`, after the one before has been finished; none for empty SQL.
    fn prepare(
        &mut self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
    ) -> PyResult<Option<CachedStatement>> {
        self.finish(py)?;
        let replaced = {
            let mut attributes = self.state.attributes();
            attributes.rowcount = -1;
            attributes.description.take()
        };
        drop(replaced);
        let sql = sql.to_str()?;
        if let Some(kept) = self.core.kept_statement(sql) {
            return Ok(Some(kept));
        }
        detached(py, || self.core.statement(&self.locked, sql))
            .map_err(|error| from_core(py, error))
    }

    /// Begins the implicit transaction before a data modification, if this connection wants one.
    fn begin_if_needed(&self, py: Python<'_>, cached: &CachedStatement) -> PyResult<()> {
        if cached.is_data_modification
            && self.locked.is_autocommit()
            && let Some(level) = self.connection.isolation_level_value()
        {
            detached(py, || self.core.run(&self.locked, level.begin_statement()))
                .map_err(|error| from_core(py, error))?;
        }
        Ok(())
    }

    /// The row that is ready, and one step further.
    pub(crate) fn next_tuple<'py>(
        &mut self,
        py: Python<'py>,
        text_factory: &TextFactory<'py>,
        hold: &mut Hold,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(cached) = &mut *self.active else {
            return Ok(None);
        };
        let Some(row) = cached.statement.row(&self.locked) else {
            return Ok(None);
        };
        let tuple = row_to_tuple(py, cached, &self.locked, &row, text_factory)?;
        match hold.step(py, || cached.statement.step(&self.locked)) {
            Ok(Step::Row) => {}
            Ok(Step::Done) => {
                if cached.is_data_modification {
                    self.state.attributes().rowcount = self.locked.changes();
                }
                self.keep_active();
            }
            Err(error) => {
                self.keep_active();
                return Err(from_sqlite(py, &error));
            }
        }
        Ok(Some(tuple))
    }

    /// The description of the active statement's columns.
    pub(crate) fn description(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        let attributes = self.state.attributes();
        let description = attributes.description.as_ref();
        description.map(|description| description.clone_ref(py))
    }

    /// Stops the active statement, if there is one, and keeps it for the next time.
    pub(crate) fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(cached) = &mut *self.active else {
            return Ok(());
        };
        // Stopping a writing statement (INSERT … RETURNING) in autocommit mode commits.
        let outcome = if cached.statement.is_read_only() {
            cached.statement.reset(&self.locked)
        } else {
            detached(py, || cached.statement.reset(&self.locked))
        };
        self.keep_active();
        outcome.map_err(|error| from_sqlite(py, &error))
    }

    /// Finishes and lets nobody begin again.
    pub(crate) fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let outcome = self.finish(py);
        self.state.attributes().is_closed = true;
        outcome
    }

    fn keep_active(&mut self) {
        if let Some(cached) = self.active.take() {
            self.core.keep(cached, &self.locked);
        }
    }

    /// Commits the open transaction, then runs a script without any implicit one.
    pub(crate) fn execute_script(&mut self, py: Python<'_>, script: &str) -> PyResult<()> {
        self.finish(py)?;
        detached(py, || {
            if !self.locked.is_autocommit() {
                self.core.run(&self.locked, "COMMIT")?;
            }
            Ok(self.locked.execute_batch(script)?)
        })
        .map_err(|error| from_core(py, error))
    }
}

/// Steps to the end, discarding rows (of RETURNING).
fn run_to_end(cached: &mut CachedStatement, locked: &Locked<'_>) -> oxlite_sqlite::Result<()> {
    while cached.statement.step(locked)? == Step::Row {}
    Ok(())
}
