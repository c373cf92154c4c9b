//! What is kept once in a process.
//!
//! Invariants:
//! - It belongs to the process that made it; a forked child makes its own, and does not look at a mutex
//!   that another thread of the parent may have had, nor wait for one that was making it.

use std::sync::OnceLock;

/// Later generations of forked processes than these have nothing.
const GENERATIONS: usize = 1024;

/// One `T` for each process.
pub struct PerProcess<T>([OnceLock<T>; GENERATIONS]);

impl<T> PerProcess<T> {
    /// None is made yet.
    #[expect(clippy::new_without_default, reason = "it is for statics")]
    pub const fn new() -> Self {
        Self([const { OnceLock::new() }; GENERATIONS])
    }

    /// This process's, made if there is none yet. `None` in a child of too many generations.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> Option<&T> {
        Some(self.place()?.get_or_init(make))
    }

    /// This process's, if it was made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.place()?.get()
    }

    fn place(&self) -> Option<&OnceLock<T>> {
        self.0.get(oxlite_sqlite::fork_generation() as usize)
    }
}
