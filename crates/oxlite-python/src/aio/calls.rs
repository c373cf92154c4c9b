//! Calls of Python functions in native threads, one after the other: the turns of a connection.

use std::sync::Arc;

use oxlite_core::{Dispatcher, Wanted};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::job::{Job, Progress, Reading, Reply};
use super::mailbox::{Mailbox, Outcome};
use crate::connection::Connection;

struct Call {
    function: Py<PyAny>,
    arguments: Py<PyTuple>,
    /// The connection that it uses, if giving it up is to interrupt what that reads.
    connection: Option<Py<Connection>>,
    progress: Arc<Progress>,
    reply: Reply,
}

/// Calls that are made one after the other.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Calls {
    dispatcher: Arc<Dispatcher<(), Call>>,
}

#[pymethods]
impl Calls {
    #[new]
    fn new() -> Self {
        let perform = |(), calls: Vec<Call>| {
            calls.into_iter().for_each(Call::make);
            ((), Vec::new())
        };
        Self {
            dispatcher: Arc::new(Dispatcher::new(1, 1, || (), perform)),
        }
    }

    /// Has `function(*arguments)` called when its turn has come; what it returns or raises is given to
    /// `future` through the mailbox of its loop. With a connection, giving it up interrupts what that
    /// reads.
    #[pyo3(signature = (mailbox, future, function, arguments, connection = None))]
    fn submit(
        &self,
        mailbox: &Bound<'_, Mailbox>,
        future: Py<PyAny>,
        function: Py<PyAny>,
        arguments: Py<PyTuple>,
        connection: Option<Py<Connection>>,
    ) -> Job {
        let progress = Arc::<Progress>::default();
        let call = Call {
            function,
            arguments,
            connection,
            progress: Arc::clone(&progress),
            reply: Reply::new(Arc::clone(&mailbox.get().inbox), future),
        };
        // It is never closed.
        let _ = self.dispatcher.submit(Wanted::Task(call));
        Job { progress }
    }

    /// How many calls have not been begun.
    #[getter]
    fn waiting(&self) -> usize {
        self.dispatcher.statistics().waiting
    }

    #[expect(
        clippy::unused_self,
        reason = "what waits is reached by the threads that will call it"
    )]
    fn __traverse__(&self, _visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        Ok(())
    }
}

impl Call {
    fn make(self) {
        if !self.progress.begin() {
            self.reply.send(Outcome::GivenUp);
            return;
        }
        let Self {
            function,
            arguments,
            connection,
            progress,
            reply,
        } = self;
        // Nobody is told where there is no interpreter any more.
        let outcome = Python::try_attach(|py| {
            let reading = connection.and_then(|connection| {
                let core = connection.get().core().ok()?;
                Some(Reading::AtTimes(Arc::clone(core)))
            });
            let called = progress.reading(reading, || function.bind(py).call1(arguments.bind(py)));
            // Let go of with the GIL.
            drop((function, arguments));
            match called {
                Ok(object) => Outcome::Returned(object.unbind()),
                Err(error) => Outcome::Raised(error),
            }
        });
        reply.send(outcome.unwrap_or(Outcome::GivenUp));
    }
}
