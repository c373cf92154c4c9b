//! All orders in which those who commit, the thread that is woken for a process and a listener can meet: the
//! listener finds every commit, and nobody sleeps on.

use std::sync::Arc;

use super::*;
use crate::sync::model::{Work, explore, run};
use crate::sync::{Condvar, Mutex};

const TOPIC: Topic = Topic::named("orders");
const OTHER: Topic = Topic::named("invoices");
const PLACE: usize = 0;

/// A page with one place, and a database.
struct Machine {
    /// How many have committed.
    committed: AtomicU64,
    latest: AtomicU64,
    latest_of_topic: AtomicU64,
    is_taken: AtomicBool,
    is_wanted: AtomicBool,
    place: ModelBell,
    is_over: AtomicBool,
}

struct ModelBell {
    rings: Mutex<u32>,
    rung: Condvar,
}

impl ModelBell {
    fn new() -> Self {
        Self {
            rings: Mutex::new(0),
            rung: Condvar::new(),
        }
    }

    fn rings(&self) -> u32 {
        *self.rings.lock()
    }

    /// Waits until it has rung more often than that.
    fn wait(&self, rings: u32) {
        let mut now = self.rings.lock();
        while *now == rings {
            self.rung.wait_for(&mut now, LONG);
        }
    }
}

const LONG: std::time::Duration = std::time::Duration::from_secs(3600);

/// Of a listener: readable or not.
impl EarBell for ModelBell {
    fn ring(&self) {
        *self.rings.lock() += 1;
        self.rung.notify_all();
    }

    fn silence(&self) {
        *self.rings.lock() = 0;
    }
}

impl Board for Machine {
    fn latest(&self) -> u64 {
        self.latest.load(Ordering::SeqCst)
    }

    fn draw(&self) -> u64 {
        self.latest.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn latest_of(&self, topic: Topic) -> u64 {
        match topic == TOPIC {
            true => self.latest_of_topic.load(Ordering::SeqCst),
            false => 0,
        }
    }

    fn note(&self, topic: Topic, number: u64) {
        if topic == TOPIC {
            self.latest_of_topic.fetch_max(number, Ordering::SeqCst);
        }
    }

    fn each_that_wants(&self, topics: &[Topic], mut ring: impl FnMut(usize)) {
        let is_wanted = || self.is_wanted.load(Ordering::SeqCst) && topics.contains(&TOPIC);
        if self.is_taken.load(Ordering::SeqCst) && is_wanted() {
            ring(PLACE);
        }
    }

    fn want(&self, _place: usize, topics: &[Topic]) {
        let is_wanted = topics.contains(&TOPIC);
        self.is_wanted.store(is_wanted, Ordering::SeqCst);
    }

    fn has_listeners(&self) -> bool {
        self.is_taken.load(Ordering::SeqCst)
    }

    fn ring(&self, _place: usize) {
        self.place.ring();
    }
}

impl Machine {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            committed: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            latest_of_topic: AtomicU64::new(0),
            is_taken: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            place: ModelBell::new(),
            is_over: AtomicBool::new(false),
        })
    }

    fn commit(&self, topics: &[Topic]) {
        self.committed.fetch_add(1, Ordering::SeqCst);
        signal(self, topics);
    }

    /// As the thread of a process that listens.
    fn hear(&self, ear: &Ear<ModelBell>) {
        loop {
            let rings = self.place.rings();
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            ear.tell(self);
            self.place.wait(rings);
        }
    }

    /// As a listener that goes on until it has found so many commits.
    fn listen(&self, ear: &Ear<ModelBell>, wanted: u64) {
        self.is_taken.store(true, Ordering::SeqCst);
        want(self, PLACE, &ear.topics);
        ear.begin(self);
        // The thread may have looked before this one began.
        self.place.ring();
        loop {
            ear.silence();
            if self.committed.load(Ordering::SeqCst) >= wanted {
                break;
            }
            ear.bell.wait(0);
        }
        self.is_over.store(true, Ordering::SeqCst);
        self.place.ring();
    }
}

/// Those who commit so many times each, beside a listener in another process.
fn commits(preemptions: usize, writers: &'static [u64]) {
    explore(preemptions, move || {
        let machine = Machine::new();
        let ear = Arc::new(Ear::new(vec![TOPIC], ModelBell::new()));
        let mut threads: Vec<Work> = Vec::new();
        for &count in writers {
            let machine = Arc::clone(&machine);
            threads.push(Box::new(move || {
                (0..count).for_each(|_| machine.commit(&[OTHER, TOPIC]));
            }));
        }
        let (here, its_ear) = (Arc::clone(&machine), Arc::clone(&ear));
        threads.push(Box::new(move || here.hear(&its_ear)));
        let wanted = writers.iter().sum();
        threads.push(Box::new(move || machine.listen(&ear, wanted)));
        run((0, LONG), |_| false, threads);
    });
}

#[test]
fn a_listener_finds_every_commit_and_nobody_sleeps_on() {
    commits(3, &[1]);
    commits(3, &[2]);
    commits(2, &[1, 1]);
}
