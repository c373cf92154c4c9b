//! All orders in which a reader and who lets marks go can meet at one.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::{FIRST_BYTE, Mark};

/// The kernel's lock of the process on each byte: a call replaces what it had.
#[derive(Default)]
struct Kernel {
    locked: [AtomicU32; 2],
}

impl Kernel {
    fn of(&self, byte: i64) -> &AtomicU32 {
        &self.locked[usize::try_from(byte - FIRST_BYTE).expect("one of the two")]
    }

    fn lock(&self, byte: i64) {
        self.of(byte).store(1, Ordering::SeqCst);
    }

    fn unlock(&self, byte: i64) {
        self.of(byte).store(0, Ordering::SeqCst);
    }

    fn has(&self, byte: i64) -> bool {
        self.of(byte).load(Ordering::SeqCst) == 1
    }
}

/// As the `fcntl` of SQLite's does it.
fn read(mark: &Mark, kernel: &Kernel, byte: i64) {
    match mark.take(|_| true) {
        Some(kept) if kept == byte => {}
        other => {
            if let Some(other) = other {
                kernel.unlock(other);
            }
            kernel.lock(byte);
        }
    }
    assert!(kernel.has(byte), "it reads with its lock");
    thread::yield_now();
    assert!(kernel.has(byte), "nobody has taken it away");
    if !mark.keep(byte) {
        kernel.unlock(byte);
    }
}

fn explore(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn a_reader_meets_who_lets_go() {
    explore(|| {
        let (mark, kernel) = (Arc::new(Mark::default()), Arc::new(Kernel::default()));
        mark.watch();
        let keeper = {
            let (mark, kernel) = (Arc::clone(&mark), Arc::clone(&kernel));
            thread::spawn(move || {
                for _ in 0..2 {
                    let _ = mark.is_hot(|byte| kernel.unlock(byte));
                }
            })
        };
        read(&mark, &kernel, FIRST_BYTE);
        read(&mark, &kernel, FIRST_BYTE);
        read(&mark, &kernel, FIRST_BYTE + 1);
        keeper.join().expect("the model has failed");
        // Nothing is left behind: two looks without a reader in between, and it is let go.
        let _ = mark.is_hot(|byte| kernel.unlock(byte));
        let _ = mark.is_hot(|byte| kernel.unlock(byte));
        assert!(!kernel.has(FIRST_BYTE) && !kernel.has(FIRST_BYTE + 1));
    });
}

#[test]
fn a_reader_meets_the_end_of_keeping() {
    explore(|| {
        let (mark, kernel) = (Arc::new(Mark::default()), Arc::new(Kernel::default()));
        mark.watch();
        let waiter = {
            let (mark, kernel) = (Arc::clone(&mark), Arc::clone(&kernel));
            thread::spawn(move || mark.let_go(|byte| kernel.unlock(byte)))
        };
        let keeper = {
            let (mark, kernel) = (Arc::clone(&mark), Arc::clone(&kernel));
            thread::spawn(move || mark.unwatch(|byte| kernel.unlock(byte)))
        };
        read(&mark, &kernel, FIRST_BYTE);
        read(&mark, &kernel, FIRST_BYTE);
        for other in [waiter, keeper] {
            other.join().expect("the model has failed");
        }
        assert!(!kernel.has(FIRST_BYTE), "who ends it leaves nothing kept");
        assert!(!mark.is_watched());
    });
}
