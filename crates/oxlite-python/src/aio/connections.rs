//! The readers of a database, or its writer: connections that native threads work with.
//!
//! Reads and writes run without the GIL; a write shares its transaction with those that wait with it
//! (`oxlite_core::run_batch_unsettled`). What needs the user's code for each value (a text factory,
//! converters) runs with the GIL. A connection can also be borrowed.
//!
//! Invariants:
//! - A connection is used by one thread at a time: whoever has its `Place`.
//! - It is opened when it is first needed, with the GIL, and anew after it was closed or fell in doubt. Until it
//!   is open nothing is taken up, so what waits for it can run out of time.
//! - What waits costs nobody else anything: neither its end in time nor its being given up looks at the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oxlite_core::{
    Answer, Borrower, Connection as Core, Dispatcher, Error, Locked, Mutex,
    Outcome as BatchOutcome, Profile, Refusal, Request, Wanted, run_batch_unsettled, run_read,
    timeout_from_seconds,
};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::job::{Job, Progress, Reading, Reply, Withdrawal, withdrawal};
use super::mailbox::{FUTURES_AT_ONCE, Handover, Mailbox, Outcome};
use crate::buffers::SingleValues;
use crate::connection::Connection;
use crate::error::{from_core, lock_failed};
use crate::exceptions::{PoolTimeout, ProgrammingError, WriterInUse};
use crate::gil::{take_kept, without};
use crate::notifications::Announcement;
use crate::requests;
use crate::thread_entry::try_attach;

/// A connection, if it is open.
#[derive(Default)]
struct Place(Option<Opened>);

struct Opened {
    core: Arc<Core>,
    connection: Py<Connection>,
    /// Whether its rows are tuples of what SQLite holds, but for a row factory.
    is_plain: bool,
    /// Whether it has a row factory.
    has_factory: bool,
    statement_timeout: Option<Duration>,
}

impl Opened {
    fn of(connection: &Bound<'_, Connection>) -> PyResult<Self> {
        let py = connection.py();
        let inner = connection.get();
        Ok(Self {
            core: Arc::clone(inner.core()?),
            is_plain: inner.makes_plain_rows(py),
            has_factory: inner.row_factory_object(py).is_some(),
            statement_timeout: inner.execution_settings(py).statement_timeout,
            connection: connection.clone().unbind(),
        })
    }

    /// For whoever makes rows, if it is not tuples that are wanted.
    fn factory(&self) -> Option<Py<Connection>> {
        if !self.has_factory {
            return None;
        }
        try_attach(|py| self.connection.clone_ref(py))
    }

    /// What is done next has waited since then, and waits for locks for what is left of `timeout`.
    fn has_waited_since(&self, since: Instant, timeout: Duration) {
        let remaining = timeout.saturating_sub(since.elapsed());
        self.core.deadline().wait_at_most(Some(remaining));
    }

    fn lock(&self) -> Result<Locked<'_>, Outcome> {
        self.core
            .lock()
            .map_err(|error| Outcome::Raised(lock_failed(error)))
    }
}

/// Something to be done by one of the connections.
struct Task {
    request: Request,
    kind: Kind,
    since: Instant,
    progress: Arc<Progress>,
    reply: Reply,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ReadAll,
    ReadFirst,
    Write,
}

/// What all that is done with the connections has to know.
struct Staff {
    open: Py<PyAny>,
    /// That of the connections.
    profile: &'static Profile,
    timeout: Duration,
    /// Whether values that the latest one opened returns need no code of the user's.
    is_plain: AtomicBool,
    /// Reads that are under way.
    reads: Mutex<Vec<Arc<Progress>>>,
    /// Whether the process ends: then nobody is refused, for nobody would hear it.
    is_ending: AtomicBool,
}

type Tasks = Dispatcher<Place, Task, Loan>;

/// A wish for a connection.
struct Loan {
    since: Instant,
    timeout: Duration,
    dispatcher: Arc<Tasks>,
    progress: Arc<Progress>,
    handover: Arc<Handover>,
    reply: Reply,
}

impl Borrower<Place> for Loan {
    fn lend(self, place: Place) -> Option<Place> {
        if !self.progress.begin() {
            self.reply.send(Outcome::GivenUp);
            return Some(place);
        }
        let Some(opened) = &place.0 else {
            return Some(place);
        };
        opened.has_waited_since(self.since, self.timeout);
        // Nobody borrows where there is no interpreter any more.
        let lent = try_attach(|py| opened.connection.clone_ref(py).into_any());
        let Some(lent) = lent else {
            return Some(place);
        };
        let dispatcher = self.dispatcher;
        self.handover
            .put(lent, move || drop(dispatcher.give(place)));
        if self.progress.is_given_up() {
            self.handover.take_back();
        }
        self.reply.send(Outcome::Lent(self.handover));
        None
    }
}

/// Connections that work, or are lent.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Connections {
    dispatcher: Arc<Tasks>,
    staff: Arc<Staff>,
}

impl Connections {
    fn submit(
        &self,
        mailbox: &Bound<'_, Mailbox>,
        future: Py<PyAny>,
        request: Request,
        kind: Kind,
    ) -> PyResult<Job> {
        let progress = Progress::new(Some(mailbox));
        let task = Task {
            request,
            kind,
            since: Instant::now(),
            progress: Arc::clone(&progress),
            reply: Reply::new(mailbox, future),
        };
        let withdrawal = self.send(Wanted::Task(task))?;
        Ok(Job::new(progress, withdrawal))
    }

    /// How it is withdrawn as long as it waits.
    fn send(&self, wanted: Wanted<Task, Loan>) -> PyResult<Option<Withdrawal>> {
        match self.dispatcher.submit(wanted) {
            Ok(place) => Ok(Some(withdrawal(&self.dispatcher, place, reply_of))),
            Err(refused) => {
                // It is raised here and now.
                reply_of(refused).forget();
                match self.staff.is_ending.load(Ordering::Relaxed) {
                    true => Ok(None),
                    false => Err(closed()),
                }
            }
        }
    }
}

fn reply_of(wanted: Wanted<Task, Loan>) -> Reply {
    match wanted {
        Wanted::Task(task) => task.reply,
        Wanted::Member(loan) => loan.reply,
    }
}

fn closed() -> PyErr {
    ProgrammingError::new_err("Cannot operate on a closed Database.")
}

#[pymethods]
impl Connections {
    /// So many connections, which `open` opens with a profile; each gets at most `batch_limit` writes at once and waits
    /// for the write lock for `timeout` seconds.
    #[new]
    fn new(
        py: Python<'_>,
        open: Py<PyAny>,
        count: usize,
        batch_limit: usize,
        timeout: f64,
        profile: &str,
    ) -> PyResult<Self> {
        let staff = Arc::new(Staff {
            open,
            profile: Profile::named(profile).map_err(|error| from_core(py, error))?,
            timeout: timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?,
            is_plain: AtomicBool::new(false),
            reads: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let perform = {
            let staff = Arc::clone(&staff);
            move |place, tasks| staff.perform(place, tasks)
        };
        let prepare = {
            let staff = Arc::clone(&staff);
            move |place: &mut Place| staff.open(place)
        };
        let dispatcher = Dispatcher::new(count, batch_limit, Place::default, perform)
            .preparing(Place::is_ready, prepare);
        Ok(Self {
            dispatcher: Arc::new(dispatcher),
            staff,
        })
    }

    /// Has a query run: `future` gets its rows, or its first row, `None` if it has none. No job, and
    /// nothing done, if only a borrowed connection can tell what the parameters are.
    fn read(
        &self,
        mailbox: &Bound<'_, Mailbox>,
        future: Py<PyAny>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
        is_one: bool,
    ) -> PyResult<Option<Job>> {
        let single_values = SingleValues::with(self.staff.profile);
        let Some(request) = requests::request(sql.to_str()?, parameters, false, single_values)?
        else {
            return Ok(None);
        };
        let kind = match is_one {
            true => Kind::ReadFirst,
            false => Kind::ReadAll,
        };
        self.submit(mailbox, future, request, kind).map(Some)
    }

    /// Has a data modification run, perhaps in one transaction with others: `future` gets row count, row id
    /// and rows. When it has been committed it is announced. No job, and nothing done, if it can only be run with a borrowed connection.
    #[pyo3(signature = (mailbox, future, sql, parameters, is_many, announcement = None))]
    fn write(
        &self,
        mailbox: &Bound<'_, Mailbox>,
        future: Py<PyAny>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
        is_many: bool,
        announcement: Option<&Announcement>,
    ) -> PyResult<Option<Job>> {
        let text = sql.to_str()?;
        let is_plain = || self.staff.is_plain.load(Ordering::Relaxed);
        if !Request::can_join(text) || (requests::may_return_rows(text) && !is_plain()) {
            return Ok(None);
        }
        let single_values = SingleValues::with(self.staff.profile);
        let Some(mut request) = requests::request(text, parameters, is_many, single_values)? else {
            return Ok(None);
        };
        request.announces = announcement.and_then(Announcement::announced);
        self.submit(mailbox, future, request, Kind::Write).map(Some)
    }

    /// Lends `future` a connection when its turn has come; it is to be given back.
    fn take(&self, mailbox: &Bound<'_, Mailbox>, future: Py<PyAny>) -> PyResult<Job> {
        let progress = Progress::new(Some(mailbox));
        let handover = Arc::<Handover>::default();
        let withdrawal = self.send(Wanted::Member(Loan {
            since: Instant::now(),
            timeout: self.staff.timeout,
            dispatcher: Arc::clone(&self.dispatcher),
            progress: Arc::clone(&progress),
            handover: Arc::clone(&handover),
            reply: Reply::new(mailbox, future),
        }))?;
        Ok(Job::lending(progress, withdrawal, handover))
    }

    /// Takes a connection back that was lent, or what is to be opened anew in its place. `False` if all is
    /// closed: then the caller closes it.
    #[pyo3(signature = (connection))]
    fn give(&self, connection: Option<&Bound<'_, Connection>>) -> PyResult<bool> {
        // One that was closed is opened anew.
        let opened = connection.and_then(|connection| Opened::of(connection).ok());
        if let Some(opened) = &opened {
            opened.core.deadline().wait_at_most(None);
        }
        let place = Place(opened);
        Ok(self.dispatcher.give(place).is_none())
    }

    /// Tells some of those that have waited for longer than `timeout` seconds so, in the words of
    /// `explain()`; in how many seconds there is somebody else to be told, if anybody waits. No more of them
    /// at a time than a loop takes in one turn, or what comes for others would wait behind them.
    fn expire(
        &self,
        py: Python<'_>,
        timeout: f64,
        explain: &Bound<'_, PyAny>,
        is_writer: bool,
    ) -> PyResult<Option<f64>> {
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        let (expired, rest) = self.dispatcher.expire(timeout, FUTURES_AT_ONCE);
        if !expired.is_empty() {
            let said = explain.call0().and_then(|text| text.extract::<String>());
            // Whatever becomes of the words, they are told.
            let text = said.as_deref().unwrap_or_default();
            for wanted in expired {
                reply_of(wanted).send(Outcome::Raised(match is_writer {
                    true => WriterInUse::new_err(text.to_owned()),
                    false => PoolTimeout::new_err(text.to_owned()),
                }));
            }
            said?;
        }
        Ok(rest.map(|rest| rest.as_secs_f64()))
    }

    /// Interrupts the reads that are under way.
    fn interrupt_reads(&self, py: Python<'_>) {
        without(py, || {
            let reads = self.staff.reads.lock().clone();
            for progress in reads {
                progress.give_up();
            }
        });
    }

    /// The process ends: whoever still asks, in a thread that ends with it, is left waiting.
    fn end(&self) {
        self.staff.is_ending.store(true, Ordering::Relaxed);
    }

    /// Takes up nothing any more, and waits for `timeout` seconds until all have come back: the
    /// connections to be closed, and whether that is all of them. To be called outside the event loop.
    fn close<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Bound<'py, PyTuple>> {
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        let dispatcher = &self.dispatcher;
        let (places, are_all) = without(py, || {
            for wanted in dispatcher.close() {
                reply_of(wanted).send(Outcome::Closed);
            }
            dispatcher.wait_for_all(timeout)
        });
        let connections = places.into_iter().filter_map(|place| place.0);
        let connections: Vec<_> = connections.map(|opened| opened.connection).collect();
        (connections, are_all).into_pyobject(py)
    }

    /// How many connections are idle, work and are lent, and how many of those that work are being opened; how
    /// many wait for them; batches, and how many requests were in them.
    fn statistics(&self) -> (usize, usize, usize, usize, usize, u64, u64) {
        let statistics = self.dispatcher.statistics();
        (
            statistics.idle,
            statistics.working,
            statistics.lent,
            statistics.preparing,
            statistics.waiting,
            statistics.batches,
            statistics.tasks,
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.staff.open)?;
        let mut outcome = Ok(());
        self.dispatcher.look(|place| {
            if let (Some(opened), Ok(())) = (&place.0, &outcome) {
                outcome = visit.call(&opened.connection);
            }
        });
        outcome
    }
}

impl Place {
    /// Whether a connection is there, and can be used.
    fn is_ready(&self) -> bool {
        let is_usable = |opened: &Opened| opened.core.is_open() && !opened.core.is_in_doubt();
        self.0.as_ref().is_some_and(is_usable)
    }
}

impl Staff {
    /// Opens the connection of a place. Whoever is first is told why that cannot be; the others try for
    /// themselves.
    fn open(&self, place: &mut Place) -> Result<(), Refusal<Task, Loan>> {
        // Nobody is told where there is no interpreter any more.
        let opened = try_attach(|py| {
            if let Some(spent) = place.0.take() {
                // What it had to say it has said.
                let _ = spent.connection.bind(py).call_method0("close");
            }
            let connection = self.open.bind(py).call0()?.cast_into::<Connection>()?;
            Opened::of(&connection)
        });
        match opened.unwrap_or_else(|| Err(closed())) {
            Ok(opened) => {
                self.is_plain.store(opened.is_plain, Ordering::Relaxed);
                place.0 = Some(opened);
                Ok(())
            }
            Err(error) => Err(Box::new(|wanted| {
                reply_of(wanted).send(Outcome::Raised(error));
            })),
        }
    }

    fn perform(&self, place: Place, tasks: Vec<Task>) -> (Place, Vec<Task>) {
        // Whoever is dropped here is told that it was lost: there is a connection.
        let left = match (&place.0, tasks.first().map(|task| task.kind)) {
            (None, _) => Vec::new(),
            (Some(opened), Some(Kind::Write)) => self.write(opened, tasks),
            (Some(opened), _) => {
                tasks.into_iter().for_each(|task| self.read(opened, task));
                Vec::new()
            }
        };
        (place, left)
    }

    /// Runs writes in one transaction; those that are still to be run.
    fn write(&self, opened: &Opened, tasks: Vec<Task>) -> Vec<Task> {
        // A loan that nobody has come for has left its own.
        opened.core.deadline().wait_at_most(None);
        let waited = tasks.iter().map(|task| task.since.elapsed()).max();
        let remaining = self.timeout.saturating_sub(waited.unwrap_or_default());
        let locked = match opened.lock() {
            Ok(locked) => locked,
            Err(outcome) => {
                let mut tasks = tasks.into_iter();
                if let Some(first) = tasks.next() {
                    first.reply.send(outcome);
                }
                return tasks.collect();
            }
        };
        let (outcome, ticket) = run_batch_unsettled(
            &opened.core,
            &locked,
            tasks.iter().map(|task| &task.request),
            remaining,
            opened.statement_timeout,
            Some(&|index| tasks[index].progress.begin()),
        );
        drop(locked);
        let mut answers = match outcome {
            BatchOutcome::NotBegun(error) => vec![Err(error)],
            BatchOutcome::Done(answers) => answers,
        };
        if let Some(Err(error)) = ticket.map(|ticket| ticket.settle()) {
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(error.clone());
            }
        }
        // What a function of the user's has raised, and is none of SQLite's errors.
        let mut kept = take_kept();
        let mut tasks = tasks.into_iter();
        for (answer, task) in answers.into_iter().zip(tasks.by_ref()) {
            task.reply.send(match answer {
                Err(_) if kept.is_some() => kept.take().map_or(Outcome::Lost, Outcome::Raised),
                Ok(answer) => {
                    let factory = match answer.rows.is_empty() {
                        true => None,
                        false => opened.factory(),
                    };
                    Outcome::Written(answer, factory)
                }
                Err(error) => Outcome::Failed(error),
            });
        }
        tasks.collect()
    }

    fn read(&self, opened: &Opened, task: Task) {
        /// Also if something panics.
        struct Listed<'s>(&'s Staff, &'s Arc<Progress>);
        impl Drop for Listed<'_> {
            fn drop(&mut self) {
                let mut reads = self.0.reads.lock();
                reads.retain(|other| !Arc::ptr_eq(other, self.1));
            }
        }
        if !task.progress.begin() {
            task.reply.send(Outcome::GivenUp);
            return;
        }
        self.reads.lock().push(Arc::clone(&task.progress));
        let listed = Listed(self, &task.progress);
        opened.has_waited_since(task.since, self.timeout);
        let is_one = task.kind == Kind::ReadFirst;
        let reading = Reading::Always(Arc::clone(&opened.core));
        let mut outcome = task
            .progress
            .reading(Some(reading), || match opened.is_plain {
                true => match read_plain(opened, &task.request, is_one) {
                    Ok(answer) => {
                        let factory = match answer.rows.is_empty() {
                            true => None,
                            false => opened.factory(),
                        };
                        Outcome::Found(answer, factory, is_one)
                    }
                    Err(outcome) => outcome,
                },
                false => read_attached(opened, &task.request, is_one),
            });
        drop(listed);
        // What a function of the user's has raised, and is none of SQLite's errors.
        if let Some(raised) = take_kept() {
            outcome = Outcome::Raised(raised);
        }
        task.reply.send(outcome);
    }
}

fn read_plain(opened: &Opened, request: &Request, is_one: bool) -> Result<Answer, Outcome> {
    let locked = opened.lock()?;
    let limit = is_one.then_some(1);
    let read: Result<Answer, Error> = run_read(
        &opened.core,
        &locked,
        request,
        limit,
        opened.statement_timeout,
    );
    read.map_err(Outcome::Failed)
}

/// With the GIL, by the way that any application goes.
fn read_attached(opened: &Opened, request: &Request, is_one: bool) -> Outcome {
    let read = try_attach(|py| {
        let set = match request.sets.first() {
            Some(set) => requests::objects_of(py, set)?,
            None => PyTuple::empty(py).into_any(),
        };
        let connection = opened.connection.bind(py);
        let cursor = connection.call_method1("execute", (&*request.sql, set))?;
        let rows = match is_one {
            true => cursor.call_method0("fetchone")?,
            false => cursor.call_method0("fetchall")?,
        };
        cursor.call_method0("close")?;
        Ok(rows.unbind())
    });
    match read {
        None => Outcome::GivenUp,
        Some(Ok(rows)) => Outcome::Returned(rows),
        Some(Err(error)) => Outcome::Raised(error),
    }
}
