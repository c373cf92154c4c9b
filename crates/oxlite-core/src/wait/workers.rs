//! Native threads that do what must not be waited for: as many as have something to do, kept for a while.
//!
//! Work that blocks (a lock, the disk) keeps its thread, so their number is not limited here: what is handed
//! in is limited by the connections there are, each of which works on one thing at a time. A limit could
//! make the one that would let a lock go wait behind those that wait for it.
//!
//! Invariants:
//! - What was handed in is run once, by a thread of this process; a forked child has threads of its own.
//! - A thread ends by itself when there has been nothing to do; none is ever waited for.
//! - It takes the signals that its starter takes, as a thread of the program's own would: it runs the program's
//!   functions, and the processes that these start inherit what is kept back.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use oxlite_sqlite::{Condvar, Mutex};

use crate::process::per_process::PerProcess;

/// How long a thread waits for something to do before it ends.
const IDLE_AT_MOST: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// The threads of a process.
#[derive(Default)]
struct Workers {
    state: Mutex<State>,
    handed_in: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    /// Threads that wait for something to do.
    idle: usize,
    threads: usize,
}

static WORKERS: PerProcess<Arc<Workers>> = PerProcess::new();

/// As far as a model goes: a thread for each piece of work.
#[cfg(all(test, loom))]
pub(crate) fn hand_in(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    loom::thread::spawn(work);
    Ok(())
}

/// Has a native thread run `work`. The error is that there is none and the system gives none.
#[cfg(not(all(test, loom)))]
pub(crate) fn hand_in(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let Some(workers) = WORKERS.get_or_make(Arc::default) else {
        return Err(std::io::ErrorKind::Unsupported.into());
    };
    let mut state = workers.state.lock();
    state.waiting.push_back(Box::new(work));
    if state.waiting.len() <= state.idle {
        drop(state);
        workers.handed_in.notify_one();
        return Ok(());
    }
    let started = {
        let workers = Arc::clone(workers);
        let thread = thread::Builder::new().name("oxlite-worker".into());
        thread.spawn(move || workers.work())
    };
    match started {
        Ok(_) => state.threads += 1,
        // One that has something to do now comes to it later.
        Err(_) if state.threads > 0 => {}
        Err(error) => {
            drop(state.waiting.pop_back());
            return Err(error);
        }
    }
    Ok(())
}

impl Workers {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // Who handed it in answers for it; the thread goes on.
                let _ = catch_unwind(AssertUnwindSafe(work));
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            self.handed_in.wait_for(&mut state, IDLE_AT_MOST);
            state.idle -= 1;
            if state.waiting.is_empty() {
                // Woken for nothing, it may be missed for a moment: another one is started then.
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn everything_is_run_at_the_same_time_and_after_a_panic() {
        hand_in(|| panic!("meant")).expect("a thread");
        let (done, all_done) = channel();
        // Each waits for the next, so all must have a thread.
        let mut tell = done.clone();
        for _ in 0..8 {
            let (next, told) = channel::<()>();
            let told_by = std::mem::replace(&mut tell, next);
            hand_in(move || {
                if told.recv_timeout(Duration::from_secs(20)).is_ok() {
                    let _ = told_by.send(());
                }
            })
            .expect("a thread");
        }
        tell.send(()).expect("the last one waits");
        all_done
            .recv_timeout(Duration::from_secs(20))
            .expect("all of them have run");
    }
}
