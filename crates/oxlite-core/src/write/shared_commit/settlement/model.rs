//! All orders in which a few processes can commit, lead and wait, with a disk that is asked at the end
//! whether it has what was acknowledged.

use std::sync::Arc;
// Counted for the test alone: it is none of the orders that are explored.
use std::sync::atomic::AtomicU64 as Counter;

use super::*;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::model::MutexGuard;
use crate::sync::model::{explore, run};
use crate::sync::{Condvar, Mutex};

/// What all processes have in common.
#[derive(Default)]
struct Page {
    committed: AtomicU64,
    synced: AtomicU64,
    poison: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    /// A bit for each commit whose frames are in the log, and on the disk.
    written: AtomicU64,
    durable: AtomicU64,
}

struct Machine {
    page: Page,
    lead: Mutex<()>,
    bell: Mutex<u32>,
    rung: Condvar,
    /// The number of the sync that fails.
    fails: u64,
    syncs: AtomicU64,
    lost: Counter,
}

/// A process, whose handle was opened when so many syncs had begun.
struct Process {
    machine: Arc<Machine>,
    opened_at: u64,
}

impl Machine {
    fn new(fails: u64) -> Arc<Self> {
        Arc::new(Self {
            page: Page::default(),
            lead: Mutex::new(()),
            bell: Mutex::new(0),
            rung: Condvar::new(),
            fails,
            syncs: AtomicU64::new(0),
            lost: Counter::new(0),
        })
    }
}

impl Group for Process {
    type Lead<'g> = MutexGuard<'g, ()>;

    fn poisoned(&self) -> Option<Reason> {
        let poison = self.machine.page.poison.load(Ordering::SeqCst);
        (poison != 0).then_some(Reason::SyncFailed)
    }

    fn poison(&self, _reason: Reason) {
        self.machine.page.poison.store(1, Ordering::SeqCst);
    }

    fn committed(&self) -> u64 {
        self.machine.page.committed.load(Ordering::SeqCst)
    }

    fn synced(&self) -> u64 {
        self.machine.page.synced.load(Ordering::SeqCst)
    }

    fn publish(&self, ticket: u64) {
        self.machine.page.synced.fetch_max(ticket, Ordering::SeqCst);
    }

    fn begun(&self) -> u64 {
        self.machine.page.begun.load(Ordering::SeqCst)
    }

    fn begin(&self, number: u64) {
        self.machine.page.begun.store(number, Ordering::SeqCst);
    }

    fn ended(&self) -> u64 {
        self.machine.page.ended.load(Ordering::SeqCst)
    }

    fn end(&self, number: u64) {
        self.machine.page.ended.store(number, Ordering::SeqCst);
    }

    fn opened_at(&self) -> u64 {
        self.opened_at
    }

    fn note_lost_leader(&self) {
        self.machine.lost.fetch_add(1, Ordering::SeqCst);
    }

    fn try_lead(&self) -> Option<Self::Lead<'_>> {
        self.machine.lead.try_lock()
    }

    fn try_stand_in(&self) -> Option<Self::Lead<'_>> {
        None
    }

    fn sync(&self, _is_beside: bool) -> Result<(), Reason> {
        let Machine {
            page, syncs, fails, ..
        } = &*self.machine;
        let there = page.written.load(Ordering::SeqCst);
        // Where others may come by, in the middle of it.
        loom::thread::yield_now();
        if syncs.fetch_add(1, Ordering::SeqCst) + 1 == *fails {
            return Err(Reason::SyncFailed);
        }
        page.durable.fetch_or(there, Ordering::SeqCst);
        Ok(())
    }

    fn rings(&self) -> u32 {
        *self.machine.bell.lock()
    }

    fn ring(&self) {
        *self.machine.bell.lock() += 1;
        self.machine.rung.notify_all();
    }

    fn wait(&self, rings: u32, at_most: Duration) {
        let mut bell = self.machine.bell.lock();
        if *bell == rings {
            // Longer, or who may not vouch would look too often for a model.
            self.machine.rung.wait_for(&mut bell, at_most * 200);
        }
    }
}

impl Process {
    /// Commits so many times, waiting for each; how many were acknowledged.
    fn commit(&self, bits: &[u64]) -> usize {
        let page = &self.machine.page;
        for (count, bit) in bits.iter().enumerate() {
            page.written.fetch_or(1 << bit, Ordering::SeqCst);
            let ticket = page.committed.fetch_add(1, Ordering::SeqCst) + 1;
            if settle(self, ticket).is_err() {
                return count;
            }
            let durable = page.durable.load(Ordering::SeqCst);
            assert_ne!(durable & (1 << bit), 0, "acknowledged, and not on the disk");
        }
        bits.len()
    }
}

/// Processes that commit so many times each; the n-th sync fails.
fn commits(preemptions: usize, writers: &'static [u64], fails: u64) {
    explore(preemptions, move || {
        let machine = Machine::new(fails);
        let mut next = 0;
        let threads = writers.iter().map(|&count| {
            let bits: Vec<u64> = (next..next + count).collect();
            next += count;
            let process = Process {
                machine: Arc::clone(&machine),
                opened_at: 0,
            };
            Box::new(move || {
                let acknowledged = process.commit(&bits);
                assert!(fails > 0 || acknowledged == bits.len());
            }) as Box<dyn FnOnce() + Send>
        });
        run((0, LOOK_EVERY), |_| false, threads.collect());
    });
}

#[test]
fn who_waits_is_woken_and_what_is_answered_is_on_the_disk() {
    commits(3, &[1, 1], 0);
    commits(2, &[2, 1], 0);
    commits(2, &[1, 1, 1], 0);
}

#[test]
fn after_a_failed_sync_nobody_is_answered_and_nobody_waits() {
    commits(3, &[1, 1], 1);
    commits(2, &[2, 1], 2);
    commits(2, &[1, 1, 1], 1);
}

#[test]
fn a_leader_that_dies_is_followed_by_an_older_handle_alone() {
    // How many leaders have died, one after the other, and when the others' handles were opened.
    for (died, opened_at) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        explore(2, move || {
            let machine = Machine::new(0);
            let dying = Process {
                machine: Arc::clone(&machine),
                opened_at: 0,
            };
            // It has begun, and its lock is free without a word.
            dying.begin(died);
            let threads = (0..2).map(|bit| {
                let process = Process {
                    machine: Arc::clone(&machine),
                    opened_at,
                };
                Box::new(move || {
                    let acknowledged = process.commit(&[bit]);
                    assert_eq!(acknowledged, usize::from(opened_at == 0));
                }) as Box<dyn FnOnce() + Send>
            });
            // Who may not vouch waits for somebody who may.
            run((0, LOOK_EVERY), move |_| opened_at > 0, threads.collect());
            let lost = machine.lost.load(Ordering::SeqCst);
            assert_eq!(lost, u64::from(opened_at == 0));
        });
    }
}
