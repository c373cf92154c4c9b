//! What is made once, by whoever has the GIL and asks first.
//!
//! PyO3's `PyOnceLock`, and with it `intern!`, lets the GIL go between noting that the value is being made
//! and making it. A child that another thread forks at that moment inherits the note without the thread, and
//! every thread of the child that asks waits for ever. Here nothing is noted: two threads may make it, and
//! the first one's is kept.
//!
//! Invariant: nobody waits for the one who makes it; a forked child finds it made, or makes it.

use std::cell::OnceCell;

use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

/// A value for statics.
pub(crate) struct GilOnce<T>(OnceCell<T>);

// SAFETY: the cell is looked at and filled with a token that shows the GIL held, so by one thread at a time,
// and the GIL is not let go in between (see `get_or_try_make`). A reference to the value goes to other
// threads, and it may be dropped by another one than has made it, hence the bounds.
unsafe impl<T: Send + Sync> Sync for GilOnce<T> {}

impl<T> GilOnce<T> {
    /// None is made yet.
    pub(crate) const fn new() -> Self {
        Self(OnceCell::new())
    }

    #[inline]
    pub(crate) fn get_or_make(&self, py: Python<'_>, make: impl FnOnce() -> T) -> &T {
        match self.get_or_try_make(py, || Ok::<_, std::convert::Infallible>(make())) {
            Ok(value) => value,
        }
    }

    #[inline]
    pub(crate) fn get_or_try_make<E>(
        &self,
        _py: Python<'_>,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        if let Some(value) = self.0.get() {
            return Ok(value);
        }
        // This may let the GIL go, and another thread be the first.
        let value = make()?;
        Ok(self.0.get_or_init(|| value))
    }
}

/// A string that Python has interned, made when it is first asked for.
pub(crate) struct Interned(&'static str, GilOnce<Py<PyString>>);

impl Interned {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self(text, GilOnce::new())
    }

    #[inline]
    pub(crate) fn get<'py>(&'py self, py: Python<'py>) -> &'py Bound<'py, PyString> {
        let make = || PyString::intern(py, self.0).unbind();
        self.1.get_or_make(py, make).bind(py)
    }
}

/// A string that Python has interned. As PyO3's `intern!`.
macro_rules! interned {
    ($py: expr, $text: literal) => {{
        static TEXT: $crate::gil_once::Interned = $crate::gil_once::Interned::new($text);
        TEXT.get($py)
    }};
}

pub(crate) use interned;

/// Makes those of PyO3's own that are asked for later, while nobody forks: the module is being imported.
pub(crate) fn make_those_of_pyo3(module: &Bound<'_, PyModule>) {
    // The class behind a cast of what is no dict.
    let _ = module.as_any().cast::<PyMapping>();
    // What is said of an argument of the wrong type.
    let _ = module.call_method1("shared_commit_group", (0,));
}
