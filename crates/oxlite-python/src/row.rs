//! `Row`: a tuple whose items also have their columns' names.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::PyTraverseError;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyInt, PyIterator, PyList, PySlice, PyString, PyTuple, PyType};

use crate::cursor::Cursor;
use crate::type_names::derives_from;

/// A row that may be indexed by position, by slice and, in any case, by column name.
///
/// Meant as a `row_factory`: `connection.row_factory = sqlite3.Row`.
#[pyclass(module = "oxlite.sqlite3", subclass, frozen, sequence)]
pub(crate) struct Row {
    data: Py<PyTuple>,
    description: Py<PyTuple>,
}

impl Row {
    pub(crate) fn from_parts(data: Bound<'_, PyTuple>, description: &Bound<'_, PyTuple>) -> Self {
        Self {
            data: data.unbind(),
            description: description.clone().unbind(),
        }
    }

    fn names<'py>(
        &self,
        py: Python<'py>,
    ) -> impl Iterator<Item = PyResult<Bound<'py, PyString>>> + use<'py> {
        let description = self.description.bind(py).clone();
        (0..description.len()).map(move |index| {
            let column = description.get_item(index)?;
            Ok(column.get_item(0)?.cast_into::<PyString>()?)
        })
    }

    /// Where the first column of that name stands.
    fn position(&self, wanted: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        let py = wanted.py();
        // A lone surrogate is in no column's name.
        let text = wanted.to_str().unwrap_or_default();
        let columns = self.description.bind(py).as_slice();
        for (position, column) in columns.iter().enumerate() {
            let column = column.cast::<PyTuple>()?;
            let name = column.get_borrowed_item(0)?;
            // Names are interned, and so are the literals they are asked for with.
            if name.is(wanted) || same_name(name.cast::<PyString>()?.to_str()?, text) {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }
}

#[pymethods]
impl Row {
    #[new]
    fn new(cursor: &Bound<'_, Cursor>, data: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let py = cursor.py();
        let description = cursor.get().description(py);
        Ok(Self {
            data: data.clone().unbind(),
            description: description.unwrap_or_else(|| PyTuple::empty(py).unbind()),
        })
    }

    /// The names of the columns, as a list of `str`.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = PyList::empty(py);
        for name in self.names(py) {
            names.append(name?)?;
        }
        Ok(names)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.data.bind(py).len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let data = self.data.bind(py);
        if key.is_exact_instance_of::<PyInt>() {
            // SAFETY: the GIL is held; an int, exactly, so no code of the user's runs; -1 with an
            // exception set, for one that does not fit, is looked at below.
            let index = unsafe { ffi::PyLong_AsSsize_t(key.as_ptr()) };
            if index == -1 && PyErr::take(py).is_some() {
                return Err(PyIndexError::new_err(
                    "cannot fit 'int' into an index-sized integer",
                ));
            }
            let items = data.as_slice();
            let position = if index < 0 {
                index + items.len() as isize
            } else {
                index
            };
            return match items.get(position as usize) {
                Some(item) if position >= 0 => Ok(item.clone()),
                _ => Err(PyIndexError::new_err("tuple index out of range")),
            };
        }
        if let Ok(wanted) = key.cast::<PyString>() {
            return match self.position(wanted)? {
                Some(position) => data.get_item(position),
                // Of a cursor that has had no rows yet.
                None if self.description.bind(py).is_empty() => Err(PyIndexError::new_err(
                    format!("No item with key {}", wanted.repr()?),
                )),
                None => Err(PyIndexError::new_err("No item with that key")),
            };
        }
        if key.is_instance_of::<PySlice>() || key.hasattr("__index__")? {
            return data.as_any().get_item(key);
        }
        // The standard library's class for this, odd as it is.
        Err(PyIndexError::new_err("Index must be int or string"))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.data.bind(py).try_iter()
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.description.bind(py).hash()?.hash(&mut hasher);
        self.data.bind(py).hash()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        operation: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let (CompareOp::Eq | CompareOp::Ne, Ok(other)) = (operation, other.cast::<Self>()) else {
            return Ok(py.NotImplemented());
        };
        let other = other.get();
        let equal = self.description.bind(py).eq(other.description.bind(py))?
            && self.data.bind(py).eq(other.data.bind(py))?;
        let result = equal == matches!(operation, CompareOp::Eq);
        Ok(result.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.data)?;
        visit.call(&self.description)
    }
}

/// Refuses the standard library's `Row` as a factory, which takes the standard library's cursors alone: as
/// soon as it is set, and not at the first row.
pub(crate) fn refuse_other_rows(factory: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let class = factory.and_then(|factory| factory.cast::<PyType>().ok());
    if class.is_none_or(|class| !derives_from(class, "sqlite3.Row")) {
        return Ok(());
    }
    Err(PyTypeError::new_err(
        "the standard library's sqlite3.Row takes the standard library's cursors alone: set row_factory to \
         oxlite.sqlite3.Row",
    ))
}

/// Column names of ASCII match whatever their case, as in SQL; others match exactly.
fn same_name(left: &str, right: &str) -> bool {
    left == right || (left.is_ascii() && left.eq_ignore_ascii_case(right))
}
