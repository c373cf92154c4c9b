//! Locks, atomics and time for what waits: the real ones, or those of the model checker.
//!
//! Invariants:
//! - Only the unit tests of a build with `--cfg loom` see the model; every other build uses the real
//!   ones by these names, at no cost.
//! - What is imported from here can be modelled; what is imported from elsewhere beside it cannot.

#[cfg(all(test, loom))]
pub(crate) mod model;

#[cfg(all(test, loom))]
pub(crate) use model::{Condvar, Instant, Mutex, MutexGuard, atomic, sleep};
#[cfg(not(all(test, loom)))]
pub(crate) use {
    oxlite_sqlite::{Condvar, Mutex, MutexGuard},
    std::sync::atomic,
    std::thread::sleep,
    std::time::Instant,
};

/// As the standard library has them: a mutex whose holder has panicked says so.
pub(crate) mod poisoning {
    #[cfg(all(test, loom))]
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    #[cfg(not(all(test, loom)))]
    pub(crate) use std::sync::{Mutex, MutexGuard};
}
