//! Threads that run nothing but our own code: they take none of the program's signals.
//!
//! A signal for the process goes to any thread that takes it. A program that keeps one back in its own threads,
//! to wait for it in one of them, would be ended by it, or have its handler run in a thread that it knows
//! nothing of.
//!
//! Invariants:
//! - The mask is set before the thread begins, so there is no moment in which it takes a signal.
//! - What the thread itself does wrong (`SIGSEGV`, `SIGBUS` and the like) is heard: kept back, it would end the
//!   process without the handler that reports it.
//! - No thread that runs the program's code is started here: it, and the processes it starts, would have the
//!   mask.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of that name that takes no signal.
pub fn spawn_quietly(
    name: &str,
    stack_bytes: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let thread = Builder::new().name(name.into()).stack_size(stack_bytes);
    without_signals(|| thread.spawn(work))
}

/// Runs `start` with signals kept back, which a thread that it starts inherits.
#[cfg(unix)]
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;
    use std::ptr;

    /// What a thread is sent for something that it has done itself.
    const OWN_FAULTS: [libc::c_int; 6] = [
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGSEGV,
        libc::SIGSYS,
        libc::SIGTRAP,
    ];

    let mut kept_back = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the sets are filled in by these calls, which fail only where told to do something unknown.
    unsafe {
        libc::sigfillset(kept_back.as_mut_ptr());
        for signal in OWN_FAULTS {
            libc::sigdelset(kept_back.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, kept_back.as_ptr(), before.as_mut_ptr());
    }
    let started = start();
    // SAFETY: filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    started
}

#[cfg(not(unix))]
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}
