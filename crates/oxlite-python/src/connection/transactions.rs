//! Transactions of a connection: who begins them, and how they end.
//!
//! `autocommit` decides who: the application by SQL (`True`), the connection always (`False`, as PEP
//! 249 has it), or, before data modifications, as `isolation_level` says
//! (`LEGACY_TRANSACTION_CONTROL`). The standard library has it since Python 3.12
//! (<https://docs.python.org/3/library/sqlite3.html#transaction-control>).

use oxlite_core::{
    Connection as Core, IsolationLevel, LEGACY_TRANSACTION_CONTROL, TransactionControl,
};
use oxlite_sqlite::Locked;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use super::Connection;
use crate::error::{from_core, lock_failed};
use crate::gil::{detached, detached_to_the_end};
use crate::lock::{glance, lock};

/// The `autocommit` argument and attribute.
#[derive(Clone, Copy)]
pub(super) struct Autocommit(pub(super) TransactionControl);

impl Autocommit {
    /// What one gets by saying nothing.
    pub(super) const LEGACY: Self = Self(TransactionControl::Legacy);
}

impl<'py> FromPyObject<'_, 'py> for Autocommit {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(boolean) = object.cast::<PyBool>() {
            return Ok(Self(match boolean.is_true() {
                true => TransactionControl::Autocommit,
                false => TransactionControl::AlwaysOpen,
            }));
        }
        if object.is_instance_of::<PyInt>() && object.eq(LEGACY_TRANSACTION_CONTROL)? {
            return Ok(Self::LEGACY);
        }
        Err(PyValueError::new_err(
            "autocommit must be True, False, or sqlite3.LEGACY_TRANSACTION_CONTROL",
        ))
    }
}

/// The `isolation_level` argument and attribute.
#[derive(Clone, Copy)]
pub(super) struct ImplicitLevel(pub(super) Option<IsolationLevel>);

impl ImplicitLevel {
    /// What one gets by saying nothing.
    pub(super) const DEFAULT: Self = Self(Some(IsolationLevel::Default));
}

impl<'py> FromPyObject<'_, 'py> for ImplicitLevel {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Self(None));
        }
        let name = object
            .cast::<PyString>()
            .map_err(|_| PyTypeError::new_err("isolation_level must be str or None"))?;
        IsolationLevel::named(name.to_str()?)
            .map(|level| Self(Some(level)))
            .map_err(|error| from_core(object.py(), error))
    }
}

impl Connection {
    pub(super) fn transaction_control(&self, py: Python<'_>) -> TransactionControl {
        self.attributes.get(py).transaction_control
    }

    /// Begins the implicit transaction before a data modification, if none is open and this
    /// connection wants one; tells whether it did.
    #[inline]
    pub(crate) fn begin_implicitly(
        &self,
        py: Python<'_>,
        core: &Core,
        locked: &Locked<'_>,
    ) -> PyResult<bool> {
        if !locked.is_autocommit() {
            return Ok(false);
        }
        let Some(level) = self.implicit_begin(py) else {
            return Ok(false);
        };
        let begin = level.begin_statement();
        detached(py, locked, |locked| {
            locked.beginning(|| core.run(locked, begin))
        })
        .map_err(|error| from_core(py, error))?;
        Ok(true)
    }

    /// How a data modification begins a transaction, if it does.
    #[inline]
    fn implicit_begin(&self, py: Python<'_>) -> Option<IsolationLevel> {
        let attributes = self.attributes.get(py);
        match attributes.transaction_control {
            TransactionControl::Legacy => attributes.isolation_level,
            TransactionControl::Autocommit | TransactionControl::AlwaysOpen => None,
        }
    }

    /// Whether a script is preceded by a commit.
    pub(crate) fn commits_before_scripts(&self, py: Python<'_>) -> bool {
        self.transaction_control(py) == TransactionControl::Legacy
    }

    /// Ends the transaction with `statement`, in the way of the connection's transaction control.
    fn end_transaction(&self, py: Python<'_>, statement: &'static str) -> PyResult<()> {
        let control = self.transaction_control(py);
        self.on_locked(py, |core, locked| {
            let statements: &[&str] = match control {
                TransactionControl::Legacy if locked.is_autocommit() => &[],
                TransactionControl::Legacy => &[statement],
                TransactionControl::Autocommit => &[],
                TransactionControl::AlwaysOpen => &[statement, TransactionControl::BEGIN],
            };
            if statements.is_empty() {
                return Ok(());
            }
            detached(py, locked, |locked| {
                statements.iter().try_for_each(|sql| core.run(locked, sql))
            })
            .map_err(|error| from_core(py, error))
        })
    }

    /// Runs `statement` if whether a transaction is open is as given.
    fn run_if(
        &self,
        py: Python<'_>,
        in_transaction: bool,
        statement: &'static str,
    ) -> PyResult<()> {
        self.on_locked(py, |core, locked| {
            if locked.is_autocommit() == in_transaction {
                return Ok(());
            }
            detached(py, locked, |locked| core.run(locked, statement))
                .map_err(|error| from_core(py, error))
        })
    }
}

#[pymethods]
impl Connection {
    /// Commits the open transaction; nothing if none is open, or if `autocommit` is `True`. If it is
    /// `False`, the next one begins.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end_transaction(py, "COMMIT")
    }

    /// Rolls the open transaction back; nothing if none is open, or if `autocommit` is `True`. If it
    /// is `False`, the next one begins.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end_transaction(py, "ROLLBACK")
    }

    /// Stops the reads that somebody has left in the middle of their rows, so that the connection keeps no
    /// snapshot; who fetches the next row of one gets an `OperationalError`. Whether nothing is in the
    /// middle of its work then.
    fn end_reads(&self, py: Python<'_>) -> PyResult<bool> {
        let locked = lock(py, self.core()?)?;
        Ok(detached_to_the_end(py, locked, Locked::end_reads))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        drop(lock(slf.py(), slf.get().core()?)?);
        Ok(slf.clone())
    }

    /// Commits if the block ended well, rolls back if it raised; nothing if `autocommit` is `True`.
    /// The connection stays open.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if !exception_type.is_none() {
            self.end_transaction(py, "ROLLBACK")?;
            return Ok(false);
        }
        if let Err(error) = self.end_transaction(py, "COMMIT") {
            // A commit that failed leaves the transaction open, and with it the lock.
            self.end_transaction(py, "ROLLBACK")?;
            return Err(error);
        }
        Ok(false)
    }

    /// Who begins and ends transactions: `True` (the application, by SQL), `False` (one is always
    /// open) or `LEGACY_TRANSACTION_CONTROL` (data modifications begin one, as `isolation_level`
    /// says). Setting `True` commits an open transaction, `False` begins one.
    #[getter]
    fn autocommit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_open(py)?;
        Ok(match self.transaction_control(py) {
            TransactionControl::Legacy => PyInt::new(py, LEGACY_TRANSACTION_CONTROL).into_any(),
            TransactionControl::Autocommit => PyBool::new(py, true).to_owned().into_any(),
            TransactionControl::AlwaysOpen => PyBool::new(py, false).to_owned().into_any(),
        })
    }

    #[setter]
    fn set_autocommit(&self, py: Python<'_>, autocommit: Autocommit) -> PyResult<()> {
        match autocommit.0 {
            TransactionControl::Legacy => self.check_open(py)?,
            TransactionControl::Autocommit => self.run_if(py, true, "COMMIT")?,
            TransactionControl::AlwaysOpen => self.run_if(py, false, TransactionControl::BEGIN)?,
        }
        self.attributes.get_mut(py).transaction_control = autocommit.0;
        Ok(())
    }

    #[deleter]
    fn delete_autocommit(&self) -> PyResult<()> {
        Err(PyAttributeError::new_err(
            "cannot delete autocommit attribute",
        ))
    }

    /// How an implicit transaction begins: `""`, `"DEFERRED"`, `"IMMEDIATE"`, `"EXCLUSIVE"`, or
    /// `None` for no implicit transactions.
    #[getter]
    fn isolation_level(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        drop(glance(py, self.core()?)?);
        let level = self.attributes.get(py).isolation_level;
        Ok(level.map(IsolationLevel::name))
    }

    #[setter]
    fn set_isolation_level(&self, py: Python<'_>, level: ImplicitLevel) -> PyResult<()> {
        let ImplicitLevel(level) = level;
        self.attributes.get_mut(py).isolation_level = level;
        match level {
            // As in the standard library: doing without implicit transactions commits the open one.
            None => self.end_transaction(py, "COMMIT"),
            Some(_) => Ok(()),
        }
    }

    #[deleter]
    fn delete_isolation_level(&self) -> PyResult<()> {
        Err(PyAttributeError::new_err("cannot delete attribute"))
    }

    /// Whether a transaction is open; while another thread uses the connection, as it was before that.
    #[getter]
    fn in_transaction(&self) -> PyResult<bool> {
        let core = self.core()?;
        Ok(match core.try_glance() {
            Some(locked) => !locked.map_err(lock_failed)?.is_autocommit(),
            None => core.was_in_transaction(),
        })
    }
}
