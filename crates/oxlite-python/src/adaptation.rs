//! Adapters (Python objects to values SQLite has) and converters (stored bytes to Python objects):
//! the registries behind `register_adapter` and `register_converter`, and `adapt`.
//!
//! Both registries are plain dictionaries, shared by every connection and visible in the module, as
//! in the standard library. What is registered is code of the user's: it runs with the connection
//! unlocked.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyNone, PyString, PyTuple, PyType,
};

use crate::argument::Argument;
use crate::exceptions::ProgrammingError;
use crate::gil_once::{GilOnce, interned};

/// The protocol that objects are adapted to when they are bound.
#[pyclass(module = "oxlite.sqlite3", frozen)]
pub(crate) struct PrepareProtocol;

#[pymethods]
impl PrepareProtocol {
    /// As in the standard library, whatever it is called with.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }
}

/// By `(type, protocol)`.
static ADAPTERS: GilOnce<Py<PyDict>> = GilOnce::new();

/// By the name of the type, in capitals.
static CONVERTERS: GilOnce<Py<PyDict>> = GilOnce::new();

/// Whether an adapter exists for a type SQLite has. Until then, objects of these are not looked up.
static ADAPTS_BASE_TYPES: AtomicBool = AtomicBool::new(false);

/// The registry of adapters.
pub(crate) fn adapters(py: Python<'_>) -> &Bound<'_, PyDict> {
    ADAPTERS
        .get_or_make(py, || PyDict::new(py).unbind())
        .bind(py)
}

/// The registry of converters.
pub(crate) fn converters(py: Python<'_>) -> &Bound<'_, PyDict> {
    CONVERTERS
        .get_or_make(py, || PyDict::new(py).unbind())
        .bind(py)
}

/// Whether `str`, `int` and the others have to be looked up as well.
#[inline]
pub(crate) fn adapts_base_types() -> bool {
    ADAPTS_BASE_TYPES.load(Ordering::Relaxed)
}

/// Register `adapter`, which makes of a `type` object one that SQLite can store.
#[pyfunction]
#[pyo3(signature = (r#type, adapter, /), text_signature = "(type, adapter, /)")]
pub(crate) fn register_adapter(
    r#type: &Bound<'_, PyAny>,
    adapter: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = r#type.py();
    let is_base_type = [
        PyType::new::<PyInt>(py),
        PyType::new::<PyFloat>(py),
        PyType::new::<PyString>(py),
        PyType::new::<PyBytes>(py),
        PyType::new::<PyByteArray>(py),
        PyType::new::<PyBool>(py),
        PyType::new::<PyNone>(py),
    ]
    .iter()
    .any(|base| r#type.is(base));
    if is_base_type {
        ADAPTS_BASE_TYPES.store(true, Ordering::Relaxed);
    }
    adapters(py).set_item((r#type, PyType::new::<PrepareProtocol>(py)), adapter)
}

/// Register `converter`, which makes an object of the bytes of a column declared as `typename`.
#[pyfunction]
#[pyo3(signature = (typename, converter, /))]
pub(crate) fn register_converter(
    typename: &Bound<'_, PyString>,
    converter: &Bound<'_, PyAny>,
) -> PyResult<()> {
    converters(typename.py()).set_item(typename.call_method0("upper")?, converter)
}

/// Adapt `obj` to the protocol `proto`; `alt` if there is no way, or a `ProgrammingError` without.
#[pyfunction]
#[pyo3(
    signature = (obj, proto = Argument::Absent, alt = Argument::Absent, /),
    text_signature = "(obj, proto=PrepareProtocol, alt=<unrepresentable>, /)"
)]
pub(crate) fn adapt<'py>(
    obj: &Bound<'py, PyAny>,
    proto: Argument<'py>,
    alt: Argument<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let protocol = match proto {
        Argument::Given(protocol) => protocol,
        Argument::Absent => PyType::new::<PrepareProtocol>(obj.py()).into_any(),
    };
    match (adapted(obj, &protocol)?, alt) {
        (Some(adapted), _) => Ok(adapted),
        (None, Argument::Given(alternative)) => Ok(alternative),
        (None, Argument::Absent) => Err(ProgrammingError::new_err("can't adapt")),
    }
}

/// The object as it is to be bound. Runs code of the user's.
pub(crate) fn adapt_to_bind<'py>(object: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let protocol = PyType::new::<PrepareProtocol>(object.py());
    Ok(adapted(&object, &protocol)?.unwrap_or(object))
}

/// What a registered adapter, the protocol or the object itself makes of the object, in this order.
fn adapted<'py>(
    object: &Bound<'py, PyAny>,
    protocol: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let adapter = adapters(object.py()).get_item((object.get_type(), protocol))?;
    if let Some(adapter) = adapter {
        return adapter.call1((object,)).map(Some);
    }
    if let Some(adapted) = ask(protocol, interned!(object.py(), "__adapt__"), object)? {
        return Ok(Some(adapted));
    }
    ask(object, interned!(object.py(), "__conform__"), protocol)
}

/// What a method makes of its argument: nothing if it does not exist, answers `None`, or raises a
/// `TypeError`.
fn ask<'py>(
    asked: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(method) = asked.getattr_opt(method)? else {
        return Ok(None);
    };
    match method.call1((argument,)) {
        Ok(answer) if answer.is_none() => Ok(None),
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_instance_of::<PyTypeError>(asked.py()) => Ok(None),
        Err(error) => Err(error),
    }
}
