//! The signals of a database in this process: whoever signals, whoever listens, and the one thread that is
//! woken for all who listen.
//!
//! Invariants:
//! - The thread is there while anybody listens, and ends by itself. It runs nothing but code of ours and waits
//!   for nothing but its bell, without a limit of time: where nothing is signalled, nobody wakes.
//! - A listener is told once for as many signals as there were until it looks.
//! - In a forked child nothing of it is used: whoever tries is refused.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxlite_sqlite::{Mutex, fork_generation, spawn_quietly};

use super::board::{PLACES, SharedBoard};
use super::exchange::{self, Board, EarBell};
use super::topic::Topic;
use crate::process::per_file::PerFile;
use crate::wait::bell::Bell;

/// Its thread calls nothing that takes much of a stack.
const STACK_BYTES: usize = 256 * 1024;

/// As long as a wait can be.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// The signals of one database.
pub struct Signals {
    board: io::Result<SharedBoard>,
    hub: Mutex<Hub>,
    generation: u32,
}

#[derive(Default)]
struct Hub {
    station: Option<Arc<Station>>,
    ears: Vec<Arc<Ear>>,
}

type Ear = exchange::Ear<Bell>;

impl EarBell for Bell {
    fn ring(&self) {
        Bell::ring(self);
    }

    fn silence(&self) {
        Bell::silence(self);
    }
}

static SIGNALS: PerFile<Signals> = PerFile::new();

impl Signals {
    /// Those of the database at `path`, which exists.
    ///
    /// Where processes have no memory in common, or this one may not use it, they are those of this process alone:
    /// see [`why_alone`](Self::why_alone).
    pub fn of(path: &Path) -> io::Result<Arc<Self>> {
        let signals = SIGNALS.of(path, || Self {
            board: SharedBoard::open(path),
            hub: Mutex::default(),
            generation: fork_generation(),
        })?;
        signals.board()?;
        Ok(signals)
    }

    fn board(&self) -> io::Result<&SharedBoard> {
        if self.generation != fork_generation() {
            return Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "it was opened before a fork",
            ));
        }
        match &self.board {
            Ok(board) => Ok(board),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    /// Why no other process hears these signals, nor is heard, if so.
    pub fn why_alone(&self) -> Option<&io::Error> {
        self.board().ok().and_then(SharedBoard::why_alone)
    }

    /// A file that is closed whenever a process is gone that has these signals, and touched whenever one of them
    /// watches no longer.
    pub(crate) fn page(&self) -> io::Result<PathBuf> {
        self.board().map(SharedBoard::open_path)
    }

    /// Leaves no page behind at the end of the process, though some thread that is stopped may have it for ever.
    pub(crate) fn abandon(&self) {
        if let Ok(board) = self.board() {
            board.take_away_if_last();
        }
    }

    /// Whoever watches first begins after this place, where a listener begins.
    pub(crate) fn watch_from(&self, number: i64) {
        if let Ok(board) = self.board() {
            let watched = board.watched();
            // Where there is something it is not changed: somebody watches, or has watched.
            let _ = watched.compare_exchange(0, noted(number), Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Wakes whoever listens to one of `topics`, in whatever process. Called after the commit.
    pub fn signal(&self, topics: &[Topic]) {
        if let Ok(board) = self.board() {
            exchange::signal(board, topics);
        }
    }

    /// Listens to `topics` from now on.
    pub fn listen(self: &Arc<Self>, topics: Vec<Topic>) -> io::Result<Listener> {
        let board = self.board()?;
        let ear = Arc::new(Ear::new(topics, Bell::new()?));
        let mut hub = self.hub.lock();
        let station = match &hub.station {
            Some(station) => Arc::clone(station),
            None => {
                let station = Arc::new(Station::take(self)?);
                let its = Arc::clone(&station);
                spawn_quietly("oxlite-signals", STACK_BYTES, move || {
                    its.signals.hear(&its);
                })?;
                hub.station = Some(Arc::clone(&station));
                station
            }
        };
        hub.ears.push(Arc::clone(&ear));
        station.want(&hub.topics());
        ear.begin(board);
        Ok(Listener {
            signals: Arc::clone(self),
            ear,
        })
    }

    /// What the thread does.
    fn hear(&self, station: &Station) {
        loop {
            // Before looking at anything that it tells of.
            let rings = station.rings();
            {
                let mut hub = self.hub.lock();
                if hub.ears.is_empty() {
                    hub.station = None;
                    return;
                }
                let Ok(board) = self.board() else {
                    return;
                };
                for ear in &hub.ears {
                    ear.tell(board);
                }
            }
            station.wait(rings, FOR_EVER);
        }
    }

    fn forget(&self, ear: &Arc<Ear>) {
        if self.board().is_err() {
            return;
        }
        let mut hub = self.hub.lock();
        hub.ears.retain(|known| !Arc::ptr_eq(known, ear));
        if let Some(station) = &hub.station {
            station.want(&hub.topics());
            if hub.ears.is_empty() {
                station.ring();
            }
        }
    }
}

/// The right to watch the files of a database for all who listen, until it is dropped.
pub(crate) struct WatchRight(Arc<Signals>);

impl WatchRight {
    /// The right, if nobody has it. It is taken back from a process that is gone.
    pub(crate) fn take(signals: &Arc<Signals>) -> Option<Self> {
        let is_taken = signals.board().is_ok_and(SharedBoard::try_watch);
        is_taken.then(|| Self(Arc::clone(signals)))
    }

    /// Up to which notification whoever watched has looked; 0 if nobody has.
    pub(crate) fn watched(&self) -> i64 {
        let noted = |board: &SharedBoard| board.watched().load(Ordering::SeqCst);
        let noted = self.0.board().map_or(0, noted);
        noted.saturating_sub(1).cast_signed()
    }

    /// Wakes whoever listens to one of `topics`.
    pub(crate) fn signal(&self, topics: &[Topic]) {
        self.0.signal(topics);
    }

    /// Tells whoever watches later.
    pub(crate) fn note_watched(&self, number: i64) {
        if let Ok(board) = self.0.board() {
            board.watched().store(noted(number), Ordering::SeqCst);
        }
    }
}

/// How the number of a notification stands on the board, where 0 is none.
fn noted(number: i64) -> u64 {
    number.cast_unsigned().wrapping_add(1)
}

impl Drop for WatchRight {
    fn drop(&mut self) {
        if let Ok(board) = self.0.board() {
            board.stop_watching();
        }
    }
}

/// A place on the board, for threads that wait there by themselves; given back when this is dropped.
pub(crate) struct Station {
    signals: Arc<Signals>,
    place: usize,
    is_left: AtomicBool,
}

impl Station {
    /// Takes a place where nothing is wanted yet.
    pub(crate) fn take(signals: &Arc<Signals>) -> io::Result<Self> {
        let place = signals.board()?.take_place()?.ok_or_else(no_place)?;
        Ok(Self {
            signals: Arc::clone(signals),
            place,
            is_left: AtomicBool::new(false),
        })
    }

    /// Says what is to be heard here from now on. Whoever looks at the database afterwards finds what was
    /// committed before, and hears of what is committed later.
    pub(crate) fn want(&self, topics: &[Topic]) {
        if let Ok(board) = self.signals.board()
            && !self.is_left.load(Ordering::SeqCst)
        {
            exchange::want(board, self.place, topics);
        }
    }

    /// How often it has been rung here, to be asked for before looking at what may have changed.
    pub(crate) fn rings(&self) -> u32 {
        self.signals
            .board()
            .map_or(0, |board| board.rings(self.place))
    }

    /// Waits until it is rung here more often than that, for `at_most` at the longest; may return without a cause.
    pub(crate) fn wait(&self, rings: u32, at_most: Duration) {
        if let Ok(board) = self.signals.board() {
            board.wait(self.place, rings, at_most);
        }
    }

    /// Wakes the threads that wait here, whatever stands on the board.
    pub(crate) fn ring(&self) {
        if let Ok(board) = self.signals.board() {
            board.wake(self.place);
        }
    }

    /// Gives the place back. Who waits there is to be woken before, and comes to his end.
    pub(crate) fn leave(&self) {
        if let Ok(board) = self.signals.board()
            && !self.is_left.swap(true, Ordering::SeqCst)
        {
            board.leave_place(self.place);
        }
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Hub {
    fn topics(&self) -> Vec<Topic> {
        let topics = self.ears.iter().flat_map(|ear| ear.topics.iter());
        topics.copied().collect()
    }
}

fn no_place() -> io::Error {
    io::Error::new(
        io::ErrorKind::QuotaExceeded,
        format!("{PLACES} Databases listen to this file already, in this and other processes"),
    )
}

/// Listens to topics of a database until it is dropped.
pub struct Listener {
    signals: Arc<Signals>,
    ear: Arc<Ear>,
}

impl Listener {
    /// The number of the latest signal, to be asked for *before* looking at the database.
    pub fn seen(&self) -> u64 {
        self.signals.board().map_or(0, SharedBoard::latest)
    }

    /// Waits for a signal with a greater number than `seen`, at most until `at_most` has gone by; whether
    /// there was one. Returns early, and with `false`, where the thread is signalled.
    pub fn wait(&self, seen: u64, at_most: Option<Duration>) -> io::Result<bool> {
        let board = self.signals.board()?;
        let is_news = || exchange::newer(board, &self.ear.topics, seen).is_some();
        if is_news() {
            return Ok(true);
        }
        self.silence();
        // What came in between has been told of already.
        if is_news() {
            return Ok(true);
        }
        oxlite_sqlite::about_to_wait();
        self.ear.bell.wait(at_most)?;
        Ok(is_news())
    }

    /// For an event loop: readable when there is news. To be [silenced](Self::silence) before one looks.
    pub fn descriptor(&self) -> i32 {
        self.ear.bell.descriptor()
    }

    /// Makes the descriptor unreadable until the next signal.
    pub fn silence(&self) {
        self.ear.silence();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.signals.forget(&self.ear);
    }
}

#[cfg(all(test, not(loom), target_os = "linux"))]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    /// Ends what hangs; nothing waits for as long as that.
    const AT_MOST_SECONDS: i64 = 30;

    fn is_readable(bell: &Bell, seconds: i64) -> bool {
        let limit = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        let mut watched = [PollFd::from_borrowed_fd(bell.borrowed(), PollFlags::IN)];
        poll(&mut watched, Some(&limit)).expect("a descriptor") == 1
    }

    #[test]
    fn each_signal_after_a_look_makes_the_descriptor_readable_once_more() {
        let path = std::env::temp_dir().join(format!("oxlite-hub-bell-{}", std::process::id()));
        std::fs::write(&path, b"").expect("a folder to write into");
        let signals = Signals::of(&path).expect("memory to share");
        let topic = Topic::named("orders");
        let listener = signals.listen(vec![topic]).expect("a place");
        for _ in 0..3 {
            signals.signal(&[topic]);
            assert!(is_readable(&listener.ear.bell, AT_MOST_SECONDS));
            listener.silence();
            assert!(!is_readable(&listener.ear.bell, 0));
        }
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn whoever_watches_first_begins_where_a_listener_does_and_the_next_one_where_he_was() {
        let path = std::env::temp_dir().join(format!("oxlite-hub-{}", std::process::id()));
        std::fs::write(&path, b"").expect("a folder to write into");
        let signals = Signals::of(&path).expect("memory to share");
        for (listener_begins, watcher_begins, looked) in [(7, 7, 7), (8, 7, 9), (12, 9, 12)] {
            signals.watch_from(listener_begins);
            let right = WatchRight::take(&signals).expect("nobody watches");
            assert_eq!(right.watched(), watcher_begins);
            right.note_watched(looked);
        }
        let _ = std::fs::remove_file(path);
    }
}
