//! A thread that reads notifications for all listeners of a database, and what each of them has not taken yet.
//!
//! Invariants:
//! - The thread reads a notification once for as many listeners as want it, in order. It waits for nothing but
//!   its bell, and keeps no snapshot while it waits.
//! - A listener that takes nothing costs [`WAITING_AT_MOST`] notifications and no more: then nothing is read for
//!   it until it has taken some. What has been deleted by then is lost, and it is told.
//! - A listener begins where the database stands when it is made. What is committed before it has said what it
//!   wants is read afterwards.
//! - After an end (lost, failed, closed) a listener is given nothing more.
//! - A listener's bell rings exactly while something waits for it, or it has come to its end: whoever takes the last
//!   one silences it, under the lock under which others are added.
//! - A forked child has no thread: it is refused.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use oxlite_sqlite::{Mutex, Value, codes, fork_generation, spawn_quietly};

use super::channel::{Channel, EVERYBODY, Pattern};
use super::position::{Epoch, Position};
use super::store::{self, Looked, State};
use super::watch::{self, Look};
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::file::numbers::FileNumbers;
use crate::signals::{Listener, Signals, Station, Topic};
use crate::wait::bell::Bell;

/// What waits for a listener, at most: so many, and bytes of payload, beside the last one.
const WAITING_AT_MOST: usize = 1024;
const WAITING_BYTES_AT_MOST: usize = 4 << 20;

/// How soon one reads again where the file was locked for as long as a connection waits.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Its thread runs a query.
const STACK_BYTES: usize = 512 * 1024;

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// In which channel.
    pub channel: Box<str>,
    /// Text, bytes or NULL, as inserted.
    pub payload: Value,
    /// Which one it is.
    pub position: Position,
}

impl Notification {
    fn bytes(&self) -> usize {
        match &self.payload {
            Value::Text(bytes) | Value::Blob(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// That notifications are not there any more which a listener would have been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Whoever goes on from here is given all that is kept.
    pub resume_from: Position,
    /// Whether the position was of another history.
    pub is_of_another_epoch: bool,
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.is_of_another_epoch {
            true => {
                "the position is of another history: the database was replaced or restored, or the machine was \
                 started anew and may have lost commits"
            }
            false => {
                "notifications after this position have been deleted, since they were too old or too many"
            }
        };
        write!(
            formatter,
            "{why}. Read the state that they tell of anew, then listen with since={:?}",
            self.resume_from.to_string()
        )
    }
}

/// Why a listener is given nothing more.
#[derive(Clone, Debug)]
pub enum End {
    /// Some are not there any more.
    Lost(Lost),
    /// They could not be read.
    Failed(Error),
    /// The feed was closed.
    Closed,
    /// The listener itself was.
    Left,
}

/// Reads the notifications of a database for all who listen, until it is dropped.
pub struct Feed(Arc<Shared>);

struct Shared {
    path: PathBuf,
    file: FileNumbers,
    /// Used by whoever has it locked; for nothing else.
    connection: Arc<Connection>,
    signals: Arc<Signals>,
    station: Station,
    /// Ends the watch.
    is_over: Bell,
    state: Mutex<FeedState>,
    generation: u32,
}

struct FeedState {
    inboxes: Vec<Arc<Inbox>>,
    is_closed: bool,
    /// The threads that read and watch, once they have been started.
    reader: Option<JoinHandle<()>>,
    watcher: Option<JoinHandle<()>>,
}

/// What one listener has not taken yet.
struct Inbox {
    patterns: Box<[Pattern]>,
    bell: Bell,
    content: Mutex<Content>,
}

struct Content {
    waiting: VecDeque<Arc<Notification>>,
    bytes: usize,
    /// Of which history; none as long as there was no table.
    epoch: Option<Epoch>,
    /// All up to this one have been read for it.
    read: i64,
    /// Whether there was no room for one that has been read.
    is_full: bool,
    end: Option<End>,
}

impl Feed {
    /// Reads by this connection, which is used for nothing else.
    pub fn new(connection: Arc<Connection>) -> Result<Self> {
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
        Ok(Self(Arc::new(Shared {
            file: FileNumbers::of(&path).map_err(|error| no_signals(&error))?,
            path,
            connection,
            station,
            signals,
            is_over: Bell::new().map_err(|error| no_signals(&error))?,
            state: Mutex::new(FeedState {
                inboxes: Vec::new(),
                is_closed: false,
                reader: None,
                watcher: None,
            }),
            generation: fork_generation(),
        })))
    }

    /// Listens to channels from now on, or from after `since`.
    pub fn listen(
        &self,
        patterns: Vec<Pattern>,
        since: Option<Position>,
    ) -> Result<Result<Subscription, Lost>> {
        let shared = &self.0;
        shared.check()?;
        let inbox = Arc::new(Inbox {
            patterns: patterns.into(),
            bell: Bell::new().map_err(|error| no_signals(&error))?,
            content: Mutex::new(Content {
                waiting: VecDeque::new(),
                bytes: 0,
                epoch: None,
                read: 0,
                is_full: false,
                end: None,
            }),
        });
        let found = shared.read_state()?;
        let mut state = shared.state.lock();
        if state.is_closed {
            return Err(closed());
        }
        let begins = match (since, found) {
            (None, found) => found.map_or(0, |found| found.latest),
            (Some(since), Some(found)) => match lost(since.number, Some(since.epoch), &found) {
                Some(lost) => return Ok(Err(lost)),
                None => since.number,
            },
            // Where there is no table yet, and none can be made.
            (Some(since), None) => match Position::before_the_first(&shared.path) {
                position if position == since => 0,
                position => {
                    return Ok(Err(Lost {
                        resume_from: position,
                        is_of_another_epoch: true,
                    }));
                }
            },
        };
        {
            let mut content = inbox.content.lock();
            content.read = begins;
            content.epoch = found.map(|found| found.epoch);
        }
        shared
            .signals
            .watch_from(found.map_or(0, |found| found.latest));
        state.begin_to_watch(shared)?;
        if state.reader.is_none() {
            let its = Arc::clone(shared);
            let reader = spawn_quietly("oxlite-notify", STACK_BYTES, move || its.run());
            state.reader = Some(reader.map_err(|error| no_signals(&error))?);
        }
        state.inboxes.push(Arc::clone(&inbox));
        shared.station.want(&state.topics());
        drop(state);
        // For what is there already, and what has come since the latest number was read.
        shared.station.ring();
        Ok(Ok(Subscription {
            shared: Arc::clone(shared),
            inbox,
        }))
    }

    /// Hears whenever rows come to a table of Oxlite's that names one of `topics`, whoever commits them.
    pub fn hear(&self, mut topics: Vec<Topic>) -> Result<Hearing> {
        let shared = &self.0;
        shared.check()?;
        // By which it hears that the file was replaced.
        topics.push(EVERYBODY);
        let found = shared.read_state()?;
        let mut state = shared.state.lock();
        if state.is_closed {
            return Err(closed());
        }
        shared
            .signals
            .watch_from(found.map_or(0, |found| found.latest));
        let listener = shared.signals.listen(topics);
        let listener = listener.map_err(|error| no_signals(&error))?;
        state.begin_to_watch(shared)?;
        Ok(Hearing {
            shared: Arc::clone(shared),
            listener,
        })
    }

    /// Ends all listeners, and waits for the threads to end: a process that goes on to its own end leaves nothing
    /// behind. To be called by whoever holds no lock that a log message may want.
    pub fn close(&self) {
        self.end(&End::Closed);
        self.join();
    }

    /// As [`close`](Self::close), but no listener is told: its iteration ends.
    pub fn leave(&self) {
        self.end(&End::Left);
        self.join();
    }

    fn join(&self) {
        if self.0.generation != fork_generation() {
            return;
        }
        let threads = {
            let mut state = self.0.state.lock();
            [state.reader.take(), state.watcher.take()]
        };
        let here = std::thread::current().id();
        // A thread that is told to close by its own log message does not wait for itself.
        let others = threads.into_iter().flatten();
        for thread in others.filter(|its| its.thread().id() != here) {
            let _ = thread.join();
        }
    }

    /// Ends all listeners, and has the threads end.
    fn end(&self, how: &End) {
        if self.0.generation != fork_generation() {
            return;
        }
        let mut state = self.0.state.lock();
        state.is_closed = true;
        for inbox in state.inboxes.drain(..) {
            inbox.end(how.clone());
        }
        drop(state);
        self.0.station.ring();
        self.0.is_over.ring();
        // They may wait for a lock.
        self.0.connection.interrupt();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.end(&End::Closed);
    }
}

impl FeedState {
    fn begin_to_watch(&mut self, shared: &Arc<Shared>) -> Result<()> {
        if self.watcher.is_none() {
            let its = Arc::clone(shared);
            let watcher = spawn_quietly("oxlite-watch", STACK_BYTES, move || its.watch());
            self.watcher = Some(watcher.map_err(|error| no_signals(&error))?);
        }
        Ok(())
    }

    fn topics(&self) -> Vec<Topic> {
        let patterns = self.inboxes.iter().flat_map(|inbox| inbox.patterns.iter());
        let topics = patterns.map(Pattern::topic);
        topics.chain([EVERYBODY]).collect()
    }
}

/// What of the notifications after that one is not there any more, if any.
fn lost(read: i64, epoch: Option<Epoch>, found: &State) -> Option<Lost> {
    let is_of_another_epoch =
        epoch.is_some_and(|epoch| epoch != found.epoch) || read > found.latest;
    (is_of_another_epoch || read + 1 < found.first_kept).then_some(Lost {
        resume_from: Position {
            epoch: found.epoch,
            number: found.first_kept - 1,
        },
        is_of_another_epoch,
    })
}

impl Shared {
    fn check(&self) -> Result<()> {
        if self.generation != fork_generation() {
            return Err(Error::Programming(
                "the listener was made before a fork: listen anew in the child".into(),
            ));
        }
        Ok(())
    }

    /// Whether the name leads to another file than the one that is read, or to none.
    fn is_replaced(&self) -> bool {
        !FileNumbers::of(&self.path).is_ok_and(|now| now == self.file)
    }

    fn read_state(&self) -> Result<Option<State>> {
        let locked = self.connection.lock().map_err(|_| closed())?;
        store::state(&self.connection, &locked, &self.path)
    }

    /// What the thread does that watches.
    fn watch(self: &Arc<Self>) {
        let mut looks = Watch {
            shared: self,
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
            loop {
                match self.deliver(&inboxes) {
                    Ok(false) => break,
                    Ok(true) => {}
                    // Another program has the file for itself: what follows is read when it has not.
                    Err(Error::Locked { .. }) if !self.state.lock().is_closed => {
                        std::thread::sleep(TRY_AGAIN_AFTER);
                    }
                    Err(error) => {
                        for inbox in &inboxes {
                            inbox.end(End::Failed(error.clone()));
                        }
                        break;
                    }
                }
            }
            self.station.wait(rings);
        }
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
        let mut is_of_one_epoch = true;
        let readers: Vec<_> = reading.iter().map(|(inbox, _)| Arc::clone(inbox)).collect();
        {
            let locked = self.connection.lock().map_err(|_| closed())?;
            store::read_after(
                &self.connection,
                &locked,
                from,
                |key| {
                    let its = Epoch::of(&self.path, key);
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
                    !reading.is_empty()
                },
            )?;
        }
        if is_of_one_epoch && first == Some(from + 1) {
            return Ok(false);
        }
        // None follows, or not the next one.
        if self.is_replaced() {
            return Err(replaced(&self.path));
        }
        let Some(found) = self.read_state()? else {
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
    shared: &'s Shared,
    looked: Looked,
}

impl Look for Watch<'_> {
    fn look(&mut self, watched: i64) -> Result<i64> {
        let shared = self.shared;
        let mut latest = watched;
        let mut topics = Vec::new();
        if shared.is_replaced() {
            shared.signals.signal(&[EVERYBODY]);
            return Ok(watched);
        }
        {
            let locked = shared.connection.lock().map_err(|_| closed())?;
            store::read_after(
                &shared.connection,
                &locked,
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
            if let Ok(others) = store::topics_after(&shared.connection, &locked, &mut self.looked) {
                shared.signals.signal(&others);
            }
        }
        if topics.is_empty() {
            let found = shared.read_state()?;
            let now = found.map_or(0, |found| found.latest);
            if now < watched {
                // It went back: another content in the same file.
                shared.signals.signal(&[EVERYBODY]);
            }
            return Ok(latest.min(now));
        }
        topics.sort_unstable();
        topics.dedup();
        shared.signals.signal(&topics);
        Ok(latest)
    }
}

impl Inbox {
    /// Up to which one it has read, if there is room for another.
    fn has_room(&self) -> Option<i64> {
        let content = self.content.lock();
        (!content.is_full && content.end.is_none()).then_some(content.read)
    }

    /// Whether it reads that history; if it has read none yet, it does from now on.
    fn is_of(&self, epoch: Epoch) -> bool {
        *self.content.lock().epoch.get_or_insert(epoch) == epoch
    }

    /// Offers the notification of that number; whether it may be offered another.
    fn offer(&self, number: i64, channel: &str, make: impl FnOnce() -> Arc<Notification>) -> bool {
        let mut content = self.content.lock();
        if content.is_full || content.end.is_some() {
            return false;
        }
        if number <= content.read {
            return true;
        }
        if !self.patterns.iter().any(|pattern| pattern.matches(channel)) {
            content.read = number;
            return true;
        }
        if content.waiting.len() >= WAITING_AT_MOST || content.bytes >= WAITING_BYTES_AT_MOST {
            content.is_full = true;
            return false;
        }
        let notification = make();
        content.read = number;
        content.bytes += notification.bytes();
        content.waiting.push_back(notification);
        if content.waiting.len() == 1 {
            self.bell.ring();
        }
        true
    }

    /// For one of another history, or that has read up to `read`, after which there is not the next one: it is told
    /// what it has lost, or goes on after what somebody else has deleted; whether either is so.
    fn skip(&self, read: i64, found: &State, first: Option<i64>) -> bool {
        let mut content = self.content.lock();
        let is_of_another_epoch = *content.epoch.get_or_insert(found.epoch) != found.epoch;
        if content.is_full
            || content.end.is_some()
            || (content.read != read && !is_of_another_epoch)
        {
            return false;
        }
        if let Some(lost) = lost(content.read, content.epoch, found) {
            drop(content);
            self.end(End::Lost(lost));
            return true;
        }
        match first {
            Some(first) => {
                content.read = content.read.max(first - 1);
                true
            }
            None => false,
        }
    }

    fn end(&self, end: End) {
        let mut content = self.content.lock();
        if content.end.is_none() {
            content.end = Some(end);
            self.bell.ring();
        }
    }
}

/// A listener: what is notified in its channels waits here until it is taken. Ends when it is dropped.
pub struct Subscription {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
}

impl Subscription {
    /// The next one; `None` if none waits. From any thread.
    pub fn take(&self) -> Result<Option<Arc<Notification>>, End> {
        self.shared.check().map_err(End::Failed)?;
        let mut content = self.inbox.content.lock();
        let Some(notification) = content.waiting.pop_front() else {
            return match &content.end {
                Some(end) => Err(end.clone()),
                None => Ok(None),
            };
        };
        content.bytes -= notification.bytes();
        if content.waiting.is_empty() && content.end.is_none() {
            self.inbox.bell.silence();
        }
        // Half of them at a time.
        let is_refilled = content.is_full
            && content.waiting.len() <= WAITING_AT_MOST / 2
            && content.bytes <= WAITING_BYTES_AT_MOST / 2;
        if is_refilled {
            content.is_full = false;
        }
        drop(content);
        if is_refilled {
            self.shared.station.ring();
        }
        Ok(Some(notification))
    }

    /// Waits until one may be there, for `at_most` at the longest; returns early where the thread is signalled.
    pub fn wait(&self, at_most: Option<Duration>) -> io::Result<()> {
        oxlite_sqlite::about_to_wait();
        self.inbox.bell.wait(at_most)
    }

    /// For an event loop: readable while one waits, and after the end.
    pub fn descriptor(&self) -> i32 {
        self.inbox.bell.descriptor()
    }

    /// Listens no longer, and wakes whoever waits. What was not taken is forgotten.
    pub fn close(&self) {
        if self.shared.check().is_err() {
            return;
        }
        {
            let mut content = self.inbox.content.lock();
            content.waiting.clear();
            content.bytes = 0;
            content.end = Some(End::Left);
            self.inbox.bell.ring();
        }
        let mut state = self.shared.state.lock();
        state
            .inboxes
            .retain(|known| !Arc::ptr_eq(known, &self.inbox));
        self.shared.station.want(&state.topics());
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.close();
    }
}

/// Hears of rows in tables of Oxlite's, until it is dropped.
///
/// What is asked first is the number of the latest signal ([`seen`](Self::seen)), then the database, and then whether
/// there is a newer one.
pub struct Hearing {
    shared: Arc<Shared>,
    listener: Listener,
}

impl Hearing {
    /// The number of the latest signal.
    pub fn seen(&self) -> u64 {
        self.listener.seen()
    }

    /// Whether there is a signal with a greater number; if not, the descriptor is readable when there is one.
    pub fn has_newer(&self, seen: u64) -> Result<bool> {
        self.shared.check()?;
        self.listener
            .wait(seen, Some(Duration::ZERO))
            .map_err(|error| no_signals(&error))
    }

    /// For an event loop: readable when there is news.
    pub fn descriptor(&self) -> i32 {
        self.listener.descriptor()
    }

    /// Whether the name of the database leads to another file, or to none.
    pub fn is_replaced(&self) -> bool {
        self.shared.is_replaced()
    }
}

fn closed() -> Error {
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

fn no_signals(error: &io::Error) -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_IOERR,
        format!("cannot listen for notifications: {error}"),
    ))
}
