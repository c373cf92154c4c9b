//! Who syncs for all, and when a ticket is settled: the decisions alone. What they are about (words of
//! shared memory, a lock that goes with its holder, a sync, a bell) is behind [`Group`], so that a model
//! can stand in for it.
//!
//! Invariants:
//! - A ticket is settled by a sync that began after it was drawn.
//! - Nothing is settled in a group that is poisoned.
//! - The leader's lock is let go *before* the bell is rung: else who is woken finds it taken, and sleeps
//!   on.
//! - Liveness is that of the lock: a killed leader's is free. One that was stopped keeps it; after
//!   [`STAND_IN_AFTER`] others sync beside it, for which they need no lock: it saves syncs, no more.
//! - A sync has an *unknown end* if its leader died in it: an error may have been reported to the dead
//!   one, and then it is reported to no handle that is opened afterwards. Whose handle is older than that
//!   sync is told as well, and so may vouch for what was written before; whose handle is younger may not.
//!   An older one that syncs clears this; if none does for [`VOUCHER_WITHIN`], the group is poisoned.

use std::time::Duration;

use super::reason::Reason;
use crate::sync::Instant;

#[cfg(all(test, loom))]
mod model;

/// How long one waits before one looks by oneself. The bell comes before that, unless a leader was killed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long a leader may take before others sync beside it.
const STAND_IN_AFTER: Duration = Duration::from_millis(100);

/// How long an older handle is waited for, after a sync with an unknown end: from when that was seen, since
/// a disk may have been busy for longer before.
const VOUCHER_WITHIN: Duration = Duration::from_secs(2);

/// The same while the leader has its lock: it is stopped, or the disk takes that long.
const VOUCHER_BESIDE_WITHIN: Duration = Duration::from_secs(60);

/// What members have in common, and this one's handle of the log.
pub(super) trait Group {
    /// The right to lead, until it is dropped.
    type Lead<'g>
    where
        Self: 'g;

    /// Why nothing may be acknowledged any more, if so.
    fn poisoned(&self) -> Option<Reason>;
    fn poison(&self, reason: Reason);

    /// The latest ticket that was drawn, by anybody.
    fn committed(&self) -> u64;
    /// The latest that is settled.
    fn synced(&self) -> u64;
    /// Settles all tickets up to this one.
    fn publish(&self, ticket: u64);

    /// How many leaders have begun a sync, and the number of the latest whose end is known.
    fn begun(&self) -> u64;
    fn begin(&self, number: u64);
    fn ended(&self) -> u64;
    fn end(&self, number: u64);
    /// How many had begun when this one's handle had been opened.
    fn opened_at(&self) -> u64;
    /// Counts a leader that has died between the beginning and the end of its sync.
    fn note_lost_leader(&self);

    /// Without waiting.
    fn try_lead(&self) -> Option<Self::Lead<'_>>;
    /// To sync beside a leader in another process, unless another thread of this one is at it.
    fn try_stand_in(&self) -> Option<Self::Lead<'_>>;
    fn sync(&self, is_beside: bool) -> Result<(), Reason>;

    fn rings(&self) -> u32;
    fn ring(&self);
    fn wait(&self, rings: u32, at_most: Duration);
}

/// What became of leading.
enum Led {
    Synced,
    /// Somebody else had done it just before.
    FoundDone,
    /// Its handle may not vouch for what was written before the sync of this number.
    TooYoung(u64),
}

/// Waits until `ticket` is settled, and does what it takes; whether that was a sync of one's own.
pub(super) fn settle<G: Group>(group: &G, ticket: u64) -> Result<bool, Reason> {
    let began = Instant::now();
    let mut stood_in = began;
    let mut has_synced = false;
    // The sync for which it is too young, whether its leader is there, and since when.
    let mut too_young: Option<((u64, bool), Instant)> = None;
    loop {
        // Before looking at anything that it tells of.
        let rings = group.rings();
        if let Some(reason) = group.poisoned() {
            return Err(reason);
        }
        if group.synced() >= ticket {
            return Ok(has_synced);
        }
        let mut is_beside = false;
        let led = if let Some(leadership) = group.try_lead() {
            let led = lead(group, ticket, false);
            drop(leadership);
            Some(led)
        } else if stood_in.elapsed() >= STAND_IN_AFTER
            && let Some(beside) = group.try_stand_in()
        {
            stood_in = Instant::now();
            is_beside = true;
            let led = lead(group, ticket, true);
            drop(beside);
            Some(led)
        } else {
            None
        };
        match led {
            Some(Ok(led @ (Led::Synced | Led::FoundDone))) => {
                has_synced |= matches!(led, Led::Synced);
                group.ring();
                continue;
            }
            Some(Err(reason)) => {
                group.poison(reason);
                group.ring();
                return Err(reason);
            }
            Some(Ok(Led::TooYoung(number))) => {
                let seen = (number, is_beside);
                let since = match too_young {
                    Some((before, since)) if before == seen => since,
                    _ => Instant::now(),
                };
                too_young = Some((seen, since));
                let within = match is_beside {
                    true => VOUCHER_BESIDE_WITHIN,
                    false => VOUCHER_WITHIN,
                };
                if since.elapsed() >= within {
                    group.poison(Reason::UnknownEnd);
                    group.ring();
                    return Err(Reason::UnknownEnd);
                }
                group.wait(rings, LOOK_EVERY);
            }
            None => group.wait(rings, LOOK_EVERY),
        }
    }
}

fn lead<G: Group>(group: &G, ticket: u64, is_beside: bool) -> Result<Led, Reason> {
    // Somebody else may have been at it just now.
    if group.synced() >= ticket {
        return Ok(Led::FoundDone);
    }
    let begun = group.begun();
    // The latest sync that a leader began has not ended, and none is at it, or it is stopped. Several
    // leaders may have died one after the other: only who is older than the first of them may vouch.
    let ended = group.ended();
    let has_unknown_end = ended != begun;
    if has_unknown_end && group.opened_at() > ended {
        return Ok(Led::TooYoung(begun));
    }
    let number = begun + 1;
    if !is_beside {
        // Its lock is ours, so it is not merely stopped.
        if has_unknown_end {
            group.note_lost_leader();
        }
        group.begin(number);
    }
    // Whoever draws a ticket from here on may have come too late for this sync.
    let upto = group.committed();
    group.sync(is_beside)?;
    if let Some(reason) = group.poisoned() {
        return Err(reason);
    }
    group.publish(upto);
    if !is_beside {
        group.end(number);
    }
    Ok(Led::Synced)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A group whose leader is at a sync for long and dies in it; an older handle vouches a little later.
    struct Slow {
        since: Instant,
        looks_without_leader: Cell<u32>,
        poison: Cell<Option<Reason>>,
    }

    impl Group for Slow {
        type Lead<'g> = ();

        fn poisoned(&self) -> Option<Reason> {
            self.poison.get()
        }
        fn poison(&self, reason: Reason) {
            self.poison.set(Some(reason));
        }
        fn committed(&self) -> u64 {
            1
        }
        fn synced(&self) -> u64 {
            u64::from(self.looks_without_leader.get() > 3)
        }
        fn publish(&self, _upto: u64) {}
        fn begun(&self) -> u64 {
            1
        }
        fn ended(&self) -> u64 {
            0
        }
        fn begin(&self, _number: u64) {}
        fn end(&self, _number: u64) {}
        fn note_lost_leader(&self) {}
        fn opened_at(&self) -> u64 {
            1
        }
        fn try_lead(&self) -> Option<()> {
            let is_dead = self.since.elapsed() > VOUCHER_WITHIN;
            let looks = self.looks_without_leader.get();
            self.looks_without_leader.set(looks + u32::from(is_dead));
            is_dead.then_some(())
        }
        fn try_stand_in(&self) -> Option<()> {
            Some(())
        }
        fn sync(&self, _is_beside: bool) -> Result<(), Reason> {
            unreachable!("it is too young for that")
        }
        fn rings(&self) -> u32 {
            0
        }
        fn ring(&self) {}
        fn wait(&self, _rings: u32, at_most: Duration) {
            std::thread::sleep(at_most);
        }
    }

    #[test]
    fn a_disk_that_was_slow_for_long_leaves_time_for_an_older_handle() {
        let group = Slow {
            since: Instant::now(),
            looks_without_leader: Cell::new(0),
            poison: Cell::new(None),
        };
        assert!(matches!(settle(&group, 1), Ok(false)));
        assert!(group.poison.get().is_none());
    }
}
