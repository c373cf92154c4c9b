//! Who holds the GIL while SQLite works.
//!
//! - A short statement runs **with** it: a query, and a data modification inside a transaction that
//!   has the write lock. Giving the GIL up costs little by itself; but beside a busy thread each
//!   time it is had again only a switch interval (5 ms) later.
//! - After about a millisecond it is let go all the same, between two rows (`Hold`) or in the middle
//!   of one (`on_progress`); and in mid-statement whenever SQLite is about to wait, for a lock or for
//!   the disk (`on_waiting`).
//! - What is made for waiting runs **without** it: opening, preparing, BEGIN, COMMIT, a data
//!   modification that commits, closing.
//! - Threads that run many short statements take turns (`baton.rs`).
//! - A statement that works or waits for long on the main thread takes the GIL every now and then to
//!   let signal handlers run, so Ctrl-C ends it (`is_signalled`).
//! - The connection's lock is never *waited for* with the GIL held. Its holder may be waiting for
//!   the GIL.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxlite_core::{Connection as Core, LockError};
use oxlite_sqlite::{BackupTarget, Glance, Locked};
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::exceptions::ProgrammingError;

/// How long SQLite may go on working with the GIL held.
const HOLD_AT_MOST: Duration = Duration::from_millis(1);

/// About how many instructions of SQLite's virtual machine go by between two calls of
/// `on_progress`: some tens of microseconds.
pub(crate) const PROGRESS_OPERATIONS: i32 = 2000;

/// What may cross into `Python::detach`, which asks for `Send` as a stand-in for "touches no Python
/// object".
struct Crossing<T>(T);

// SAFETY: private to this module, and given guards of connections alone, by `detached`, `detached_pair`,
// `detached_to_the_end` and `wait_for`.
// They are not sent anywhere: the closure runs on this very thread before `detach` returns. And
// they touch no Python object: neither `oxlite-core` nor `oxlite-sqlite` knows Python, and a `Py`
// dropped inside them (a statement's note) is put aside by PyO3 until the GIL is back.
unsafe impl<T> Send for Crossing<T> {}

/// Whether the interpreter is ending: this is its main thread then, no other goes on in Python any
/// more, and the GIL once let go cannot be had again.
pub(crate) fn is_ending() -> bool {
    // SAFETY: may always be called.
    unsafe { ffi::Py_IsInitialized() == 0 }
}

/// How long to wait for something that another thread has: while the interpreter is ending not at all,
/// since that thread goes on no more.
pub(crate) fn patience(_py: Python<'_>, timeout: Duration) -> Duration {
    match is_ending() {
        true => Duration::ZERO,
        false => timeout,
    }
}

/// Runs `work`, which touches no Python object, without the GIL; while the interpreter is ending, with
/// it.
pub(crate) fn without<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    if is_ending() {
        return work();
    }
    py.detach(work)
}

/// For what is done when an object goes: runs `work` with the GIL, with the exception that may be on
/// its way put aside. Nothing is done where there is no interpreter any more.
pub(crate) fn at_the_end(work: impl FnOnce(Python<'_>)) {
    Python::try_attach(|py| {
        let pending = Pending::take(py);
        work(py);
        // Nobody called, so nobody can be told of what a callback has raised.
        if let Some(kept) = take_kept() {
            kept.write_unraisable(py, None);
        }
        pending.put_back(py);
    });
}

/// The exception that is on its way, if any. PyO3's own way would raise a panic that is on its way anew.
#[cfg(Py_3_12)]
struct Pending(*mut ffi::PyObject);

#[cfg(Py_3_12)]
impl Pending {
    fn take(_py: Python<'_>) -> Self {
        // SAFETY: the GIL is held; what is set, if anything, is then ours.
        Self(unsafe { ffi::PyErr_GetRaisedException() })
    }

    fn put_back(self, _py: Python<'_>) {
        // SAFETY: the GIL is held; as taken, given back once.
        unsafe { ffi::PyErr_SetRaisedException(self.0) };
    }
}

/// The exception that is on its way, if any: its class, itself, its traceback.
#[cfg(not(Py_3_12))]
struct Pending([*mut ffi::PyObject; 3]);

#[cfg(not(Py_3_12))]
impl Pending {
    fn take(_py: Python<'_>) -> Self {
        let [mut class, mut value, mut traceback] = [std::ptr::null_mut(); 3];
        // SAFETY: the GIL is held; three places for what is set, if anything, which is then ours.
        unsafe { ffi::PyErr_Fetch(&raw mut class, &raw mut value, &raw mut traceback) };
        Self([class, value, traceback])
    }

    fn put_back(self, _py: Python<'_>) {
        let [class, value, traceback] = self.0;
        // SAFETY: the GIL is held; as taken, given back once.
        unsafe { ffi::PyErr_Restore(class, value, traceback) };
    }
}

/// Runs `work` on a locked connection without the GIL. What it captures is `Send`, so it holds no
/// Python token.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    locked: &Locked<'_>,
    work: impl FnOnce(&Locked<'_>) -> T + Send,
) -> T {
    let locked = Crossing(locked);
    without(py, move || {
        // Moved as a whole: closures capture fields, and the field alone is not `Send`.
        let locked = locked;
        work(locked.0)
    })
}

/// Like [`detached`], on the two locked connections of a backup.
pub(crate) fn detached_pair<'c, Target: ConnectionGuard, T: Send>(
    py: Python<'_>,
    source: Locked<'c>,
    target: Target,
    work: impl FnOnce(Locked<'c>, Target) -> T + Send,
) -> T {
    let pair = Crossing((source, target));
    without(py, move || {
        let pair = pair;
        let (source, target) = pair.0;
        work(source, target)
    })
}

/// What a connection can be locked with.
pub(crate) trait ConnectionGuard {}
impl ConnectionGuard for Locked<'_> {}
impl ConnectionGuard for Glance<'_> {}
impl ConnectionGuard for BackupTarget<'_> {}

/// Like [`detached`], for work that lets go of the connection before it ends.
pub(crate) fn detached_to_the_end<'c, T: Send>(
    py: Python<'_>,
    locked: Locked<'c>,
    work: impl FnOnce(Locked<'c>) -> T + Send,
) -> T {
    let locked = Crossing(locked);
    without(py, move || {
        let locked = locked;
        work(locked.0)
    })
}

/// Closes a connection without the GIL: the last one of a file runs a checkpoint.
pub(crate) fn close(py: Python<'_>, core: &Core, locked: Locked<'_>) -> oxlite_core::Result<()> {
    detached_to_the_end(py, locked, |locked| core.close(locked))
}

/// Hands a connection over without the GIL: a transaction that is open is rolled back.
pub(crate) fn hand_over(py: Python<'_>, core: &Core, locked: Locked<'_>) -> Option<Core> {
    detached_to_the_end(py, locked, |locked| core.hand_over(locked))
}

/// Waits for the connection's lock without the GIL. Refused while the interpreter is ending: whoever
/// has it goes on no more.
pub(crate) fn wait_for<'c>(
    py: Python<'_>,
    core: &'c Core,
) -> PyResult<Result<Locked<'c>, LockError>> {
    wait(py, || core.lock())
}

/// Like [`wait_for`], only to look.
pub(crate) fn wait_to_glance<'c>(
    py: Python<'_>,
    core: &'c Core,
) -> PyResult<Result<Glance<'c>, LockError>> {
    wait(py, || core.glance())
}

/// Like [`wait_for`], for the target of a backup.
pub(crate) fn wait_for_target<'c>(
    py: Python<'_>,
    core: &'c Core,
) -> PyResult<Result<BackupTarget<'c>, LockError>> {
    wait(py, || core.lock_as_backup_target())
}

fn wait<Guard: ConnectionGuard>(
    py: Python<'_>,
    lock: impl FnOnce() -> Result<Guard, LockError> + Send,
) -> PyResult<Result<Guard, LockError>> {
    if is_ending() {
        return Err(ProgrammingError::new_err(
            "The interpreter is ending, in the middle of another thread's use of this connection.",
        ));
    }
    Ok(py.detach(|| Crossing(lock())).0)
}

/// What this thread does with the GIL while it steps.
#[derive(Clone, Copy)]
enum Holding {
    /// It does not step, or steps without the GIL.
    No,
    /// It steps with the GIL; the clock has not been read.
    Unwatched,
    /// It steps with the GIL, at least since then.
    Since(Instant),
    /// It has let the GIL go in mid-step; this gets it back.
    LetGo(*mut ffi::PyThreadState),
}

thread_local! {
    static HOLDING: Cell<Holding> = const { Cell::new(Holding::No) };
}

/// Takes the GIL back, if it was let go, when a step ends in whatever way.
struct TakeBack<'t>(&'t Cell<Holding>);

impl Drop for TakeBack<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Holding::LetGo(thread_state) = self.0.replace(Holding::No) {
            // SAFETY: saved by `on_progress` on this thread, restored once.
            unsafe { ffi::PyEval_RestoreThread(thread_state) };
        }
    }
}

/// Runs `work`, a step that touches no Python object, with the GIL, which `on_progress` lets go if
/// it takes long.
#[inline]
fn holding<T>(_py: Python<'_>, work: impl FnOnce() -> T) -> T {
    // Looked for once: in a shared library that is a call.
    HOLDING.with(|holding| {
        holding.set(Holding::Unwatched);
        let _take_back = TakeBack(holding);
        work()
    })
}

/// Runs `work`, a callback from SQLite into Python, with the GIL, whatever the step that called it
/// does with it.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    let holding = HOLDING.replace(Holding::No);
    if let Holding::LetGo(thread_state) = holding {
        // SAFETY: saved by `on_progress` on this thread; restored once, since `HOLDING` no longer
        // has it.
        unsafe { ffi::PyEval_RestoreThread(thread_state) };
    }
    /// Puts back what the interrupted step does, also if `work` panics.
    struct PutBack(Holding);
    impl Drop for PutBack {
        fn drop(&mut self) {
            HOLDING.set(self.0);
        }
    }
    let _put_back = PutBack(match holding {
        // The step goes on with the GIL, which may be let go again.
        Holding::LetGo(_) => Holding::Unwatched,
        other => other,
    });
    Python::attach(work)
}

/// Called by SQLite every so often in the middle of a step: lets the GIL go when this step has held
/// it for long.
pub(crate) fn on_progress() {
    match HOLDING.get() {
        Holding::Unwatched => HOLDING.set(Holding::Since(Instant::now())),
        Holding::Since(since) if since.elapsed() >= HOLD_AT_MOST && !is_ending() => {
            // SAFETY: this thread holds the GIL (`holding` was entered with it and nothing has let
            // it go since), and calls no Python until `TakeBack` or `attached` restores it: between
            // here and there run only SQLite and Rust code of the two inner crates.
            HOLDING.set(Holding::LetGo(unsafe { ffi::PyEval_SaveThread() }));
        }
        Holding::No | Holding::Since(_) | Holding::LetGo(_) => {}
    }
}

/// How often a long statement lets signal handlers run.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The identity of the thread that runs signal handlers.
static MAIN_THREAD: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// When signal handlers were last let run in mid-statement.
    static LOOKED_FOR_SIGNALS: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Whether signal handlers are being run in mid-statement.
    static IN_SIGNAL_HANDLERS: Cell<bool> = const { Cell::new(false) };
    /// What a signal handler has raised in mid-statement.
    static SIGNALLED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Whether that is anything.
    static IS_SIGNALLED: Cell<bool> = const { Cell::new(false) };
}

/// Refuses an interpreter whose GIL has been switched off by force (`PYTHON_GIL=0`): what is behind `GilCell` and
/// `GilOnce` would be used by several threads at once.
pub(crate) fn refuse_without_gil(py: Python<'_>) -> PyResult<()> {
    let is_on = match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        Some(is_enabled) => is_enabled.call0()?.is_truthy()?,
        None => true,
    };
    if is_on {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "Oxlite needs the GIL, which this Python was told to do without: start it without PYTHON_GIL=0 and \
         -X gil=0, and the import turns the GIL on (docs/free-threads.md)",
    ))
}

/// Refuses any interpreter but the main one: its classes and what users have registered are kept once in
/// a process, and the turns of threads are those at one GIL.
pub(crate) fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: the GIL is held, so there is a current interpreter, and there is always a main one.
    let is_main = unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() };
    if is_main {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "Oxlite works in the main interpreter of a process only, not in subinterpreters: use threads, \
         or processes",
    ))
}

/// Notes which thread runs signal handlers.
pub(crate) fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    let main_thread = py.import("threading")?.call_method0("main_thread")?;
    MAIN_THREAD.store(main_thread.getattr("ident")?.extract()?, Ordering::Relaxed);
    Ok(())
}

/// The identity of this thread, as `threading.get_ident()` gives it.
#[inline]
pub(crate) fn current_thread() -> u64 {
    // SAFETY: takes nothing, touches no Python object.
    unsafe { ffi::PyThread_get_thread_ident() as u64 }
}

/// Asked while a statement works or waits: whether a signal handler has raised an exception. The
/// statement is then interrupted, and `take_signalled` has the exception.
pub(crate) fn is_signalled() -> bool {
    if current_thread() != MAIN_THREAD.load(Ordering::Relaxed) {
        return false;
    }
    let now = Instant::now();
    match LOOKED_FOR_SIGNALS.get() {
        Some(looked) if now.duration_since(looked) < SIGNALS_EVERY => return false,
        _ => LOOKED_FOR_SIGNALS.set(Some(now)),
    }
    attached(|py| {
        IN_SIGNAL_HANDLERS.set(true);
        let outcome = py.check_signals();
        IN_SIGNAL_HANDLERS.set(false);
        match outcome {
            Ok(()) => false,
            Err(raised) => {
                keep_for_caller(raised);
                true
            }
        }
    })
}

/// Whether this is a signal handler that a statement has let run.
pub(crate) fn is_in_signal_handler() -> bool {
    IN_SIGNAL_HANDLERS.get()
}

/// Keeps an exception that has come up in mid-statement and is none of the statement's own, such as
/// `KeyboardInterrupt`; whoever runs the statement raises it.
pub(crate) fn keep_for_caller(raised: PyErr) {
    IS_SIGNALLED.set(true);
    // The first one is the cause of those that follow.
    SIGNALLED.with_borrow_mut(|kept| {
        kept.get_or_insert(raised);
    });
}

/// The exception that was kept in mid-statement.
#[inline]
pub(crate) fn take_kept() -> Option<PyErr> {
    match IS_SIGNALLED.get() {
        true => take_kept_now(),
        false => None,
    }
}

#[cold]
fn take_kept_now() -> Option<PyErr> {
    IS_SIGNALLED.set(false);
    SIGNALLED.take()
}

/// Raises the exception that was kept in mid-statement, though the statement has ended well.
#[inline]
pub(crate) fn raise_kept() -> PyResult<()> {
    match take_kept() {
        Some(raised) => Err(raised),
        None => Ok(()),
    }
}

/// Called when SQLite is about to wait in the middle of a step: lets the GIL go if it is held.
pub(crate) fn on_waiting() {
    if matches!(HOLDING.get(), Holding::Unwatched | Holding::Since(_)) && !is_ending() {
        // SAFETY: as in `on_progress`.
        HOLDING.set(Holding::LetGo(unsafe { ffi::PyEval_SaveThread() }));
    }
}

/// Runs one step with the GIL, which is let go if it takes long or waits.
#[inline]
pub(crate) fn held<T: Send>(
    py: Python<'_>,
    locked: &Locked<'_>,
    work: impl FnOnce(&Locked<'_>) -> T + Send,
) -> T {
    holding(py, || work(locked))
}

/// A run of steps that hold the GIL, interrupted when it has become too long.
///
/// The clock is not read at every step: in a fetch of 100 short rows that was a sixth of the time.
/// As long as steps prove short, twice as many go by before the next look; one slow stretch and
/// every step is looked at again. A lone step, the common `fetchone`, never asks the clock.
pub(crate) struct Hold {
    /// Steps to go before the clock is read.
    unwatched: u32,
    /// How many steps went by between the latest two looks.
    stride: u32,
    /// When the hold was first seen, and when the clock was last read.
    watch: Option<(Instant, Instant)>,
}

/// No more steps than this go by unwatched.
const STRIDE_AT_MOST: u32 = 64;

impl Default for Hold {
    fn default() -> Self {
        Self {
            unwatched: 1,
            stride: 1,
            watch: None,
        }
    }
}

impl Hold {
    /// Runs one more step, with the GIL or, if that has become too long, without.
    #[inline]
    pub(crate) fn step<T: Send>(
        &mut self,
        py: Python<'_>,
        locked: &Locked<'_>,
        work: impl FnOnce(&Locked<'_>) -> T + Send,
    ) -> T {
        if self.unwatched > 0 {
            self.unwatched -= 1;
        } else if self.is_too_long() {
            *self = Self::default();
            return detached(py, locked, work);
        }
        holding(py, || work(locked))
    }

    fn is_too_long(&mut self) -> bool {
        let now = Instant::now();
        let (began, looked) = self.watch.unwrap_or((now, now));
        if now.duration_since(began) >= HOLD_AT_MOST {
            return true;
        }
        let steps_are_short = now.duration_since(looked) < HOLD_AT_MOST / 16;
        self.stride = match steps_are_short {
            true => (self.stride * 2).min(STRIDE_AT_MOST),
            false => 1,
        };
        self.unwatched = self.stride - 1;
        self.watch = Some((began, now));
        false
    }
}
