//! Many write requests in one transaction: each succeeds or fails as if it were alone, and one COMMIT
//! makes all of them durable.
//!
//! Invariants:
//! - A request that fails leaves nothing behind but what SQLite itself keeps of a failed statement
//!   (OR FAIL).
//! - Nobody is told of success before the COMMIT has returned.
//! - After every statement SQLite is asked whether the transaction still stands: ON CONFLICT ROLLBACK,
//!   RAISE(ROLLBACK), a full disk, an I/O error, want of memory or an interruption may have ended it
//!   (<https://sqlite.org/lang_transaction.html>), and what came next would be committed by itself. The
//!   others are then run again.
//! - A foreign key that only COMMIT would complain of (deferred) is asked for after each request, else it
//!   would fail all of them.

use std::time::{Duration, Instant};

use oxlite_sqlite::{Locked, codes};

use crate::connection::{Connection, Ticket};
use crate::error::{Error, Result};
use crate::request::{Answer, Request};

/// How long a batch goes on taking up requests: other processes wait for the lock meanwhile.
const WORK_AT_MOST: Duration = Duration::from_millis(5);

/// After so many transactions that one request has ended for all, each is run alone.
const LOSSES_AT_MOST: u32 = 3;

const SAVEPOINT: &str = "SAVEPOINT oxlite_request";
const RELEASE: &str = "RELEASE oxlite_request";
const ROLLBACK_TO: &str = "ROLLBACK TO oxlite_request";

/// What has become of a batch.
#[derive(Debug)]
pub enum Outcome {
    /// It could not begin. Nothing has been done.
    NotBegun(Error),
    /// Answers in the order of the requests. Those beyond the last one are still to be run: there was no
    /// more time, or the last one has met what they would have met as well.
    Done(Vec<Result<Answer>>),
}

/// Asked before a request is run for the first time, by its place in the batch: whether it is still wanted.
/// From then on it is not asked again.
pub type MayBegin<'b> = &'b dyn Fn(usize) -> bool;

/// A connection at work on a batch, its lock taken.
struct Work<'b> {
    connection: &'b Connection,
    locked: &'b Locked<'b>,
    statement_timeout: Option<Duration>,
    may_begin: Option<MayBegin<'b>>,
}

/// Runs requests, at least one, on a connection without a transaction: all of them, or the first few. The
/// write lock is waited for as long as `timeout`; a statement of theirs may take `statement_timeout`.
pub fn run_batch<'r>(
    connection: &Connection,
    locked: &Locked<'_>,
    requests: impl IntoIterator<Item = &'r Request>,
    timeout: Duration,
    statement_timeout: Option<Duration>,
) -> Outcome {
    run_wanted(
        connection,
        locked,
        requests,
        timeout,
        statement_timeout,
        None,
    )
}

/// The same, for requests that can be given up.
fn run_wanted<'r>(
    connection: &Connection,
    locked: &Locked<'_>,
    requests: impl IntoIterator<Item = &'r Request>,
    timeout: Duration,
    statement_timeout: Option<Duration>,
    may_begin: Option<MayBegin<'_>>,
) -> Outcome {
    let requests: Vec<&Request> = requests.into_iter().collect();
    // What somebody has begun who does not have the connection any more would take in what is to be committed
    // now, and be lost with it.
    if !locked.is_autocommit() {
        log::warn!(
            "a transaction that was left open on the writing connection of a database was rolled back"
        );
        if let Err(error) = connection.run(locked, "ROLLBACK") {
            return Outcome::NotBegun(error);
        }
    }
    let work = Work {
        connection,
        locked,
        statement_timeout,
        may_begin,
    };
    // Code of the application is called by the thread that asked for it: it may need locks that this one
    // has, and what it raises is that one's. And BEGIN IMMEDIATE takes the locks of all attached databases,
    // also of those that nobody writes to.
    let is_lonely = requests.len() == 1 && may_begin.is_none();
    let is_for_one = is_lonely || connection.has_callbacks() || locked.has_attached();
    let deadline = connection.deadline();
    let outcome = deadline.waiting_at_most(timeout, || match requests[..] {
        [_, ..] if is_for_one && !work.may_begin(0) => Outcome::Done(vec![Err(given_up())]),
        [request, ..] if is_for_one => Outcome::Done(vec![work.alone(request)]),
        _ => work.together(&requests),
    });
    if let Outcome::Done(answers) = &outcome {
        connection.count_batch(answers.len());
    }
    outcome
}

/// The same, but for a connection whose commits share their syncs: then nobody may be told of the answers
/// before the ticket has been settled, which needs no connection any more. With `may_begin` a request can be
/// given up until the write lock is had; it ends as if interrupted.
pub fn run_batch_unsettled<'r>(
    connection: &Connection,
    locked: &Locked<'_>,
    requests: impl IntoIterator<Item = &'r Request>,
    timeout: Duration,
    statement_timeout: Option<Duration>,
    may_begin: Option<MayBegin<'_>>,
) -> (Outcome, Option<Ticket>) {
    connection.deferring_answers(locked, || {
        run_wanted(
            connection,
            locked,
            requests,
            timeout,
            statement_timeout,
            may_begin,
        )
    })
}

/// How a request went in the midst of a transaction.
enum Ran {
    /// The transaction goes on.
    Kept(Result<Answer>),
    /// It has ended.
    Lost(Error),
}

/// Where a request of a batch stands.
#[derive(Clone)]
enum State {
    /// Not taken up yet, or to be taken up again.
    Waiting,
    /// Run in the transaction that is open, or was lost.
    Ran(Result<Answer>),
    /// It has ended a transaction for all, and is not run again.
    Guilty(Error),
}

impl State {
    fn into_answer(self) -> Option<Result<Answer>> {
        match self {
            Self::Waiting => None,
            Self::Ran(outcome) => Some(outcome),
            Self::Guilty(error) => Some(Err(error)),
        }
    }

    /// What succeeded has not after all.
    fn fail_all(states: &mut [Self], error: &Error) {
        for state in states {
            if let Self::Ran(outcome @ Ok(_)) = state {
                *outcome = Err(error.clone());
            }
        }
    }
}

impl Work<'_> {
    fn may_begin(&self, index: usize) -> bool {
        self.may_begin.is_none_or(|may_begin| may_begin(index))
    }

    fn control(&self, sql: &str) -> Result<()> {
        self.connection.run(self.locked, sql)
    }

    /// What marks the requests within the transaction is nobody's business: an authorizer might refuse it.
    fn mark(&self, sql: &str) -> Result<()> {
        self.locked.silently(|| self.control(sql))
    }

    fn execute(&self, request: &Request) -> Result<Answer> {
        let stretch = self
            .statement_timeout
            .map(|timeout| self.connection.deadline().begin(timeout));
        let outcome = request.execute(self.connection, self.locked, None);
        drop(stretch);
        outcome
    }

    /// Runs a request in a transaction of its own.
    fn alone(&self, request: &Request) -> Result<Answer> {
        if !request.is_many {
            return self.execute(request);
        }
        self.control("BEGIN IMMEDIATE")?;
        let outcome = self.execute(request);
        match outcome {
            Ok(answer) => self.commit().map(|()| answer),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn together(&self, requests: &[&Request]) -> Outcome {
        if let Err(error) = self.control("BEGIN IMMEDIATE") {
            return Outcome::NotBegun(error);
        }
        // What has begun is not given up for the sake of one thread that is signalled.
        let _shield = self.connection.deadline().shield();
        let began = Instant::now();
        let mut states = vec![State::Waiting; requests.len()];
        let mut losses = 0;
        loop {
            match self.attempt(requests, &mut states, began) {
                Ok(()) => break,
                Err(Some((guilty, error))) => states[guilty] = State::Guilty(error),
                // COMMIT itself was refused, for the sake of one of them or of all.
                Err(None) => losses = LOSSES_AT_MOST,
            }
            losses += 1;
            if losses > LOSSES_AT_MOST {
                self.each_alone(requests, &mut states);
                break;
            }
            if let Err(error) = self.control("BEGIN IMMEDIATE") {
                State::fail_all(&mut states, &error);
                break;
            }
        }
        Outcome::Done(states.into_iter().map_while(State::into_answer).collect())
    }

    /// Runs all but the guilty, and commits. An error is that the transaction was lost: by whom, or by
    /// the COMMIT.
    fn attempt(
        &self,
        requests: &[&Request],
        states: &mut [State],
        began: Instant,
    ) -> Result<(), Option<(usize, Error)>> {
        for (index, (request, state)) in requests.iter().zip(&mut *states).enumerate() {
            match state {
                State::Guilty(_) => continue,
                State::Waiting if index > 0 && began.elapsed() >= WORK_AT_MOST => break,
                State::Waiting if !self.may_begin(index) => {
                    *state = State::Guilty(given_up());
                    continue;
                }
                State::Waiting | State::Ran(_) => {}
            }
            match self.within(request) {
                Ran::Kept(outcome) => *state = State::Ran(outcome),
                Ran::Lost(error) => return Err(Some((index, error))),
            }
        }
        match self.commit() {
            Ok(()) => Ok(()),
            Err(Error::Sqlite(error)) if error.primary_code() == codes::SQLITE_CONSTRAINT => {
                Err(None)
            }
            Err(error) => {
                State::fail_all(states, &error);
                Ok(())
            }
        }
    }

    /// Runs one request in the midst of the transaction.
    fn within(&self, request: &Request) -> Ran {
        if let Err(error) = self.mark(SAVEPOINT) {
            return self.lose(error);
        }
        let outcome = self.execute(request);
        if self.locked.is_autocommit() {
            return Ran::Lost(outcome.err().unwrap_or_else(|| {
                Error::Programming(
                    "the statement has ended the transaction it was run in: use a transaction of its own"
                        .into(),
                )
            }));
        }
        let (is_kept, outcome) = match outcome {
            _ if self.locked.has_unresolved_foreign_keys() => {
                (false, outcome.and_then(|_| Err(foreign_key_failed())))
            }
            // A statement that fails undoes itself, as far as it says so.
            Err(error) => (!request.is_many, Err(error)),
            Ok(answer) => (true, Ok(answer)),
        };
        let ended = match is_kept {
            true => self.mark(RELEASE),
            false => self.mark(ROLLBACK_TO).and_then(|()| self.mark(RELEASE)),
        };
        match ended {
            Ok(()) => Ran::Kept(outcome),
            Err(error) => self.lose(outcome.err().unwrap_or(error)),
        }
    }

    /// Gives up the transaction, in which it is no longer known what is there.
    fn lose(&self, error: Error) -> Ran {
        self.roll_back();
        Ran::Lost(error)
    }

    /// Runs each by itself, as long as they do not meet what the others would meet as well: a lock, for
    /// which each would wait after the other, or a connection in doubt.
    fn each_alone(&self, requests: &[&Request], states: &mut [State]) {
        let mut goes_on = true;
        for (request, state) in requests.iter().zip(states) {
            let State::Ran(outcome) = state else {
                continue;
            };
            if !goes_on {
                *state = State::Waiting;
                continue;
            }
            *outcome = self.alone(request);
            goes_on = !matches!(
                outcome,
                Err(Error::Locked { .. } | Error::CommitOutcomeUnknown(_))
            );
        }
    }

    fn commit(&self) -> Result<()> {
        let outcome = self.control("COMMIT");
        if outcome.is_err() {
            self.roll_back();
        }
        outcome
    }

    /// Ends a transaction that may have ended already.
    fn roll_back(&self) {
        if !self.locked.is_autocommit() {
            // If even this fails, the next BEGIN does, which says why.
            let _ = self.control("ROLLBACK");
        }
    }
}

fn given_up() -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_INTERRUPT,
        "interrupted",
    ))
}

fn foreign_key_failed() -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_CONSTRAINT_FOREIGNKEY,
        "FOREIGN KEY constraint failed",
    ))
}
