//! What SQLite calls back: one slot for each kind, and the trampolines between C and closures.
//!
//! Invariants:
//! - SQLite is given the address of the `Callbacks` of its connection, which are boxed and stay where they
//!   are until the connection is closed, or, if it cannot be, until SQLite has forgotten them; they are used
//!   under its lock only, since SQLite calls back on the thread that is calling it.
//! - A trampoline takes a reference of its own to the closure before it calls it, so a callback may
//!   replace or remove itself.
//! - While a callback runs that SQLite forbids to use its connection, locking the connection fails.
//! - No panic unwinds into C: it counts as the answer that stops (see each setter).

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use libsqlite3_sys as ffi;

use crate::checkpoint::{Keeping, Wait};
use crate::commit_guard::Guarding;
use crate::connection::{Locked, TransactionState};
use crate::error::Result;
use crate::observer::Observed;
use crate::preupdate::PreupdateHook;
use crate::read_only::OnlyReading;
use crate::transaction_end::Ending;
use crate::usage::Usage;
use crate::write_queue;

/// Asked whether to go on waiting for a lock; `true` means: try again.
type BusyHandler = dyn Fn(&BusyWait<'_>) -> bool + Send;
/// Answers `SQLITE_OK`, `SQLITE_DENY` or `SQLITE_IGNORE`.
pub type Authorizer = dyn Fn(&Authorization<'_>) -> i32 + Send;
/// `true` interrupts the statement.
pub type ProgressHandler = dyn Fn() -> bool + Send;
/// Told of each statement that begins.
pub type Tracer = dyn Fn(Traced<'_>) + Send;
/// Told of each row that changes.
pub type UpdateHook = dyn Fn(&RowChange<'_>) + Send;
/// Told of each rollback.
pub type RollbackHook = dyn Fn() + Send;
/// Told the schema and the pages in its WAL; answers a result code.
pub type WalHook = dyn Fn(&str, u32) -> i32 + Send;
/// `true` turns the commit into a rollback.
pub type CommitHook = dyn Fn() -> bool + Send;

pub(crate) type Slot<F> = RefCell<Option<Rc<F>>>;

/// The closures of one connection.
#[derive(Default)]
pub(crate) struct Callbacks {
    /// The connection that calls back.
    database: Option<NonNull<ffi::sqlite3>>,
    pub(crate) busy: Slot<BusyHandler>,
    authorizer: Slot<Authorizer>,
    progress: Slot<ProgressHandler>,
    trace: Slot<Tracer>,
    update: Slot<UpdateHook>,
    commit: Slot<CommitHook>,
    rollback: Slot<RollbackHook>,
    wal: Slot<WalHook>,
    pub(crate) preupdate: Slot<PreupdateHook>,
    pub(crate) write_queue: write_queue::Place,
    pub(crate) keeping: Keeping,
    pub(crate) guarding: Guarding,
    pub(crate) ending: Ending,
    pub(crate) only_reading: OnlyReading,
    pub(crate) observed: Observed,
    /// What the connection is used for, for those who watch it.
    pub(crate) usage: Arc<Usage>,
    /// Whether the transaction that is open has had its snapshot since a statement of it began.
    pub(crate) has_snapshot: Cell<bool>,
    /// How many statements have been prepared.
    pub(crate) prepared: Cell<u64>,
    /// Whether one of these is running that must not use its connection: all but `wal`, which may
    /// run a checkpoint. Also set by [`Locked::undisturbed`].
    pub(crate) is_running: Cell<bool>,
    /// Whether statements are to be stopped without SQLite's own interruption: see `connection.rs`.
    pub(crate) is_interruption_postponed: Arc<AtomicBool>,
    /// Whether the step that runs may be broken off with nothing lost. Shared with the handle.
    pub(crate) is_breakable: Arc<AtomicBool>,
    /// How often it has been interrupted.
    pub(crate) interruptions: Arc<AtomicU64>,
    /// How often reads were ended in the middle of their rows.
    pub(crate) reads_ended: Cell<u64>,
    /// Whether a statement of our own runs, which is nobody's business.
    pub(crate) is_silent: Cell<bool>,
    /// Whether nothing may be stopped now: see [`Locked::unstoppable`].
    is_unstoppable: Cell<bool>,
    /// Whether it is noticed that a commit begins, and whether one has begun.
    are_commits_watched: Cell<bool>,
    has_commit_begun: Cell<bool>,
}

impl Callbacks {
    pub(crate) fn new(database: *mut ffi::sqlite3) -> Self {
        Self {
            database: NonNull::new(database),
            ..Self::default()
        }
    }

    pub(crate) fn database(&self) -> Option<NonNull<ffi::sqlite3>> {
        self.database
    }

    /// Whether the statement that has just ended had begun a commit.
    #[inline]
    pub(crate) fn take_commit_begun(&self) -> bool {
        self.has_commit_begun.take()
    }

    /// Whether an interruption waits until the changeset that is being applied is done with.
    pub(crate) fn is_interruption_postponed(&self) -> bool {
        self.is_interruption_postponed.load(Ordering::Relaxed)
    }

    /// Closes the connection. Where something that is not ours keeps it open, such as a statement that an
    /// extension has not finalised, SQLite calls nobody back by it any more.
    ///
    /// # Safety
    ///
    /// These are the callbacks of `database`, which is open, and from now on used by nobody of ours.
    pub(crate) unsafe fn close(&self, database: *mut ffi::sqlite3) -> c_int {
        // SAFETY: this function's contract.
        let code = unsafe { ffi::sqlite3_close(database) };
        if code != ffi::SQLITE_OK {
            // SAFETY: what could not be closed is open as before, and without sessions of ours, so that the
            // place of the preupdate hook is not theirs.
            unsafe { forget_callbacks(database) };
        }
        self.leave_write_queue();
        code
    }

    /// Lets go of everything, when the connection has been closed.
    pub(crate) fn clear(&self) {
        // Taken first, dropped then: a destructor may be foreign code.
        drop((
            self.busy.take(),
            self.authorizer.take(),
            self.progress.take(),
            self.trace.take(),
        ));
        drop((
            self.update.take(),
            self.commit.take(),
            self.rollback.take(),
            self.wal.take(),
            self.preupdate.take(),
        ));
        self.guarding.clear();
        self.ending.clear();
    }
}

/// A connection that waits for a lock (<https://sqlite.org/c3ref/busy_handler.html>).
pub struct BusyWait<'a> {
    /// How often the handler has been asked before, for this lock.
    pub calls: u32,
    pub(crate) callbacks: &'a Callbacks,
    /// How many interruptions there had been when it began, if SQLite had not begun the statement:
    /// that forgets earlier ones.
    earlier_interruptions: Option<u64>,
}

impl<'a> BusyWait<'a> {
    /// For a wait that begins before SQLite has been asked for the lock.
    pub(crate) fn before_the_first_try(callbacks: &'a Callbacks) -> Self {
        Self {
            calls: 0,
            callbacks,
            earlier_interruptions: Some(callbacks.interruptions.load(Ordering::SeqCst)),
        }
    }

    /// Whether the connection has the write lock of its main database, and so waits for something else.
    pub fn has_write_lock(&self) -> bool {
        self.callbacks.main_transaction_state() == TransactionState::Write
    }

    /// Whether the statement that waits has been interrupted
    /// (<https://sqlite.org/c3ref/interrupt.html>). SQLite itself looks only once it has the lock.
    pub fn is_interrupted(&self) -> bool {
        let database = self.callbacks.database;
        if self.callbacks.is_interruption_postponed() {
            return true;
        }
        if let Some(earlier) = self.earlier_interruptions {
            return self.callbacks.interruptions.load(Ordering::SeqCst) != earlier;
        }
        // SAFETY: the connection is calling, so it is open, and locked by this thread.
        database
            .is_some_and(|database| unsafe { ffi::sqlite3_is_interrupted(database.as_ptr()) != 0 })
    }
}

/// What an authorizer is asked (<https://sqlite.org/c3ref/set_authorizer.html>).
pub struct Authorization<'a> {
    /// The action code, for example `SQLITE_READ`.
    pub action: i32,
    /// The two arguments whose meaning depends on the action.
    pub arguments: [Option<&'a CStr>; 2],
    /// The schema, for example `main`.
    pub database: Option<&'a CStr>,
    /// The innermost trigger or view that is responsible.
    pub source: Option<&'a CStr>,
}

/// A statement that begins to run.
#[derive(Clone, Copy)]
pub struct Traced<'a> {
    /// Its text with the parameters filled in; `None` when that exceeds the length limit.
    pub expanded: Option<&'a CStr>,
    /// Its text as prepared; for a trigger a comment that names it.
    pub sql: &'a CStr,
}

/// A row inserted, updated or deleted (<https://sqlite.org/c3ref/update_hook.html>).
pub struct RowChange<'a> {
    /// `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`.
    pub operation: i32,
    /// The schema.
    pub database: &'a CStr,
    /// The table.
    pub table: &'a CStr,
    /// The row.
    pub rowid: i64,
}

/// Generates the pairs of pointers SQLite wants: the trampoline and its argument, or two NULLs.
macro_rules! registration {
    ($locked:expr, $is_set:expr, $trampoline:expr) => {
        if $is_set {
            (
                Some($trampoline as _),
                ptr::from_ref($locked.callbacks())
                    .cast_mut()
                    .cast::<c_void>(),
            )
        } else {
            (None, ptr::null_mut())
        }
    };
}

pub(crate) use registration;

impl Locked<'_> {
    /// Waits for locks by SQLite's own table of sleeps, up to `timeout`
    /// (<https://sqlite.org/c3ref/busy_timeout.html>); zero does not wait. Replaces a busy handler.
    pub fn set_busy_timeout(&self, timeout: Duration) -> Result<()> {
        let milliseconds = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: open and locked by this guard.
        self.check(unsafe { ffi::sqlite3_busy_timeout(self.database(), milliseconds) })?;
        drop(self.callbacks().busy.take());
        Ok(())
    }

    /// Waits for locks by asking `handler` whether to try again
    /// (<https://sqlite.org/c3ref/busy_handler.html>). A panic in it counts as "no".
    pub fn set_busy_handler(
        &self,
        handler: impl Fn(&BusyWait<'_>) -> bool + Send + 'static,
    ) -> Result<()> {
        let (trampoline, argument) = registration!(self, true, call_busy);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        let code = unsafe { ffi::sqlite3_busy_handler(self.database(), trampoline, argument) };
        self.check(code)?;
        drop(self.callbacks().busy.replace(Some(Rc::new(handler))));
        Ok(())
    }

    /// Asks `authorizer` about each action while a statement is prepared; `None` removes it. A
    /// panic counts as `SQLITE_DENY`.
    pub fn set_authorizer(&self, authorizer: Option<Box<Authorizer>>) -> Result<()> {
        let is_asked = authorizer.is_some() || self.callbacks().only_reading.is_so();
        let (trampoline, argument) = registration!(self, is_asked, call_authorizer);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        let code = unsafe { ffi::sqlite3_set_authorizer(self.database(), trampoline, argument) };
        self.check(code)?;
        drop(
            self.callbacks()
                .authorizer
                .replace(authorizer.map(Rc::from)),
        );
        Ok(())
    }

    /// Whether there is one.
    pub fn has_authorizer(&self) -> bool {
        self.callbacks().authorizer.borrow().is_some()
    }

    /// Calls `handler` about every `operations` virtual machine instructions; `true` interrupts the
    /// statement, and so does a panic. `None` removes it.
    pub fn set_progress_handler(&self, operations: i32, handler: Option<Box<ProgressHandler>>) {
        let (trampoline, argument) = registration!(self, handler.is_some(), call_progress);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        unsafe {
            ffi::sqlite3_progress_handler(self.database(), operations, trampoline, argument);
        }
        drop(self.callbacks().progress.replace(handler.map(Rc::from)));
    }

    /// Calls `trace` whenever a statement begins to run; `None` removes it.
    pub fn set_trace(&self, trace: Option<Box<Tracer>>) -> Result<()> {
        let (trampoline, argument) = registration!(self, trace.is_some(), call_trace);
        let mask = if trace.is_some() {
            ffi::SQLITE_TRACE_STMT as _
        } else {
            0
        };
        // SAFETY: open and locked by this guard; see the module's first invariant.
        let code = unsafe { ffi::sqlite3_trace_v2(self.database(), mask, trampoline, argument) };
        self.check(code)?;
        drop(self.callbacks().trace.replace(trace.map(Rc::from)));
        Ok(())
    }

    /// Calls `hook` for each row that a statement changes; `None` removes it.
    pub fn set_update_hook(&self, hook: Option<Box<UpdateHook>>) {
        let (trampoline, argument) = registration!(self, hook.is_some(), call_update);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        unsafe { ffi::sqlite3_update_hook(self.database(), trampoline, argument) };
        drop(self.callbacks().update.replace(hook.map(Rc::from)));
    }

    /// Asks `hook` before each commit; `true` turns it into a rollback, and so does a panic. `None`
    /// removes it.
    pub fn set_commit_hook(&self, hook: Option<Box<CommitHook>>) {
        if hook.is_some() {
            self.hear_of_commits();
        }
        drop(self.callbacks().commit.replace(hook.map(Rc::from)));
    }

    /// From now on it is noticed when a commit begins, which SQLite says before it writes anything of
    /// it: [`Error::is_of_commit`](crate::Error::is_of_commit).
    pub fn watch_commits(&self) {
        self.callbacks().are_commits_watched.set(true);
        self.hear_of_commits();
    }

    /// Has SQLite say when a commit begins, from now on. There is one such hook, which an extension may have
    /// taken; who wants to know is asked by it.
    pub(crate) fn hear_of_commits(&self) {
        let (trampoline, argument) = registration!(self, true, call_commit);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        unsafe { ffi::sqlite3_commit_hook(self.database(), trampoline, argument) };
    }

    /// Calls `hook` after each rollback; `None` removes it.
    pub fn set_rollback_hook(&self, hook: Option<Box<RollbackHook>>) {
        let (trampoline, argument) = registration!(self, hook.is_some(), call_rollback);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        unsafe { ffi::sqlite3_rollback_hook(self.database(), trampoline, argument) };
        drop(self.callbacks().rollback.replace(hook.map(Rc::from)));
    }

    /// Calls `hook` after each commit in WAL mode with the schema and the pages in the WAL; its
    /// result becomes the statement's, *although the transaction is committed*. It replaces
    /// automatic checkpoints. `None` removes it, and leaves no automatic checkpoints either.
    pub fn set_wal_hook(&self, hook: Option<Box<WalHook>>) {
        let (trampoline, argument) = registration!(self, hook.is_some(), call_wal);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        unsafe { ffi::sqlite3_wal_hook(self.database(), trampoline, argument) };
        drop(self.callbacks().wal.replace(hook.map(Rc::from)));
    }

    /// Has every statement compiled anew when it next begins.
    ///
    /// Setting the authorizer does that, even to what it is; SQLite has no other way that leaves a
    /// running statement alone.
    pub(crate) fn expire_statements(&self) {
        self.ask_authorizer();
    }

    /// Has SQLite ask the authorizer, if there is one or the connection only reads.
    pub(crate) fn ask_authorizer(&self) {
        let callbacks = self.callbacks();
        self.set_asked(callbacks.authorizer.borrow().is_some() || callbacks.only_reading.is_so());
    }

    /// Has SQLite ask before each action while it prepares a statement, or not.
    pub(crate) fn set_asked(&self, is_asked: bool) {
        let (trampoline, argument) = registration!(self, is_asked, call_authorizer);
        // SAFETY: open and locked by this guard; see the module's first invariant.
        unsafe { ffi::sqlite3_set_authorizer(self.database(), trampoline, argument) };
    }

    /// Runs `f`, in which the connection cannot be locked: for calls into SQLite that may call
    /// functions and collations, and that a use of the connection by those would upset.
    pub(crate) fn undisturbed<T>(&self, f: impl FnOnce() -> T) -> T {
        let is_running = &self.callbacks().is_running;
        let was_running = is_running.replace(true);
        let result = f();
        is_running.set(was_running);
        result
    }
}

impl Locked<'_> {
    /// Runs `f`, in which the progress handler is not asked: for what undoes something.
    pub(crate) fn unstoppable<T>(&self, f: impl FnOnce() -> T) -> T {
        let is_unstoppable = &self.callbacks().is_unstoppable;
        let was_unstoppable = is_unstoppable.replace(true);
        let result = f();
        is_unstoppable.set(was_unstoppable);
        result
    }
}

/// Has SQLite call back nobody: the places of all that `registration!` is used for are empty afterwards.
///
/// # Safety
///
/// `database` is open, used by nobody else, and has no sessions.
unsafe fn forget_callbacks(database: *mut ffi::sqlite3) {
    let nothing = ptr::null_mut();
    // SAFETY: this function's contract; NULL removes a callback.
    unsafe {
        ffi::sqlite3_busy_handler(database, None, nothing);
        ffi::sqlite3_set_authorizer(database, None, nothing);
        ffi::sqlite3_progress_handler(database, 0, None, nothing);
        ffi::sqlite3_trace_v2(database, 0, None, nothing);
        ffi::sqlite3_update_hook(database, None, nothing);
        ffi::sqlite3_commit_hook(database, None, nothing);
        ffi::sqlite3_rollback_hook(database, None, nothing);
        ffi::sqlite3_wal_hook(database, None, nothing);
        ffi::sqlite3_preupdate_hook(database, None, nothing);
    }
}

/// The closure in a slot, and its answer; `otherwise` if it is gone or panics. Meanwhile the
/// connection cannot be locked.
pub(crate) fn call<F: ?Sized, T>(
    callbacks: &Callbacks,
    slot: &Slot<F>,
    otherwise: T,
    call: impl FnOnce(&F) -> T,
) -> T {
    let closure = slot.borrow().clone();
    let Some(closure) = closure else {
        return otherwise;
    };
    let was_running = callbacks.is_running.replace(true);
    let answer = catch_unwind(AssertUnwindSafe(|| call(&closure)));
    callbacks.is_running.set(was_running);
    answer.unwrap_or(otherwise)
}

/// The callbacks behind the argument that SQLite hands back.
///
/// # Safety
///
/// `argument` comes from `registration!`, and its connection is open.
pub(crate) unsafe fn callbacks<'a>(argument: *mut c_void) -> &'a Callbacks {
    // SAFETY: see this function's contract.
    unsafe { &*argument.cast::<Callbacks>() }
}

/// # Safety
///
/// `text` is NULL or NUL-terminated for as long as `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: see this function's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

unsafe extern "C" fn call_busy(argument: *mut c_void, calls: c_int) -> c_int {
    // SAFETY: registered with this argument.
    let callbacks = unsafe { callbacks(argument) };
    let wait = BusyWait {
        calls: calls.unsigned_abs(),
        callbacks,
        earlier_interruptions: None,
    };
    match callbacks.keeping.wait(|| wait.is_interrupted()) {
        Wait::Ask => {}
        Wait::Again => return 1,
        Wait::Over => return 0,
    }
    let waits = || call(callbacks, &callbacks.busy, false, |busy| busy(&wait));
    c_int::from(callbacks.observed.waiting(waits))
}

unsafe extern "C" fn call_authorizer(
    argument: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    source: *const c_char,
) -> c_int {
    // SAFETY: registered with this argument; the texts live for the length of this call.
    let (callbacks, authorization) = unsafe {
        let authorization = Authorization {
            action,
            arguments: [text(first), text(second)],
            database: text(database),
            source: text(source),
        };
        (callbacks(argument), authorization)
    };
    if callbacks.is_silent.get() {
        return ffi::SQLITE_OK;
    }
    if callbacks.only_reading.refuses(&authorization) {
        return ffi::SQLITE_DENY;
    }
    if callbacks.authorizer.borrow().is_none() {
        return ffi::SQLITE_OK;
    }
    call(
        callbacks,
        &callbacks.authorizer,
        ffi::SQLITE_DENY,
        |authorizer| authorizer(&authorization),
    )
}

unsafe extern "C" fn call_progress(argument: *mut c_void) -> c_int {
    // SAFETY: registered with this argument.
    let callbacks = unsafe { callbacks(argument) };
    callbacks.while_writing();
    callbacks.usage.answer(|| callbacks.running_statement());
    if callbacks.is_unstoppable.get() {
        return 0;
    }
    let stop = callbacks.is_interruption_postponed()
        || call(callbacks, &callbacks.progress, true, |progress| progress());
    c_int::from(stop)
}

unsafe extern "C" fn call_trace(
    _event: std::ffi::c_uint,
    argument: *mut c_void,
    statement: *mut c_void,
    sql: *mut c_void,
) -> c_int {
    // SAFETY: registered with this argument; for SQLITE_TRACE_STMT the two pointers are the
    // statement and its text, both alive for the length of this call.
    let (callbacks, sql) = unsafe { (callbacks(argument), text(sql.cast())) };
    let Some(sql) = sql.filter(|_| !callbacks.is_silent.get()) else {
        return 0;
    };
    // SAFETY: a live statement of the connection that is calling; the result is ours to free.
    let expanded = unsafe { ffi::sqlite3_expanded_sql(statement.cast()) };
    let traced = Traced {
        // SAFETY: NULL, or NUL-terminated until it is freed below.
        expanded: unsafe { text(expanded) },
        sql,
    };
    call(callbacks, &callbacks.trace, (), |trace| trace(traced));
    // SAFETY: allocated by SQLite for us, not used after this line; NULL is a no-op.
    unsafe { ffi::sqlite3_free(expanded.cast()) };
    0
}

unsafe extern "C" fn call_update(
    argument: *mut c_void,
    operation: c_int,
    database: *const c_char,
    table: *const c_char,
    rowid: ffi::sqlite3_int64,
) {
    // SAFETY: registered with this argument; the texts live for the length of this call.
    let (callbacks, database, table) =
        unsafe { (callbacks(argument), text(database), text(table)) };
    if let (Some(database), Some(table)) = (database, table) {
        let change = RowChange {
            operation,
            database,
            table,
            rowid,
        };
        call(callbacks, &callbacks.update, (), |update| update(&change));
    }
}

unsafe extern "C" fn call_commit(argument: *mut c_void) -> c_int {
    // SAFETY: registered with this argument.
    let callbacks = unsafe { callbacks(argument) };
    if callbacks.are_commits_watched.get() {
        callbacks.has_commit_begun.set(true);
    }
    callbacks.guarding.note_commit();
    // Without a hook of the user's the commit goes on; one that panics turns it into a rollback.
    let has_hook = callbacks.commit.borrow().is_some();
    let is_refused = has_hook && call(callbacks, &callbacks.commit, true, |commit| commit());
    if !is_refused {
        callbacks.gather_frames();
    }
    c_int::from(is_refused)
}

unsafe extern "C" fn call_rollback(argument: *mut c_void) {
    // SAFETY: registered with this argument.
    let callbacks = unsafe { callbacks(argument) };
    call(callbacks, &callbacks.rollback, (), |rollback| rollback());
}

unsafe extern "C" fn call_wal(
    argument: *mut c_void,
    _database: *mut ffi::sqlite3,
    schema: *const c_char,
    pages: c_int,
) -> c_int {
    // SAFETY: registered with this argument; the text lives for the length of this call.
    let (callbacks, schema) = unsafe { (callbacks(argument), text(schema)) };
    let schema = schema
        .and_then(|schema| schema.to_str().ok())
        .unwrap_or_default();
    // The transaction has ended: nobody is to wait for what the hook does.
    callbacks.after_writing(|| None);
    // Not by `call`: this hook may run a checkpoint on its connection.
    let hook = callbacks.wal.borrow().clone();
    match hook {
        Some(hook) => catch_unwind(AssertUnwindSafe(|| hook(schema, pages.unsigned_abs())))
            .unwrap_or(ffi::SQLITE_OK),
        None => ffi::SQLITE_OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, OpenFlags};

    #[test]
    fn what_cannot_be_closed_calls_nobody_back() {
        for is_dropped in [false, true] {
            let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
            let locked = connection.lock().expect("open");
            let made = locked.execute_batch("CREATE TABLE t (x)");
            made.expect("valid SQL");
            locked.set_update_hook(Some(Box::new(|_| {})));
            locked.set_rollback_hook(Some(Box::new(|| {})));
            let database = locked.database();
            let sql = c"INSERT INTO t VALUES (1)".as_ptr();
            // As an extension has one, which keeps the connection from being closed.
            let mut foreign = ptr::null_mut();
            // SAFETY: open and locked; a NUL-terminated text, a place for the statement.
            let code = unsafe {
                ffi::sqlite3_prepare_v2(database, sql, -1, &raw mut foreign, ptr::null_mut())
            };
            assert_eq!(code, ffi::SQLITE_OK);
            if is_dropped {
                drop(locked);
            } else {
                let refused = locked.close().expect_err("a statement is left");
                assert_eq!(refused.code(), ffi::SQLITE_BUSY);
            }
            drop(connection);
            let nothing = ptr::null_mut();
            // SAFETY: still open, since it could not be closed, and known to nobody else; what is set anew is
            // answered with the argument before.
            unsafe {
                assert!(ffi::sqlite3_commit_hook(database, None, nothing).is_null());
                assert!(ffi::sqlite3_rollback_hook(database, None, nothing).is_null());
                assert!(ffi::sqlite3_update_hook(database, None, nothing).is_null());
                assert_eq!(ffi::sqlite3_step(foreign), ffi::SQLITE_DONE);
                assert_eq!(ffi::sqlite3_finalize(foreign), ffi::SQLITE_OK);
                assert_eq!(ffi::sqlite3_close(database), ffi::SQLITE_OK);
            }
        }
    }
}
