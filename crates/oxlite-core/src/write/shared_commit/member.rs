//! This process as a member of the group: the words of the shared page by their names, the leader's lock,
//! and the connection whose log is synced.
//!
//! Invariants:
//! - The connection never writes, and is closed last of this process's members of the group. For as long
//!   as it is open nobody removes or replaces the log by SQLite's means; that nobody has done so by others
//!   is looked at before each sync.
//! - Syncs of this process come one after the other.
//! - Whoever is in the group has the byte `MEMBERS` locked, together with the others.
//! - The connection makes no checkpoint when it closes, unless [`Member`] has seen to it that the disk has
//!   the whole log: what the page cache has may be lost by the time it is read again, and only a recovery
//!   compares checksums.
//! - A group's end is known: its last member takes the page along only if nothing is left unknown.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxlite_sqlite::{Byte, Connection, Mutex, MutexGuard, PageKind, SharedPage, codes};

use super::SharedCommitStatistics;
use super::reason::Reason;
use super::settlement::{self, Group};
use crate::file::numbers::FileNumbers;

/// Locked together by all who are in the group; alone by who begins it, or ends it.
pub(super) const MEMBERS: Byte = Byte(0);
/// Locked by the leader.
const LEAD: Byte = Byte(1);

/// The page of a group: its words, and the bell for those whose tickets are to be settled.
pub(super) const PAGE: PageKind = PageKind::new("", 32, 1, 0);
const BELL: usize = 0;

/// What the words of the page are, by their numbers.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Word {
    /// [`FORMAT`], once all the others mean something.
    Format,
    LogDevice,
    LogInode,
    Committed,
    Synced,
    /// A [`Reason`], or 0.
    Poison,
    Begun,
    Ended,
    LeadersLost,
    /// Not 0 while the first one syncs what it has found, and if it has come to no end in that.
    Beginning,
}

/// Which format the page has, and that it is complete.
pub(super) const FORMAT: u64 = 0x6f78_6c69_7465_0001;

/// A process in the group.
pub(crate) struct Member {
    page: SharedPage,
    log: PathBuf,
    log_file: FileNumbers,
    /// Never writes.
    connection: Connection,
    /// How many leaders had begun a sync when its log had been opened.
    opened_at: u64,
    /// Held by the thread that syncs.
    syncing: Mutex<()>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    led: AtomicU64,
    beside: AtomicU64,
    by_others: AtomicU64,
}

/// The right to lead.
pub(super) struct Lead<'m> {
    page: Option<&'m SharedPage>,
    _syncing: MutexGuard<'m, ()>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            // Should it fail, the lock goes with this process; others sync beside it until then.
            let _ = page.lock_file().unlock(LEAD, LEAD);
        }
    }
}

impl Member {
    /// In the group whose lock `MEMBERS` is held through `page`, with a connection whose log is open.
    pub(super) fn new(
        page: SharedPage,
        log: PathBuf,
        log_file: FileNumbers,
        connection: Connection,
    ) -> Self {
        // After the log was opened: a sync that begins from now on finds this handle older.
        let opened_at = page.word(Word::Begun as usize).load(Ordering::SeqCst);
        Self {
            page,
            log,
            log_file,
            connection,
            opened_at,
            syncing: Mutex::new(()),
            counters: Counters::default(),
        }
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        self.page.word(word as usize)
    }

    /// Whether the latest sync that a leader began has an unknown end, of which this one's handle may not be
    /// told.
    pub(super) fn is_too_young(&self) -> bool {
        let ended = self.ended();
        self.begun() != ended && self.opened_at > ended
    }

    /// Whether nobody else is in the group, which it leaves otherwise.
    fn is_last(&self) -> bool {
        let lock_file = self.page.lock_file();
        let is_alone = || matches!(lock_file.try_lock(MEMBERS, false), Ok(true));
        // Of several that leave at the same time, none would be alone as long as all are there.
        let is_last = is_alone() || (lock_file.unlock(MEMBERS, MEMBERS).is_ok() && is_alone());
        // Who comes now is a member like others.
        is_last && matches!(lock_file.try_lock(MEMBERS, true), Ok(true))
    }

    /// As the last one: whether the disk has all of the log, so that it may go into the database. That
    /// somebody was killed who had written to it leaves commits that nobody has synced.
    fn settles_log(&self) -> bool {
        !self.is_poisoned()
            && !self.is_too_young()
            && settlement::settle(self, self.next_ticket()).is_ok()
    }

    fn next_ticket(&self) -> u64 {
        self.word(Word::Committed).fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Draws a ticket for a commit that has returned.
    pub(super) fn draw(&self) -> u64 {
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.next_ticket()
    }

    /// The latest ticket that anybody has drawn.
    pub(super) fn latest(&self) -> u64 {
        self.committed()
    }

    /// Waits until a ticket is settled.
    pub(super) fn settle(&self, ticket: u64) -> Result<(), Reason> {
        if !settlement::settle(self, ticket)? {
            self.counters.by_others.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Why nothing may be acknowledged any more, if so.
    pub(super) fn poisoned(&self) -> Option<Reason> {
        Reason::of(self.word(Word::Poison).load(Ordering::SeqCst))
    }

    /// Whether nothing may be acknowledged any more.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned().is_some()
    }

    /// Has nothing acknowledged any more, by anybody. The first reason stays.
    pub(super) fn poison(&self, reason: Reason) {
        let poisoned = self.word(Word::Poison).compare_exchange(
            0,
            reason as u64,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if poisoned.is_ok() {
            self.page.bell(BELL).ring();
        }
    }

    pub(super) fn statistics(&self) -> SharedCommitStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SharedCommitStatistics {
            shared_commit_unavailable: None,
            commits: count(&self.counters.commits),
            syncs_led: count(&self.counters.led),
            syncs_beside: count(&self.counters.beside),
            answered_by_others: count(&self.counters.by_others),
            commits_of_all: count(self.word(Word::Committed)),
            leaders_lost: count(self.word(Word::LeadersLost)),
            poisoned: self.poisoned().map(Reason::text),
        }
    }
}

impl Group for Member {
    type Lead<'g> = Lead<'g>;

    fn poisoned(&self) -> Option<Reason> {
        Self::poisoned(self)
    }

    fn poison(&self, reason: Reason) {
        Self::poison(self, reason);
    }

    fn committed(&self) -> u64 {
        self.word(Word::Committed).load(Ordering::SeqCst)
    }

    fn synced(&self) -> u64 {
        self.word(Word::Synced).load(Ordering::SeqCst)
    }

    fn publish(&self, ticket: u64) {
        self.word(Word::Synced).fetch_max(ticket, Ordering::SeqCst);
    }

    fn begun(&self) -> u64 {
        self.word(Word::Begun).load(Ordering::SeqCst)
    }

    fn begin(&self, number: u64) {
        self.word(Word::Begun).store(number, Ordering::SeqCst);
    }

    fn ended(&self) -> u64 {
        self.word(Word::Ended).load(Ordering::SeqCst)
    }

    fn end(&self, number: u64) {
        self.word(Word::Ended).store(number, Ordering::SeqCst);
    }

    fn opened_at(&self) -> u64 {
        self.opened_at
    }

    fn note_lost_leader(&self) {
        self.word(Word::LeadersLost).fetch_add(1, Ordering::SeqCst);
    }

    fn try_lead(&self) -> Option<Lead<'_>> {
        let syncing = self.syncing.try_lock()?;
        let is_free = self.page.lock_file().try_lock(LEAD, false);
        // Where locks fail, others sync beside us: that costs syncs, no more.
        matches!(is_free, Ok(true)).then_some(Lead {
            page: Some(&self.page),
            _syncing: syncing,
        })
    }

    fn try_stand_in(&self) -> Option<Lead<'_>> {
        Some(Lead {
            page: None,
            _syncing: self.syncing.try_lock()?,
        })
    }

    fn sync(&self, is_beside: bool) -> Result<(), Reason> {
        if FileNumbers::of(&self.log).ok() != Some(self.log_file) {
            return Err(Reason::LogReplaced);
        }
        let counter = match is_beside {
            false => &self.counters.led,
            true => &self.counters.beside,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let locked = self.connection.lock().map_err(|_| Reason::SyncFailed)?;
        locked.sync_log().map_err(|_| Reason::SyncFailed)
    }

    fn rings(&self) -> u32 {
        self.page.bell(BELL).rings()
    }

    fn ring(&self) {
        self.page.bell(BELL).ring();
    }

    fn wait(&self, rings: u32, at_most: Duration) {
        self.page.bell(BELL).wait(rings, at_most);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // In a forked child it cannot be locked, and the page is left alone as well.
        if self.connection.lock().is_err() {
            return;
        }
        let is_settled = self.is_last() && self.settles_log();
        let Ok(locked) = self.connection.lock() else {
            return;
        };
        if is_settled {
            let _ = locked.config(codes::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, Some(false));
        }
        // Should its checkpoint fail, the log is there, and the disk has it.
        let _ = locked.close();
        // A page that says what is to be done first stays for whoever opens the database.
        if is_settled && matches!(self.page.lock_file().try_lock(MEMBERS, false), Ok(true)) {
            self.page.remove();
        }
    }
}
