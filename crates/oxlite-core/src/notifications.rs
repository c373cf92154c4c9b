//! NOTIFY and LISTEN, with PostgreSQL's meaning: what a transaction notifies is delivered to whoever listens,
//! in any process, after it has committed, in the order of the commits, and never if it was rolled back.
//!
//! A notification is a row of `oxlite_notification`; a signal says that there is one. Whoever listens reads the
//! rows after the one that it has seen last, so nothing depends on a signal but how soon.
//!
//! - `channel`: the names of channels, what one listens to, and their topics.
//! - `position`: which notification, in which history of which file.
//! - `store`: the table, all SQL that is written here.
//! - `watch`: a thread that hears of what nobody signals.
//! - `feed`: who listens to what, from where on.
//! - `inbox`: what one of them has not taken yet.
//! - `source`: who reads the table, when, and for whom.
//! - `subscription`: what is given to whoever listens.
//!
//! Invariants:
//! - Numbers grow in the order of the commits: SQLite has one writer at a time, and a number that was used does
//!   not come again (AUTOINCREMENT).
//! - A listener is given each notification of its channels once, in order, or is told that it has lost some.
//! - What an INSERT by somebody else's program puts into the table is a notification like any other.

mod channel;
mod feed;
mod inbox;
mod position;
mod source;
mod store;
mod subscription;
mod watch;

pub use channel::{CHANNEL_BYTES_AT_MOST, Channel, Pattern};
pub use feed::Feed;
pub use inbox::{End, Lost, Notification};
pub use position::Position;
pub use store::{
    INSERT, PAYLOAD_BYTES_AT_MOST, announce, check_payload, is_missing, notifying, prepare,
};
pub use subscription::{Hearing, Subscription};
