//! What a cursor does to its connection: preparing, binding, stepping, fetching.
//!
//! Locks: the connection's (for which other threads wait), then the cursor's statement, whose key
//! is the GIL. Whoever has the first finds the second taken only by itself, further up its own stack: that is
//! recursive use of the cursor, and refused. The connection is unlocked while code of the user's runs (parameter
//! iterators and mappings, text and row factories), which may wait for threads that use it.
//!
//! A statement is stepped once by `execute` and then one row ahead of what has been fetched, so it
//! is reset, and its snapshot let go, together with the fetch of the last row.

use std::cell::RefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxlite_core::{CachedStatement, Connection as Core};
use oxlite_sqlite::{Locked, Step, ValueRef, codes};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::argument::Argument;
use crate::buffers::SingleValues;
use crate::connection::Connection;
use crate::error::from_core;
use crate::exceptions::ProgrammingError;
use crate::gil::{Hold, current_thread, detached, held, raise_kept, without};
use crate::gil_cell::GilCell;
use crate::lock::lock;
use crate::options::DetectTypes;
use crate::parameter_sets::{Crossing, End, ParameterSets};
use crate::parameters::{self, Values};
use crate::values::{Converters, RowTuple, TextFactory, columns, row_to_tuple};

/// What users see of a cursor. A parameter generator may look at the very cursor that executes it.
pub(crate) struct Attributes {
    pub(crate) description: Option<Py<PyTuple>>,
    pub(crate) row_factory: Option<Py<PyAny>>,
    pub(crate) rowcount: i64,
    pub(crate) lastrowid: Option<i64>,
    pub(crate) arraysize: i64,
    pub(crate) is_closed: bool,
}

impl Attributes {
    /// Those of a fresh cursor.
    pub(crate) fn new(row_factory: Option<Py<PyAny>>) -> Self {
        Self {
            description: None,
            row_factory,
            rowcount: -1,
            lastrowid: None,
            arraysize: 1,
            is_closed: false,
        }
    }
}

/// A statement that has a row to give.
struct Active {
    cached: Box<CachedStatement>,
    converters: Option<Converters>,
    /// How much longer it may work.
    remaining: Option<Duration>,
}

/// Between two looks whether another thread has done with a cursor.
const PAUSE: Duration = Duration::from_micros(50);

/// What changes as a cursor is used.
pub(crate) struct State {
    /// Held for the whole of an execution.
    active: GilCell<Option<Active>>,
    /// The thread that has taken it latest.
    user: AtomicU64,
    attributes: GilCell<Attributes>,
}

impl State {
    pub(crate) fn new(row_factory: Option<Py<PyAny>>) -> Self {
        Self {
            active: GilCell::new(None),
            user: AtomicU64::new(0),
            attributes: GilCell::new(Attributes::new(row_factory)),
        }
    }

    #[inline]
    pub(crate) fn attributes<'a>(&'a self, py: Python<'a>) -> RefMut<'a, Attributes> {
        self.attributes.get_mut(py)
    }

    pub(crate) fn attributes_cell(&self) -> &GilCell<Attributes> {
        &self.attributes
    }

    /// The row factory, if rows are to be more than tuples.
    #[inline]
    pub(crate) fn row_factory<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let attributes = self.attributes.get(py);
        attributes
            .row_factory
            .as_ref()
            .map(|factory| factory.bind(py).clone())
    }

    /// The cursor's statement, for this thread; `None` while an execution has it.
    #[inline]
    fn try_active<'c>(&'c self, py: Python<'c>) -> Option<RefMut<'c, Option<Active>>> {
        let active = self.active.try_hold(py)?;
        self.user.store(current_thread(), Ordering::Relaxed);
        Some(active)
    }

    /// Whether it is this thread's own execution that has it, further up.
    fn is_used_by_this_thread(&self) -> bool {
        self.user.load(Ordering::Relaxed) == current_thread()
    }

    /// Takes the statement away from a cursor that is going.
    #[inline]
    pub(crate) fn take_active(&mut self) -> Option<Box<CachedStatement>> {
        Some(self.active.inner_mut().take()?.cached)
    }

    /// Lets go of the statement of a connection that is closed, which has ended it.
    pub(crate) fn forget_active(&self, py: Python<'_>) -> PyResult<()> {
        let mut active = self.active.try_hold(py).ok_or_else(is_in_use)?;
        drop(active.take());
        Ok(())
    }

    /// For the cycle collector, which must not wait.
    pub(crate) fn traverse_converters(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(active) = self.active.get_to_visit(visit) else {
            return Ok(());
        };
        let converters = active
            .as_ref()
            .and_then(|active| active.converters.as_ref());
        converters
            .into_iter()
            .flat_map(|converters| converters.iter().flatten())
            .try_for_each(|converter| converter.traverse(visit))
    }
}

fn is_in_use() -> PyErr {
    ProgrammingError::new_err("Recursive use of cursors not allowed.")
}

/// A cursor in use: its connection locked, its statement ours.
pub(crate) struct Execution<'c> {
    // Fields are dropped in this order: the statement is given up before the connection.
    active: RefMut<'c, Option<Active>>,
    state: &'c State,
    locked: Locked<'c>,
    core: &'c Core,
    connection: &'c Connection,
}

impl<'c> Execution<'c> {
    /// Takes both locks.
    #[inline]
    pub(crate) fn begin(
        py: Python<'c>,
        connection: &'c Connection,
        state: &'c State,
    ) -> PyResult<Self> {
        let mut core = connection.core()?;
        let mut locked = lock(py, core)?;
        let mut since = None;
        let active = loop {
            if let Some(active) = state.try_active(py) {
                break active;
            }
            // Another thread runs the user's code (an adapter, a factory) in the midst of an execution, with
            // the connection unlocked. It is waited for, as long as for a lock.
            let since = *since.get_or_insert_with(Instant::now);
            if state.is_used_by_this_thread() || since.elapsed() >= core.timeout() {
                return Err(is_in_use());
            }
            drop(locked);
            without(py, || std::thread::sleep(PAUSE));
            py.check_signals()?;
            locked = lock(py, core)?;
        };
        if let Some(Active { cached, .. }) = &*active
            && !cached.statement.belongs_to(&locked)
            && let Some(earlier) = connection.core_of(cached)
        {
            // The connection has been connected anew in the middle of the rows.
            drop(locked);
            core = earlier;
            locked = lock(py, core)?;
        }
        Ok(Self {
            active,
            state,
            locked,
            core,
            connection,
        })
    }

    /// Runs code of the user's with the connection unlocked. The cursor stays ours.
    pub(crate) fn unlocked<T>(
        self,
        py: Python<'_>,
        work: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<(Self, T)> {
        let Self {
            active,
            state,
            locked,
            core,
            connection,
        } = self;
        drop(locked);
        let result = work()?;
        let locked = lock(py, core)?;
        let execution = Self {
            active,
            state,
            locked,
            core,
            connection,
        };
        Ok((execution, result))
    }

    /// Executes one statement once.
    pub(crate) fn execute<'py>(
        mut self,
        py: Python<'py>,
        sql: &Bound<'py, PyString>,
        parameters: &Argument<'py>,
    ) -> PyResult<()> {
        let settings = self.connection.execution_settings(py);
        let single_values = SingleValues::of(self.core);
        let mut remaining = settings.statement_timeout;
        let Some(mut cached) = self.prepare(py, sql, &mut remaining)? else {
            return match parameters {
                // Also refuses what cannot be parameters, and too many of them.
                Argument::Given(parameters) => self
                    .unlocked(py, || parameters::collect(parameters, &[], single_values))
                    .map(drop),
                Argument::Absent => Ok(()),
            };
        };
        self.begin_if_needed(py, &cached, &mut remaining)?;
        let objects = match parameters {
            Argument::Absent => PyTuple::empty(py),
            Argument::Given(parameters) => {
                let minds = parameters::minds_sequences(&cached);
                match parameters::collect_plain(parameters, minds) {
                    Some(objects) => objects,
                    None => {
                        let names = parameters::names(&cached, &self.locked);
                        let (execution, objects) = self.unlocked(py, || {
                            parameters::collect(parameters, &names, single_values)
                        })?;
                        self = execution;
                        objects
                    }
                }
            }
        };
        let step = self.within(&mut remaining, || {
            self.run_once(py, &mut cached, objects.as_slice())
        });
        match step {
            Ok(step) => {
                self.conclude(py, cached, step, settings.detect_types, remaining)?;
                raise_kept()
            }
            Err(error) => {
                self.core.keep(cached, &self.locked);
                Err(error)
            }
        }
    }

    /// Runs a stretch of a statement's work, and takes its time off what remains.
    #[inline]
    fn within<T>(&self, remaining: &mut Option<Duration>, work: impl FnOnce() -> T) -> T {
        let Some(left) = remaining else {
            return work();
        };
        let stretch = self.core.deadline().begin(*left);
        let outcome = work();
        *left = left.saturating_sub(stretch.elapsed());
        outcome
    }

    /// The exception for a statement that failed.
    fn failed(&self, py: Python<'_>, error: oxlite_sqlite::Error) -> PyErr {
        from_core(py, explain(py, self.core, &self.locked, error))
    }

    fn run_once(
        &self,
        py: Python<'_>,
        cached: &mut CachedStatement,
        objects: &[Bound<'_, PyAny>],
    ) -> PyResult<Step> {
        let locked = &self.locked;
        let failed = |error| self.failed(py, error);
        let wanted = cached.statement.parameter_count();
        let is_prompt = self.core.is_prompt(cached, locked);
        let CachedStatement {
            statement,
            bound_bytes,
            ..
        } = cached;
        // Copied, not lent: what is kept may be prepared anew in this step, and then have rows that it had not
        // (`PRAGMA count_changes`).
        parameters::bind_each(objects, wanted, |index, value| {
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = value {
                *bound_bytes += bytes.len();
            }
            statement.bind(locked, index, value).map_err(failed)
        })?;
        let step = match is_prompt {
            true => held(py, locked, |locked| statement.step(locked)),
            false => detached(py, locked, |locked| statement.step(locked)),
        };
        step.map_err(failed)
    }

    /// Notes what users see of an execution that went well.
    fn conclude(
        &mut self,
        py: Python<'_>,
        mut cached: Box<CachedStatement>,
        step: Step,
        detect_types: DetectTypes,
        remaining: Option<Duration>,
    ) -> PyResult<()> {
        let (description, converters) = self.describe(py, &mut cached, detect_types)?;
        let rowcount = match (cached.is_data_modification(), step) {
            (true, Step::Done) => self.locked.changes(),
            // RETURNING: counted when the last row has been fetched.
            (true, Step::Row) => 0,
            (false, _) => -1,
        };
        let mut attributes = self.state.attributes(py);
        attributes.description = description;
        attributes.rowcount = rowcount;
        attributes.lastrowid = Some(self.locked.last_insert_rowid());
        drop(attributes);
        match step {
            Step::Row => {
                *self.active = Some(Active {
                    cached,
                    converters,
                    remaining,
                });
            }
            Step::Done => self.core.keep(cached, &self.locked),
        }
        Ok(())
    }

    fn describe(
        &self,
        py: Python<'_>,
        cached: &mut CachedStatement,
        detect_types: DetectTypes,
    ) -> PyResult<(Option<Py<PyTuple>>, Option<Converters>)> {
        if cached.statement.column_count(&self.locked) == 0 {
            return Ok((None, None));
        }
        let (description, converters) = columns(py, cached, &self.locked, detect_types)?;
        Ok((Some(description.unbind()), converters))
    }

    /// Executes one writing statement with every set of parameters.
    pub(crate) fn execute_many<'py>(
        mut self,
        py: Python<'py>,
        sql: &Bound<'py, PyString>,
        parameter_sets: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let only_dml = "executemany() can only execute DML statements.";
        let (execution, mut sets) = self.unlocked(py, || ParameterSets::new(parameter_sets))?;
        self = execution;
        let settings = self.connection.execution_settings(py);
        let mut remaining = settings.statement_timeout;
        let Some(mut cached) = self.prepare(py, sql, &mut remaining)? else {
            return Err(ProgrammingError::new_err(only_dml));
        };
        if cached.statement.is_read_only() {
            self.core.keep(cached, &self.locked);
            return Err(ProgrammingError::new_err(only_dml));
        }
        self.begin_if_needed(py, &cached, &mut remaining)?;
        let names = parameters::names(&cached, &self.locked);
        let minds = parameters::minds_sequences(&cached);
        let single_values = SingleValues::of(self.core);
        let mut rowcount = 0;
        let mut is_described = false;
        let mut hold = Hold::default();
        loop {
            let (execution, crossing) =
                self.unlocked(py, || Ok(sets.take(&names, minds, single_values)))?;
            self = execution;
            rowcount += self.within(&mut remaining, || {
                self.run_sets(py, &mut cached, &crossing, &mut hold)
            })?;
            if !crossing.sets.is_empty() && !is_described {
                let (description, _) = self.describe(py, &mut cached, settings.detect_types)?;
                self.state.attributes(py).description = description;
                is_described = true;
            }
            match crossing.end {
                End::No => {}
                End::Exhausted => break,
                End::Failed(error) => {
                    self.core.keep(cached, &self.locked);
                    return Err(error);
                }
            }
        }
        self.state.attributes(py).rowcount = match cached.is_data_modification() {
            true => rowcount,
            false => -1,
        };
        self.core.keep(cached, &self.locked);
        raise_kept()
    }

    /// Runs the statement with each of the sets; returns the rows changed.
    fn run_sets(
        &self,
        py: Python<'_>,
        cached: &mut CachedStatement,
        crossing: &Crossing<'_>,
        hold: &mut Hold,
    ) -> PyResult<i64> {
        if crossing.sets.is_empty() {
            return Ok(0);
        }
        if !self.core.is_prompt(cached, &self.locked) {
            return self.run_sets_detached(py, cached, crossing);
        }
        let locked = &self.locked;
        let failed = |error| self.failed(py, error);
        let wanted = cached.statement.parameter_count();
        cached.statement.lending(locked, |lending| {
            let mut rowcount = 0;
            for set in &crossing.sets {
                parameters::bind_each(set.as_slice(), wanted, |index, value| {
                    lending.bind(locked, index, value).map_err(failed)
                })?;
                // Rows of RETURNING are discarded.
                while hold
                    .step(py, locked, |locked| lending.step(locked))
                    .map_err(failed)?
                    == Step::Row
                {}
                rowcount += locked.changes();
            }
            Ok(rowcount)
        })
    }

    /// The same in one crossing, without the GIL: beside a busy thread it would be had again too late for
    /// each of them.
    fn run_sets_detached(
        &self,
        py: Python<'_>,
        cached: &mut CachedStatement,
        crossing: &Crossing<'_>,
    ) -> PyResult<i64> {
        let mut failure = None;
        let mut values = Values::new();
        let mut count = 0;
        for set in &crossing.sets {
            let pushed = parameters::push_values(&mut values, set.as_slice(), cached);
            if let Err(error) = pushed {
                // The sets before it are executed all the same.
                failure = Some(error);
                break;
            }
            count += 1;
        }
        let width = cached.statement.parameter_count();
        let statement = &mut cached.statement;
        let done = detached(py, &self.locked, |locked| {
            statement.lending(locked, |lending| {
                let mut rowcount = 0;
                for index in 0..count {
                    for (position, value) in values[index * width..(index + 1) * width]
                        .iter()
                        .enumerate()
                    {
                        lending.bind(locked, position + 1, *value)?;
                    }
                    while lending.step(locked)? == Step::Row {}
                    rowcount += locked.changes();
                }
                Ok(rowcount)
            })
        });
        let rowcount = done.map_err(|error| self.failed(py, error))?;
        match failure {
            Some(error) => Err(error),
            None => Ok(rowcount),
        }
    }

    /// The statement for `sql`, after the one before has been finished; none for empty SQL.
    fn prepare(
        &mut self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        remaining: &mut Option<Duration>,
    ) -> PyResult<Option<Box<CachedStatement>>> {
        self.finish(py)?;
        let core = self.connection.core()?;
        if !std::ptr::eq(Arc::as_ptr(core), self.core) {
            // What is finished was of the database before; this is for the one of now.
            self.core = core;
            self.locked = lock(py, core)?;
        }
        let replaced = {
            let mut attributes = self.state.attributes(py);
            attributes.rowcount = -1;
            attributes.description.take()
        };
        drop(replaced);
        let sql = sql.to_str()?;
        if let Some(kept) = self.core.kept_statement(&self.locked, sql) {
            return Ok(Some(kept));
        }
        let prepared = self.within(remaining, || {
            detached(py, &self.locked, |locked| self.core.statement(locked, sql))
        });
        prepared.map_err(|error| from_core(py, error))
    }

    /// Begins the implicit transaction before a data modification, if this connection wants one.
    fn begin_if_needed(
        &self,
        py: Python<'_>,
        cached: &CachedStatement,
        remaining: &mut Option<Duration>,
    ) -> PyResult<()> {
        if cached.is_data_modification() {
            self.within(remaining, || {
                self.connection
                    .begin_implicitly(py, self.core, &self.locked)
            })?;
        }
        Ok(())
    }

    /// The row that is ready; `None` after the last.
    #[inline]
    pub(crate) fn read_row<'py>(
        &self,
        py: Python<'py>,
        text_factory: &TextFactory<'_>,
    ) -> PyResult<Option<RowTuple<'py>>> {
        let Some(Active {
            cached, converters, ..
        }) = &*self.active
        else {
            return Ok(None);
        };
        let Some(row) = cached.statement.row(&self.locked) else {
            return match cached.statement.ended(&self.locked) {
                Some(error) => Err(from_core(py, error.into())),
                None => Ok(None),
            };
        };
        let converters = converters.as_ref();
        row_to_tuple(py, cached, &self.locked, &row, converters, text_factory).map(Some)
    }

    /// The converters of the row that is ready.
    #[inline]
    pub(crate) fn converters(&self) -> Option<Converters> {
        self.active.as_ref()?.converters.clone()
    }

    /// Goes on to the next row.
    #[inline]
    pub(crate) fn advance(&mut self, py: Python<'_>, hold: &mut Hold) -> PyResult<()> {
        let Some(active) = &mut *self.active else {
            return Ok(());
        };
        let Active {
            cached, remaining, ..
        } = active;
        let stretch = remaining.map(|remaining| self.core.deadline().begin(remaining));
        let step = if self.core.is_prompt(cached, &self.locked) {
            hold.step(py, &self.locked, |locked| cached.statement.step(locked))
        } else {
            detached(py, &self.locked, |locked| cached.statement.step(locked))
        };
        let step = step.map_err(|error| explain(py, self.core, &self.locked, error));
        if let (Some(remaining), Some(stretch)) = (remaining, stretch) {
            *remaining = remaining.saturating_sub(stretch.elapsed());
        }
        match step {
            Ok(Step::Row) => raise_kept(),
            Ok(Step::Done) => {
                if cached.is_data_modification() {
                    self.state.attributes(py).rowcount = self.locked.changes();
                }
                self.keep_active();
                raise_kept()
            }
            Err(error) => {
                self.keep_active();
                Err(from_core(py, error))
            }
        }
    }

    /// Stops the active statement, if there is one, and keeps it for the next time.
    pub(crate) fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(Active { cached, .. }) = &mut *self.active else {
            return Ok(());
        };
        // Stopping a writing statement (INSERT … RETURNING) in autocommit mode commits.
        let outcome = if cached.statement.is_read_only() {
            cached.statement.reset(&self.locked)
        } else {
            detached(py, &self.locked, |locked| cached.statement.reset(locked))
        };
        self.keep_active();
        outcome.map_err(|error| self.failed(py, error))
    }

    /// Finishes and lets nobody begin again.
    pub(crate) fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let outcome = self.finish(py);
        self.state.attributes(py).is_closed = true;
        outcome?;
        raise_kept()
    }

    fn keep_active(&mut self) {
        if let Some(active) = self.active.take() {
            self.core.keep(active.cached, &self.locked);
        }
    }

    /// Runs a script without any implicit transaction; an open one is committed before, unless
    /// `autocommit` says otherwise.
    pub(crate) fn execute_script(&self, py: Python<'_>, script: &str) -> PyResult<()> {
        let mut remaining = self.connection.execution_settings(py).statement_timeout;
        let commits = self.connection.commits_before_scripts(py);
        self.within(&mut remaining, || {
            detached(py, &self.locked, |locked| {
                self.core.run_script(locked, script, commits)
            })
        })
        .map_err(|error| from_core(py, error))?;
        raise_kept()
    }
}

/// Why a statement has really failed. It may be looked among all processes for who holds a lock, so not with
/// the GIL.
fn explain(
    py: Python<'_>,
    core: &Core,
    locked: &Locked<'_>,
    error: oxlite_sqlite::Error,
) -> oxlite_core::Error {
    match error.primary_code() {
        codes::SQLITE_BUSY => detached(py, locked, |locked| core.explain(locked, error)),
        _ => core.explain(locked, error),
    }
}
