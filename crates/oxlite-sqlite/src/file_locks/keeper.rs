//! Who looks after kept read marks: a thread that lets each go once nobody has used it for about a millisecond.
//!
//! It begins when a file is read often, looks each [`EVERY`], and ends by itself when no file has been read
//! often for a while. Before a fork it has ended, and nothing is kept: a process with one thread more is told
//! by Python (3.12 and later) that it should not fork.
//!
//! Invariants:
//! - What is kept has somebody who lets it go: nothing is watched without a thread, but between a thread's
//!   beginning to end and its end.
//! - [`KEEPER`] is taken under the mutexes of SQLite's files; at a fork the registry's is taken under it, else
//!   nothing is. With it nobody waits but for calls that the kernel answers by itself.
//! - Nothing is unlocked through a descriptor that is closed: who closes one has had its mark forgotten.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::inode::set_byte;
use super::kept::Mark;
use super::others::Identity;
use super::table;
use crate::fork::ForkMutex;
use crate::quiet_thread::spawn_quietly;

/// How often it is looked: what nobody has used since the look before is let go, so after one to two of these.
const EVERY: Duration = Duration::from_millis(1);

/// How long the thread stays with nothing to look after.
const STAYS: Duration = Duration::from_millis(100);

/// For how long nothing is kept after a thread could not be started.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

static KEEPER: ForkMutex<Keeper> = ForkMutex::new(Keeper {
    watched: Vec::new(),
    thread: None,
    is_running: false,
    is_stopped: false,
    failed: None,
});

/// Tells the thread that there is something to look after, or that it is to end.
static CHANGED: Condvar = Condvar::new();

/// By which number the kernel knows the thread; 0 if there is none.
static THREAD_ID: AtomicU32 = AtomicU32::new(0);

const STACK_BYTES: usize = 64 * 1024;

/// How often it is looked whether a thread that has ended is still counted: for a moment after its end.
const LOOKS_FOR_THE_END: u32 = 1000;

/// Whether anything is watched; a guess, without the mutex.
static ANY: AtomicBool = AtomicBool::new(false);

struct Keeper {
    watched: Vec<Watched>,
    thread: Option<JoinHandle<()>>,
    is_running: bool,
    /// A fork is at hand: nothing is watched now.
    is_stopped: bool,
    /// When a thread could not be started.
    failed: Option<Instant>,
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

    /// Whether it is to be looked at again. What was kept through a descriptor that was closed behind our back,
    /// and its lock with it, is forgotten: the next read finds out.
    fn look(&self) -> bool {
        let Some(mark) = self.mark() else {
            return false;
        };
        let found = Identity::of(self.descriptor);
        if found.as_ref() == Some(&self.identity) {
            return mark.is_hot(|byte| unlock(self.descriptor, byte));
        }
        mark.unwatch(|byte| {
            // Not where the number is another file's by now.
            if found.is_none() {
                unlock(self.descriptor, byte);
            }
        });
        false
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
        let has_just_failed = || {
            self.failed
                .is_some_and(|failed| failed.elapsed() < PAUSE_AFTER_FAILURE)
        };
        if !self.is_running && !has_just_failed() {
            if let Some(thread) = self.thread.take() {
                // It ends without another look.
                join(thread);
            }
            self.thread = spawn_quietly("oxlite-marks", STACK_BYTES, keep).ok();
            self.is_running = self.thread.is_some();
            self.failed = (!self.is_running).then(Instant::now);
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

/// Waits until a thread has ended, and until the kernel counts it no more.
fn join(thread: JoinHandle<()>) {
    // It does not panic; if it has, it has ended.
    let _ = thread.join();
    // Told by now, also by one that had only just begun.
    let id = THREAD_ID.swap(0, Ordering::Relaxed);
    let Ok(path) = CString::new(format!("/proc/self/task/{id}")) else {
        return;
    };
    // SAFETY: a NUL-terminated path.
    let is_counted = || id != 0 && unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0;
    for _ in 0..LOOKS_FOR_THE_END {
        if !is_counted() {
            break;
        }
        thread::yield_now();
    }
}

/// The thread.
fn keep() {
    // SAFETY: asks only.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    THREAD_ID.store(id as u32, Ordering::Relaxed);
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
        join(thread);
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
