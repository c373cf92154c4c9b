//! Group commit: the writes of many threads in one transaction, with one COMMIT, hence one sync of the
//! disk, for all of them.
//!
//! - `line`: who has the writer next. A thread that wants to write alone waits for it; a thread with a
//!   [`Request`](crate::request::Request) waits to be answered. Whoever is at the head of the requests when the writer comes free
//!   *leads*: it takes all that wait with its own and runs them. So there is no thread of our own, and a
//!   lonely caller pays for no hand-over.
//! - `batch`: the transaction.

mod batch;
mod line;

pub use batch::{MayBegin, Outcome, run_batch, run_batch_unsettled};
pub use line::{Batch, Line, LineError, LineStatistics, Submitted, Unanswered};
