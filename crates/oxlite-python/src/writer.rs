//! `Writer`: the one writing connection of a `Database`, and the line of threads in front of it.
//!
//! A thread borrows the connection (`take`), or asks for one statement (`execute`), which may be
//! committed together with those of other threads (`oxlite_core::run_batch`).
//!
//! Invariants:
//! - The connection is used, opened and replaced only by the thread that has the writer.
//! - A request owns its values, and so does its answer: whatever needs the user's code (adapters, buffers,
//!   row factories) is done by the thread that asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_core::{
    Answer, Batch, Connection as Core, Line, LineError, Locked, Mutex, Outcome, Profile, Request,
    Submitted, Ticket, run_batch_unsettled, timeout_from_seconds,
};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::baton::give_way;
use crate::buffers::SingleValues;
use crate::connection::Connection;
use crate::error::from_core;
use crate::exceptions::{ProgrammingError, WriterInUse};
use crate::gil::{
    current_thread, detached_to_the_end, is_signalled, patience, raise_kept, without,
};
use crate::loan::{Lender, Lends, Loan};
use crate::lock::lock;
use crate::notifications::Announcement;
use crate::requests::{self, RowMaker};

/// What waits in line.
struct Waiting {
    request: Request,
    since: Instant,
}

type Answered = oxlite_core::Result<Answer>;

/// The writing connection of a database, lent to one thread at a time.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Writer {
    line: Arc<Line<Waiting, Answered>>,
    timeout: Duration,
    /// That of the connection.
    profile: &'static Profile,
    /// Opens the connection.
    open: Py<PyAny>,
    connection: Mutex<Option<Py<Connection>>>,
}

impl Writer {
    /// The connection, opened if need be; by whoever has the writer.
    fn opened<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Connection>> {
        if let Some(connection) = self.current(py) {
            return Ok(connection);
        }
        let connection = self.open.bind(py).call0()?.cast_into::<Connection>()?;
        *self.connection.lock() = Some(connection.clone().unbind());
        Ok(connection)
    }

    fn current<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Connection>> {
        let connection = self.connection.lock();
        connection
            .as_ref()
            .map(|connection| connection.bind(py).clone())
    }

    /// Closes the connection if nobody is to have it any more; before the writer is given back.
    fn retire(&self, py: Python<'_>) {
        let is_in_doubt = self
            .current(py)
            .is_some_and(|connection| connection.get().core().is_ok_and(|core| core.is_in_doubt()));
        if is_in_doubt || self.line.is_closed() {
            self.discard(py);
        }
    }

    fn refused(error: LineError) -> PyErr {
        match error {
            LineError::TimedOut => WriterInUse::new_err("the writer has been in use"),
            LineError::Cancelled => match raise_kept() {
                Err(raised) => raised,
                Ok(()) => WriterInUse::new_err("the wait for the writer was ended"),
            },
            LineError::Closed => ProgrammingError::new_err("Cannot operate on a closed Database."),
            LineError::Reentrant => ProgrammingError::new_err(
                "This thread has the writer, or waits for it (it is inside db.write(), or in a function or a \
                 signal handler that a write has called), and would wait for itself: write through the \
                 connection that db.write() has given.",
            ),
        }
    }

    /// Runs a batch that this thread leads. Others are answered, and the writer given on, without the GIL:
    /// beside busy threads it may take a switch interval to be had.
    fn lead(&self, py: Python<'_>, batch: Batch<Waiting, Answered>) -> PyResult<Answer> {
        let connection = self.opened(py)?;
        let timeout = connection.get().execution_settings(py).statement_timeout;
        let core = connection.get().core()?;
        let locked = lock(py, core)?;
        let concluded = detached_to_the_end(py, locked, |locked| {
            let (answers, ticket) = self.run(core, &locked, &batch, timeout);
            drop(locked);
            match core.is_in_doubt() || self.line.is_closed() {
                true => Err(Box::new((batch, answers, ticket))),
                false => Ok(conclude(batch, answers, ticket)),
            }
        });
        let own = match concluded {
            Ok(own) => own,
            Err(left) => {
                let (batch, answers, ticket) = *left;
                // Nobody is to have the connection any more.
                self.discard(py);
                without(py, || conclude(batch, answers, ticket))
            }
        };
        let answer = own.map_err(|error| from_core(py, error));
        // Nothing is left for a later statement to raise.
        raise_kept()?;
        answer
    }

    fn run(
        &self,
        core: &Core,
        locked: &Locked<'_>,
        batch: &Batch<Waiting, Answered>,
        statement_timeout: Option<Duration>,
    ) -> (Vec<Answered>, Option<Ticket>) {
        let waited = batch.requests().map(|waiting| waiting.since.elapsed());
        let remaining = self
            .timeout
            .saturating_sub(waited.max().unwrap_or_default());
        let requests = batch.requests().map(|waiting| &waiting.request);
        match run_batch_unsettled(core, locked, requests, remaining, statement_timeout, None) {
            // The others try for themselves.
            (Outcome::NotBegun(error), ticket) => (vec![Err(error)], ticket),
            (Outcome::Done(answers), ticket) => (answers, ticket),
        }
    }
}

/// Answers the others and gives the writer on; the leader's own answer is returned.
///
/// Answered first, they come back in time for the next batch: given on first, it took up half as many. What
/// others have to sync is waited for without the writer.
fn conclude(
    mut batch: Batch<Waiting, Answered>,
    mut answers: Vec<Answered>,
    ticket: Option<Ticket>,
) -> Answered {
    let Some(ticket) = ticket else {
        let mut answers = answers.into_iter();
        let own = answers.next().unwrap_or_else(|| Ok(Answer::default()));
        batch.answer_others(answers);
        return own;
    };
    let others = batch.give_on(answers.len().saturating_sub(1));
    if let Err(error) = ticket.settle() {
        for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
            *answer = Err(error.clone());
        }
    }
    let mut answers = answers.into_iter();
    let own = answers.next().unwrap_or_else(|| Ok(Answer::default()));
    others.answer(answers);
    own
}

#[pymethods]
impl Writer {
    /// Waits for the writer as long as `timeout`, in seconds; `open` is called to open it, with a profile. At
    /// most `batch_limit` requests are committed together.
    #[new]
    fn new(
        py: Python<'_>,
        open: Py<PyAny>,
        timeout: f64,
        batch_limit: usize,
        profile: &str,
    ) -> PyResult<Self> {
        Ok(Self {
            profile: Profile::named(profile).map_err(|error| from_core(py, error))?,
            line: Arc::new(Line::new(batch_limit)),
            timeout: timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?,
            open,
            connection: Mutex::new(None),
        })
    }

    /// Borrows the connection, waiting for `timeout` seconds if that is given. What is left of the writer's
    /// own timeout is what the connection waits for locks, until it is given back or `wait_at_most` says
    /// otherwise. `WriterInUse` if it has not come back in time.
    #[pyo3(signature = (loan, timeout = None))]
    fn take(slf: &Bound<'_, Self>, loan: &Bound<'_, Loan>, timeout: Option<f64>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let began = Instant::now();
        let timeout = match timeout {
            Some(seconds) => timeout_from_seconds(seconds).map_err(|error| from_core(py, error))?,
            None => this.timeout,
        };
        let timeout = patience(py, timeout);
        let (line, thread) = (&this.line, current_thread());
        without(py, || line.take(thread, timeout, || !is_signalled())).map_err(Self::refused)?;
        // From here on it is given back with the loan.
        loan.get().begin(Lender::new(slf, 0), None);
        let connection = this
            .opened(py)
            .inspect_err(|_| loan.get().give_back(py, true))?;
        let core = connection.get().core()?;
        core.deadline()
            .wait_at_most(Some(this.timeout.saturating_sub(began.elapsed())));
        core.confine(true);
        loan.get().set_connection(&connection);
        Ok(())
    }

    /// Runs one writing statement, perhaps in one transaction with those of other threads: row count, row
    /// id and rows. When it has been committed it is announced. `None`, with nothing done, if it can only be run alone. `WriterInUse` if it has not
    /// come back in time.
    #[pyo3(signature = (sql, parameters, is_many, announcement = None))]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        sql: &Bound<'py, PyString>,
        parameters: &Bound<'py, PyAny>,
        is_many: bool,
        announcement: Option<&Announcement>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let text = sql.to_str()?;
        if !Request::can_join(text) || !self.can_answer(py, text) {
            return Ok(None);
        }
        let single_values = SingleValues::with(self.profile);
        let Some(mut request) = requests::request(text, parameters, is_many, single_values)? else {
            return Ok(None);
        };
        request.announces = announcement.and_then(Announcement::announced);
        let waiting = Waiting {
            request,
            since: Instant::now(),
        };
        let (line, thread) = (&self.line, current_thread());
        let timeout = patience(py, self.timeout);
        let submitted = match line.try_submit(thread, waiting).map_err(Self::refused)? {
            Ok(batch) => Submitted::Leads(batch),
            Err(waiting) => without(py, || {
                line.submit(thread, waiting, timeout, || !is_signalled())
            })
            .map_err(Self::refused)?,
        };
        let answer = match submitted {
            Submitted::Leads(batch) => self.lead(py, batch)?,
            Submitted::Answered(answer) => answer.map_err(|error| from_core(py, error))?,
        };
        give_way(py);
        let rows = self.rows(py, &answer)?;
        (answer.rowcount, answer.last_insert_rowid, rows)
            .into_pyobject(py)
            .map(Some)
    }

    /// Lends nothing any more. The connection, if it is open and has come back in `timeout` seconds, is
    /// closed; whether it has come back.
    fn close(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        self.line.close();
        let timeout = patience(py, timeout);
        let line = &self.line;
        let is_back = without(py, || line.wait_for_return(timeout, || !is_signalled()));
        raise_kept()?;
        if is_back {
            self.discard(py);
        }
        Ok(is_back)
    }

    /// The connection, if it is open; only to look at.
    #[getter]
    fn connection<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Connection>> {
        self.current(py)
    }

    /// The thread that has it, and for how many seconds.
    fn holder(&self) -> Option<(u64, f64)> {
        let holder = self.line.holder();
        holder.map(|(thread, held_for)| (thread, held_for.as_secs_f64()))
    }

    /// How many threads wait, how many batches there were, and how many requests in them.
    fn statistics(&self) -> (usize, u64, u64) {
        let statistics = self.line.statistics();
        (statistics.waiting, statistics.batches, statistics.batched)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.open)?;
        match self.connection.try_lock() {
            Some(connection) => visit.call(&*connection),
            None => Ok(()),
        }
    }
}

/// It knows its connection, and has one loan at a time. One that is not usable is closed, and the next one is
/// new.
impl Lends for Writer {
    fn note_opened(&self, _number: u64, _connection: &Bound<'_, Connection>) {}

    fn give_back(
        &self,
        py: Python<'_>,
        _number: u64,
        _connection: Option<Py<Connection>>,
        is_usable: bool,
    ) {
        if !is_usable {
            self.discard(py);
        }
        if let Some(connection) = self.current(py)
            && let Ok(core) = connection.get().core()
        {
            core.deadline().wait_at_most(None);
            core.confine(false);
        }
        self.retire(py);
        self.line.give();
    }
}

impl Writer {
    fn discard(&self, py: Python<'_>) {
        let connection = self.connection.lock().take();
        if let Some(connection) = connection {
            // What it had to say it has said.
            let _ = connection.bind(py).call_method0("close");
        }
    }

    /// Whether the rows that the statement may return can be made from its answer.
    fn can_answer(&self, py: Python<'_>, sql: &str) -> bool {
        !requests::may_return_rows(sql)
            || self
                .current(py)
                .is_some_and(|connection| connection.get().makes_plain_rows(py))
    }

    fn rows<'py>(&self, py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyList>> {
        let connection = match answer.rows.is_empty() {
            true => None,
            false => self.current(py),
        };
        let maker = match connection {
            Some(connection) => RowMaker::of(&connection, &answer.columns)?,
            None => RowMaker::default(),
        };
        maker.rows(py, &answer.columns, &answer.rows)
    }
}
