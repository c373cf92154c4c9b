//! The owner of a `sqlite3_stmt*`: preparing, binding, stepping, reading the row.
//!
//! Invariants:
//! - `Statement::raw` is a live statement of `Statement::handle` for as long as that connection is
//!   open; after closing, no guard exists and no method can be called.
//! - Every method takes the guard of *its own* connection; another one's is refused as misuse.
//! - A [`Row`] borrows the statement and the guard, so neither step, reset nor close can pull the
//!   column memory away from under it.

use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use libsqlite3_sys as ffi;

use crate::callbacks::BusyWait;
use crate::connection::{Handle, Locked, name_from_c};
use crate::error::{Error, Result};
use crate::observer::Stopwatch;
use crate::sql::{
    begins_with_one_of, ends_transaction, first_statement, may_commit, takes_write_lock,
};
use crate::value::ValueRef;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A row is ready: [`Statement::row`].
    Row,
    /// The statement is complete and has been reset.
    Done,
}

/// The outcome of preparing: nothing for SQL that holds only space and comments.
pub struct Prepared {
    /// The first statement of the text.
    pub statement: Option<Statement>,
    /// Where the text after it begins, in bytes.
    pub tail_offset: usize,
}

const ENDED: &str = "The query was ended before all of its rows had been fetched, with the transaction or \
                     the block in which it ran: run it again.";

/// A prepared statement, finalised when dropped.
pub struct Statement {
    raw: NonNull<ffi::sqlite3_stmt>,
    handle: Arc<Handle>,
    parameter_count: usize,
    read_only: bool,
    takes_write_lock: bool,
    /// Whether a transaction may end with it.
    may_commit: bool,
    /// Whether it is BEGIN.
    begins: bool,
    /// Whether it is what ends a transaction.
    ends_transaction: bool,
    /// Whether it is a pragma, or explains one.
    may_set: bool,
    /// No other one of its connection has had it.
    number: u64,
    has_row: bool,
    is_finalized: bool,
    /// How often reads had been ended when it began: since then, it has been ended itself.
    began_after: u64,
    /// What it has taken, where that is asked for.
    stopwatch: Stopwatch,
}

// SAFETY: a prepared statement has no thread affinity, and every use of it holds the lock of its
// connection.
unsafe impl Send for Statement {}
// SAFETY: as above; a shared reference allows nothing without that lock either.
unsafe impl Sync for Statement {}

impl Locked<'_> {
    /// Prepares the first statement of `sql`. `persistent` tells SQLite that it will be kept and
    /// used again, as in a statement cache.
    pub fn prepare(&self, sql: &str, persistent: bool) -> Result<Prepared> {
        self.prepare_bytes(sql.as_bytes(), persistent)
    }

    /// Prepares and runs every statement of `script`, discarding rows.
    pub fn execute_batch(&self, script: &str) -> Result<()> {
        self.execute_each(script, false, |statement, _| statement.finalize(self))
    }

    /// The same, and hands each statement over when it has run, at rest, with the text from where it begins.
    /// `persistent` as for [`prepare`](Self::prepare).
    pub fn execute_each(
        &self,
        script: &str,
        persistent: bool,
        mut done_with: impl FnMut(Statement, &[u8]),
    ) -> Result<()> {
        // With a NUL at its end SQLite reads the text in place; without, it copies what remains of
        // the script for each statement.
        let script = [script.as_bytes(), b"\0"].concat();
        let mut rest = &script[..];
        while rest.len() > 1 {
            let prepared = self.prepare_bytes(rest, persistent)?;
            if let Some(mut statement) = prepared.statement {
                while statement.step(self)? == Step::Row {}
                done_with(statement, rest);
            }
            // COMMIT counts as read-only.
            self.callbacks().after_writing(|| None);
            rest = &rest[prepared.tail_offset..];
        }
        Ok(())
    }

    /// Runs statements that [`execute_each`](Self::execute_each) has handed over, in their order, discarding
    /// rows.
    pub fn execute_again(&self, statements: &mut [Statement]) -> Result<()> {
        for statement in statements {
            while statement.step(self)? == Step::Row {}
            self.callbacks().after_writing(|| None);
        }
        Ok(())
    }

    /// Prepares the first statement of a text that is UTF-8, perhaps with a NUL at its end.
    fn prepare_bytes(&self, sql: &[u8], persistent: bool) -> Result<Prepared> {
        let Ok(length) = c_int::try_from(sql.len()) else {
            return Err(Error::from_code(ffi::SQLITE_TOOBIG));
        };
        let flags = if persistent {
            ffi::SQLITE_PREPARE_PERSISTENT
        } else {
            0
        };
        let mut raw = ptr::null_mut();
        let mut tail = ptr::null();
        let text = first_statement(sql);
        let may_set = begins_with_one_of(text, &["PRAGMA", "EXPLAIN"]);
        let watch = may_set.then(|| self.watch_pragma()).flatten();
        // SAFETY: open and locked; the text is `length` bytes long and outlives the call, `tail`
        // points into it.
        let code = unsafe {
            ffi::sqlite3_prepare_v3(
                self.database(),
                sql.as_ptr().cast(),
                length,
                flags as _,
                &raw mut raw,
                &raw mut tail,
            )
        };
        let outcome = self.check(code);
        drop(watch);
        outcome.map_err(|error| self.callbacks().only_reading.explain(error))?;
        let tail_offset = if tail.is_null() {
            sql.len()
        } else {
            (tail as usize)
                .saturating_sub(sql.as_ptr() as usize)
                .min(sql.len())
        };
        let statement = NonNull::new(raw).map(|raw| {
            self.adopt_statement(raw);
            let prepared = &self.callbacks().prepared;
            prepared.set(prepared.get() + 1);
            // SAFETY: a fresh statement of this locked connection.
            let read_only = unsafe { ffi::sqlite3_stmt_readonly(raw.as_ptr()) } != 0;
            // SQLite says so of a trigger that is created unless it exists, or dropped if it does, when there is
            // nothing to do. That may be otherwise when the statement runs, prepared anew by SQLite.
            let may_write = !read_only || begins_with_one_of(text, &["CREATE", "DROP"]);
            Statement {
                // SAFETY: a fresh statement of this locked connection, like the next line.
                parameter_count: unsafe { ffi::sqlite3_bind_parameter_count(raw.as_ptr()) }
                    as usize,
                read_only,
                takes_write_lock: may_write && takes_write_lock(text),
                may_commit: may_write || may_commit(text),
                begins: begins_with_one_of(text, &["BEGIN"]),
                ends_transaction: ends_transaction(text),
                may_set,
                number: prepared.get(),
                raw,
                handle: Arc::clone(self.handle()),
                has_row: false,
                is_finalized: false,
                began_after: 0,
                stopwatch: Stopwatch::default(),
            }
        });
        // Without a statement there is nothing left to prepare: space, comments, or a NUL byte, at
        // which SQLite stops and a script would never end.
        let tail_offset = if statement.is_some() {
            tail_offset
        } else {
            sql.len()
        };
        Ok(Prepared {
            statement,
            tail_offset,
        })
    }
}

impl Statement {
    /// Refuses the guard of another connection: the one way in which safe code could break the
    /// crate's invariant.
    #[inline]
    fn check_owner(&self, locked: &Locked<'_>) -> Result<()> {
        if self.belongs_to(locked) {
            return Ok(());
        }
        Err(Error::new(
            ffi::SQLITE_MISUSE,
            "the statement belongs to another connection",
        ))
    }

    /// Whether this is the guard of the statement's own connection.
    #[inline]
    pub fn belongs_to(&self, locked: &Locked<'_>) -> bool {
        self.is_of(locked.handle())
    }

    pub(crate) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(&self.handle, handle)
    }

    /// How many parameters the SQL has: the highest number used.
    #[inline]
    pub fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// Whether the statement makes no direct change to the database file
    /// (<https://sqlite.org/c3ref/stmt_readonly.html>); BEGIN, COMMIT and SAVEPOINT count as
    /// read-only.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether a row is ready to be read.
    #[inline]
    pub fn has_row(&self) -> bool {
        self.has_row
    }

    /// The name of parameter `index` (from 1) with its prefix, `None` for `?`.
    pub fn parameter_name<'l>(&'l self, locked: &'l Locked<'_>, index: usize) -> Option<&'l str> {
        self.check_owner(locked).ok()?;
        let index = c_int::try_from(index).ok()?;
        // SAFETY: live statement under its lock; the name lives as long as the statement.
        unsafe { name_from_c(ffi::sqlite3_bind_parameter_name(self.raw.as_ptr(), index)) }
    }

    /// How many columns the rows have; 0 for statements that return none.
    #[inline]
    pub fn column_count(&self, locked: &Locked<'_>) -> usize {
        if self.check_owner(locked).is_err() {
            return 0;
        }
        // SAFETY: live statement under its lock.
        unsafe { ffi::sqlite3_column_count(self.raw.as_ptr()) as usize }
    }

    /// The name of column `index` (from 0), or an error when memory runs out.
    pub fn column_name<'l>(&'l self, locked: &'l Locked<'_>, index: usize) -> Result<&'l [u8]> {
        self.check_owner(locked)?;
        let index = c_int::try_from(index).map_err(|_| Error::from_code(ffi::SQLITE_RANGE))?;
        // SAFETY: live statement under its lock; an index out of range gives NULL.
        let name = unsafe { ffi::sqlite3_column_name(self.raw.as_ptr(), index) };
        if name.is_null() {
            return Err(Error::from_code(ffi::SQLITE_NOMEM));
        }
        // SAFETY: NUL-terminated; valid until the statement is finalised, re-prepared or asked
        // again for this name, none of which a shared borrow allows.
        Ok(unsafe { CStr::from_ptr(name) }.to_bytes())
    }

    /// The type that column `index` (from 0) was declared with, if it is a column of a table
    /// (<https://sqlite.org/c3ref/column_decltype.html>).
    pub fn column_declared_type<'l>(
        &'l self,
        locked: &'l Locked<'_>,
        index: usize,
    ) -> Option<&'l [u8]> {
        self.check_owner(locked).ok()?;
        let index = c_int::try_from(index).ok()?;
        // SAFETY: live statement under its lock; an index out of range gives NULL.
        let declared = unsafe { ffi::sqlite3_column_decltype(self.raw.as_ptr(), index) };
        if declared.is_null() {
            return None;
        }
        // SAFETY: NUL-terminated; valid until the statement is finalised or re-prepared, which a
        // shared borrow does not allow.
        Some(unsafe { CStr::from_ptr(declared) }.to_bytes())
    }

    /// How often SQLite has prepared the statement anew because the schema changed; columns may
    /// have changed with it.
    pub fn reprepare_count(&self, locked: &Locked<'_>) -> i32 {
        if self.check_owner(locked).is_err() {
            return 0;
        }
        // SAFETY: live statement under its lock; 0 leaves the counter as it is.
        unsafe { ffi::sqlite3_stmt_status(self.raw.as_ptr(), ffi::SQLITE_STMTSTATUS_REPREPARE, 0) }
    }

    /// Binds parameter `index` (from 1). Text and blobs are copied by SQLite.
    #[inline]
    pub fn bind(&mut self, locked: &Locked<'_>, index: usize, value: ValueRef<'_>) -> Result<()> {
        // SAFETY: SQLITE_TRANSIENT makes SQLite copy before the call returns.
        unsafe { self.bind_as(locked, index, value, ffi::SQLITE_TRANSIENT()) }
    }

    /// Has text and blobs read where they are, and not copied, while `work` binds and steps. What it has
    /// bound is NULL again afterwards; a statement that it leaves at a row is stopped.
    ///
    /// All that SQLite reads of bound values it reads while the statement runs (as the tracer and a new
    /// preparation do), or when they are bound anew.
    #[inline]
    pub fn lending<'v, T>(
        &mut self,
        locked: &Locked<'_>,
        work: impl FnOnce(&mut Lending<'_, 'v>) -> T,
    ) -> T {
        /// Takes back what was lent, also if `work` panics.
        struct TakeBack<'s, 'v, 'l>(Lending<'s, 'v>, &'l Locked<'l>);
        impl Drop for TakeBack<'_, '_, '_> {
            #[inline]
            fn drop(&mut self) {
                if self.0.has_lent {
                    self.0.end(self.1);
                }
            }
        }
        let lending = Lending {
            is_ours: self.belongs_to(locked),
            statement: self,
            has_lent: false,
            _values: PhantomData,
        };
        let mut take_back = TakeBack(lending, locked);
        work(&mut take_back.0)
    }

    /// Binds one parameter.
    ///
    /// # Safety
    ///
    /// With SQLITE_STATIC, text and bytes stay where they are until the parameter is bound anew or
    /// cleared, and the statement does not run any more.
    #[inline]
    unsafe fn bind_as(
        &mut self,
        locked: &Locked<'_>,
        index: usize,
        value: ValueRef<'_>,
        keeping: ffi::sqlite3_destructor_type,
    ) -> Result<()> {
        self.check_owner(locked)?;
        let raw = self.raw.as_ptr();
        let index = c_int::try_from(index).map_err(|_| Error::from_code(ffi::SQLITE_RANGE))?;
        // SAFETY: live statement under its lock. Pointers are valid for the lengths given, never
        // NULL (a Rust slice's is dangling at worst, with length 0); for how long, see this function's
        // contract.
        let code = unsafe {
            match value {
                ValueRef::Null => ffi::sqlite3_bind_null(raw, index),
                ValueRef::Integer(integer) => ffi::sqlite3_bind_int64(raw, index, integer),
                ValueRef::Real(real) => ffi::sqlite3_bind_double(raw, index, real),
                ValueRef::Text(text) => ffi::sqlite3_bind_text64(
                    raw,
                    index,
                    text.as_ptr().cast(),
                    text.len() as u64,
                    keeping,
                    ffi::SQLITE_UTF8 as _,
                ),
                ValueRef::Blob(bytes) => ffi::sqlite3_bind_blob64(
                    raw,
                    index,
                    bytes.as_ptr().cast(),
                    bytes.len() as u64,
                    keeping,
                ),
            }
        };
        locked.check(code)
    }

    /// Sets every parameter to NULL again and frees what was bound.
    pub fn clear_bindings(&mut self, locked: &Locked<'_>) {
        if self.check_owner(locked).is_ok() {
            // SAFETY: live statement under its lock.
            unsafe { ffi::sqlite3_clear_bindings(self.raw.as_ptr()) };
        }
    }

    /// Finalises the statement now. Dropping it does so as well, at the price of a list that other threads
    /// may look at. In a child that was forked while somebody up the stack had the guard, it stays the parent's.
    pub fn finalize(mut self, locked: &Locked<'_>) {
        if self.belongs_to(locked) && !self.handle.is_inherited() {
            locked.finalize_statement(self.raw);
            self.is_finalized = true;
        }
    }

    /// Runs to the next row or to the end. At the end, and after an error, the statement is reset,
    /// so it holds no lock and no snapshot.
    #[inline]
    pub fn step(&mut self, locked: &Locked<'_>) -> Result<Step> {
        if locked.callbacks().observed.times_statements() || self.stopwatch.is_running() {
            return self.step_timed(locked);
        }
        self.step_untimed(locked)
    }

    #[cold]
    fn step_timed(&mut self, locked: &Locked<'_>) -> Result<Step> {
        let is_first = !self.has_row;
        if locked.callbacks().is_silent.get() || !(is_first || self.stopwatch.is_running()) {
            return self.step_untimed(locked);
        }
        let mut stopwatch = self.stopwatch;
        let outcome = stopwatch.time(locked.callbacks(), is_first, || self.step_untimed(locked));
        if outcome != Ok(Step::Row) && self.belongs_to(locked) {
            stopwatch.end(locked, self.sql(locked));
        }
        self.stopwatch = stopwatch;
        outcome
    }

    /// Its text as prepared; `None` where memory ran out.
    fn sql<'l>(&'l self, locked: &'l Locked<'_>) -> Option<&'l CStr> {
        self.check_owner(locked).ok()?;
        // SAFETY: live statement under its lock; the text lives as long as it does.
        unsafe {
            let sql = ffi::sqlite3_sql(self.raw.as_ptr());
            (!sql.is_null()).then(|| CStr::from_ptr(sql))
        }
    }

    fn step_untimed(&mut self, locked: &Locked<'_>) -> Result<Step> {
        self.check_owner(locked)?;
        if let Some(error) = self.ended(locked) {
            return Err(error);
        }
        let mut _watch = None;
        if !self.has_row {
            _watch = self.may_set.then(|| locked.watch_pragma()).flatten();
            self.began_after = locked.callbacks().reads_ended.get();
            locked.callbacks().note_use();
            if self.may_commit {
                locked.callbacks().check_guard()?;
            }
        }
        if !self.may_commit {
            let outcome = Self::breakable(locked, true, || self.step_now(locked));
            if self.ends_transaction {
                locked.leave_write_queue();
            }
            if matches!(outcome, Ok(Step::Done)) {
                // `PRAGMA optimize` commits, and SQLite calls it read-only.
                locked.callbacks().settle()?;
            }
            return outcome;
        }
        if !self.takes_write_lock {
            let outcome = self.step_now(locked);
            if self.ends_transaction || locked.has_commit_guard() {
                // Now, and not when the guard goes: in a function, the statement around it may go on for long.
                locked.leave_write_queue();
            }
            if outcome == Ok(Step::Done) {
                locked.callbacks().settle()?;
            }
            return outcome;
        }
        let entering = match self.has_row {
            true => None,
            false => Self::breakable(locked, true, || locked.callbacks().before_writing())?,
        };
        let mut outcome = Self::breakable(locked, self.begins, || self.step_now(locked));
        if entering.as_ref().is_some_and(|entering| entering.has_read) {
            outcome = self.step_after_reading(locked, outcome);
        }
        if outcome != Ok(Step::Row) {
            locked
                .callbacks()
                .after_statement(self.number, || self.sql(locked));
        }
        if outcome == Ok(Step::Done) {
            locked.callbacks().settle()?;
        }
        outcome
    }

    /// Tries again as long as somebody else has the write lock and waiting is of use. When it is let go,
    /// the snapshot is most often stale, which is said then.
    #[cold]
    fn step_after_reading(
        &mut self,
        locked: &Locked<'_>,
        mut outcome: Result<Step>,
    ) -> Result<Step> {
        let callbacks = locked.callbacks();
        let mut wait = BusyWait::before_the_first_try(callbacks);
        while matches!(&outcome, Err(error) if error.code() == ffi::SQLITE_BUSY)
            && Self::breakable(locked, true, || callbacks.wait_to_write(&mut wait))
        {
            outcome = self.step_now(locked);
        }
        outcome
    }

    /// Runs what changes nothing if it is broken off, and says so meanwhile: a read, or what only waits to
    /// begin.
    #[inline]
    fn breakable<T>(locked: &Locked<'_>, is_breakable: bool, work: impl FnOnce() -> T) -> T {
        let noted = &locked.callbacks().is_breakable;
        noted.store(is_breakable, Ordering::Relaxed);
        let outcome = work();
        noted.store(false, Ordering::Relaxed);
        outcome
    }

    #[inline]
    fn step_now(&mut self, locked: &Locked<'_>) -> Result<Step> {
        self.has_row = false;
        // SAFETY: live statement under its lock; `&mut self` excludes rows that still read it.
        match unsafe { ffi::sqlite3_step(self.raw.as_ptr()) } {
            ffi::SQLITE_ROW => {
                self.has_row = true;
                Ok(Step::Row)
            }
            ffi::SQLITE_DONE => {
                // The work is complete; a failing reset would repeat an error step had returned.
                // SAFETY: as above.
                unsafe { ffi::sqlite3_reset(self.raw.as_ptr()) };
                locked.callbacks().take_commit_begun();
                locked.callbacks().draw_ticket(self.may_commit);
                if self.may_commit {
                    locked.tend_log();
                }
                Ok(Step::Done)
            }
            code => {
                // The error is read first: the reset may run a rollback that replaces it.
                // SAFETY: open and locked by the guard.
                let error = unsafe { Error::of(locked.database(), code) };
                let has_commit_begun = locked.callbacks().take_commit_begun();
                if has_commit_begun {
                    locked.callbacks().guarding.forget_commit();
                }
                let error = error.of_commit(has_commit_begun);
                let error = locked.callbacks().only_reading.explain(error);
                // SAFETY: as above.
                unsafe { ffi::sqlite3_reset(self.raw.as_ptr()) };
                Err(error)
            }
        }
    }

    /// Stops the statement where it stands. For one that wrote in autocommit mode this is where the
    /// commit happens, so it may fail and it may wait for the disk.
    pub fn reset(&mut self, locked: &Locked<'_>) -> Result<()> {
        if !self.stopwatch.is_running() {
            return self.reset_untimed(locked);
        }
        self.check_owner(locked)?;
        let mut stopwatch = self.stopwatch;
        let outcome = stopwatch.time(locked.callbacks(), false, || self.reset_untimed(locked));
        stopwatch.end(locked, self.sql(locked));
        self.stopwatch = stopwatch;
        outcome
    }

    fn reset_untimed(&mut self, locked: &Locked<'_>) -> Result<()> {
        self.check_owner(locked)?;
        self.has_row = false;
        // SAFETY: live statement under its lock; `&mut self` excludes rows that still read it.
        let outcome = locked.check(unsafe { ffi::sqlite3_reset(self.raw.as_ptr()) });
        let has_commit_begun = locked.callbacks().take_commit_begun();
        let outcome = match outcome {
            // Nobody gets what the aggregates of a query say when it is given up in the middle.
            Err(error)
                if self.read_only
                    && !has_commit_begun
                    && error.primary_code() == ffi::SQLITE_NOMEM =>
            {
                Ok(())
            }
            outcome => outcome.map_err(|error| error.of_commit(has_commit_begun)),
        };
        if outcome.is_ok() {
            locked
                .callbacks()
                .draw_ticket(has_commit_begun || !self.read_only);
        } else if has_commit_begun {
            locked.callbacks().guarding.forget_commit();
        }
        locked.callbacks().after_writing(|| None);
        outcome.and_then(|()| locked.callbacks().settle())
    }

    /// The error of a query that somebody has ended in the middle of its rows ([`Locked::end_reads`]).
    #[inline]
    pub fn ended(&self, locked: &Locked<'_>) -> Option<Error> {
        self.was_ended(locked)
            .then(|| Error::new(ffi::SQLITE_ABORT, ENDED))
    }

    #[inline]
    fn was_ended(&self, locked: &Locked<'_>) -> bool {
        self.has_row && self.read_only && self.began_after != locked.callbacks().reads_ended.get()
    }

    /// The row that the latest step made ready, `None` if it made none, or was ended since.
    #[inline]
    pub fn row<'l>(&'l self, locked: &'l Locked<'_>) -> Option<Row<'l>> {
        if !self.has_row || self.check_owner(locked).is_err() || self.was_ended(locked) {
            return None;
        }
        Some(Row {
            raw: self.raw,
            // SAFETY: live statement under its lock, with a row ready.
            column_count: unsafe { ffi::sqlite3_data_count(self.raw.as_ptr()) } as usize,
            _borrow: PhantomData,
        })
    }
}

/// A statement whose parameters read what they are bound to where it is: see [`Statement::lending`].
pub struct Lending<'s, 'v> {
    statement: &'s mut Statement,
    /// Whether the guard with which it ends is the statement's own connection's.
    is_ours: bool,
    has_lent: bool,
    /// What is lent lives at least as long as this.
    _values: PhantomData<fn(&'v [u8])>,
}

impl<'v> Lending<'_, 'v> {
    /// Binds parameter `index` (from 1).
    #[inline]
    pub fn bind(&mut self, locked: &Locked<'_>, index: usize, value: ValueRef<'v>) -> Result<()> {
        if !self.is_ours {
            return Err(Error::from_code(ffi::SQLITE_MISUSE));
        }
        self.has_lent |= matches!(value, ValueRef::Text(_) | ValueRef::Blob(_));
        // SAFETY: the value outlives the call of `lending`, at whose end the statement does not run and the
        // parameter is cleared.
        unsafe {
            self.statement
                .bind_as(locked, index, value, ffi::SQLITE_STATIC())
        }
    }

    /// Runs to the next row or to the end: [`Statement::step`].
    #[inline]
    pub fn step(&mut self, locked: &Locked<'_>) -> Result<Step> {
        self.statement.step(locked)
    }

    fn end(&mut self, locked: &Locked<'_>) {
        if self.statement.has_row {
            let _ = self.statement.reset(locked);
        }
        self.statement.clear_bindings(locked);
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if !self.handle.leak_inherited() && !self.is_finalized {
            self.handle.finalize(self.raw);
        }
    }
}

/// The current row. It borrows its statement and the connection's guard.
pub struct Row<'l> {
    raw: NonNull<ffi::sqlite3_stmt>,
    column_count: usize,
    /// Of the statement and of the guard; and, like the guard, bound to this thread.
    _borrow: PhantomData<(&'l Statement, *const ())>,
}

impl Row<'_> {
    /// How many columns the row has.
    #[inline]
    pub fn len(&self) -> usize {
        self.column_count
    }

    /// Whether the row has no columns, which SQLite does not produce.
    pub fn is_empty(&self) -> bool {
        self.column_count == 0
    }

    /// The value of column `index` (from 0), borrowed from SQLite until the row is dropped.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Result<ValueRef<'_>> {
        if index >= self.column_count {
            return Err(Error::from_code(ffi::SQLITE_RANGE));
        }
        // SAFETY: the row's borrow keeps the statement live, locked and unmoved; the index is in
        // range. SQLite calls the value unprotected because another thread could use it meanwhile;
        // the guard excludes that.
        unsafe {
            let value = ffi::sqlite3_column_value(self.raw.as_ptr(), index as c_int);
            let value = NonNull::new(value).ok_or_else(|| Error::from_code(ffi::SQLITE_NOMEM))?;
            ValueRef::from_c(value)
        }
    }

    /// The value of column `index` (from 0) as bytes: a number is converted to text; NULL, and a blob
    /// of no length, are `None` (<https://sqlite.org/c3ref/column_blob.html>).
    pub fn bytes(&self, index: usize) -> Result<Option<&[u8]>> {
        if index >= self.column_count {
            return Err(Error::from_code(ffi::SQLITE_RANGE));
        }
        let raw = self.raw.as_ptr();
        let column = index as c_int;
        // SAFETY: the row's borrow keeps the statement live, locked and unmoved; the index is in
        // range. A conversion leaves pointers to other columns alone; length is asked after it.
        unsafe {
            if ffi::sqlite3_column_type(raw, column) == ffi::SQLITE_NULL {
                return Ok(None);
            }
            let bytes = ffi::sqlite3_column_blob(raw, column);
            let length = ffi::sqlite3_column_bytes(raw, column) as usize;
            if bytes.is_null() && length == 0 {
                return Ok(None);
            }
            bytes_from_c(bytes.cast(), length).map(Some)
        }
    }
}

/// The bytes of a column; a NULL pointer where there must be one means that memory ran out.
///
/// # Safety
///
/// `bytes` is NULL or valid for `length` bytes during `'a`.
#[inline]
unsafe fn bytes_from_c<'a>(bytes: *const u8, length: usize) -> Result<&'a [u8]> {
    if bytes.is_null() {
        return Err(Error::from_code(ffi::SQLITE_NOMEM));
    }
    // SAFETY: not NULL, and valid by this function's contract.
    Ok(unsafe { slice::from_raw_parts(bytes, length) })
}
