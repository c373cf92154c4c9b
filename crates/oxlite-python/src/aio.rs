//! What asyncio's side of the driver is made of: work that native threads do, and how an event loop is told
//! of what has come of it. `oxlite.aio` is the face of it.
//!
//! - `job`: one thing to be done, which can be given up, and the reply to whoever waits for it.
//! - `mailbox`: where replies wait for the loop, which is woken once for many.
//! - `serial_executor`: calls of Python functions, and queries, one after the other: what is done with one connection.
//! - `connections`: the readers, or the writer, of a database. They do reads and writes without the GIL.

mod connections;
mod job;
mod mailbox;
mod serial_executor;

pub(crate) use connections::Connections;
pub(crate) use job::{Job, is_given_up};
pub(crate) use mailbox::Mailbox;
pub(crate) use serial_executor::SerialExecutor;
