//! The thread of a process that waits for a lock between processes: such a wait has no time limit and cannot
//! be given up, so whoever wants the lock waits for this thread instead.
//!
//! Invariants:
//! - There is one thread for each file, made when somebody first has to wait, ended with the gate.
//! - A lock that comes when nobody wants it any more is let go at once.
//! - Whoever wants it is woken without the mutex of this room held.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use oxlite_sqlite::{Byte, LockFile, spawn_quietly};

use crate::wait::deadline::Deadline;

const STACK_BYTES: usize = 64 << 10;

/// The thread that waits for the lock, and the file.
pub(super) struct LockThread {
    pub(super) file: LockFile,
    byte: Byte,
    order: Mutex<Order>,
    ordered: Condvar,
}

/// What the thread is to do.
enum Order {
    /// There is no thread yet.
    None,
    /// Nothing: it waits for an order.
    Rest,
    /// Lock the byte, and wake whoever waits for it.
    Lock(Caller),
    /// It is locking it for nobody any more.
    LetGo { _kept: Arc<dyn Send + Sync> },
    /// It is locked.
    Locked,
    /// End.
    End,
}

/// Who waits for the thread.
pub(super) struct Caller {
    /// Woken once the lock is had.
    pub(super) deadline: Arc<Deadline>,
    /// Kept for as long as the thread cannot be told that nobody waits any more: connections that are
    /// opened and closed meanwhile find what this belongs to, and need no further thread.
    pub(super) kept: Arc<dyn Send + Sync>,
}

impl LockThread {
    pub(super) fn new(file: LockFile, byte: Byte) -> Arc<Self> {
        Arc::new(Self {
            file,
            byte,
            order: Mutex::new(Order::None),
            ordered: Condvar::new(),
        })
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the byte locked.
    pub(super) fn ask(self: &Arc<Self>, caller: Caller) {
        let mut order = self.order();
        let before = std::mem::replace(&mut *order, Order::Lock(caller));
        match before {
            Order::None => {
                let thread = Arc::clone(self);
                let started = spawn_quietly("oxlite-gate", STACK_BYTES, move || thread.run());
                if started.is_err() {
                    // As if everybody before had gone: SQLite's lock is tried.
                    *order = Order::None;
                }
            }
            Order::Rest => self.ordered.notify_one(),
            // It is at it already.
            Order::LetGo { .. } | Order::Lock(_) | Order::Locked | Order::End => {}
        }
    }

    /// Whether it is locked, and [`take`](Self::take) would take it.
    pub(super) fn is_ready(&self) -> bool {
        matches!(*self.order(), Order::Locked)
    }

    /// Whether the thread is locking it, be it for nobody.
    pub(super) fn is_locking(&self) -> bool {
        matches!(*self.order(), Order::Lock(_) | Order::LetGo { .. })
    }

    /// Takes the lock over from the thread.
    pub(super) fn take(&self) -> bool {
        let mut order = self.order();
        let is_locked = matches!(*order, Order::Locked);
        if is_locked {
            *order = Order::Rest;
        }
        is_locked
    }

    /// Wants the lock no longer.
    pub(super) fn dismiss(&self) {
        let mut order = self.order();
        *order = match std::mem::replace(&mut *order, Order::Rest) {
            Order::Lock(caller) => Order::LetGo { _kept: caller.kept },
            Order::Locked => {
                let _ = self.file.unlock(self.byte, self.byte);
                Order::Rest
            }
            other => other,
        };
    }

    pub(super) fn end(&self) {
        *self.order() = Order::End;
        self.ordered.notify_one();
    }

    /// What the thread does.
    fn run(&self) {
        let mut order = self.order();
        loop {
            order = match *order {
                Order::Lock(_) | Order::LetGo { .. } => {
                    drop(order);
                    let outcome = self.file.lock(self.byte);
                    let mut order = self.order();
                    let before = std::mem::replace(&mut *order, Order::Rest);
                    match &before {
                        Order::Lock(_) if outcome.is_ok() => *order = Order::Locked,
                        Order::End => return,
                        _ => {
                            let _ = self.file.unlock(self.byte, self.byte);
                        }
                    }
                    // Not with the mutex, which the caller takes, and the end of the lane.
                    drop(order);
                    if let Order::Lock(caller) = &before {
                        caller.deadline.wake();
                    }
                    drop(before);
                    self.order()
                }
                Order::End => return,
                Order::None | Order::Rest | Order::Locked => self
                    .ordered
                    .wait(order)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
