//! The executor of one connection: calls of Python functions, and queries, in native threads, one after the
//! other.
//!
//! A query runs without the GIL, and its rows become objects in the loop's thread; what else there is needs
//! the GIL from its beginning to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use oxlite_core::{Answer, Connection as Core, Dispatcher, LockError, Request, Wanted, run_query};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::job::{Job, Progress, Reading, Reply, withdrawal};
use super::mailbox::{Mailbox, Outcome};
use crate::buffers::SingleValues;
use crate::connection::Connection;
use crate::error::lock_failed;
use crate::requests;
use crate::thread_entry::try_attach;

struct Task {
    work: Work,
    /// The connection that it uses, if giving it up is to interrupt what that reads.
    core: Option<Arc<Core>>,
    progress: Arc<Progress>,
    reply: Reply,
}

enum Work {
    /// `function(*arguments)`.
    Call(Py<PyAny>, Py<PyTuple>),
    Fetch(Fetch),
}

/// A request that is probably a query.
struct Fetch {
    request: Request,
    timeout: Option<Duration>,
    /// Its connection, if that has a row factory.
    factory: Option<Py<Connection>>,
    /// What is called if it is none.
    function: Py<PyAny>,
    arguments: Py<PyTuple>,
}

/// Runs tasks in the order in which they come.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct SerialExecutor {
    dispatcher: Arc<Dispatcher<(), Task, Infallible>>,
}

impl SerialExecutor {
    fn submit(
        &self,
        progress: Arc<Progress>,
        reply: Reply,
        work: Work,
        connection: Option<&Bound<'_, Connection>>,
    ) -> Job {
        // Without one that is open nothing can be interrupted.
        let core = connection.and_then(|connection| connection.get().core().ok().cloned());
        let task = Task {
            work,
            core,
            progress: Arc::clone(&progress),
            reply,
        };
        // It is never closed; but a parent's does nothing in a forked child.
        let withdrawal = match self.dispatcher.submit(Wanted::Task(task)) {
            Ok(place) => Some(withdrawal(&self.dispatcher, place, reply_of)),
            Err(refused) => {
                let error = lock_failed(LockError::Forked);
                reply_of(refused).send(Outcome::Raised(error));
                None
            }
        };
        Job::new(progress, withdrawal)
    }
}

#[pymethods]
impl SerialExecutor {
    #[new]
    fn new() -> Self {
        let perform = |(), tasks: Vec<Task>| {
            tasks.into_iter().for_each(Task::take);
            ((), Vec::new())
        };
        Self {
            dispatcher: Arc::new(Dispatcher::new(1, 1, || (), perform)),
        }
    }

    /// Has `function(*arguments)` called; what it returns or raises is given to `future` through the mailbox
    /// of its loop. With a connection, giving it up interrupts what that reads.
    #[pyo3(signature = (mailbox, future, function, arguments, connection = None))]
    fn call(
        &self,
        mailbox: &Bound<'_, Mailbox>,
        future: Py<PyAny>,
        function: Py<PyAny>,
        arguments: Py<PyTuple>,
        connection: Option<&Bound<'_, Connection>>,
    ) -> Job {
        // What is not to be interrupted is done whoever waits.
        let progress = Progress::new(connection.is_some().then_some(mailbox));
        let reply = Reply::new(mailbox, future);
        let work = Work::Call(function, arguments);
        self.submit(progress, reply, work, connection)
    }

    /// The same, for what nobody waits for: it needs no loop.
    fn call_unheard(&self, function: Py<PyAny>, arguments: Py<PyTuple>) {
        let work = Work::Call(function, arguments);
        self.submit(Progress::new(None), Reply::none(), work, None);
    }

    /// Has a query run, all of whose rows `future` gets; what is no query, or whose parameters or rows need
    /// code of the application, by `function(sql, parameters)`.
    fn fetch(
        &self,
        mailbox: &Bound<'_, Mailbox>,
        future: Py<PyAny>,
        connection: &Bound<'_, Connection>,
        function: Py<PyAny>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
    ) -> PyResult<Job> {
        let py = sql.py();
        let arguments = (sql, parameters).into_pyobject(py)?.unbind();
        let inner = connection.get();
        let request = match inner.makes_plain_rows(py) {
            true => {
                let single_values = SingleValues::of(inner.core()?);
                requests::request(sql.to_str()?, parameters, false, single_values)?
            }
            false => None,
        };
        let work = match request {
            Some(request) => Work::Fetch(Fetch {
                request,
                timeout: inner.execution_settings(py).statement_timeout,
                factory: inner
                    .row_factory_object(py)
                    .map(|_| connection.clone().unbind()),
                function,
                arguments,
            }),
            None => Work::Call(function, arguments),
        };
        let progress = Progress::new(Some(mailbox));
        let reply = Reply::new(mailbox, future);
        Ok(self.submit(progress, reply, work, Some(connection)))
    }
}

fn reply_of(wanted: Wanted<Task, Infallible>) -> Reply {
    match wanted {
        Wanted::Task(task) => task.reply,
        Wanted::Member(nobody) => match nobody {},
    }
}

impl Task {
    fn take(self) {
        let Self {
            work,
            core,
            progress,
            reply,
        } = self;
        if !progress.begin() {
            reply.send(Outcome::GivenUp);
            return;
        }
        let reading = core.clone().map(Reading::AtTimes);
        let outcome = progress.reading(reading, || match work {
            Work::Call(function, arguments) => call(function, arguments),
            Work::Fetch(fetch) => match core.and_then(|core| fetch.query(&core)) {
                Some(Ok(answer)) => Outcome::Found(answer, fetch.factory, false),
                Some(Err(error)) => Outcome::Failed(error),
                None => call(fetch.function, fetch.arguments),
            },
        });
        reply.send(outcome);
    }
}

fn call(function: Py<PyAny>, arguments: Py<PyTuple>) -> Outcome {
    // Nobody is told where there is no interpreter any more.
    let outcome = try_attach(|py| {
        let called = function.bind(py).call1(arguments.bind(py));
        // Let go of with the GIL.
        drop((function, arguments));
        match called {
            Ok(object) => Outcome::Returned(object.unbind()),
            Err(error) => Outcome::Raised(error),
        }
    });
    outcome.unwrap_or(Outcome::GivenUp)
}

impl Fetch {
    /// What the query finds; `None` if it is none.
    fn query(&self, core: &Core) -> Option<oxlite_core::Result<Answer>> {
        // What is wrong with the connection is told by the call.
        let locked = core.lock().ok()?;
        run_query(core, &locked, &self.request, self.timeout).transpose()
    }
}
