//! All orders in which threads can meet at a `ReentrantMutex`.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::ReentrantMutex;

/// A count that loom sees being touched.
struct Count(UnsafeCell<u32>);

// SAFETY: what loom is asked here is whether this is so: it fails on two threads at once.
unsafe impl Send for Count {}

fn explore(threads: usize, times: u32) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let mutex = Arc::new(ReentrantMutex::new(Count(UnsafeCell::new(0))));
        let work = move |mutex: &ReentrantMutex<Count>| {
            for _ in 0..times {
                let outer = mutex.lock();
                let inner = mutex.lock();
                drop(outer);
                // SAFETY: as above.
                inner.0.with_mut(|count| unsafe { *count += 1 });
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let mutex = Arc::clone(&mutex);
                thread::spawn(move || work(&mutex))
            })
            .collect();
        work(&mutex);
        for other in others {
            other.join().expect("the model has failed");
        }
        let guard = mutex
            .try_lock()
            .expect("nobody has it, and it is kept for nobody");
        let all = u32::try_from(threads).expect("few") * times;
        // SAFETY: as above.
        guard.0.with(|count| assert_eq!(unsafe { *count }, all));
    });
}

#[test]
fn two_threads_come_and_go() {
    explore(2, 2);
}

#[test]
fn three_threads_meet() {
    explore(3, 1);
}
