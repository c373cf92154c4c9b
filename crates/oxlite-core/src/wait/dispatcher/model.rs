//! All orders in which a few threads can ask, work, borrow and give back. Whatever is asked for is done once,
//! and nothing waits while a member is idle. (Closing waits by the clock, which the threads that a
//! dispatcher begins would have to be known to: it is tested beside the code.)

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::sync::model::{explore, run};

type Work = Box<dyn FnOnce() + Send>;
type Counted = Dispatcher<u32, usize, Loan>;

const SHORT: Duration = Duration::from_millis(10);
const NEVER: fn(Duration) -> bool = |_| false;

/// Where a lent member is put.
struct Loan(Arc<Mutex<Option<u32>>>);

impl Borrower<u32> for Loan {
    fn lend(self, member: u32) -> Option<u32> {
        *self.0.lock() = Some(member);
        None
    }
}

fn counting(done: &Arc<AtomicUsize>) -> Arc<Counted> {
    let done = Arc::clone(done);
    Arc::new(Dispatcher::new(
        1,
        2,
        || 7,
        move |member, tasks: Vec<usize>| {
            done.fetch_add(tasks.into_iter().sum(), Ordering::Relaxed);
            (member, Vec::new())
        },
    ))
}

fn asking(dispatcher: &Arc<Counted>, task: usize, refused: &Arc<AtomicUsize>) -> Work {
    let (dispatcher, refused) = (Arc::clone(dispatcher), Arc::clone(refused));
    Box::new(move || {
        if let Err(Wanted::Task(task)) = dispatcher.submit(Wanted::Task(task)) {
            refused.fetch_add(task, Ordering::Relaxed);
        }
    })
}

/// Waits, as far as a model can, until no thread works any more.
fn until_idle(dispatcher: &Counted) {
    while dispatcher.statistics().working > 0 {
        loom::thread::yield_now();
    }
}

#[test]
fn what_is_asked_for_is_done_once() {
    explore(3, || {
        let done = Arc::<AtomicUsize>::default();
        let refused = Arc::<AtomicUsize>::default();
        let dispatcher = counting(&done);
        let threads = vec![
            asking(&dispatcher, 1, &refused),
            asking(&dispatcher, 10, &refused),
        ];
        run((0, SHORT), NEVER, threads);
        until_idle(&dispatcher);
        let statistics = dispatcher.statistics();
        assert_eq!((statistics.idle, statistics.waiting), (1, 0));
        assert_eq!(done.load(Ordering::Relaxed), 11);
    });
}

#[test]
fn what_comes_back_goes_on_to_what_waits() {
    explore(3, || {
        let done = Arc::<AtomicUsize>::default();
        let refused = Arc::<AtomicUsize>::default();
        let dispatcher = counting(&done);
        let lent = Arc::new(Mutex::new(None));
        let wish = Wanted::Member(Loan(Arc::clone(&lent)));
        assert!(dispatcher.submit(wish).is_ok());
        let giving: Work = {
            let dispatcher = Arc::clone(&dispatcher);
            Box::new(move || {
                let member = loop {
                    let member = lent.lock().take();
                    match member {
                        Some(member) => break member,
                        None => loom::thread::yield_now(),
                    }
                };
                assert_eq!(dispatcher.give(member), None);
            })
        };
        let threads = vec![giving, asking(&dispatcher, 1, &refused)];
        run((0, SHORT), NEVER, threads);
        until_idle(&dispatcher);
        let statistics = dispatcher.statistics();
        assert_eq!((statistics.idle, statistics.waiting), (1, 0));
        assert_eq!(statistics.lent, 0);
        assert_eq!(done.load(Ordering::Relaxed), 1);
    });
}
