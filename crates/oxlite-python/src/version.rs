//! What the standard library's module does on some versions of Python only. The native module is built for
//! one version (it uses more than the stable interface), so each is known when it is compiled.

/// Since 3.12, named placeholders with a sequence of parameters are deprecated, since 3.14 refused.
pub(crate) const MINDS_SEQUENCES_FOR_NAMES: bool = cfg!(Py_3_12);

/// Since 3.14, named placeholders with a sequence of parameters are refused.
pub(crate) const REFUSES_SEQUENCES_FOR_NAMES: bool = cfg!(Py_3_14);

/// Since 3.13, a connection that is collected without having been closed is warned of.
pub(crate) const WARNS_OF_UNCLOSED_CONNECTIONS: bool = cfg!(Py_3_13);

/// In 3.13 and 3.14, passing some arguments by name, or by position, is deprecated.
pub(crate) const DEPRECATES_PARTS_OF_SIGNATURES: bool = cfg!(all(Py_3_13, not(Py_3_15)));

/// Since 3.15, it is refused.
pub(crate) const HAS_STRICT_SIGNATURES: bool = cfg!(Py_3_15);

/// Since 3.14, no number of rows is negative or above 32 bits, and none is fetched where none is asked for.
pub(crate) const COUNTS_ROWS_STRICTLY: bool = cfg!(Py_3_14);

/// Since 3.14, a blob has no slices backwards, and what is assigned to an empty one must fit.
pub(crate) const SLICES_BLOBS_STRICTLY: bool = cfg!(Py_3_14);

/// Since 3.14, factories cannot be deleted.
pub(crate) const KEEPS_FACTORIES: bool = cfg!(Py_3_14);

/// Since 3.14, the number of a function's arguments is looked at before SQLite is asked.
pub(crate) const CHECKS_ARGUMENT_COUNTS: bool = cfg!(Py_3_14);
