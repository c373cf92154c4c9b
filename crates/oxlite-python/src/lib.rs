//! The Python face of Oxlite's core: conversions, the GIL policy, the mapping of errors. No other
//! policy lives here.
//!
//! This file is the one export list. The package `oxlite` re-exports from it by name; `_native.pyi`
//! declares it, and a test holds the two against each other.

mod blob;
mod callback;
mod connection;
mod copying;
mod cursor;
mod error;
mod execution;
mod function;
mod gil;
mod options;
mod parameter_sets;
mod parameters;
mod row;
mod values;

use pyo3::prelude::*;

/// The private extension module behind the package `oxlite`.
#[pymodule]
// The GIL policy (gil.rs) presumes a GIL: a free-threaded interpreter turns it on for this module.
#[pyo3(name = "_native", gil_used = true)]
mod native {
    use oxlite_core::{PROFILES, PragmaValue};
    use oxlite_sqlite::build;
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use crate::blob::Blob;
    #[pymodule_export]
    use crate::callback::enable_callback_tracebacks;
    #[pymodule_export]
    use crate::connection::{Connection, connect};
    #[pymodule_export]
    use crate::cursor::Cursor;
    #[pymodule_export]
    use crate::error::{
        DataError, DatabaseError, Error, IntegrityError, InterfaceError, InternalError,
        NotSupportedError, OperationalError, ProgrammingError, Warning,
    };
    #[pymodule_export]
    use crate::row::Row;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("sqlite_version", build::version())?;
        module.add("sqlite_source_id", build::source_id())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // PEP 249's optional extension: the exceptions as attributes of the connection.
        let connection = module.getattr("Connection")?;
        for exception in crate::error::NAMES {
            connection.setattr(exception, module.getattr(exception)?)?;
        }
        Ok(())
    }

    /// The threading mode SQLite was compiled with: 0, 1 or 2.
    #[pyfunction]
    fn sqlite_threadsafe() -> i32 {
        build::threadsafe()
    }

    /// Each profile's pragmas, in the order in which they are applied.
    #[pyfunction]
    fn profiles(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let all = PyDict::new(py);
        for profile in &PROFILES {
            let pragmas = PyDict::new(py);
            for (name, value) in profile.pragmas {
                match PragmaValue::from(*value) {
                    PragmaValue::Integer(number) => pragmas.set_item(name, number)?,
                    other => pragmas.set_item(name, other.to_string())?,
                }
            }
            all.set_item(profile.name, pragmas)?;
        }
        Ok(all)
    }
}
