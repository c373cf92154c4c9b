//! Options that take one of several words, such as a busy policy.

use crate::error::Result;
use crate::text::nearest::unknown;

/// One of several values that have names. The list stands once: what is accepted, what an error
/// names, and what `options` tells of it are read from it.
pub(crate) trait Choice: Clone + 'static {
    /// What it is called in an error.
    const WHAT: &'static str;
    /// All there are.
    const ALL: &'static [Self];

    /// The value's name.
    fn name(&self) -> &'static str;

    /// All names.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(Self::name).collect()
    }

    /// The value of that name.
    fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|value| value.name() == name);
        found
            .cloned()
            .ok_or_else(|| unknown(Self::WHAT, name, Self::names()))
    }
}
