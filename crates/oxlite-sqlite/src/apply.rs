//! Applying a changeset to a database, and what is asked when that meets a conflict
//! (<https://sqlite.org/session/sqlite3changeset_apply.html>).
//!
//! Invariants:
//! - SQLite is given what `changeset.rs` has read to its end.
//! - The filter is asked before SQLite is: it runs nowhere but in Rust.
//! - The conflict handler runs inside SQLite, which allows it to use the connection: so it may lock
//!   it. What a [`Conflict`] lends is SQLite's until the handler returns, whatever the handler runs:
//!   the values are the iterator's and those of a statement that only SQLite steps.
//! - The handler is `Send`, so it cannot hold a guard, and what counts guards stays true.
//! - No panic unwinds into C: it aborts.
//! - What undoes an application cannot be stopped. SQLite's own `ROLLBACK TO` can, by an interruption
//!   while a query is unread; then half a changeset stayed in a savepoint that nobody knew. So the
//!   savepoint is ours, and interruptions wait.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::slice;

use libsqlite3_sys as ffi;

use crate::callbacks::Callbacks;
use crate::changeset::{Change, Checked};
use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// Why a change could not be applied (<https://sqlite.org/session/c_changeset_conflict.html>).
#[derive(Clone, Debug, PartialEq)]
pub enum Conflict<'a> {
    /// `SQLITE_CHANGESET_DATA`: the row to update or delete has other values than the change expects.
    Data {
        /// What was to be done.
        change: Change<'a>,
        /// The row as it is.
        row: Vec<ValueRef<'a>>,
    },
    /// `SQLITE_CHANGESET_NOTFOUND`: there is no such row to update or delete.
    NotFound {
        /// What was to be done.
        change: Change<'a>,
    },
    /// `SQLITE_CHANGESET_CONFLICT`: a row with the primary key to insert is there.
    Conflict {
        /// What was to be done.
        change: Change<'a>,
        /// The row that is there.
        row: Vec<ValueRef<'a>>,
    },
    /// `SQLITE_CHANGESET_CONSTRAINT`: the change would violate another constraint.
    Constraint {
        /// What was to be done.
        change: Change<'a>,
    },
    /// `SQLITE_CHANGESET_FOREIGN_KEY`: all changes are made and foreign keys are violated; asked once,
    /// at the end.
    ForeignKey {
        /// How often, in the whole database, as far as SQLite tells: it says 1, however many.
        violations: usize,
    },
}

/// What becomes of a change that met a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictAction {
    /// Leaves it out; violated foreign keys are put up with.
    Omit,
    /// Overwrites the row that is there. Only for [`Conflict::Data`] and [`Conflict::Conflict`].
    Replace,
    /// Applies nothing at all.
    Abort,
}

/// Says whether the changes of a table are to be applied; its error ends the whole.
pub type TableFilter<'f> = dyn FnMut(&CStr) -> Result<bool> + 'f;

/// Decides about a conflict. It may use the connection, but not close it; a panic aborts.
pub type ConflictHandler<'h> = dyn FnMut(&Conflict<'_>) -> ConflictAction + Send + 'h;

impl Locked<'_> {
    /// Applies a changeset or patchset to the database `main`: all of it, or on an error nothing.
    ///
    /// The filter is asked about each table before anything is applied. Tables that the database
    /// does not have, or whose primary key is another, are passed over. An abort is `SQLITE_ABORT`,
    /// with foreign keys violated `SQLITE_CONSTRAINT_FOREIGNKEY`.
    pub fn apply_changeset(
        &self,
        changeset: &[u8],
        filter: Option<&mut TableFilter<'_>>,
        on_conflict: &mut ConflictHandler<'_>,
    ) -> Result<()> {
        let checked = Checked::new(changeset)?;
        let mut wanted = HashMap::new();
        if let Some(filter) = filter {
            for table in &checked.tables {
                if !wanted.contains_key(table) {
                    wanted.insert(*table, filter(table)?);
                }
            }
        }
        let mut application = Application {
            wanted,
            on_conflict,
            callbacks: self.callbacks(),
            failure: None,
        };
        let _postponement = self.postpone_interruptions();
        self.execute_batch("SAVEPOINT changeset_apply")?;
        let outcome = self
            .apply_in_savepoint(&checked, &mut application)
            .and_then(|()| self.execute_batch("RELEASE changeset_apply"));
        if outcome.is_err() {
            // It fails if the savepoint is gone, with all that was done in it.
            let undo = "ROLLBACK TO changeset_apply; RELEASE changeset_apply";
            let _ = self.unstoppable(|| self.execute_batch(undo));
        }
        outcome
    }

    fn apply_in_savepoint(
        &self,
        checked: &Checked<'_>,
        application: &mut Application<'_, '_, '_>,
    ) -> Result<()> {
        let (length, bytes) = checked.parts();
        let call_filter: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int = call_filter;
        // SAFETY: open and locked; a well-formed changeset of that length; the argument is what the
        // two trampolines expect and outlives the call; no rebase is asked for.
        let code = unsafe {
            ffi::sqlite3changeset_apply_v2(
                self.database(),
                length,
                bytes,
                (!application.wanted.is_empty()).then_some(call_filter),
                Some(call_conflict),
                ptr::from_mut(application).cast(),
                ptr::null_mut(),
                ptr::null_mut(),
                ffi::SQLITE_CHANGESETAPPLY_NOSAVEPOINT as c_int,
            )
        };
        match application.failure.take() {
            Some(failure) => Err(failure),
            None => self.check(code),
        }
    }
}

/// What the trampolines need of one application.
struct Application<'a, 'h, 'c> {
    /// The filter's answers; empty without a filter.
    wanted: HashMap<&'a CStr, bool>,
    on_conflict: &'a mut ConflictHandler<'h>,
    callbacks: &'c Callbacks,
    /// Why it was aborted.
    failure: Option<Error>,
}

impl Application<'_, '_, '_> {
    /// Asks the handler; what cannot be done is an error.
    fn resolve(&mut self, conflict: &Conflict<'_>) -> Result<ConflictAction> {
        let answer = catch_unwind(AssertUnwindSafe(|| (self.on_conflict)(conflict)));
        let Ok(action) = answer else {
            let message = "the conflict handler panicked";
            return Err(Error::new(ffi::SQLITE_ABORT, message));
        };
        if self.callbacks.is_interruption_postponed() {
            return Err(Error::new(ffi::SQLITE_INTERRUPT, "interrupted"));
        }
        match (action, conflict) {
            (ConflictAction::Omit, _)
            | (ConflictAction::Replace, Conflict::Data { .. } | Conflict::Conflict { .. }) => {
                Ok(action)
            }
            (ConflictAction::Replace, _) => Err(Error::new(
                ffi::SQLITE_MISUSE,
                "only a conflict of the kinds Data and Conflict can be answered by Replace: there \
                 is no row to replace",
            )),
            (ConflictAction::Abort, Conflict::ForeignKey { .. }) => Err(Error::new(
                ffi::SQLITE_CONSTRAINT_FOREIGNKEY,
                "FOREIGN KEY constraint failed",
            )),
            (ConflictAction::Abort, _) => Err(Error::new(
                ffi::SQLITE_ABORT,
                "a conflict was answered by Abort: nothing has been applied",
            )),
        }
    }
}

unsafe extern "C" fn call_filter(argument: *mut c_void, table: *const c_char) -> c_int {
    // SAFETY: the application of the running call, which nothing else is using; a NUL-terminated
    // name for the length of this call.
    let (application, table) = unsafe {
        (
            &*argument.cast::<Application<'_, '_, '_>>(),
            CStr::from_ptr(table),
        )
    };
    c_int::from(application.wanted.get(table).is_some_and(|wanted| *wanted))
}

unsafe extern "C" fn call_conflict(
    argument: *mut c_void,
    kind: c_int,
    iterator: *mut ffi::sqlite3_changeset_iter,
) -> c_int {
    // SAFETY: the application of the running call. A handler that applies another changeset has
    // another one, so nothing else is using it.
    let application = unsafe { &mut *argument.cast::<Application<'_, '_, '_>>() };
    // SAFETY: the iterator of this call of the handler.
    let conflict = unsafe { conflict(kind, iterator) };
    match conflict.and_then(|conflict| application.resolve(&conflict)) {
        Ok(ConflictAction::Omit) => ffi::SQLITE_CHANGESET_OMIT,
        Ok(ConflictAction::Replace) => ffi::SQLITE_CHANGESET_REPLACE,
        Ok(ConflictAction::Abort) => ffi::SQLITE_CHANGESET_ABORT,
        Err(failure) => {
            application.failure.get_or_insert(failure);
            ffi::SQLITE_CHANGESET_ABORT
        }
    }
}

/// # Safety
///
/// These are the arguments of a conflict handler that is running during `'a`.
unsafe fn conflict<'a>(
    kind: c_int,
    iterator: *mut ffi::sqlite3_changeset_iter,
) -> Result<Conflict<'a>> {
    if kind == ffi::SQLITE_CHANGESET_FOREIGN_KEY {
        let mut violations = 0;
        // SAFETY: an iterator of this kind of conflict; it has no change.
        let code = unsafe { ffi::sqlite3changeset_fk_conflicts(iterator, &raw mut violations) };
        let violations = usize::try_from(violations).unwrap_or(0);
        return check(code).map(|()| Conflict::ForeignKey { violations });
    }
    // SAFETY: an iterator at a change.
    let change = unsafe { change(iterator)? };
    let columns = change.primary_key.len();
    Ok(match kind {
        ffi::SQLITE_CHANGESET_DATA | ffi::SQLITE_CHANGESET_CONFLICT => {
            // SAFETY: an iterator at a change; for these kinds it has a row.
            let row = unsafe { values(iterator, columns, ffi::sqlite3changeset_conflict)? };
            let row = row.into_iter().map(|value| value.unwrap_or(ValueRef::Null));
            let row = row.collect();
            if kind == ffi::SQLITE_CHANGESET_DATA {
                Conflict::Data { change, row }
            } else {
                Conflict::Conflict { change, row }
            }
        }
        ffi::SQLITE_CHANGESET_NOTFOUND => Conflict::NotFound { change },
        _ => Conflict::Constraint { change },
    })
}

/// # Safety
///
/// `iterator` is at a change, and stays there during `'a`.
unsafe fn change<'a>(iterator: *mut ffi::sqlite3_changeset_iter) -> Result<Change<'a>> {
    let (mut table, mut columns) = (ptr::null(), 0);
    let (mut operation, mut is_indirect) = (0, 0);
    let mut primary_key: *mut c_uchar = ptr::null_mut();
    // SAFETY: see this function's contract; places for all that is told.
    let code = unsafe {
        ffi::sqlite3changeset_op(
            iterator,
            &raw mut table,
            &raw mut columns,
            &raw mut operation,
            &raw mut is_indirect,
        )
    };
    check(code)?;
    // SAFETY: as above; it has as many flags as columns.
    check(unsafe { ffi::sqlite3changeset_pk(iterator, &raw mut primary_key, ptr::null_mut()) })?;
    if table.is_null() || primary_key.is_null() {
        return Err(Error::from_code(ffi::SQLITE_NOMEM));
    }
    let columns = usize::try_from(columns).unwrap_or(0);
    // SAFETY: the iterator's own, as long as it stays; the two kinds of values are asked for where
    // the operation has them.
    unsafe {
        Ok(Change {
            table: CStr::from_ptr(table),
            operation,
            is_indirect: is_indirect != 0,
            primary_key: slice::from_raw_parts(primary_key, columns),
            old: if operation == ffi::SQLITE_INSERT {
                vec![None; columns]
            } else {
                values(iterator, columns, ffi::sqlite3changeset_old)?
            },
            new: if operation == ffi::SQLITE_DELETE {
                vec![None; columns]
            } else {
                values(iterator, columns, ffi::sqlite3changeset_new)?
            },
        })
    }
}

/// # Safety
///
/// `iterator` is at a change that has values for `read`, and stays there during `'a`.
unsafe fn values<'a>(
    iterator: *mut ffi::sqlite3_changeset_iter,
    columns: usize,
    read: unsafe extern "C" fn(
        *mut ffi::sqlite3_changeset_iter,
        c_int,
        *mut *mut ffi::sqlite3_value,
    ) -> c_int,
) -> Result<Vec<Option<ValueRef<'a>>>> {
    let value = |column: usize| {
        let mut value = ptr::null_mut();
        // SAFETY: see this function's contract; an index out of range is refused.
        check(unsafe { read(iterator, column as c_int, &raw mut value) })?;
        // SAFETY: a value that the iterator, or the statement that found the row, keeps.
        NonNull::new(value)
            .map(|value| unsafe { ValueRef::from_c(value) })
            .transpose()
    };
    (0..columns).map(value).collect()
}

fn check(code: c_int) -> Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        _ => Err(Error::from_code(code)),
    }
}
