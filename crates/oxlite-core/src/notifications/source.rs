//! Who reads the notifications of a database, when, and for whom.
//!
//! Invariants:
//! - A notification is read once for as many listeners as want it, in order, and no snapshot is kept while one waits.
//! - As long as there is one listener, and a thread waits for it, that thread reads by itself: it is woken by the
//!   commit and by nobody in between. From the second listener on, and for an event loop, a thread of its own reads.
//!   Two that read at once do no harm: a listener is offered nothing that it has read.
//! - Whoever reads waits for a lock of the file for [`LOCKED_AT_MOST`], and then tries again.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use oxlite_sqlite::{Locked, Mutex, codes, fork_generation, spawn_quietly};

use super::channel::{Channel, EVERYBODY, Pattern};
use super::inbox::{End, Inbox, Notification};
use super::position::{Epoch, Position};
use super::store::{self, Looked, State};
use super::watch::{self, Look};
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::file::numbers::FileNumbers;
use crate::signals::{FOR_EVER, Listener, Signals, Station, Topic};
use crate::wait::bell::Bell;

/// For how long one waits for a lock of the file each time, as another program may have it for itself: whoever closes
/// the feed, or wants to read by its connection, waits for that.
const LOCKED_AT_MOST: Duration = Duration::from_millis(20);

/// Its thread runs a query.
const STACK_BYTES: usize = 512 * 1024;

/// The reading for a database in this process.
pub(super) struct Source {
    path: PathBuf,
    file: FileNumbers,
    /// Used by whoever has it locked; for nothing else.
    connection: Arc<Connection>,
    signals: Arc<Signals>,
    station: Station,
    /// Ends the watch.
    is_over: Bell,
    state: Mutex<Listeners>,
    generation: u32,
}

struct Listeners {
    inboxes: Vec<Arc<Inbox>>,
    is_closed: bool,
    /// The threads that read and watch, once they have been started.
    reader: Option<JoinHandle<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl Listeners {
    fn begin_to_read(&mut self, source: &Arc<Source>) -> Result<()> {
        if self.reader.is_none() {
            let its = Arc::clone(source);
            let reader = spawn_quietly("oxlite-notify", STACK_BYTES, move || its.run());
            self.reader = Some(reader.map_err(|error| no_signals(&error))?);
        }
        Ok(())
    }

    fn begin_to_watch(&mut self, source: &Arc<Source>) -> Result<()> {
        if self.watcher.is_none() {
            let its = Arc::clone(source);
            let watcher = spawn_quietly("oxlite-watch", STACK_BYTES, move || its.watch());
            self.watcher = Some(watcher.map_err(|error| no_signals(&error))?);
        }
        Ok(())
    }

    fn topics(&self) -> Vec<Topic> {
        let patterns = self.inboxes.iter().flat_map(|inbox| inbox.patterns());
        let topics = patterns.map(Pattern::topic);
        topics.chain([EVERYBODY]).collect()
    }
}

impl Source {
    /// Reads by this connection, which is used for nothing else.
    pub(super) fn new(connection: Arc<Connection>) -> Result<Self> {
        let path = {
            let locked = connection.lock().map_err(|_| closed())?;
            locked.path().ok_or_else(no_file)?
        };
        let signals = Signals::of(&path).map_err(|error| no_signals(&error))?;
        if let Some(why) = signals.why_alone() {
            log::warn!(
                "No memory is shared with the other processes that use {}: {why}. What they notify is heard some \
                 milliseconds later, like other programs' commits.",
                path.display()
            );
        }
        let station = Station::take(&signals).map_err(|error| no_signals(&error))?;
        Ok(Self {
            file: FileNumbers::of(&path).map_err(|error| no_signals(&error))?,
            path,
            connection,
            station,
            signals,
            is_over: Bell::new().map_err(|error| no_signals(&error))?,
            state: Mutex::new(Listeners {
                inboxes: Vec::new(),
                is_closed: false,
                reader: None,
                watcher: None,
            }),
            generation: fork_generation(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// From now on it is read for that listener as well, which begins where the database stood at `latest`.
    pub(super) fn read_also_for(self: &Arc<Self>, inbox: &Arc<Inbox>, latest: i64) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(closed());
        }
        self.signals.watch_from(latest);
        state.begin_to_watch(self)?;
        if !state.inboxes.is_empty() {
            state.begin_to_read(self)?;
        }
        state.inboxes.push(Arc::clone(inbox));
        self.station.want(&state.topics());
        drop(state);
        // For what is there already, and what has come since the latest number was read; and for the one who has read
        // by himself until now.
        self.station.ring();
        Ok(())
    }

    /// Hears of topics that are no notifications.
    pub(super) fn hear(self: &Arc<Self>, topics: Vec<Topic>) -> Result<Listener> {
        let found = self.state_now()?;
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(closed());
        }
        self.signals
            .watch_from(found.map_or(0, |found| found.latest));
        let listener = self.signals.listen(topics);
        let listener = listener.map_err(|error| no_signals(&error))?;
        state.begin_to_watch(self)?;
        Ok(listener)
    }

    /// Waits for the threads to end.
    pub(super) fn join(&self) {
        if self.generation != fork_generation() {
            return;
        }
        let threads = {
            let mut state = self.state.lock();
            [state.reader.take(), state.watcher.take()]
        };
        let here = std::thread::current().id();
        // A thread that is told to close by its own log message does not wait for itself.
        let others = threads.into_iter().flatten();
        for thread in others.filter(|its| its.thread().id() != here) {
            let _ = thread.join();
        }
    }

    /// Leaves no shared memory behind, though somebody may have a listener for ever.
    pub(super) fn abandon(&self) {
        self.signals.abandon();
    }

    /// Ends all listeners, and has the threads end.
    pub(super) fn end(&self, how: &End) {
        if self.generation != fork_generation() {
            return;
        }
        let mut state = self.state.lock();
        state.is_closed = true;
        for inbox in state.inboxes.drain(..) {
            inbox.end(how.clone());
        }
        drop(state);
        self.station.ring();
        // Others may have its place, though somebody still has a listener that has ended.
        self.station.leave();
        self.is_over.ring();
        // They may wait for a lock.
        self.connection.interrupt();
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.generation != fork_generation() {
            return Err(Error::Programming(
                "the listener was made before a fork: listen anew in the child".into(),
            ));
        }
        Ok(())
    }

    /// Whether the name leads to another file than the one that is read, or to none.
    pub(super) fn is_replaced(&self) -> bool {
        !FileNumbers::of(&self.path).is_ok_and(|now| now == self.file)
    }

    /// What there is now.
    pub(super) fn state_now(&self) -> Result<Option<State>> {
        self.read_by(|locked| store::state(&self.connection, locked, &self.path))
    }

    /// What the thread does that watches.
    fn watch(self: &Arc<Self>) {
        let mut looks = Watch {
            source: self,
            looked: Looked::default(),
        };
        watch::watch(&self.path, &self.signals, &mut looks, &self.is_over);
    }

    /// What the thread does that reads.
    fn run(&self) {
        loop {
            // Before looking at anything that it tells of.
            let rings = self.station.rings();
            let inboxes = {
                let state = self.state.lock();
                if state.is_closed {
                    return;
                }
                state.inboxes.clone()
            };
            while self.read_for(&inboxes) {
                if self.state.lock().is_closed {
                    return;
                }
            }
            self.station.wait(rings, FOR_EVER);
        }
    }

    /// Reads for a listener by itself, and waits for `at_most` at the longest if there is nothing; `false` if a
    /// thread reads for all. Returns early where the thread is signalled.
    pub(super) fn read_alone(&self, inbox: &Arc<Inbox>, at_most: Option<Duration>) -> bool {
        // Before looking at anything that it tells of.
        let rings = self.station.rings();
        if self.state.lock().reader.is_some() {
            return false;
        }
        let is_over = !self.read_for(std::slice::from_ref(inbox));
        if inbox.has_ended() {
            // Other threads may wait for it.
            self.station.ring();
        } else if is_over && !inbox.has_news() {
            self.station.wait(rings, at_most.unwrap_or(FOR_EVER));
        }
        true
    }

    /// From now on a thread reads for all.
    pub(super) fn read_by_thread(self: &Arc<Self>) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Ok(());
        }
        state.begin_to_read(self)
    }

    /// There is room again for what was not read.
    pub(super) fn read_on(&self) {
        self.station.ring();
    }

    /// Reads for a listener no longer, and wakes whoever reads for it.
    pub(super) fn forget(&self, inbox: &Arc<Inbox>) {
        let mut state = self.state.lock();
        state.inboxes.retain(|known| !Arc::ptr_eq(known, inbox));
        self.station.want(&state.topics());
        drop(state);
        self.station.ring();
    }

    /// Reads what there is for them, or tells them why not; whether to do it once more.
    fn read_for(&self, inboxes: &[Arc<Inbox>]) -> bool {
        match self.deliver(inboxes) {
            Ok(goes_on) => goes_on,
            // Another program has the file for itself: what follows is read when it has not.
            Err(Error::Locked { .. }) => true,
            Err(error) => {
                for inbox in inboxes {
                    inbox.end(End::Failed(error.clone()));
                }
                false
            }
        }
    }

    /// Whether the table of notifications is there.
    pub(super) fn is_prepared(&self) -> Result<bool> {
        self.read_by(|locked| store::is_prepared(&self.connection, locked))
    }

    /// Reads by the connection.
    fn read_by<T>(&self, read: impl FnOnce(&Locked<'_>) -> Result<T>) -> Result<T> {
        let locked = self.connection.lock().map_err(|_| closed())?;
        let deadline = self.connection.deadline();
        // A signal handler that closes the feed here would wait for a thread that waits for the connection.
        let _shield = deadline.shield();
        deadline.waiting_at_most(LOCKED_AT_MOST, || read(&locked))
    }

    /// Reads what there is for those who have room; whether to look once more, since some have lost what they
    /// stood before, or it was deleted.
    fn deliver(&self, inboxes: &[Arc<Inbox>]) -> Result<bool> {
        // Whoever makes room meanwhile is read for from where it stands, the next time.
        let mut reading: Vec<_> = inboxes
            .iter()
            .filter_map(|inbox| inbox.has_room().map(|read| (inbox, read)))
            .collect();
        let Some(from) = reading.iter().map(|(_, read)| *read).min() else {
            return Ok(false);
        };
        let mut first = None;
        let epoch = Cell::new(None);
        let mut unknown = None;
        let mut has_skipped = false;
        let mut is_of_one_epoch = true;
        let readers: Vec<_> = reading.iter().map(|(inbox, _)| Arc::clone(inbox)).collect();
        self.read_by(|locked| {
            store::read_after(
                &self.connection,
                locked,
                from,
                |key| {
                    let its = match Epoch::of(&self.path, key) {
                        Ok(its) => its,
                        Err(error) => {
                            unknown = Some(error);
                            return false;
                        }
                    };
                    epoch.set(Some(its));
                    is_of_one_epoch = readers.iter().all(|inbox| inbox.is_of(its));
                    is_of_one_epoch
                },
                |number, channel, payload| {
                    if *first.get_or_insert(number) != from + 1 {
                        return false; // some may be lost
                    }
                    let Some(epoch) = epoch.get() else {
                        return false;
                    };
                    let position = Position { epoch, number };
                    let mut made = None;
                    reading.retain(|(inbox, _)| {
                        inbox.offer(number, channel, || {
                            Arc::clone(made.get_or_insert_with(|| {
                                Arc::new(Notification {
                                    channel: channel.into(),
                                    payload: payload.into(),
                                    position,
                                })
                            }))
                        })
                    });
                    // Those that are further are read for from there, and not from here on.
                    has_skipped = reading.iter().all(|(_, read)| *read > number);
                    !has_skipped
                },
            )
        })?;
        if let Some(error) = unknown {
            return Err(error);
        }
        if is_of_one_epoch && first == Some(from + 1) {
            return Ok(has_skipped && !reading.is_empty());
        }
        // None follows, or not the next one.
        if self.is_replaced() {
            return Err(replaced(&self.path));
        }
        let Some(found) = self.state_now()? else {
            return Ok(false);
        };
        let mut goes_on = false;
        for inbox in inboxes {
            goes_on |= inbox.skip(from, &found, first);
        }
        // Whoever stands elsewhere is read for from there.
        Ok(goes_on || first.is_some() && reading.iter().any(|(_, read)| *read != from))
    }
}

/// Looks for what nobody has signalled.
struct Watch<'s> {
    source: &'s Source,
    looked: Looked,
}

impl Look for Watch<'_> {
    fn look(&mut self, watched: i64) -> Result<i64> {
        let source = self.source;
        let mut latest = watched;
        let mut topics = Vec::new();
        if source.is_replaced() {
            source.signals.signal(&[EVERYBODY]);
            return Ok(watched);
        }
        source.read_by(|locked| {
            store::read_after(
                &source.connection,
                locked,
                watched,
                |_key| true,
                |number, channel, _| {
                    latest = number;
                    match Channel::named(channel) {
                        Ok(channel) => topics.extend(channel.topics()),
                        // A name that only other programs give.
                        Err(_) => topics.push(EVERYBODY),
                    }
                    true
                },
            )?;
            // A table that is not as it should be makes nobody deaf to the others.
            if let Ok(others) = store::topics_after(&source.connection, locked, &mut self.looked) {
                source.signals.signal(&others);
            }
            Ok(())
        })?;
        if topics.is_empty() {
            let found = source.state_now()?;
            let now = found.map_or(0, |found| found.latest);
            if now < watched {
                // It went back: another content in the same file.
                source.signals.signal(&[EVERYBODY]);
            }
            return Ok(latest.min(now));
        }
        topics.sort_unstable();
        topics.dedup();
        source.signals.signal(&topics);
        Ok(latest)
    }
}

pub(super) fn closed() -> Error {
    Error::Programming("Cannot operate on a closed database.".into())
}

fn replaced(path: &Path) -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_READONLY_DBMOVED,
        format!(
            "{} was deleted or replaced while somebody listened: open it anew, and listen again",
            path.display()
        ),
    ))
}

fn no_file() -> Error {
    Error::Programming("who listens needs a database in a file".into())
}

pub(super) fn no_signals(error: &io::Error) -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_IOERR,
        format!("cannot listen for notifications: {error}"),
    ))
}
