//! What the standard library's module does on some versions of Python only.

use pyo3::prelude::*;

use crate::gil_once::GilOnce;

fn at_least(py: Python<'_>, minor: u8, known: &GilOnce<bool>) -> bool {
    *known.get_or_make(py, || py.version_info() >= (3, minor))
}

/// Since 3.12, named placeholders with a sequence of parameters are deprecated.
#[inline]
pub(crate) fn deprecates_sequences_for_names(py: Python<'_>) -> bool {
    static KNOWN: GilOnce<bool> = GilOnce::new();
    at_least(py, 12, &KNOWN)
}

/// Since 3.13, a connection that is collected without having been closed is warned of.
pub(crate) fn warns_of_unclosed_connections(py: Python<'_>) -> bool {
    static KNOWN: GilOnce<bool> = GilOnce::new();
    at_least(py, 13, &KNOWN)
}

/// In 3.13 and 3.14, passing some arguments by name, or by position, is deprecated.
pub(crate) fn deprecates_parts_of_signatures(py: Python<'_>) -> bool {
    static KNOWN: GilOnce<bool> = GilOnce::new();
    *KNOWN.get_or_make(py, || {
        let version = py.version_info();
        matches!((version.major, version.minor), (3, 13..=14))
    })
}
