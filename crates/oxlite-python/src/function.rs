//! SQL functions, aggregates, window functions and collations written in Python.
//!
//! An exception in one of them becomes an SQL error with the standard library's text; the exception
//! itself is shown by `sys.unraisablehook` if `enable_callback_tracebacks(True)` was called.

use std::cmp::Ordering;

use oxlite_sqlite::{Aggregate, Collation, FunctionContext, Scalar, ValueRef};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use smallvec::SmallVec;

use crate::buffers::SingleValues;
use crate::callback;
use crate::error::from_sqlite;
use crate::gil::attached;
use crate::gil_once::interned;
use crate::parameters::{storable, value};
use crate::type_names::type_name;
use crate::values::object_of_value;

/// The closure behind `create_function`, and what becomes of its results that are single values.
pub(crate) fn scalar(function: Py<PyAny>, single_values: SingleValues) -> Scalar {
    Box::new(move |context| {
        attached(|py| {
            let function = function.bind(py);
            let outcome = Arguments::new(py, context)
                .and_then(|arguments| arguments.call(function))
                .and_then(|result| set_result(context, &result, single_values));
            if let Err(error) = outcome {
                fail(
                    py,
                    context,
                    &error,
                    "user-defined function raised exception",
                );
                callback::report(py, error, function);
            }
        });
    })
}

/// The closure behind `create_collation`.
pub(crate) fn collation(callable: Py<PyAny>) -> Collation {
    Box::new(move |left, right| {
        attached(|py| {
            let callable = callable.bind(py);
            let order = || -> PyResult<Ordering> {
                let left = PyString::from_bytes(py, left)?;
                let right = PyString::from_bytes(py, right)?;
                let result = callable.call1((left, right))?;
                // As in the standard library, what is no integer means that they are equal.
                let number = match result.is_instance_of::<PyInt>() {
                    true => Ok(result),
                    false => result.call_method0(interned!(py, "__index__")),
                };
                number.map_or(Ok(Ordering::Equal), |number| number.compare(0_i32))
            };
            // And so does an exception.
            order().unwrap_or_else(|error| {
                callback::report(py, error, callable);
                Ordering::Equal
            })
        })
    })
}

/// An aggregate class: its instances have `step` and `finalize`, and as window functions also
/// `value` and `inverse`.
pub(crate) struct PythonAggregate {
    class: Py<PyAny>,
    single_values: SingleValues,
}

impl PythonAggregate {
    pub(crate) fn new(class: Py<PyAny>, single_values: SingleValues) -> Self {
        Self {
            class,
            single_values,
        }
    }

    /// An instance that has taken these values in; `None` after having set an error.
    pub(crate) fn create_with<'v>(
        &self,
        context: &FunctionContext<'_>,
        values: impl Iterator<Item = ValueRef<'v>>,
    ) -> Option<Py<PyAny>> {
        let instance = self.create(context)?;
        attached(|py| {
            let taken = || -> PyResult<()> {
                let step = instance.bind(py).getattr(interned!(py, "step"))?;
                for value in values {
                    step.call1((object_of_value(py, value)?,))?;
                }
                Ok(())
            };
            let taken = taken();
            if let Err(error) = taken {
                let text = "user-defined aggregate's 'step' method raised error";
                fail(py, context, &error, text);
                callback::report(py, error, self.class.bind(py));
                instance.drop_ref(py);
                return None;
            }
            Some(instance)
        })
    }

    /// Calls a method of an instance, and hands its result on; `unusable` is said of one that cannot be
    /// used.
    fn call(
        &self,
        instance: &Py<PyAny>,
        method: fn(Python<'_>) -> &Bound<'_, PyString>,
        context: &FunctionContext<'_>,
        use_result: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
        unusable: Option<&str>,
    ) {
        attached(|py| {
            let method = method(py);
            let bound = match instance.bind(py).getattr(method) {
                Ok(bound) => bound,
                Err(error) => {
                    let text = format!("user-defined aggregate's '{method}' method not defined");
                    fail(py, context, &error, &text);
                    return callback::report(py, error, self.class.bind(py));
                }
            };
            let result = Arguments::new(py, context).and_then(|arguments| arguments.call(&bound));
            let (error, unusable) = match result.map(|result| use_result(&result)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => (error, unusable),
                Err(error) => (error, None),
            };
            // Worded here alone: a method is called for each row.
            let raised = || format!("user-defined aggregate's '{method}' method raised error");
            let text = unusable.map_or_else(raised, str::to_owned);
            fail(py, context, &error, &text);
            callback::report(py, error, self.class.bind(py));
        });
    }
}

impl Aggregate for PythonAggregate {
    type Instance = Py<PyAny>;

    fn create(&self, context: &FunctionContext<'_>) -> Option<Py<PyAny>> {
        attached(|py| match self.class.call0(py) {
            Ok(instance) => Some(instance),
            Err(error) => {
                let text = "user-defined aggregate's '__init__' method raised error";
                fail(py, context, &error, text);
                callback::report(py, error, self.class.bind(py));
                None
            }
        })
    }

    fn step(&self, instance: &Py<PyAny>, context: &FunctionContext<'_>) {
        self.call(
            instance,
            |py| interned!(py, "step"),
            context,
            |_| Ok(()),
            None,
        );
    }

    fn inverse(&self, instance: &Py<PyAny>, context: &FunctionContext<'_>) {
        self.call(
            instance,
            |py| interned!(py, "inverse"),
            context,
            |_| Ok(()),
            None,
        );
    }

    fn value(&self, instance: &Py<PyAny>, context: &FunctionContext<'_>) {
        self.call(
            instance,
            |py| interned!(py, "value"),
            context,
            |result| set_result(context, result, self.single_values),
            Some("unable to set result from user-defined aggregate's 'value' method"),
        );
    }

    fn finalize(&self, instance: Py<PyAny>, context: &FunctionContext<'_>) {
        self.call(
            &instance,
            |py| interned!(py, "finalize"),
            context,
            |result| set_result(context, result, self.single_values),
            None,
        );
        attached(|py| instance.drop_ref(py));
    }
}

/// The arguments of one call, without a tuple around them.
struct Arguments<'py>(SmallVec<[Bound<'py, PyAny>; 8]>);

impl<'py> Arguments<'py> {
    fn new(py: Python<'py>, context: &FunctionContext<'_>) -> PyResult<Self> {
        let objects = (0..context.len()).map(|index| {
            let value = context.argument(index);
            object_of_value(py, value.map_err(|error| from_sqlite(py, &error))?)
        });
        objects.collect::<PyResult<_>>().map(Self)
    }

    fn call(&self, callable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the GIL is held; `Bound` is a transparent pointer to its object, so the slice is an
        // array of that many live objects; NULL (with an exception set) becomes an error.
        unsafe {
            let result = ffi::PyObject_Vectorcall(
                callable.as_ptr(),
                self.0.as_ptr().cast(),
                self.0.len(),
                std::ptr::null_mut(),
            );
            Bound::from_owned_ptr_or_err(callable.py(), result)
        }
    }
}

fn set_result(
    context: &FunctionContext<'_>,
    result: &Bound<'_, PyAny>,
    single_values: SingleValues,
) -> PyResult<()> {
    let result = storable(result.clone(), single_values)?;
    match value(&result)? {
        Some(value) => {
            context.set_result(value);
            Ok(())
        }
        None => Err(PyTypeError::new_err(format!(
            "a function cannot return '{}' to SQLite",
            type_name(&result)
        ))),
    }
}

/// Makes the SQL call fail, with SQLite's own errors for what it has errors for.
fn fail(py: Python<'_>, context: &FunctionContext<'_>, error: &PyErr, text: &str) {
    if error.is_instance_of::<PyMemoryError>(py) {
        context.set_error_no_memory();
    } else if error.is_instance_of::<PyOverflowError>(py) {
        context.set_error_too_big();
    } else {
        context.set_error(text);
    }
}
