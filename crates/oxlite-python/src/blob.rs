//! `Blob`: reading and writing one value in place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxlite_core::Connection as Core;
use oxlite_core::Mutex;
use oxlite_sqlite::Locked;
use pyo3::PyTraverseError;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::slice::PySliceIndices;
use pyo3::types::{PyBytes, PyInt, PySlice};

use crate::buffers::bytes_like;
use crate::connection::Connection;
use crate::error::from_sqlite;
use crate::exceptions::ProgrammingError;
use crate::gil::{at_the_end, detached, held, is_ending, raise_kept, without};
use crate::lock::lock;
use crate::values::filled_bytes;
use crate::version;

/// Up to so many bytes are read and written with the GIL, as short statements are run.
const HELD_BYTES: usize = 16 * 1024;

/// An open BLOB or TEXT value, made by `Connection.blobopen`. Its size cannot change.
#[pyclass(module = "oxlite.sqlite3", frozen, weakref)]
pub(crate) struct Blob {
    connection: Py<Connection>,
    core: Arc<Core>,
    /// `None` once closed.
    open: Mutex<Option<oxlite_sqlite::Blob>>,
    /// Where the next read or write begins, in bytes. Used with the GIL alone.
    offset: AtomicUsize,
    length: usize,
}

impl Blob {
    pub(crate) fn new(
        connection: Py<Connection>,
        core: Arc<Core>,
        blob: oxlite_sqlite::Blob,
    ) -> Self {
        Self {
            connection,
            core,
            length: blob.len(),
            open: Mutex::new(Some(blob)),
            offset: AtomicUsize::new(0),
        }
    }

    /// Refuses the wrong thread, a closed connection and a closed blob.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.on_open(py, |_, _| Ok(()))
    }

    /// Checks, locks, and works with the open blob.
    fn on_open<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Locked<'_>, &oxlite_sqlite::Blob) -> PyResult<T>,
    ) -> PyResult<T> {
        self.connection.get().check_thread()?;
        let locked = lock(py, &self.core)?;
        // Nobody waits for this lock: whoever takes it has the connection's.
        let open = self.open.lock();
        let blob = open
            .as_ref()
            .ok_or_else(|| ProgrammingError::new_err("Cannot operate on a closed blob."))?;
        work(&locked, blob)
    }

    fn read_range<'py>(
        &self,
        py: Python<'py>,
        offset: usize,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.on_open(py, |locked, blob| {
            filled_bytes(py, length, |buffer| {
                if length <= HELD_BYTES {
                    held(py, locked, |locked| blob.read(locked, offset, buffer))
                } else {
                    detached(py, locked, |locked| blob.read(locked, offset, buffer))
                }
            })?
            .map_err(|error| from_sqlite(py, &error))
        })
    }

    fn write_range(&self, py: Python<'_>, offset: usize, bytes: &[u8]) -> PyResult<()> {
        self.on_open(py, |locked, blob| {
            let write = |locked: &Locked<'_>| blob.write(locked, offset, bytes);
            let written = match bytes.len() <= HELD_BYTES {
                true => held(py, locked, write),
                false => detached(py, locked, write),
            };
            written.map_err(|error| from_sqlite(py, &error))
        })
    }

    /// An index of Python's as a position.
    fn position(&self, index: &Bound<'_, PyAny>) -> PyResult<usize> {
        let index: i64 = index.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(index.py()) {
                return PyIndexError::new_err("cannot fit 'int' into an index-sized integer");
            }
            error
        })?;
        let length = self.length as i64;
        let position = if index < 0 { index + length } else { index };
        if (0..length).contains(&position) {
            return Ok(position as usize);
        }
        Err(PyIndexError::new_err("Blob index out of range"))
    }
}

#[pymethods]
impl Blob {
    /// Reads up to `length` bytes from the current position; all that remain by default.
    #[pyo3(signature = (length = -1, /))]
    fn read<'py>(&self, py: Python<'py>, length: i64) -> PyResult<Bound<'py, PyBytes>> {
        let offset = self.offset.load(Ordering::Relaxed);
        let remaining = self.length.saturating_sub(offset);
        let length = usize::try_from(length).map_or(remaining, |length| length.min(remaining));
        if length == 0 {
            self.check(py)?;
            return Ok(PyBytes::new(py, b""));
        }
        let bytes = self.read_range(py, offset, length)?;
        self.offset.store(offset + length, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Writes at the current position; the blob cannot grow.
    #[pyo3(signature = (data, /))]
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_like(data)?;
        let bytes = bytes.as_bytes();
        let offset = self.offset.load(Ordering::Relaxed);
        if bytes.len() > self.length.saturating_sub(offset) {
            self.check(py)?;
            return Err(PyValueError::new_err("data longer than blob length"));
        }
        self.write_range(py, offset, bytes)?;
        self.offset.store(offset + bytes.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Moves the current position: `origin` is 0 (the start), 1 (here) or 2 (the end).
    #[pyo3(signature = (offset, origin = 0, /))]
    fn seek(&self, py: Python<'_>, offset: i32, origin: i32) -> PyResult<()> {
        self.check(py)?;
        let base = match origin {
            0 => 0,
            1 => self.offset.load(Ordering::Relaxed) as i64,
            2 => self.length as i64,
            _ => {
                return Err(PyValueError::new_err(
                    "'origin' should be os.SEEK_SET, os.SEEK_CUR, or os.SEEK_END",
                ));
            }
        };
        // Positions are C ints in SQLite, so neither can overflow here.
        let position = base + i64::from(offset);
        if position > i64::from(i32::MAX) {
            return Err(PyOverflowError::new_err("seek offset results in overflow"));
        }
        if !(0..=self.length as i64).contains(&position) {
            return Err(PyValueError::new_err("offset out of blob range"));
        }
        self.offset.store(position as usize, Ordering::Relaxed);
        Ok(())
    }

    /// The current position, in bytes.
    fn tell(&self, py: Python<'_>) -> PyResult<usize> {
        self.check(py)?;
        Ok(self.offset.load(Ordering::Relaxed))
    }

    /// Closes the blob. Closing twice is allowed. Outside of a transaction this commits what was
    /// written, and raises if that fails.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().check_thread()?;
        let locked = lock(py, &self.core)?;
        let open = self.open.lock().take();
        drop(locked);
        match without(py, || open.map_or(Ok(()), oxlite_sqlite::Blob::close)) {
            Ok(()) => raise_kept(),
            Err(error) => Err(from_sqlite(py, &error)),
        }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.check(py)?;
        Ok(self.length)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().check(slf.py())?;
        Ok(slf.clone())
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.check(py)?;
        self.close(py)?;
        Ok(false)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let indices = slice.indices(self.length as isize)?;
            if indices.slicelength == 0 {
                // Also finds that the row has changed.
                return Ok(self.read_range(py, 0, 0)?.into_any());
            }
            refuse_backwards(&indices)?;
            let (first, end) = span(&indices);
            let bytes = self.read_range(py, first, end - first)?;
            if indices.step == 1 {
                return Ok(bytes.into_any());
            }
            let bytes = bytes.as_bytes();
            let picked: Vec<u8> = positions(&indices).map(|at| bytes[at - first]).collect();
            return Ok(PyBytes::new(py, &picked).into_any());
        }
        self.check(py)?;
        if !key.hasattr("__index__")? {
            return Err(PyTypeError::new_err("Blob indices must be integers"));
        }
        let position = self.position(key)?;
        let byte = self.read_range(py, position, 1)?;
        Ok(byte.as_bytes()[0].into_pyobject(py)?.into_any())
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.check(py)?;
        if let Ok(slice) = key.cast::<PySlice>() {
            let indices = slice.indices(self.length as isize)?;
            if indices.slicelength == 0 && !version::SLICES_BLOBS_STRICTLY {
                return Ok(());
            }
            let data = bytes_like(value)?;
            let data = data.as_bytes();
            if data.len() != indices.slicelength {
                return Err(PyIndexError::new_err("Blob slice assignment is wrong size"));
            }
            if indices.slicelength == 0 {
                return Ok(());
            }
            refuse_backwards(&indices)?;
            let (first, end) = span(&indices);
            if indices.step == 1 {
                return self.write_range(py, first, data);
            }
            let mut bytes = self.read_range(py, first, end - first)?.as_bytes().to_vec();
            for (at, byte) in positions(&indices).zip(data) {
                bytes[at - first] = *byte;
            }
            return self.write_range(py, first, &bytes);
        }
        if !key.hasattr("__index__")? {
            return Err(PyTypeError::new_err("Blob indices must be integers"));
        }
        let position = self.position(key)?;
        let Ok(number) = value.cast::<PyInt>() else {
            return Err(PyTypeError::new_err(format!(
                "'{}' object cannot be interpreted as an integer",
                value.get_type().name()?
            )));
        };
        let Ok(byte) = number.extract::<u8>() else {
            return Err(PyValueError::new_err("byte must be in range(0, 256)"));
        };
        self.write_range(py, position, &[byte])
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.connection)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check(py)?;
        let what = if key.is_instance_of::<PySlice>() {
            "slice"
        } else {
            "item"
        };
        Err(PyTypeError::new_err(format!(
            "Blob doesn't support {what} deletion"
        )))
    }

    fn __contains__(&self, _value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "argument of type 'oxlite.sqlite3.Blob' is not iterable",
        ))
    }

    fn __iter__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "'oxlite.sqlite3.Blob' object is not iterable",
        ))
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        // Closing waits for the connection's lock, whose holder may be waiting for the GIL.
        let mut open = self.open.get_mut().take();
        if open.is_some() {
            at_the_end(|py| {
                if is_ending() && self.core.try_lock().is_none() {
                    // Who has the connection goes on no more: nobody closes it either.
                    std::mem::forget(open.take());
                } else {
                    without(py, || drop(open.take()));
                }
            });
        }
    }
}

/// Refuses a slice that goes backwards, where this version of Python does.
fn refuse_backwards(indices: &PySliceIndices) -> PyResult<()> {
    match indices.step < 0 && version::SLICES_BLOBS_STRICTLY {
        true => Err(PyValueError::new_err(
            "Blob doesn't support slices with a negative step",
        )),
        false => Ok(()),
    }
}

/// The positions of a slice, in its order.
fn positions(indices: &PySliceIndices) -> impl Iterator<Item = usize> + use<> {
    let (start, step) = (indices.start, indices.step);
    (0..indices.slicelength as isize).map(move |index| (start + index * step) as usize)
}

/// The stretch of bytes that holds all of a non-empty slice.
fn span(indices: &PySliceIndices) -> (usize, usize) {
    let last = indices.start + (indices.slicelength as isize - 1) * indices.step;
    let (first, last) = (indices.start.min(last), indices.start.max(last));
    (first as usize, last as usize + 1)
}
