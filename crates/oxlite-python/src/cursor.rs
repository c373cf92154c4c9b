//! `Cursor`: PEP 249's face of an execution.
//!
//! The user's own code (row factories) runs with neither the connection nor the cursor's state
//! locked.

use std::sync::OnceLock;

use pyo3::PyTraverseError;
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use crate::argument::Argument;
use crate::baton::give_way;
use crate::connection::Connection;
use crate::exceptions::ProgrammingError;
use crate::execution::{Attributes, Execution, State};
use crate::gil::{Hold, at_the_end, detached};
use crate::lock::lock;
use crate::row::{Row, refuse_other_rows};
use crate::signature::{refuse_to_delete, wrong_type};
use crate::type_names::is_of_class;
use crate::values::{RowTuple, TextFactory};
use crate::version;

/// A cursor over a connection, as PEP 249 and the standard library define it.
#[pyclass(module = "oxlite.sqlite3", subclass, frozen, weakref)]
pub(crate) struct Cursor {
    /// Known from the beginning where `Connection.cursor()` has made it.
    origin: Option<Origin>,
    /// Else set by `__init__`, which a subclass may forget to call.
    initialized: OnceLock<Origin>,
    state: State,
}

/// The argument of `fetchmany`.
enum FetchSize {
    /// None is given: `None` is no number.
    ArraySize,
    Given(i64),
}

impl<'py> FromPyObject<'_, 'py> for FetchSize {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if version::COUNTS_ROWS_STRICTLY {
            return number_of_rows(&object, "for C uint32_t").map(Self::Given);
        }
        let number = object.extract().map(i32::into).map(Self::Given);
        number.map_err(
            |error| match error.is_instance_of::<PyOverflowError>(object.py()) {
                true => PyOverflowError::new_err("Python int too large to convert to C int"),
                false => error,
            },
        )
    }
}

/// A number of rows as Python 3.14 takes them; `what` ends the message of one that is too large.
fn number_of_rows(number: &Bound<'_, PyAny>, what: &str) -> PyResult<i64> {
    let is_no_number = match number.extract() {
        Ok(number @ 0..=UINT32_MAX) => return Ok(number),
        Ok(_) => None,
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => None,
        Err(error) => Some(error),
    };
    Err(match is_no_number {
        Some(error) => error,
        None if number.lt(0)? => PyValueError::new_err("Cannot convert negative int"),
        None => PyOverflowError::new_err(format!("Python int too large {what}")),
    })
}

/// The largest number of rows that Python 3.14 takes.
const UINT32_MAX: i64 = 0xFFFF_FFFF;

/// Where a cursor comes from.
struct Origin {
    connection: Py<Connection>,
    /// Set when `__init__` is called again, with another connection. The one before is kept, since it
    /// may be in use.
    replaced_by: OnceLock<Box<Origin>>,
}

impl Cursor {
    /// A cursor as `Connection.cursor()` makes it, without the detour through Python.
    pub(crate) fn create<'py>(connection: &Bound<'py, Connection>) -> PyResult<Bound<'py, Self>> {
        let py = connection.py();
        let origin = Origin {
            connection: connection.clone().unbind(),
            replaced_by: OnceLock::new(),
        };
        Bound::new(
            py,
            Self {
                origin: Some(origin),
                initialized: OnceLock::new(),
                state: State::new(connection.get().row_factory_object(py)),
            },
        )
    }

    /// Sets what its rows are, for a factory of rows that it has not fetched itself.
    pub(crate) fn describe(&self, py: Python<'_>, description: Bound<'_, PyTuple>) {
        let before = self
            .state
            .attributes(py)
            .description
            .replace(description.unbind());
        drop(before);
    }

    #[inline]
    fn first_origin(&self) -> Option<&Origin> {
        self.origin.as_ref().or_else(|| self.initialized.get())
    }

    #[inline]
    fn origin(&self) -> PyResult<&Origin> {
        let Some(mut origin) = self.first_origin() else {
            return Err(ProgrammingError::new_err(
                "Base Cursor.__init__ not called.",
            ));
        };
        while let Some(replaced_by) = origin.replaced_by.get() {
            origin = replaced_by;
        }
        Ok(origin)
    }

    #[inline]
    fn begin<'c>(&'c self, py: Python<'c>) -> PyResult<Execution<'c>> {
        let origin = self.origin()?;
        if self.state.attributes_cell().get(py).is_closed {
            return Err(ProgrammingError::new_err(
                "Cannot operate on a closed cursor.",
            ));
        }
        origin.connection.get().check_thread()?;
        Execution::begin(py, origin.connection.get(), &self.state)
    }

    fn begin_even_if_closed<'c>(&'c self, py: Python<'c>) -> PyResult<Execution<'c>> {
        let origin = self.origin()?;
        origin.connection.get().check_thread()?;
        Execution::begin(py, origin.connection.get(), &self.state)
    }

    pub(crate) fn description(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        let attributes = self.state.attributes(py);
        let description = attributes.description.as_ref();
        description.map(|description| description.clone_ref(py))
    }

    pub(crate) fn execute_sql<'py>(
        &self,
        py: Python<'py>,
        sql: &Bound<'py, PyString>,
        parameters: &Argument<'py>,
    ) -> PyResult<()> {
        self.begin(py)?.execute(py, sql, parameters)?;
        give_way(py);
        Ok(())
    }

    pub(crate) fn execute_many_sql<'py>(
        &self,
        py: Python<'py>,
        sql: &Bound<'py, PyString>,
        parameter_sets: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.begin(py)?.execute_many(py, sql, parameter_sets)?;
        give_way(py);
        Ok(())
    }

    pub(crate) fn execute_script_sql(
        &self,
        py: Python<'_>,
        script: &Bound<'_, PyString>,
    ) -> PyResult<()> {
        let script = script.to_str()?;
        if script.contains('\0') {
            return Err(PyValueError::new_err("embedded null character"));
        }
        self.begin(py)?.execute_script(py, script)
    }

    /// Fetches up to `limit` rows.
    fn fetch<'py>(slf: &Bound<'py, Self>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let cursor = slf.get();
        let rows = PyList::empty(py);
        let text_factory = cursor.text_factory(py)?;
        let row_factory = cursor.state.row_factory(py);
        let mut hold = Hold::default();
        if row_factory.is_none() {
            let mut execution = cursor.begin(py)?;
            let mut has_more = true;
            while rows.len() < limit {
                let row = execution.read_row(py, &text_factory)?;
                has_more = row.is_some();
                let Some(row) = row.filter(RowTuple::is_finished) else {
                    break;
                };
                rows.append(row.into_tuple())?;
                execution.advance(py, &mut hold)?;
            }
            drop(execution);
            give_way(py);
            if !has_more {
                return Ok(rows);
            }
        }
        // From here on rows may be for code of the user's.
        while rows.len() < limit
            && let Some(row) = Self::next_row(slf, row_factory.as_ref(), &text_factory, &mut hold)?
        {
            rows.append(row)?;
        }
        Ok(rows)
    }

    fn fetch_one<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let cursor = slf.get();
        let text_factory = cursor.text_factory(slf.py())?;
        let row_factory = cursor.state.row_factory(slf.py());
        Self::next_row(
            slf,
            row_factory.as_ref(),
            &text_factory,
            &mut Hold::default(),
        )
    }

    /// One row through converters and factories, which are called with the connection unlocked. A
    /// converter or text factory cannot use the cursor whose row it is making; a row factory can.
    #[inline]
    fn next_row<'py>(
        slf: &Bound<'py, Self>,
        row_factory: Option<&Bound<'py, PyAny>>,
        text_factory: &TextFactory<'py>,
        hold: &mut Hold,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        let mut execution = slf.get().begin(py)?;
        let Some(row) = execution.read_row(py, text_factory)? else {
            return Ok(None);
        };
        let tuple = if row.is_finished() {
            row.into_tuple()
        } else {
            let converters = execution.converters();
            // Before the step: if a converter or the factory raises, the row can be fetched again.
            let (relocked, tuple) =
                execution.unlocked(py, || row.finished(converters.as_ref(), text_factory))?;
            execution = relocked;
            tuple
        };
        execution.advance(py, hold)?;
        drop(execution);
        give_way(py);
        let Some(factory) = row_factory else {
            return Ok(Some(tuple.into_any()));
        };
        if factory.is(PyType::new::<Row>(py))
            && let Some(description) = slf.get().description(py)
        {
            let row = Row::from_parts(tuple, description.bind(py));
            return Ok(Some(Bound::new(py, row)?.into_any()));
        }
        Ok(Some(factory.call1((slf, tuple))?))
    }

    fn text_factory<'py>(&self, py: Python<'py>) -> PyResult<TextFactory<'py>> {
        Ok(self.origin()?.connection.get().text_factory_value(py))
    }
}

#[pymethods]
impl Cursor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            origin: None,
            initialized: OnceLock::new(),
            state: State::new(None),
        }
    }

    fn __init__(slf: &Bound<'_, Self>, connection: &Bound<'_, Connection>) -> PyResult<()> {
        let py = slf.py();
        let cursor = slf.get();
        connection.get().check_thread()?;
        connection.get().core()?;
        let before = cursor
            .origin()
            .and_then(|origin| origin.connection.get().core());
        // Stops what is running, and refuses if that is this very call's caller.
        match before.is_ok_and(|core| core.is_open()) {
            true => cursor.begin_even_if_closed(py)?.finish(py)?,
            false => cursor.state.forget_active(py)?,
        }
        let origin = || Origin {
            connection: connection.clone().unbind(),
            replaced_by: OnceLock::new(),
        };
        match cursor.origin() {
            // Called once more, as a subclass may do: there is nothing to replace.
            Ok(latest) if latest.connection.is(connection) => {}
            // Nobody else can have set it meanwhile: the GIL has been held.
            Ok(latest) => drop(latest.replaced_by.set(Box::new(origin()))),
            Err(_) => drop(cursor.initialized.set(origin())),
        }
        // Only `Connection.cursor()` hands the connection's row factory on.
        let fresh = Attributes::new(None);
        let replaced = std::mem::replace(&mut *cursor.state.attributes(py), fresh);
        drop(replaced);
        Ok(())
    }

    /// Executes one SQL statement and returns the cursor.
    ///
    /// `parameters` is a sequence for `?` and `?1`, a mapping for `:name`, `@name` and `$name`.
    #[pyo3(signature = (sql, parameters = Argument::Absent, /))]
    fn execute<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        parameters: Argument<'py>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().execute_sql(
            slf.py(),
            sql_text(sql, "execute() argument 1")?,
            &parameters,
        )?;
        Ok(slf.clone())
    }

    /// Executes one INSERT, UPDATE, DELETE or REPLACE with each set of parameters in turn.
    #[pyo3(signature = (sql, seq_of_parameters, /))]
    fn executemany<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        seq_of_parameters: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let sql = sql_text(sql, "executemany() argument 1")?;
        slf.get()
            .execute_many_sql(slf.py(), sql, seq_of_parameters)?;
        Ok(slf.clone())
    }

    /// Commits an open transaction, then executes every statement of `sql_script`.
    #[pyo3(signature = (sql_script, /))]
    fn executescript<'py>(
        slf: &Bound<'py, Self>,
        sql_script: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let script = sql_text(sql_script, "executescript() argument")?;
        slf.get().execute_script_sql(slf.py(), script)?;
        Ok(slf.clone())
    }

    /// The next row, or `None`.
    fn fetchone<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::fetch_one(slf)
    }

    /// The next `size` rows as a list, `arraysize` by default; all that remain if fewer do.
    #[pyo3(signature = (size = FetchSize::ArraySize), text_signature = "($self, size=1)")]
    fn fetchmany<'py>(slf: &Bound<'py, Self>, size: FetchSize) -> PyResult<Bound<'py, PyList>> {
        slf.get().origin()?;
        let size = match size {
            FetchSize::ArraySize => slf.get().arraysize(slf.py()),
            FetchSize::Given(size) => size,
        };
        // As in the standard library, zero and less mean no limit, until Python 3.14.
        let has_no_limit = size < 1 && !version::COUNTS_ROWS_STRICTLY;
        let limit = usize::try_from(size).ok().filter(|_| !has_no_limit);
        Self::fetch(slf, limit.unwrap_or(usize::MAX))
    }

    /// All rows that remain, as a list.
    fn fetchall<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        Self::fetch(slf, usize::MAX)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::fetch_one(slf)
    }

    /// Stops the statement; the cursor cannot be used afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let origin = self.origin()?;
        origin.connection.get().check_thread()?;
        let mut execution = self.begin_even_if_closed(py)?;
        if self.state.attributes(py).is_closed {
            return Ok(());
        }
        execution.close(py)
    }

    /// Accepted and ignored: PEP 249 asks for it, SQLite has no use for it.
    #[pyo3(signature = (sizes, /))]
    fn setinputsizes(&self, sizes: &Bound<'_, PyAny>) {
        let _ = sizes;
    }

    /// Accepted and ignored: PEP 249 asks for it, SQLite has no use for it.
    #[pyo3(signature = (size, column = None, /))]
    fn setoutputsize(&self, size: &Bound<'_, PyAny>, column: Option<&Bound<'_, PyAny>>) {
        let _ = (size, column);
    }

    /// The connection the cursor belongs to.
    #[getter]
    fn connection(&self, py: Python<'_>) -> PyResult<Py<Connection>> {
        Ok(self.origin()?.connection.clone_ref(py))
    }

    /// A 7-tuple for each column, of which only the first item (the name) is not `None`; `None` for
    /// statements without rows.
    #[getter(description)]
    fn description_attribute(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.description(py)
    }

    /// Rows changed by the latest INSERT, UPDATE, DELETE or REPLACE; -1 for other statements.
    #[getter]
    fn rowcount(&self, py: Python<'_>) -> i64 {
        self.state.attributes(py).rowcount
    }

    /// The row id of the latest insert, `None` before the first.
    #[getter]
    fn lastrowid(&self, py: Python<'_>) -> Option<i64> {
        self.state.attributes(py).lastrowid
    }

    /// How many rows `fetchmany()` fetches by default.
    #[getter]
    fn arraysize(&self, py: Python<'_>) -> i64 {
        self.state.attributes(py).arraysize
    }

    #[setter]
    fn set_arraysize(&self, arraysize: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = arraysize.py();
        let number = match version::COUNTS_ROWS_STRICTLY {
            true => number_of_rows(arraysize, "to convert to C uint32_t")?,
            false => arraysize.extract()?,
        };
        self.state.attributes(py).arraysize = number;
        Ok(())
    }

    #[deleter]
    fn delete_arraysize(&self) -> PyResult<()> {
        Err(PyAttributeError::new_err(
            "attribute 'arraysize' of 'oxlite.sqlite3.Cursor' objects cannot be deleted",
        ))
    }

    /// Called with the cursor and the row's tuple to make each row; `None` for plain tuples.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state.row_factory(py).map(Bound::unbind)
    }

    #[setter]
    fn set_row_factory(&self, py: Python<'_>, factory: Option<Py<PyAny>>) -> PyResult<()> {
        refuse_other_rows(factory.as_ref().map(|factory| factory.bind(py)))?;
        // Outside the cell: it may be the last reference, whose finaliser is Python code.
        let replaced = std::mem::replace(&mut self.state.attributes(py).row_factory, factory);
        drop(replaced);
        Ok(())
    }

    #[deleter]
    fn delete_row_factory(&self, py: Python<'_>) -> PyResult<()> {
        refuse_to_delete("row_factory")?;
        self.set_row_factory(py, None)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut next = self.first_origin();
        while let Some(origin) = next {
            visit.call(&origin.connection)?;
            next = origin.replaced_by.get().map(Box::as_ref);
        }
        self.state.traverse_converters(&visit)?;
        if let Some(attributes) = self.state.attributes_cell().get_to_visit(&visit) {
            visit.call(&attributes.row_factory)?;
            visit.call(&attributes.description)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        Python::attach(|py| {
            let attributes = self.state.attributes_cell().get_to_clear(py);
            let cleared = attributes.map(|mut attributes| {
                (attributes.row_factory.take(), attributes.description.take())
            });
            drop(cleared);
        });
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let Some(mut cached) = self.state.take_active() else {
            return;
        };
        let Ok(core) = self
            .origin()
            .and_then(|origin| origin.connection.get().core())
        else {
            return;
        };
        // Stopping a statement may call the aggregates that it is in the middle of.
        at_the_end(|py| {
            if cached.statement.is_read_only() {
                if let Some(Ok(locked)) = core.try_lock()
                    && cached.statement.reset(&locked).is_ok()
                {
                    core.keep(cached, &locked);
                }
                return;
            }
            // Stopping INSERT … RETURNING in autocommit mode commits, which waits: not with the GIL,
            // and not left to whoever uses the connection now.
            if let Ok(locked) = lock(py, core)
                && cached.statement.belongs_to(&locked)
            {
                let _ = detached(py, &locked, |locked| cached.statement.reset(locked));
                core.keep(cached, &locked);
            }
        });
    }
}

/// The SQL given as `argument` of a method, which must be a `str`.
pub(crate) fn sql_text<'a, 'py>(
    sql: &'a Bound<'py, PyAny>,
    argument: &str,
) -> PyResult<&'a Bound<'py, PyString>> {
    sql.cast::<PyString>().map_err(|_| {
        if is_of_class(sql, "string.templatelib.Template") {
            return PyTypeError::new_err(format!(
                "{argument} must be str, not a template string: write ? in the SQL where a value is to \
                 stand, and give the values as parameters"
            ));
        }
        wrong_type(argument, "str", sql)
    })
}
