//! All orders in which a few threads can lend, give back and close. No thread may ever need the time to
//! pass in order to go on: whatever it waits for is told.

use super::*;
use crate::sync::model::{explore, run};

type Work = Box<dyn FnOnce() + Send>;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(10);

const NEVER: fn(Duration) -> bool = |_| false;

/// A pool with one thing, and who uses it.
fn thread(pool: &Arc<Pool<u32>>, work: impl FnOnce(&Pool<u32>) + Send + 'static) -> Work {
    let pool = Arc::clone(pool);
    Box::new(move || work(&pool))
}

fn borrow(pool: &Pool<u32>) {
    let thing = pool.take(LONG, || true).expect("comes back");
    assert_eq!(pool.give(thing), None);
}

fn assert_all_is_back(pool: &Pool<u32>, count: usize) {
    let PoolStatistics {
        idle,
        lent,
        waiting,
    } = pool.statistics();
    assert_eq!((idle, lent, waiting), (count, 0, 0));
}

#[test]
fn what_comes_back_reaches_whoever_waits() {
    explore(4, || {
        let pool = Arc::new(Pool::new(vec![7]));
        let threads = (0..3).map(|_| thread(&pool, borrow)).collect();
        run((0, SHORT), NEVER, threads);
        assert_all_is_back(&pool, 1);
    });
}

#[test]
fn a_timeout_loses_nothing_that_is_handed_over() {
    explore(3, || {
        let pool = Arc::new(Pool::new(vec![7]));
        let lent = pool.take(LONG, || true).expect("idle");
        let hasty = |pool: &Pool<u32>| match pool.take(SHORT, || true) {
            Ok(thing) => assert_eq!(pool.give(thing), None),
            Err(reason) => assert_eq!(reason, PoolError::TimedOut),
        };
        let threads = vec![
            thread(&pool, hasty),
            thread(&pool, borrow),
            thread(&pool, move |pool| assert_eq!(pool.give(lent), None)),
        ];
        run((1, SHORT), NEVER, threads);
        assert_all_is_back(&pool, 1);
    });
}

#[test]
fn closing_reaches_everybody_and_loses_nothing() {
    explore(4, || {
        let pool = Arc::new(Pool::new(vec![7]));
        let disposed = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let dispose = {
            let disposed = Arc::clone(&disposed);
            move |count: usize| {
                disposed.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let user = || {
            let dispose = dispose.clone();
            thread(&pool, move |pool| match pool.take(LONG, || true) {
                Ok(thing) => dispose(pool.give(thing).iter().count()),
                Err(reason) => assert_eq!(reason, PoolError::Closed),
            })
        };
        let closer = {
            let dispose = dispose.clone();
            thread(&pool, move |pool| {
                dispose(pool.close().len());
                assert!(pool.wait_for_all(LONG, || true));
            })
        };
        let threads = vec![user(), user(), closer];
        run((0, SHORT), NEVER, threads);
        assert_all_is_back(&pool, 0);
        assert_eq!(disposed.load(std::sync::atomic::Ordering::Relaxed), 1);
    });
}
