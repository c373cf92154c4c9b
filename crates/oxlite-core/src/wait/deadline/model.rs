//! All orders in which sleepers are woken: none sleeps on.

use std::sync::Arc;

use super::*;
use crate::sync::model::{explore, run};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn whoever_is_interrupted_wakes_up() {
    explore(3, || {
        let deadline = Arc::new(Deadline::new(|| false));
        let interrupted = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let sleeper = |number: usize| {
            let (deadline, interrupted) = (Arc::clone(&deadline), Arc::clone(&interrupted));
            Box::new(move || {
                let is_interrupted = || interrupted[number].load(Ordering::Acquire);
                while !is_interrupted() {
                    deadline.sleep(LONG, is_interrupted);
                }
            }) as Box<dyn FnOnce() + Send>
        };
        let threads = vec![sleeper(0), sleeper(1), {
            let (deadline, interrupted) = (Arc::clone(&deadline), Arc::clone(&interrupted));
            Box::new(move || {
                for flag in &*interrupted {
                    flag.store(true, Ordering::Release);
                    deadline.wake();
                }
            })
        }];
        run((0, LONG), |_| false, threads);
    });
}
