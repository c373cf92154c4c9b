//! The queue of writers in front of a database's write lock: who is next, among the threads of this
//! process (the *lane*) and among processes (the *gate*).
//!
//! The queue is about order alone. SQLite's own lock decides who writes, so whatever goes wrong here (a
//! missing file, a stopped process, a program that knows of no queue) costs order, never correctness,
//! and holds no process up for longer than [`PROBE_EVERY`], nobody for longer than its timeout.
//!
//! Strict order costs a context switch for each transaction; no order starves whoever is unlucky. So
//! writers take **turns**: in its turn, half a millisecond to three long, a thread or a process goes
//! straight to SQLite's lock. Then, if somebody waits, it stands in line again; a process that writes now
//! and then need not (`gate/allowance.rs`).

mod gate;
pub(crate) mod holder;
mod lane;
#[cfg_attr(all(test, loom), path = "queue/lane/model_patience.rs")]
mod patience;

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxlite_sqlite::{BusyWait, Locked, Mutex, WriteQueue, codes};

use crate::error::Result;
use crate::process::processes;
use crate::wait::deadline::Deadline;

pub use holder::Holder;
use holder::{Held, this_thread};
pub(crate) use lane::Lane;
pub use lane::QueueStatistics;
use lane::{Comer, HeldByThisThread, Pass};
use patience::Patience;

/// How often a writer in line tries SQLite's lock, in case those before it do nothing: a process that
/// was stopped keeps its place.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// How long the head of the queue sleeps between two tries for SQLite's lock: at first, and once
/// somebody has had it for longer than [`SHORT_WAIT`].
const NAP: Duration = Duration::from_micros(30);
const LONG_NAP: Duration = Duration::from_millis(1);
const SHORT_WAIT: Duration = Duration::from_millis(2);

/// For how long a connection that goes forward tries SQLite's lock before it stands in line.
const FORWARD: Duration = Duration::from_millis(1);

/// It is looked for who holds the lock and has told nothing for no more than this part of what was waited.
const LOOK_FOR_PART: u32 = 10;

/// A statement that works for longer is told of while it does.
const WORTH_TELLING: Duration = Duration::from_millis(10);

/// Who has the write lock of the database at that path, if he has told so: another one than this process's
/// connections are asked by [`Writer::holder`].
pub(crate) fn published_holder(database: &Path) -> Option<Holder> {
    gate::Gate::published_at(database).and_then(|note| Holder::read(&note))
}

/// One connection as a writer.
pub(crate) struct Writer {
    lane: Arc<Lane>,
    deadline: Arc<Deadline>,
    /// How long it waits.
    timeout: Duration,
    /// Whether it tries SQLite's lock before it stands in line with other processes.
    is_forward: AtomicBool,
    /// The only thread that uses the connection; 0 if any may.
    thread: AtomicU32,
    wait: Mutex<Wait>,
}

/// Where it stands. Used by one thread at a time, that which has the connection's lock.
struct Wait {
    /// Since when it wants the write lock; not once it has had it.
    entered: Option<Instant>,
    /// Since when it waits for a lock that somebody has.
    began: Instant,
    /// The right to try, while it does and for as long as it has the lock.
    pass: Option<Pass>,
    /// Whether this thread has that right by another connection, so that no wait would end.
    is_own: bool,
}

impl Writer {
    /// Puts the queue of its database in front of a connection's write lock.
    pub(crate) fn install(
        lane: Arc<Lane>,
        locked: &Locked<'_>,
        timeout: Duration,
        deadline: &Arc<Deadline>,
    ) -> Result<Arc<Self>> {
        let writer = Arc::new(Self {
            lane,
            deadline: Arc::clone(deadline),
            timeout,
            is_forward: AtomicBool::new(false),
            thread: AtomicU32::new(0),
            wait: Mutex::new(Wait {
                entered: None,
                began: Instant::now(),
                pass: None,
                is_own: false,
            }),
        });
        let at_the_lock = Arc::clone(&writer);
        locked.set_busy_handler(move |wait| at_the_lock.try_again(wait))?;
        locked.set_write_queue(Box::new(InFront(Arc::clone(&writer))));
        Ok(writer)
    }

    /// The line that it stands in.
    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Who has the write lock, after a timeout.
    pub(crate) fn holder(&self) -> Held {
        self.lane
            .holder(processes::LOOK_FOR.min(self.timeout / LOOK_FOR_PART))
    }

    /// From now on it tries SQLite's lock for a moment before it stands in line with other processes.
    ///
    /// For connections that are answered only after a sync which they share: none of them writes again
    /// before it, so nobody is passed by often, and a change of turns costs more than a write.
    pub(crate) fn go_forward(&self) {
        self.is_forward.store(true, Ordering::Relaxed);
    }

    /// From now on only this thread uses the connection, or any may. Who waits for a transaction that only
    /// he can end is refused at once.
    pub(crate) fn confine(&self, to_this_thread: bool) {
        let thread = if to_this_thread { this_thread() } else { 0 };
        self.thread.store(thread, Ordering::Relaxed);
        // Also where it has a transaction open.
        if let Some(pass) = &self.wait.lock().pass {
            pass.confine(thread);
        }
    }

    fn patience<'w>(&'w self, began: Instant, wait: &'w BusyWait<'w>) -> Patience<'w> {
        Patience::new(&self.deadline, began, self.timeout, wait)
    }

    /// Asked when somebody has the lock: waits, and tells whether to try it again.
    fn try_again(&self, wait: &BusyWait<'_>) -> bool {
        let mut state = self.wait.lock();
        let has_write_lock = wait.has_write_lock();
        if state.is_own && !has_write_lock {
            return false;
        }
        if wait.calls == 0 {
            // What was spent in line counts only towards the write lock itself.
            let entered = state.entered.filter(|_| !has_write_lock);
            state.began = entered.unwrap_or_else(Instant::now);
        }
        let began = state.began;
        let patience = self.patience(began, wait);
        if patience.is_over() {
            return false;
        }
        let waited = match &mut state.pass {
            // For readers, in rollback mode, or for another database. Whoever is in line waits for us.
            _ if has_write_lock => began.elapsed(),
            Some(pass)
                if !pass.is_head()
                    && self.is_forward.load(Ordering::Relaxed)
                    && began.elapsed() < FORWARD =>
            {
                Duration::ZERO
            }
            Some(pass) if !pass.is_head() => {
                pass.stand_in_line(&patience);
                return !patience.is_over();
            }
            Some(pass) => pass.waited_at_the_head(),
            None => Duration::MAX,
        };
        let nap = match waited < SHORT_WAIT {
            true => NAP,
            false => LONG_NAP,
        };
        patience.sleep(nap, || false);
        !patience.is_over()
    }
}

/// What SQLite's side asks for.
struct InFront(Arc<Writer>);

impl WriteQueue for InFront {
    fn enter(&self, wait: &BusyWait<'_>) -> oxlite_sqlite::Result<()> {
        let writer = &self.0;
        let began = Instant::now();
        let patience = writer.patience(began, wait);
        // Without a pass, since the time is up, it tries the lock once, as every connection does.
        let is_forward = writer.is_forward.load(Ordering::Relaxed);
        let comer = Comer {
            deadline: &writer.deadline,
            thread: writer.thread.load(Ordering::Relaxed),
        };
        let (pass, is_own) = match writer.lane.enter(comer, &patience, is_forward) {
            Ok(pass) => (pass, false),
            // It is not in line, and has the lock if it needs another database's alone.
            Err(HeldByThisThread) => (None, true),
        };
        if patience.is_cancelled() {
            return Err(oxlite_sqlite::Error::from_code(codes::SQLITE_INTERRUPT));
        }
        *writer.wait.lock() = Wait {
            entered: Some(began),
            began,
            pass,
            is_own,
        };
        Ok(())
    }

    fn lead(&self, wait: &BusyWait<'_>) -> bool {
        let writer = &self.0;
        let patience = writer.patience(Instant::now(), wait);
        let mut wait = writer.wait.lock();
        let Some(pass) = &mut wait.pass else {
            return false;
        };
        while !pass.is_head() && !patience.is_over() {
            pass.stand_in_line(&patience);
        }
        pass.is_head()
    }

    fn work<'s>(&self, sql: &dyn Fn() -> Option<&'s CStr>) {
        let mut wait = self.0.wait.lock();
        // Not one that waits for the lock itself, in the middle of a step.
        if let Some(pass) = &mut wait.pass
            && pass.age() >= WORTH_TELLING
            && let Some(sql) = sql()
        {
            pass.hold(sql);
        }
    }

    fn hold(&self, sql: &CStr) -> bool {
        let mut wait = self.0.wait.lock();
        wait.entered = None;
        match &mut wait.pass {
            Some(pass) => pass.hold(sql),
            None => false,
        }
    }

    fn leave(&self) {
        let mut wait = self.0.wait.lock();
        wait.entered = None;
        wait.pass = None;
        wait.is_own = false;
    }
}
