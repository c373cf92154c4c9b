//! Locks and time under loom, which knows no timeouts: a clock that the model moves.
//!
//! Invariants:
//! - Time stands still but for *early* ticks, which come at every possible moment and of which a model
//!   has a fixed number, and *late* ones, when every thread of the model waits with a timeout. An early
//!   tick is an unlucky schedule; a late one means that nothing but the passing of time could help, which
//!   in most models is a lost wake-up.
//! - A late tick reaches the earliest timeout.
//! - Who waits is known to loom (the clock's mutex), so it leaves out no order of waking and timing out.

use std::ops::{Add, Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use loom::sync::atomic;

type MayTick = dyn Fn(Duration) -> bool + Send + Sync;
pub(crate) type Work = Box<dyn FnOnce() + Send>;

loom::lazy_static! {
    static ref CLOCK: Clock = Clock {
        // Not zero, so that a time never noted is long ago.
        now: atomic::AtomicU64::new(1_000_000_000),
        waits: loom::sync::Mutex::new(Waits::default()),
    };
}

struct Clock {
    /// Nanoseconds. Read without the mutex, since reading a real clock orders nothing either.
    now: atomic::AtomicU64,
    waits: loom::sync::Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    /// Threads that neither wait with a timeout nor have ended.
    running: usize,
    sleepers: Vec<Sleeper>,
    begun: u64,
    may_tick_late: Option<Arc<MayTick>>,
}

struct Sleeper {
    number: u64,
    condvar: usize,
    until: u64,
    woken: Arc<loom::sync::Condvar>,
}

/// Explores every interleaving of `model` with at most so many preemptions.
pub(crate) fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    let bound = builder.preemption_bound;
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!(
        "{}: {} interleavings, preemptions at most {bound:?}",
        std::thread::current().name().unwrap_or_default(),
        count.load(Ordering::Relaxed),
    );
}

/// Runs these threads to their ends, beside so many early ticks of `step` each. A late tick asks
/// `may_tick_late`, with its length, and fails the model if that denies it.
pub(crate) fn run(
    (ticks, step): (usize, Duration),
    may_tick_late: impl Fn(Duration) -> bool + Send + Sync + 'static,
    mut threads: Vec<Work>,
) {
    {
        let mut waits = CLOCK.waits.lock().expect("loom's are never poisoned");
        waits.running = threads.len();
        waits.may_tick_late = Some(Arc::new(may_tick_late));
    }
    let here = threads.pop().expect("a model has threads");
    let mut others: Vec<_> = threads
        .into_iter()
        .map(|work| loom::thread::spawn(move || to_its_end(work)))
        .collect();
    if ticks > 0 {
        others.push(loom::thread::spawn(move || {
            for _ in 0..ticks {
                let mut waits = CLOCK.waits.lock().expect("loom's are never poisoned");
                let to = now().saturating_add(nanoseconds(step));
                waits.tick(to);
            }
        }));
    }
    to_its_end(here);
    for other in others {
        other.join().expect("the model has failed");
    }
}

fn to_its_end(work: Work) {
    work();
    let mut waits = CLOCK.waits.lock().expect("loom's are never poisoned");
    waits.running -= 1;
    waits.tick_if_all_wait();
}

fn now() -> u64 {
    CLOCK.now.load(atomic::Ordering::Relaxed)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Waits {
    fn earliest(&self) -> Option<u64> {
        self.sleepers.iter().map(|sleeper| sleeper.until).min()
    }

    fn tick(&mut self, to: u64) {
        CLOCK.now.store(to, atomic::Ordering::Relaxed);
        self.wake(usize::MAX, |sleeper| sleeper.until <= to);
    }

    fn tick_if_all_wait(&mut self) {
        if self.running > 0 {
            return;
        }
        if let Some(earliest) = self.earliest() {
            let may_tick = self.may_tick_late.clone().expect("set by `run`");
            let step = Duration::from_nanos(earliest.saturating_sub(now()));
            assert!(may_tick(step), "only time could help: a lost wake-up");
            self.tick(earliest);
        }
    }

    fn wake(&mut self, at_most: usize, which: impl Fn(&Sleeper) -> bool) {
        for _ in 0..at_most {
            let Some(index) = self.sleepers.iter().position(&which) else {
                break;
            };
            self.running += 1;
            self.sleepers.remove(index).woken.notify_one();
        }
    }

    fn is_asleep(&self, number: u64) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.number == number)
    }
}

/// As `std::time::Instant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    pub(crate) fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    pub(crate) fn saturating_duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }
}

/// Takes no time: what others do meanwhile is explored anyway.
pub(crate) fn sleep(_duration: Duration) {}

/// As `oxlite_sqlite::Mutex`.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

pub(crate) struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    /// `None` while a condition is waited for.
    held: Option<loom::sync::MutexGuard<'m, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: self,
            held: self.0.lock().ok(),
        }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = self.0.try_lock().ok()?;
        Some(MutexGuard {
            mutex: self,
            held: Some(held),
        })
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("not waiting")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("not waiting")
    }
}

/// As `oxlite_sqlite::Condvar`. Known by its address, so it has a size.
pub(crate) struct Condvar(#[expect(dead_code, reason = "for its size")] u8);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(0)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) {
        let mut waits = CLOCK.waits.lock().expect("loom's are never poisoned");
        let number = waits.begun;
        let woken = Arc::new(loom::sync::Condvar::new());
        waits.begun += 1;
        waits.sleepers.push(Sleeper {
            number,
            condvar: self.address(),
            until: now().saturating_add(nanoseconds(timeout)),
            woken: Arc::clone(&woken),
        });
        guard.held = None;
        waits.running -= 1;
        waits.tick_if_all_wait();
        while waits.is_asleep(number) {
            waits = woken.wait(waits).expect("loom's are never poisoned");
        }
        drop(waits);
        guard.held = guard.mutex.0.lock().ok();
    }

    pub(crate) fn notify_one(&self) {
        self.notify(1);
    }

    pub(crate) fn notify_all(&self) {
        self.notify(usize::MAX);
    }

    fn notify(&self, at_most: usize) {
        let address = self.address();
        let mut waits = CLOCK.waits.lock().expect("loom's are never poisoned");
        waits.wake(at_most, |sleeper| sleeper.condvar == address);
    }
}
