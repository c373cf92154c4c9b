//! Types by the names that CPython's own messages have for them: with the module where a type is written in
//! C, without where it is written in Python. So a class is known that nobody need have imported.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyType;

/// The name of an object's type.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    name_of(&object.get_type())
}

/// Whether an object is an instance of the class of that name, or of one derived from it.
pub(crate) fn is_of_class(object: &Bound<'_, PyAny>, name: &str) -> bool {
    derives_from(&object.get_type(), name)
}

/// Whether a class is the one of that name, or derived from it.
pub(crate) fn derives_from(class: &Bound<'_, PyType>, name: &str) -> bool {
    let bases = class.mro();
    bases.iter().any(|base| {
        base.cast::<PyType>()
            .is_ok_and(|base| name_of(base) == name)
    })
}

fn name_of(class: &Bound<'_, PyType>) -> String {
    // SAFETY: the GIL is held; every type that is ready has a name, which lives as long as the type.
    let name = unsafe { CStr::from_ptr((*class.as_type_ptr()).tp_name) };
    name.to_string_lossy().into_owned()
}
