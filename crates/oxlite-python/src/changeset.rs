//! Changesets as Python sees them: `Change`, `Conflict`, `ABSENT`, and the functions of
//! `oxlite.changeset`.
//!
//! A changeset comes from anywhere, so text in it may be no UTF-8. It is shown all the same, and
//! without loss, as Python shows such file names: by surrogate escapes (PEP 383).

use std::ffi::CString;

use oxlite_core::Mutex;
use oxlite_sqlite::{Change as Raw, ChangesetPosition, Error, ValueRef, codes};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString, PyTuple};

use crate::buffers::bytes_like;
use crate::error::from_sqlite;
use crate::gil::without;
use crate::gil_once::{GilOnce, interned};
use crate::values::object_of_value;

/// The object of any stored value; text that is not UTF-8 with surrogate escapes.
pub(crate) fn object_of_stored<'py>(
    py: Python<'py>,
    value: ValueRef<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        ValueRef::Text(text) => decoded(py, text).map(Bound::into_any),
        other => object_of_value(py, other),
    }
}

/// Text, with surrogate escapes if it is not UTF-8.
pub(crate) fn decoded<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => {
            let bytes = PyBytes::new(py, text);
            PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogateescape"))
        }
    }
}

/// The class of `ABSENT`.
#[pyclass(module = "oxlite.changeset", frozen)]
pub(crate) struct Absent;

#[pymethods]
impl Absent {
    fn __repr__(&self) -> &'static str {
        "ABSENT"
    }

    /// Copies and pickles are the one object.
    fn __reduce__(&self) -> &'static str {
        "ABSENT"
    }
}

/// What stands for the values of columns that are not in a change.
pub(crate) fn absent(py: Python<'_>) -> PyResult<&Bound<'_, Absent>> {
    static ABSENT: GilOnce<Py<Absent>> = GilOnce::new();
    let absent = ABSENT.get_or_try_make(py, || Py::new(py, Absent))?;
    Ok(absent.bind(py))
}

/// One row inserted, updated or deleted.
#[pyclass(module = "oxlite.changeset", frozen, get_all)]
pub(crate) struct Change {
    /// The table's name.
    table: Py<PyString>,
    /// `"insert"`, `"update"` or `"delete"`.
    operation: Py<PyString>,
    /// Whether a trigger or a foreign key action made the change.
    is_indirect: bool,
    /// For each column whether it belongs to the primary key.
    primary_key: Py<PyTuple>,
    /// The row before, column by column; `ABSENT` where the change does not say. For an insert all
    /// of it; for an update all but the primary key and what changes. A patchset has the primary key
    /// only.
    old: Py<PyTuple>,
    /// The row after, column by column; `ABSENT` where the change does not say: for a delete all of
    /// it, for an update what does not change.
    new: Py<PyTuple>,
}

/// What changes of one table have in common.
struct Table {
    raw: (CString, Vec<u8>),
    name: Py<PyString>,
    primary_key: Py<PyTuple>,
}

impl Table {
    fn of(py: Python<'_>, change: &Raw<'_>) -> PyResult<Self> {
        let flags = change.primary_key.iter().map(|flag| *flag != 0);
        let flags = flags.map(|flag| PyBool::new(py, flag).to_owned());
        Ok(Self {
            raw: (change.table.to_owned(), change.primary_key.to_vec()),
            name: decoded(py, change.table.to_bytes())?.unbind(),
            primary_key: PyTuple::new(py, flags.collect::<Vec<_>>())?.unbind(),
        })
    }

    fn is_of(&self, change: &Raw<'_>) -> bool {
        self.raw.0.as_c_str() == change.table && self.raw.1 == change.primary_key
    }
}

impl Change {
    fn new(py: Python<'_>, change: &Raw<'_>, table: &Table) -> PyResult<Self> {
        Ok(Self {
            table: table.name.clone_ref(py),
            operation: operation(py, change.operation).clone().unbind(),
            is_indirect: change.is_indirect,
            primary_key: table.primary_key.clone_ref(py),
            old: values(py, &change.old)?.unbind(),
            new: values(py, &change.new)?.unbind(),
        })
    }

    fn parts<'a, 'py>(&'a self, py: Python<'py>) -> [&'a Bound<'py, PyAny>; 5] {
        [
            self.table.bind(py),
            self.operation.bind(py),
            self.primary_key.bind(py),
            self.old.bind(py),
            self.new.bind(py),
        ]
    }
}

fn operation(py: Python<'_>, operation: i32) -> &Bound<'_, PyString> {
    match operation {
        codes::SQLITE_INSERT => interned!(py, "insert"),
        codes::SQLITE_UPDATE => interned!(py, "update"),
        _ => interned!(py, "delete"),
    }
}

fn values<'py>(py: Python<'py>, values: &[Option<ValueRef<'_>>]) -> PyResult<Bound<'py, PyTuple>> {
    let absent = absent(py)?.as_any();
    let object = |value: &Option<ValueRef<'_>>| match value {
        Some(value) => object_of_stored(py, *value),
        None => Ok(absent.clone()),
    };
    PyTuple::new(py, values.iter().map(object).collect::<PyResult<Vec<_>>>()?)
}

#[pymethods]
impl Change {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        ("operation", "table", "old", "new")
    }

    /// The values of the primary key, in the columns' order: of the new row for an insert, of the old
    /// one otherwise. (An update never changes it: that is a delete and an insert.)
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let is_insert = self
            .operation
            .bind(py)
            .as_any()
            .eq(interned!(py, "insert"))?;
        let row = if is_insert { &self.new } else { &self.old };
        let (row, flags) = (row.bind(py), self.primary_key.bind(py));
        let mut key = Vec::new();
        for (value, is_in_key) in row.iter().zip(flags) {
            if is_in_key.is_truthy()? {
                key.push(value);
            }
        }
        PyTuple::new(py, key)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let [table, operation, _, old, new] = self.parts(py);
        let mut text = format!("<Change {operation} in {}: ", table.repr()?);
        let shows = |row: &'static str| operation.eq(row).map(|is_other| !is_other);
        match (shows("insert")?, shows("delete")?) {
            (true, true) => text += &format!("{} -> {}", old.repr()?, new.repr()?),
            (true, false) => text += &old.repr()?.to_string(),
            (false, _) => text += &new.repr()?.to_string(),
        }
        if self.is_indirect {
            text += ", indirect";
        }
        Ok(text + ">")
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let other = other.get();
        let mut is_equal = self.is_indirect == other.is_indirect;
        for (mine, theirs) in self.parts(py).into_iter().zip(other.parts(py)) {
            is_equal = is_equal && mine.eq(theirs)?;
        }
        Ok(PyBool::new(py, is_equal).to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let parts = PyTuple::new(py, self.parts(py))?;
        (parts, self.is_indirect).into_pyobject(py)?.hash()
    }
}

/// Why a change could not be applied.
#[pyclass(module = "oxlite.changeset", frozen, get_all)]
pub(crate) struct Conflict {
    /// `"data"`: the row to update or delete has other values than the change expects.
    /// `"not_found"`: there is no such row to update or delete. `"conflict"`: a row with the primary
    /// key to insert is there. `"constraint"`: another constraint would be violated.
    /// `"foreign_key"`: all changes are made, and foreign keys are violated.
    kind: Py<PyString>,
    /// What was to be done; `None` for the kind `"foreign_key"`.
    change: Option<Py<Change>>,
    /// The row that is there, for the kinds `"data"` and `"conflict"`.
    row: Option<Py<PyTuple>>,
    /// How often foreign keys are violated, for the kind `"foreign_key"`, as far as SQLite tells: it
    /// says 1, however many. `PRAGMA foreign_key_check` lists them.
    violations: Option<usize>,
}

impl Conflict {
    pub(crate) fn new(py: Python<'_>, conflict: &oxlite_sqlite::Conflict<'_>) -> PyResult<Self> {
        use oxlite_sqlite::Conflict as Of;
        let kind = match conflict {
            Of::Data { .. } => interned!(py, "data"),
            Of::NotFound { .. } => interned!(py, "not_found"),
            Of::Conflict { .. } => interned!(py, "conflict"),
            Of::Constraint { .. } => interned!(py, "constraint"),
            Of::ForeignKey { .. } => interned!(py, "foreign_key"),
        };
        let (change, row, violations) = parts(conflict);
        let change = change.map(|change| {
            let change = Change::new(py, change, &Table::of(py, change)?)?;
            Py::new(py, change)
        });
        let row = row.map(|row| {
            let objects = row.iter().map(|value| object_of_stored(py, *value));
            PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?).map(Bound::unbind)
        });
        Ok(Self {
            kind: kind.clone().unbind(),
            change: change.transpose()?,
            row: row.transpose()?,
            violations,
        })
    }
}

type Parts<'c, 'a> = (
    Option<&'c Raw<'a>>,
    Option<&'c [ValueRef<'a>]>,
    Option<usize>,
);

/// The change, the row and the violations, where there are any.
fn parts<'c, 'a>(conflict: &'c oxlite_sqlite::Conflict<'a>) -> Parts<'c, 'a> {
    use oxlite_sqlite::Conflict as Of;
    match conflict {
        Of::Data { change, row } | Of::Conflict { change, row } => (Some(change), Some(row), None),
        Of::NotFound { change } | Of::Constraint { change } => (Some(change), None, None),
        Of::ForeignKey { violations } => (None, None, Some(*violations)),
    }
}

/// What there is a conflict about, in words.
pub(crate) fn describe(conflict: &oxlite_sqlite::Conflict<'_>) -> String {
    use oxlite_sqlite::Conflict as Of;
    let why = match conflict {
        Of::Data { .. } => "the row has other values than the change expects",
        Of::NotFound { .. } => "there is no such row",
        Of::Conflict { .. } => "a row with this primary key is there",
        Of::Constraint { .. } => "a constraint would be violated",
        Of::ForeignKey { .. } => "FOREIGN KEY constraint failed",
    };
    let (Some(change), _, _) = parts(conflict) else {
        return why.to_owned();
    };
    let (verb, row) = match change.operation {
        codes::SQLITE_INSERT => ("insert into", &change.new),
        codes::SQLITE_UPDATE => ("update", &change.old),
        _ => ("delete from", &change.old),
    };
    let in_key = change.primary_key.iter().zip(row);
    let key = in_key
        .filter(|(flag, _)| **flag != 0)
        .map(|(_, value)| value.map_or_else(String::new, shown));
    format!(
        "cannot {verb} {} with the primary key ({}): {why}",
        change.table.to_string_lossy(),
        key.collect::<Vec<_>>().join(", ")
    )
}

/// A value of a key, not too long.
fn shown(value: ValueRef<'_>) -> String {
    const LONGEST: usize = 40;
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) => real.to_string(),
        ValueRef::Blob(bytes) => format!("a blob of {} bytes", bytes.len()),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("'{}…'", &text[..end]),
                None => format!("'{text}'"),
            }
        }
    }
}

#[pymethods]
impl Conflict {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!("<Conflict {}", self.kind.bind(py));
        if let Some(change) = &self.change {
            text += &format!(": {}", change.get().__repr__(py)?);
        }
        if let Some(row) = &self.row {
            text += &format!(", there is {}", row.bind(py).repr()?);
        }
        Ok(text + ">")
    }
}

/// The iterator that `read_changeset` returns.
#[pyclass(module = "oxlite.changeset", frozen)]
pub(crate) struct Changes {
    changeset: Py<PyBytes>,
    /// Both locked for moments, without any use of Python in between.
    position: Mutex<ChangesetPosition>,
    table: Mutex<Option<Table>>,
}

#[pymethods]
impl Changes {
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        let change = {
            let mut position = self.position.lock();
            let bytes = self.changeset.as_bytes(py);
            let mut changes = oxlite_sqlite::read_changeset_from(bytes, *position);
            let change = changes.next();
            *position = changes.position();
            change
        };
        let change = change
            .transpose()
            .map_err(|error| from_sqlite(py, &error))?;
        let Some(change) = change else {
            return Ok(None);
        };
        // Changes come table by table.
        let known = self.table.lock().take();
        let table = match known {
            Some(table) if table.is_of(&change) => table,
            _ => Table::of(py, &change)?,
        };
        let object = Change::new(py, &change, &table)?;
        let replaced = self.table.lock().replace(table);
        drop(replaced);
        Ok(Some(object))
    }
}

/// The changes in a changeset or patchset, one after the other.
///
/// What is malformed raises `DatabaseError` (`SQLITE_CORRUPT`) when the iteration gets there.
#[pyfunction]
#[pyo3(signature = (changeset, /))]
pub(crate) fn read_changeset(changeset: &Bound<'_, PyAny>) -> PyResult<Changes> {
    Ok(Changes {
        changeset: bytes_like(changeset)?.unbind(),
        position: Mutex::default(),
        table: Mutex::default(),
    })
}

/// The changeset that undoes `changeset`. A patchset cannot be inverted, since it lacks old values.
#[pyfunction]
#[pyo3(signature = (changeset, /))]
pub(crate) fn invert_changeset<'py>(
    py: Python<'py>,
    changeset: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let changeset = bytes_like(changeset)?;
    let changeset = changeset.as_bytes();
    result(
        py,
        without(py, || oxlite_sqlite::invert_changeset(changeset)),
    )
}

/// The changeset that does what `first` and then `second` do; or the patchset, if both are.
#[pyfunction]
#[pyo3(signature = (first, second, /))]
pub(crate) fn concat_changesets<'py>(
    py: Python<'py>,
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (first, second) = (bytes_like(first)?, bytes_like(second)?);
    let (first, second) = (first.as_bytes(), second.as_bytes());
    result(
        py,
        without(py, || oxlite_sqlite::concat_changesets(first, second)),
    )
}

fn result(py: Python<'_>, bytes: Result<Vec<u8>, Error>) -> PyResult<Bound<'_, PyBytes>> {
    match bytes {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
        Err(error) => Err(from_sqlite(py, &error)),
    }
}
