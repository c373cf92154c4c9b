//! The board of a database: a page of shared memory, and the place of a process that listens.
//!
//! Invariants:
//! - Whoever has the shared page mapped has the byte [`MEMBERS`] of its file locked, together with the others; the
//!   last of them takes the page along.
//! - A place is taken by whoever has its byte locked alone, and marked as taken only by him. Its mark is
//!   cleared by him, or by somebody who could lock the byte because he is gone.
//! - What a place wants is changed by its owner, and a bit that goes on being wanted is never cleared.
//! - Nothing of the page needs to be believed: what another program has written there wakes somebody in vain,
//!   or makes him wait until the next signal.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxlite_sqlite::{Byte, Mutex, PageKind, SharedBell, SharedPage};

use super::exchange::Board;
use super::topic::{BUCKETS, Topic, WANTED_BITS};
use crate::file::numbers::FileNumbers;

/// So many processes can listen to one database.
pub(super) const PLACES: usize = 128;
const BITS: usize = u64::BITS as usize;
const GROUPS: usize = PLACES / BITS;
const WANTED_CELLS: usize = WANTED_BITS / BITS;

/// After so many rings in a row that woke nobody one looks whether anybody is there: a listener that is awake
/// is not to be woken either, and looking is a system call.
const IN_VAIN_AT_MOST: u64 = 64;

/// For how long whoever takes the page away is waited for, and how often one looks.
const OPENING_AT_MOST: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_micros(200);

const PAGE: PageKind = PageKind::new(
    "-signals1",
    FIRST_GROUP + GROUPS,
    PLACES,
    BUCKETS + PLACES * (WANTED_CELLS + 1),
);

// Words: the latest number, how far whoever watches the files has looked, and a bit for each place that is taken.
const LATEST: usize = 0;
const WATCHED: usize = 1;
const FIRST_GROUP: usize = 2;

// Cells: the latest signals, then for each place what is wanted and how often its bell rang in vain.
const fn wanted_cell(place: usize, index: usize) -> usize {
    BUCKETS + place * (WANTED_CELLS + 1) + index
}

const fn in_vain_cell(place: usize) -> usize {
    wanted_cell(place, WANTED_CELLS)
}

/// Locked together by all who have the page; alone by whoever takes it away.
const MEMBERS: Byte = Byte(0);

/// Locked by whoever watches the files for all.
const WATCHER: Byte = Byte(u8::MAX);

fn byte_of(place: usize) -> Byte {
    Byte(u8::try_from(place + 1).unwrap_or(u8::MAX))
}

/// The board of one database, as one of those who have it.
pub(super) struct SharedBoard {
    page: SharedPage,
    /// Held while places are taken and given back: a byte can be locked again through its own descriptor.
    places: Mutex<()>,
    /// A bit for each place of this process, whose byte must not be tried by itself.
    own: [AtomicU64; GROUPS],
    /// The same for the watcher's byte.
    is_watcher: AtomicBool,
    /// Why no other process has it, if so.
    why_alone: Option<io::Error>,
}

impl SharedBoard {
    /// The board of the database at `path`, which exists; one of this process alone if it can have none together
    /// with others.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = FileNumbers::of(path)?;
        match Self::open_shared(file) {
            Err(why) => Ok(Self::new(SharedPage::alone(PAGE)?, Some(why))),
            shared => shared,
        }
    }

    fn open_shared(file: FileNumbers) -> io::Result<Self> {
        let began = Instant::now();
        while began.elapsed() < OPENING_AT_MOST {
            if let Some(board) = Self::attempt(file)? {
                return Ok(board);
            }
            // Its last member takes it away just now.
            std::thread::sleep(PAUSE);
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another process that takes the page away does not come to an end",
        ))
    }

    fn new(page: SharedPage, why_alone: Option<io::Error>) -> Self {
        Self {
            page,
            places: Mutex::new(()),
            own: [const { AtomicU64::new(0) }; GROUPS],
            is_watcher: AtomicBool::new(false),
            why_alone,
        }
    }

    fn attempt(file: FileNumbers) -> io::Result<Option<Self>> {
        let page = match SharedPage::open(PAGE, file.device, file.inode) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            page => page?,
        };
        if !page.lock_file().try_lock(MEMBERS, true)? || !page.is_in_place() {
            return Ok(None);
        }
        Ok(Some(Self::new(page, None)))
    }

    /// Why no other process has this board, if so.
    pub(super) fn why_alone(&self) -> Option<&io::Error> {
        self.why_alone.as_ref()
    }

    /// Takes a place for this process; `None` if all are taken.
    pub(super) fn take_place(&self) -> io::Result<Option<usize>> {
        let _places = self.places.lock();
        for place in 0..PLACES {
            if is_set(&self.own, place) || !self.page.lock_file().try_lock(byte_of(place), false)? {
                continue;
            }
            set(&self.own[place / BITS], place, true);
            self.want(place, &[]);
            self.page
                .cell(in_vain_cell(place))
                .store(0, Ordering::SeqCst);
            // Whoever waited here before is gone.
            self.bell(place).forget_waiting();
            set(self.taken(place / BITS), place, true);
            return Ok(Some(place));
        }
        Ok(None)
    }

    /// Gives a place back.
    pub(super) fn leave_place(&self, place: usize) {
        let _places = self.places.lock();
        set(self.taken(place / BITS), place, false);
        // In a forked child it fails: the place is the parent's.
        let _ = self.page.lock_file().unlock(byte_of(place), byte_of(place));
        set(&self.own[place / BITS], place, false);
    }

    /// How often the bell at that place has rung.
    pub(super) fn rings(&self, place: usize) -> u32 {
        self.bell(place).rings()
    }

    /// Waits until it rings again; may return without a cause.
    pub(super) fn wait(&self, place: usize, rings: u32, at_most: Duration) {
        self.bell(place).wait(rings, at_most);
    }

    /// Becomes the one that watches the files, if nobody is.
    pub(super) fn try_watch(&self) -> bool {
        if self.is_watcher.swap(true, Ordering::SeqCst) {
            return false;
        }
        let is_taken = matches!(self.page.lock_file().try_lock(WATCHER, false), Ok(true));
        self.is_watcher.store(is_taken, Ordering::SeqCst);
        is_taken
    }

    /// Watches no longer, and touches the page's file, by which the others hear of it: this process may go on to have
    /// it open.
    pub(super) fn stop_watching(&self) {
        let _ = self.page.lock_file().unlock(WATCHER, WATCHER);
        self.is_watcher.store(false, Ordering::SeqCst);
        self.page.lock_file().touch();
    }

    /// How far whoever watches has looked, or has before.
    pub(super) fn watched(&self) -> &AtomicU64 {
        self.page.word(WATCHED)
    }

    /// The page's file, which is closed when one who has it is gone: this one, whatever its name leads to by now.
    pub(super) fn open_path(&self) -> PathBuf {
        self.page.lock_file().open_path()
    }

    /// Takes the page away if no other process has it.
    pub(super) fn take_away_if_last(&self) {
        // In a forked child this fails, and the page stays.
        if let Ok(true) = self.page.lock_file().try_lock(MEMBERS, false) {
            self.page.remove();
        }
    }

    /// Wakes all who wait at a place of this process.
    pub(super) fn wake(&self, place: usize) {
        self.bell(place).wake();
    }

    fn bell(&self, place: usize) -> SharedBell<'_> {
        self.page.bell(place)
    }

    fn taken(&self, group: usize) -> &AtomicU64 {
        self.page.word(FIRST_GROUP + group)
    }

    /// Takes the mark of a place away whose owner is gone.
    fn clear_if_gone(&self, place: usize) {
        let _places = self.places.lock();
        if is_set(&self.own, place) {
            return;
        }
        if let Ok(true) = self.page.lock_file().try_lock(byte_of(place), false) {
            set(self.taken(place / BITS), place, false);
            let _ = self.page.lock_file().unlock(byte_of(place), byte_of(place));
        }
    }
}

fn is_set(groups: &[AtomicU64; GROUPS], place: usize) -> bool {
    groups[place / BITS].load(Ordering::SeqCst) & (1 << (place % BITS)) != 0
}

fn set(group: &AtomicU64, place: usize, is_set: bool) {
    let bit = 1 << (place % BITS);
    match is_set {
        true => group.fetch_or(bit, Ordering::SeqCst),
        false => group.fetch_and(!bit, Ordering::SeqCst),
    };
}

impl Board for SharedBoard {
    fn latest(&self) -> u64 {
        self.page.word(LATEST).load(Ordering::SeqCst)
    }

    fn draw(&self) -> u64 {
        self.page.word(LATEST).fetch_add(1, Ordering::SeqCst) + 1
    }

    fn latest_of(&self, topic: Topic) -> u64 {
        self.page.cell(topic.bucket()).load(Ordering::SeqCst)
    }

    fn note(&self, topic: Topic, number: u64) {
        let cell = self.page.cell(topic.bucket());
        cell.fetch_max(number, Ordering::SeqCst);
    }

    fn each_that_wants(&self, topics: &[Topic], mut ring: impl FnMut(usize)) {
        for group in 0..GROUPS {
            let mut taken = self.taken(group).load(Ordering::SeqCst);
            while taken != 0 {
                let place = group * BITS + taken.trailing_zeros() as usize;
                taken &= taken - 1;
                let is_wanted = |topic: &Topic| {
                    let bit = topic.wanted_bit();
                    let cell = self.page.cell(wanted_cell(place, bit / BITS));
                    cell.load(Ordering::SeqCst) & (1 << (bit % BITS)) != 0
                };
                if topics.iter().any(is_wanted) {
                    ring(place);
                }
            }
        }
    }

    fn want(&self, place: usize, topics: &[Topic]) {
        let mut cells = [0; WANTED_CELLS];
        for topic in topics {
            let bit = topic.wanted_bit();
            cells[bit / BITS] |= 1 << (bit % BITS);
        }
        for (index, bits) in cells.into_iter().enumerate() {
            let cell = self.page.cell(wanted_cell(place, index));
            cell.store(bits, Ordering::SeqCst);
        }
        // It is, unless another program has written into the page.
        if is_set(&self.own, place) {
            set(self.taken(place / BITS), place, true);
        }
    }

    fn has_listeners(&self) -> bool {
        (0..GROUPS).any(|group| self.taken(group).load(Ordering::SeqCst) != 0)
    }

    fn ring(&self, place: usize) {
        let in_vain = self.page.cell(in_vain_cell(place));
        if self.bell(place).ring() {
            in_vain.store(0, Ordering::Relaxed);
        } else if in_vain.fetch_add(1, Ordering::Relaxed) + 1 >= IN_VAIN_AT_MOST {
            in_vain.store(0, Ordering::Relaxed);
            self.clear_if_gone(place);
        }
    }
}

impl Drop for SharedBoard {
    fn drop(&mut self) {
        self.take_away_if_last();
    }
}

#[cfg(all(test, not(loom), target_os = "linux"))]
mod tests {
    use super::*;
    use crate::signals::exchange;

    const TOPIC: Topic = Topic::named("orders");

    fn file(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("oxlite-board-{}-{name}", std::process::id()));
        std::fs::write(&path, b"").expect("a folder to write into");
        path
    }

    #[test]
    fn the_mark_of_one_who_is_gone_is_taken_away_and_that_of_one_who_is_there_stays() {
        let path = file("marks");
        let here = SharedBoard::open(&path).expect("shared memory");
        let gone = SharedBoard::open(&path).expect("shared memory");
        let there = SharedBoard::open(&path).expect("shared memory");
        let place_of = |board: &SharedBoard| {
            let place = board.take_place().expect("locks").expect("a place");
            board.want(place, &[TOPIC]);
            place
        };
        let (first, second) = (place_of(&gone), place_of(&there));
        assert_ne!(first, second);

        // Its descriptor is closed with its lock, and its mark stays: as if it had been killed.
        drop(gone);
        for _ in 0..IN_VAIN_AT_MOST {
            exchange::signal(&here, &[TOPIC]);
        }

        let mut marked = Vec::new();
        here.each_that_wants(&[TOPIC], |place| marked.push(place));
        assert_eq!(marked, [second]);
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn whoever_comes_while_the_last_one_goes_finds_a_page() {
        let path = file("coming-and-going");
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..500 {
                        SharedBoard::open(&path).expect("shared memory");
                    }
                });
            }
        });
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn whoever_has_given_his_place_back_is_not_among_those_who_listen() {
        let path = file("leaving");
        let board = SharedBoard::open(&path).expect("shared memory");
        let place = board.take_place().expect("locks").expect("a place");
        board.want(place, &[TOPIC]);
        assert!(board.has_listeners());

        board.leave_place(place);

        assert!(!board.has_listeners());
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn all_places_can_be_taken_and_no_more() {
        let path = file("places");
        let board = SharedBoard::open(&path).expect("shared memory");
        for place in 0..PLACES {
            assert_eq!(board.take_place().expect("locks"), Some(place));
        }
        assert_eq!(board.take_place().expect("locks"), None);

        board.leave_place(5);

        assert_eq!(board.take_place().expect("locks"), Some(5));
        let _ = std::fs::remove_file(path);
    }
}
