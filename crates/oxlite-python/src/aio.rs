//! What asyncio's side of the driver is made of: work that native threads do, and how an event loop is told
//! of what has come of it. `oxlite.aio` is the face of it.
//!
//! - `job`: one thing to be done, which can be given up, and the reply to whoever waits for it.
//! - `mailbox`: where replies wait for the loop, which is woken once for many.
//! - `calls`: calls of Python functions, one after the other: the turns of one connection.
//! - `connections`: the readers, or the writer, of a database. They do reads and writes without the GIL.

mod calls;
mod connections;
mod job;
mod mailbox;

pub(crate) use calls::Calls;
pub(crate) use connections::Connections;
pub(crate) use job::Job;
pub(crate) use mailbox::Mailbox;
