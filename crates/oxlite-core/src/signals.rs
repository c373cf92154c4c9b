//! Hearing that somebody has committed: whoever commits signals topics, and whoever listens to one of them
//! in any process of this machine is woken.
//!
//! A signal carries nothing and writes no row. It says: look again. Whoever listens asks for the number of
//! the latest signal first ([`Listener::seen`]), then looks at the database, and then waits for a signal
//! with a greater number; so nothing is lost between looking and waiting.
//!
//! - `topic`: what is signalled, as a number.
//! - `exchange`: who is woken by whom, and why nothing is lost; no more than that, so that it can be modelled.
//! - `board`: the memory that all processes share, and the place of a process that listens.
//! - `hub`: this process: one thread that is woken for all of its listeners.
//!
//! Invariants:
//! - A signal follows the commit, and where commits share their syncs, the sync.
//! - Nothing is lost: a listener that has not seen a commit when it looked is woken by its signal.
//! - Who is woken may have been woken in vain: topics share numbers, and a transaction that was rolled back may
//!   have signalled.
//! - Whoever commits where nobody listens makes no system call, and wakes nobody.
//! - A listener is there for as long as its process has its byte of the page's file locked; what a killed one
//!   leaves is taken away by whoever would wake it.

mod board;
mod exchange;
mod hub;
mod topic;

pub(crate) use hub::{FOR_EVER, Station, WatchRight};
pub use hub::{Listener, Signals};
pub use topic::Topic;
