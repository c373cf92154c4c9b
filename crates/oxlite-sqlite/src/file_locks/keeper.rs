//! Who looks after kept read marks: a thread that lets each go once nobody has used it for about a millisecond.
//!
//! It begins when a file is read often, looks each [`EVERY`], and ends by itself when no file has been read
//! often for a while. Before a fork it has ended, and nothing is kept: a process with one thread more is told
//! by Python (3.12 and later) that it should not fork.
//!
//! Invariants:
//! - What is kept has somebody who lets it go: nothing is watched without a thread, but between a thread's
//!   beginning to end and its end.
//! - [`KEEPER`] is taken under the mutexes of SQLite's files and under the registry's; nothing is taken under it.
//! - Nothing is unlocked through a descriptor that is closed: who closes one has had its mark forgotten.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::inode::{Identity, set_byte};
use super::kept::Mark;
use super::table;
use crate::fork::ForkMutex;

/// How often it is looked: what nobody has used since the look before is let go, so after one to two of these.
const EVERY: Duration = Duration::from_millis(1);

/// How long the thread stays with nothing to look after.
const STAYS: Duration = Duration::from_millis(100);

/// What lies between two reads of a file that is read often, in nanoseconds.
pub(super) const OFTEN_NANOSECONDS: u64 = 1_000_000;

static KEEPER: ForkMutex<Keeper> = ForkMutex::new(Keeper {
    watched: Vec::new(),
    thread: None,
    is_running: false,
    is_stopped: false,
});

/// Tells the thread that there is something to look after, or that it is to end.
static CHANGED: Condvar = Condvar::new();

/// Whether anything is watched; a guess, without the mutex.
static ANY: AtomicBool = AtomicBool::new(false);

struct Keeper {
    watched: Vec<Watched>,
    thread: Option<JoinHandle<()>>,
    is_running: bool,
    /// A fork is at hand: nothing is watched now.
    is_stopped: bool,
}

/// A lock descriptor, and the file that it was opened for.
struct Watched {
    descriptor: c_int,
    identity: Identity,
}

impl Watched {
    /// What it keeps, if it is still what it was.
    fn mark(&self) -> Option<&'static Mark> {
        let mark = table::mark(self.descriptor)?;
        mark.is_watched().then_some(mark)
    }

    fn let_go(&self) {
        if let Some(mark) = self.mark() {
            mark.let_go(|byte| unlock(self.descriptor, byte));
        }
    }

    /// Whether it is to be looked at again. One whose descriptor was closed behind our back, and with it the
    /// lock, is forgotten: the next read finds out.
    fn look(&self) -> bool {
        let Some(mark) = self.mark() else {
            return false;
        };
        if Identity::of(self.descriptor) != Some(self.identity) {
            mark.unwatch(|_| ());
            return false;
        }
        mark.is_hot(|byte| unlock(self.descriptor, byte))
    }
}

fn unlock(descriptor: c_int, byte: i64) {
    set_byte(descriptor, byte, libc::F_UNLCK);
}

/// Has what the lock descriptor `descriptor` keeps looked after; `false` if there can be nobody who does.
#[cold]
pub(super) fn watch(descriptor: c_int, mark: &Mark) -> bool {
    let Some(identity) = Identity::of(descriptor) else {
        return false;
    };
    let mut keeper = KEEPER.lock();
    if keeper.is_stopped || !keeper.runs() {
        return false;
    }
    keeper
        .watched
        .retain(|watched| watched.descriptor != descriptor);
    keeper.watched.push(Watched {
        descriptor,
        identity,
    });
    ANY.store(true, Ordering::Relaxed);
    mark.watch();
    if keeper.watched.len() == 1 {
        CHANGED.notify_all();
    }
    true
}

/// Lets go whatever is kept in this process. To be called before a wait: what others could then do at once
/// they would do a moment later.
#[inline]
pub(crate) fn let_all_go() {
    if ANY.load(Ordering::Relaxed) {
        KEEPER.lock().watched.iter().for_each(Watched::let_go);
    }
}

impl Keeper {
    /// Sees to it that the thread runs.
    fn runs(&mut self) -> bool {
        if !self.is_running {
            // The one before has ended, or is about to without another look.
            drop(self.thread.take());
            let thread = thread::Builder::new()
                .name("oxlite-marks".into())
                .stack_size(64 * 1024)
                .spawn(keep);
            self.thread = thread.ok();
            self.is_running = self.thread.is_some();
        }
        self.is_running
    }

    fn end_watching(&mut self) {
        for watched in self.watched.drain(..) {
            if let Some(mark) = watched.mark() {
                mark.unwatch(|byte| unlock(watched.descriptor, byte));
            }
        }
        ANY.store(false, Ordering::Relaxed);
    }
}

/// The thread.
fn keep() {
    let mut keeper = KEEPER.lock();
    while !keeper.is_stopped {
        let was_any = !keeper.watched.is_empty();
        let pause = if was_any { EVERY } else { STAYS };
        let waited = CHANGED.wait_timeout(keeper, pause);
        let (waited, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        keeper = waited;
        if !was_any {
            if keeper.watched.is_empty() && timeout.timed_out() {
                break;
            }
            continue;
        }
        keeper.watched.retain(Watched::look);
        if keeper.watched.is_empty() {
            ANY.store(false, Ordering::Relaxed);
        }
    }
    keeper.end_watching();
    keeper.is_running = false;
}

/// Ends the thread, and takes the mutex.
pub(super) fn before_fork() {
    let thread = {
        let mut keeper = KEEPER.lock();
        keeper.is_stopped = true;
        keeper.thread.take()
    };
    CHANGED.notify_all();
    if let Some(thread) = thread {
        // It does not panic; if it has, it has ended.
        let _ = thread.join();
    }
    KEEPER.before_fork();
}

/// Lets it go, in both processes. In a child nothing was kept, since nothing was before.
pub(super) fn after_fork() {
    KEEPER.after_fork(|keeper| {
        keeper.is_stopped = false;
        keeper.end_watching();
    });
}
