//! What somebody sees of a group who is not in it: whoever looks after the database, and `oxlite env`.
//!
//! Invariants:
//! - Whoever looks does not join, begins nothing and clears nothing.
//! - What a page says of commits is of those who are in the group, or were in it last.

use std::io;
use std::path::Path;

use oxlite_sqlite::SharedPageView;

use super::member::{FORMAT, MEMBERS, PAGE, Word};
use super::reason::Reason;
use crate::file::numbers::FileNumbers;

/// Processes that share the syncs of a database's commits, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCommitGroup {
    /// How many they are now; `None` where the system does not tell. With none, the rest is of those who
    /// were there last and could not take the page with them.
    pub members: Option<usize>,
    /// The commits of all, since the first of them came.
    pub commits: u64,
    /// Up to which of those all are durable, one after the other.
    pub commits_durable: u64,
    /// The syncs that leaders have begun.
    pub syncs_led: u64,
    /// The leaders that have died in one.
    pub leaders_lost: u64,
    /// Why nothing is acknowledged any more; `None` if all is well.
    pub poisoned: Option<&'static str>,
}

/// The group of the database at `path`, of this user's processes; `None` if nobody shares.
///
/// Fails where there is no such file, or the page cannot be read.
pub fn shared_commit_group(path: &Path) -> io::Result<Option<SharedCommitGroup>> {
    let file = match FileNumbers::of(path) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
        outcome => outcome?,
    };
    let Some(page) = SharedPageView::read(PAGE, file.device, file.inode)? else {
        return Ok(None);
    };
    let word = |word: Word| page.word(word as usize);
    let poisoned = Reason::of(word(Word::Poison)).map(Reason::text);
    let is_complete = word(Word::Format) == FORMAT;
    if !is_complete && poisoned.is_none() {
        return Ok(None);
    }
    let counter = |name: Word| if is_complete { word(name) } else { 0 };
    let commits_durable = counter(Word::Synced);
    Ok(Some(SharedCommitGroup {
        members: page.holders(MEMBERS),
        // Read a moment before.
        commits: counter(Word::Committed).max(commits_durable),
        commits_durable,
        syncs_led: counter(Word::Begun),
        leaders_lost: counter(Word::LeadersLost),
        poisoned,
    }))
}
