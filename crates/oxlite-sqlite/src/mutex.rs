//! Locks between threads whose whole state is in themselves, so that a forked child can have its own.
//!
//! Locks that park their waiters in a table of the process (as those of `parking_lot` do) cannot be used
//! by who may be forked: the child inherits the table with the parent's waiters in it, whose memory is
//! used again by the child's threads, and perhaps with a part of it locked for ever. The standard
//! library's wait at their own address. Two things are added to them here: a mutex whose holder has
//! panicked is as good as any, and one can be locked again by the thread that has it.
//!
//! Invariants:
//! - A lock that nobody had at a fork works in the child; one that somebody had is never asked there.
//! - [`ReentrantMutex::owner`] is the thread that has a guard, or says that nobody has one.
//! - Who waits long is given the mutex by the next who lets it go: nobody waits for ever while others come
//!   and go.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, loom))]
use loom::sync::{self, atomic};
#[cfg(not(all(test, loom)))]
use std::sync::{self, atomic};

use atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

/// A mutual exclusion (<https://doc.rust-lang.org/std/sync/struct.Mutex.html>), never poisoned.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// The mutex is locked while this lives.
#[derive(Debug)]
pub struct MutexGuard<'m, T>(
    /// `None` only while [`Condvar::wait_for`] has it.
    Option<std::sync::MutexGuard<'m, T>>,
);

impl<T> Mutex<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Locks it, waiting while another thread has it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Locks it, unless somebody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard))),
            Err(std::sync::TryLockError::Poisoned(error)) => {
                Some(MutexGuard(Some(error.into_inner())))
            }
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// What it protects; who has the mutex for himself need not lock it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().expect("nobody waits with a guard in use")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0
            .as_deref_mut()
            .expect("nobody waits with a guard in use")
    }
}

/// A condition that threads wait for (<https://doc.rust-lang.org/std/sync/struct.Condvar.html>).
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// One that nobody waits for.
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    /// Waits to be notified, at most for so long and perhaps without a reason, with the mutex unlocked.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, at_most: Duration) {
        let held = guard.0.take().expect("nobody waits with a guard in use");
        let (held, _) = self
            .0
            .wait_timeout(held, at_most)
            .unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
    }

    /// Wakes one of those who wait.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Nobody has it.
const FREE: usize = 0;

/// Nobody has it, and it is for one of those who wait. No thread's number: those are addresses.
const FOR_WHO_WAITS: usize = 1;

/// Who has waited longer than this is given the mutex. Giving it away costs the time in which the other
/// thread wakes up (some 50 us), so it is not done each time.
#[cfg(not(all(test, loom)))]
const PATIENCE: Duration = Duration::from_micros(500);
#[cfg(all(test, loom))]
const PATIENCE: Duration = Duration::ZERO;

/// A mutex that the thread which has it can lock again; what it protects is therefore only read, or has
/// cells.
pub(crate) struct ReentrantMutex<T> {
    /// The number of the thread that has it, or one of the two above.
    owner: AtomicUsize,
    /// Guards alive beyond the first. Touched only by the owner.
    more: Cell<u32>,
    /// How many threads wait, each of which adds itself before it looks at `owner` a last time.
    waiting: AtomicU32,
    /// One of those has done so for long. Changed by who has `waiters`.
    is_impatient: AtomicBool,
    waiters: sync::Mutex<()>,
    released: sync::Condvar,
    value: T,
}

// SAFETY: `value` is reached through a guard alone, so by the owner alone, as is `more`; everything else
// is Sync by itself.
unsafe impl<T: Send> Sync for ReentrantMutex<T> {}

/// The mutex is this thread's while this lives.
pub(crate) struct ReentrantMutexGuard<'m, T> {
    mutex: &'m ReentrantMutex<T>,
    /// Not `Send`: another thread is not the owner.
    _of_one_thread: PhantomData<*const ()>,
}

/// A number that no other living thread has.
#[inline]
fn this_thread() -> usize {
    #[cfg(not(all(test, loom)))]
    thread_local! {
        static PLACE: u16 = const { 0 };
    }
    #[cfg(all(test, loom))]
    loom::thread_local! {
        static PLACE: u16 = 0;
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

impl<T> ReentrantMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            owner: AtomicUsize::new(FREE),
            more: Cell::new(0),
            waiting: AtomicU32::new(0),
            is_impatient: AtomicBool::new(false),
            waiters: sync::Mutex::new(()),
            released: sync::Condvar::new(),
            value,
        }
    }

    /// Locks it, waiting while another thread has it.
    #[inline]
    pub(crate) fn lock(&self) -> ReentrantMutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// Locks it, unless another thread has it or is about to be given it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<ReentrantMutexGuard<'_, T>> {
        let me = this_thread();
        match self.take(FREE, me) {
            Ok(_) => Some(self.guard()),
            // Nobody else writes this thread's number, so it is no news of another thread's.
            Err(owner) if owner == me => {
                self.more.set(self.more.get() + 1);
                Some(self.guard())
            }
            Err(_) => None,
        }
    }

    /// What it protects; who has the mutex for himself need not lock it.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    #[inline]
    fn take(&self, from: usize, me: usize) -> Result<usize, usize> {
        self.owner
            .compare_exchange(from, me, Ordering::Acquire, Ordering::Relaxed)
    }

    fn guard(&self) -> ReentrantMutexGuard<'_, T> {
        ReentrantMutexGuard {
            mutex: self,
            _of_one_thread: PhantomData,
        }
    }

    #[cold]
    fn wait(&self) -> ReentrantMutexGuard<'_, T> {
        let me = this_thread();
        let since = Instant::now();
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // Said before looking at the owner, who looks here after letting go: one of them sees the other.
        fence(Ordering::SeqCst);
        while self.take(FREE, me).is_err() && self.take(FOR_WHO_WAITS, me).is_err() {
            if since.elapsed() >= PATIENCE {
                self.is_impatient.store(true, Ordering::Relaxed);
            }
            waiters = self
                .released
                .wait(waiters)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        // Others who are impatient say so again when they are woken next.
        self.is_impatient.store(false, Ordering::Relaxed);
        self.guard()
    }

    #[inline]
    fn release(&self) {
        // Who is impatient waits until he has it, so it is not kept for nobody.
        let next = match self.is_impatient.load(Ordering::Relaxed) {
            true => FOR_WHO_WAITS,
            false => FREE,
        };
        // The exchange is one barrier less than a store and a fence. In the order of all that is sequentially
        // consistent it comes before the look at who waits; who waits has its fence in between as well.
        self.owner.swap(next, Ordering::SeqCst);
        // Of loom's, which takes an exchange for less than that.
        #[cfg(all(test, loom))]
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        // With the waiters' mutex, since one of them may have looked at the owner and not yet wait.
        let _waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        self.released.notify_one();
    }
}

impl<T> Deref for ReentrantMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.mutex.value
    }
}

impl<T> Drop for ReentrantMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.mutex.more.get() {
            0 => self.mutex.release(),
            more => self.mutex.more.set(more - 1),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;

    #[test]
    fn one_thread_has_it_as_often_as_it_likes_and_no_other_meanwhile() {
        let mutex = &ReentrantMutex::new(Cell::new(0));
        let first = mutex.lock();
        let second = mutex.try_lock().expect("this thread's");
        drop(first);
        thread::scope(|scope| {
            scope.spawn(|| assert!(mutex.try_lock().is_none()));
        });
        second.set(1);
        drop(second);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(mutex.lock().get(), 1));
        });
    }

    #[test]
    fn threads_that_come_and_go_count_each_time() {
        let mutex = &ReentrantMutex::new(Cell::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let outer = mutex.lock();
                        let inner = mutex.lock();
                        inner.set(outer.get() + 1);
                    }
                });
            }
        });
        assert_eq!(mutex.lock().get(), 80_000);
    }

    #[test]
    fn one_who_comes_back_at_once_does_not_keep_others_out() {
        let mutex = &ReentrantMutex::new(());
        let turns = &AtomicU64::new(0);
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _guard = mutex.lock();
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
            while turns.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            // Each of these would wait for a stroke of luck.
            for _ in 0..100 {
                drop(mutex.lock());
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_holder_who_panicked_leaves_it_as_good_as_any() {
        let mutex = &Mutex::new(1);
        let reentrant = &ReentrantMutex::new(());
        let ended = thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _guards = (mutex.lock(), reentrant.lock());
                    panic!("meant");
                })
                .join()
        });
        assert!(ended.is_err());
        *mutex.lock() += 1;
        assert_eq!(*mutex.try_lock().expect("free"), 2);
        assert!(reentrant.try_lock().is_some());
    }

    #[test]
    fn a_wait_ends_with_a_notice_or_with_its_time() {
        let (mutex, changed) = &(Mutex::new(false), Condvar::new());
        thread::scope(|scope| {
            let mut is_done = mutex.lock();
            changed.wait_for(&mut is_done, Duration::from_millis(1));
            assert!(!*is_done);
            scope.spawn(|| {
                *mutex.lock() = true;
                changed.notify_one();
                changed.notify_all();
            });
            while !*is_done {
                changed.wait_for(&mut is_done, Duration::from_secs(60));
            }
        });
    }
}
