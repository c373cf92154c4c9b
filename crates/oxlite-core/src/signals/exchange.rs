//! Who wakes whom: the decisions alone. What they are about (words of shared memory and bells) is behind
//! [`Board`], so that a model can stand in for it.
//!
//! Invariants:
//! - A signal's number is drawn after its commit, noted for its topics, and only then is anybody woken.
//! - A listener says what it wants before it reads the number from which on it listens, and that before it
//!   looks at the database.
//! - Before a listener looks it makes its bell silent. Whoever finds that the bell has been rung already rings
//!   no second time: the listener has not looked since, and will.
//! - So either it finds the commit when it looks, or the commit's number is greater than its own, and whoever
//!   commits finds it among those who listen.

use super::topic::Topic;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(all(test, loom))]
mod model;

/// The memory that all have in common.
pub(super) trait Board {
    /// The number of the latest signal.
    fn latest(&self) -> u64;
    /// The number of another one.
    fn draw(&self) -> u64;
    /// That of the latest signal of `topic`.
    fn latest_of(&self, topic: Topic) -> u64;
    /// Notes a signal of `topic`, unless a later one is noted.
    fn note(&self, topic: Topic, number: u64);
    /// Calls `ring` for each place where somebody may listen to one of `topics`.
    fn each_that_wants(&self, topics: &[Topic], ring: impl FnMut(usize));
    /// Says what is wanted at a place.
    fn want(&self, place: usize, topics: &[Topic]);
    /// Whether anybody listens to anything.
    fn has_listeners(&self) -> bool;
    /// Wakes whoever listens at that place.
    fn ring(&self, place: usize);
}

/// Wakes whoever listens to one of `topics`. Called after what they are to find has been committed.
pub(super) fn signal<B: Board>(board: &B, topics: &[Topic]) {
    // Whoever begins to listen after this look looks at the database after the commit: of the two, who writes
    // and who listens, each writes first and then reads what the other one has written.
    fence(Ordering::SeqCst);
    if topics.is_empty() || !board.has_listeners() {
        return;
    }
    let number = board.draw();
    for topic in topics {
        board.note(*topic, number);
    }
    board.each_that_wants(topics, |place| board.ring(place));
}

/// Says what is wanted at a place: of what is committed from now on, whoever has that place is told.
pub(super) fn want<B: Board>(board: &B, place: usize, topics: &[Topic]) {
    board.want(place, topics);
    fence(Ordering::SeqCst);
}

/// The number of the latest signal of one of `topics`, if that is greater than `seen`.
pub(super) fn newer<B: Board>(board: &B, topics: &[Topic], seen: u64) -> Option<u64> {
    topics
        .iter()
        .map(|topic| board.latest_of(*topic))
        .max()
        .filter(|latest| *latest > seen)
}

/// What a listener hears news by.
pub(super) trait EarBell {
    fn ring(&self);
    fn silence(&self);
}

/// A listener, as the thread sees it that is woken for all listeners of a process.
pub(super) struct Ear<R> {
    pub(super) topics: Vec<Topic>,
    /// The latest number that it was told of.
    told: AtomicU64,
    is_rung: AtomicBool,
    pub(super) bell: R,
}

impl<R: EarBell> Ear<R> {
    pub(super) fn new(topics: Vec<Topic>, bell: R) -> Self {
        Self {
            topics,
            told: AtomicU64::new(0),
            is_rung: AtomicBool::new(false),
            bell,
        }
    }

    /// From now on it is told of what comes. What it wants stands on the board already: see [`want`].
    pub(super) fn begin<B: Board>(&self, board: &B) {
        self.told.store(board.latest(), Ordering::SeqCst);
    }

    /// Rings its bell if there is news for it.
    pub(super) fn tell<B: Board>(&self, board: &B) {
        let told = self.told.load(Ordering::SeqCst);
        if let Some(latest) = newer(board, &self.topics, told) {
            self.told.store(latest, Ordering::SeqCst);
            if !self.is_rung.swap(true, Ordering::SeqCst) {
                self.bell.ring();
            }
        }
    }

    /// Makes its bell silent, for a listener that looks afterwards.
    pub(super) fn silence(&self) {
        // In this order: the other way round a ring in between would be silenced, and taken for one that is
        // still to be heard.
        self.bell.silence();
        self.is_rung.swap(false, Ordering::SeqCst);
    }
}
