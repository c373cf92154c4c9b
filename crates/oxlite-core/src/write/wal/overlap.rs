//! Whether the readers of a log that is too long come and go, so that it is worth keeping writers out until
//! those of now have ended.
//!
//! A checkpoint cannot come further than the oldest snapshot in use. If it has come to where the log ended a
//! while ago, all who read then have gone since. If not, somebody has read for longer than that while, and a
//! wait would be in vain.
//!
//! Invariants:
//! - Nobody is waited for who is known to have read for longer than [`LONG`].
//! - After a wait in vain there is none before that reader has gone, nor before a pause that doubles from one
//!   to the next, up to [`LONGEST_PAUSE`]. It is forgotten when the log has been begun anew.
//! - What was seen counts for as long as it took to see it, or for [`FRESH`]: of many processes that see the
//!   same at the same time, not every one waits after another has done so in vain.
//! - What took longer to see than [`FRESH`] is looked at once more after the next frames, since those who read
//!   now may have done so for nearly as long.

use std::time::{Duration, Instant};

/// Who reads for so long is waited for no more.
const LONG: Duration = Duration::from_millis(100);

/// For how long it counts at least that readers were seen to come and go.
const FRESH: Duration = Duration::from_millis(250);

/// The pause after the first wait in vain, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// What a checkpoint has shown of those who were in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// All who were seen before have gone.
    ComeAndGo,
    /// They have, but that was long ago: it is to be seen once more, soon.
    MayComeAndGo,
    /// It cannot be told yet.
    Unknown,
    /// One of them reads for long.
    Stay,
}

/// What this process has seen of the readers of one log.
#[derive(Default)]
pub(super) struct Overlap {
    /// Where the log ended at a moment, in frames.
    end: Option<(Instant, u32)>,
    /// When readers were seen to come and go, and until when that counts.
    counts_until: Option<Instant>,
    /// Whether the latest look was to be followed by another one soon.
    is_second_look: bool,
    /// When the pause after a wait in vain is over, and how long it is.
    pause: Option<(Instant, Duration)>,
}

impl Overlap {
    /// A checkpoint of a log of `frames` has come so far.
    pub(super) fn look(&mut self, now: Instant, frames: u32, checkpointed: u32) -> Readers {
        let before = self.end.filter(|(_, end)| *end <= frames);
        let readers = match before.map(|(at, end)| (now.duration_since(at), end)) {
            None => Readers::Unknown,
            Some((since, end)) if checkpointed >= end => {
                match since <= FRESH || self.is_second_look {
                    true => Readers::ComeAndGo,
                    false => Readers::MayComeAndGo,
                }
            }
            Some((since, _)) if since < LONG => return Readers::Unknown,
            Some(_) => Readers::Stay,
        };
        let since = before.map_or(Duration::ZERO, |(at, _)| now.duration_since(at));
        let counts = readers == Readers::ComeAndGo;
        self.counts_until = counts.then(|| now + since.max(FRESH));
        self.is_second_look = readers == Readers::MayComeAndGo;
        self.end = Some((now, frames));
        readers
    }

    /// Whether they may be waited for now.
    pub(super) fn may_wait(&self, now: Instant) -> bool {
        let is_over = self.pause.is_none_or(|(until, _)| now >= until);
        is_over && self.counts_until.is_some_and(|until| now < until)
    }

    /// They were waited for in vain: with a log of so many frames somebody reads still.
    pub(super) fn waited_in_vain(&mut self, now: Instant, frames: u32) {
        let pause = self.pause.map_or(FIRST_PAUSE, |(_, pause)| pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        *self = Self {
            end: Some((now, frames)),
            pause: Some((now + pause, pause)),
            ..Self::default()
        };
    }

    /// The log has been begun anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    /// A log to which frames are added, and what is seen of it.
    struct Log {
        now: Instant,
        frames: u32,
        overlap: Overlap,
    }

    impl Log {
        fn new() -> Self {
            Self {
                now: Instant::now(),
                frames: 1000,
                overlap: Overlap::default(),
            }
        }

        fn grows(&mut self, duration: Duration) {
            self.now += duration;
            self.frames += 1000;
        }

        /// A checkpoint that has come so far.
        fn is_read(&mut self, checkpointed: u32) -> Readers {
            self.overlap.look(self.now, self.frames, checkpointed)
        }

        fn may_wait(&self) -> bool {
            self.overlap.may_wait(self.now)
        }
    }

    #[test]
    fn readers_that_come_and_go_may_be_waited_for() {
        let mut log = Log::new();
        assert_eq!(log.is_read(900), Readers::Unknown);
        assert!(!log.may_wait());
        log.grows(SHORT);
        assert_eq!(log.is_read(1000), Readers::ComeAndGo);
        assert!(log.may_wait());
    }

    #[test]
    fn one_that_stays_may_not() {
        let mut log = Log::new();
        log.is_read(10);
        for _ in 0..20 {
            log.grows(LONG);
            assert_eq!(log.is_read(10), Readers::Stay);
            assert!(!log.may_wait());
        }
        // It has gone.
        log.grows(LONG);
        assert_eq!(log.is_read(log.frames - 100), Readers::ComeAndGo);
        assert!(log.may_wait());
    }

    #[test]
    fn one_that_has_come_since_a_look_long_ago_is_found_out() {
        let mut log = Log::new();
        log.is_read(900);
        log.grows(FRESH * 4);
        assert_eq!(log.is_read(1500), Readers::MayComeAndGo);
        assert!(!log.may_wait());
        log.grows(SHORT);
        assert_eq!(log.is_read(1500), Readers::Unknown);
        log.grows(LONG);
        assert_eq!(log.is_read(1500), Readers::Stay);
        log.grows(SHORT);
        assert_eq!(log.is_read(log.frames - 100), Readers::ComeAndGo);
        assert!(log.may_wait());
    }

    #[test]
    fn nothing_is_concluded_from_checkpoints_that_follow_each_other_closely() {
        let mut log = Log::new();
        log.is_read(900);
        for _ in 0..4 {
            log.grows(SHORT);
            assert_eq!(log.is_read(900), Readers::Unknown);
        }
        log.grows(SHORT);
        assert_eq!(log.is_read(1000), Readers::ComeAndGo);
        log.grows(SHORT);
        assert_eq!(log.is_read(1000), Readers::Unknown);
        assert!(log.may_wait(), "what was seen a moment ago still counts");
    }

    #[test]
    fn what_was_seen_counts_for_a_while() {
        let mut log = Log::new();
        log.is_read(900);
        log.grows(SHORT);
        log.is_read(1000);
        log.now += FRESH;
        assert!(!log.may_wait(), "others may have waited meanwhile");
        // Where commits are rare, the next one is not too late.
        let rare = FRESH * 8;
        log.grows(rare);
        assert_eq!(log.is_read(log.frames - 1000), Readers::MayComeAndGo);
        log.grows(rare);
        assert_eq!(log.is_read(log.frames - 1000), Readers::ComeAndGo);
        log.now += rare - SHORT;
        assert!(log.may_wait());
        log.now += SHORT;
        assert!(!log.may_wait());
    }

    #[test]
    fn a_wait_in_vain_is_remembered_until_that_reader_has_gone() {
        let mut log = Log::new();
        log.is_read(900);
        log.grows(SHORT);
        log.is_read(1000);
        log.overlap.waited_in_vain(log.now, log.frames);
        assert!(!log.may_wait());
        log.grows(LONGEST_PAUSE);
        assert_eq!(log.is_read(log.frames - 1001), Readers::Stay);
        assert!(!log.may_wait(), "it is the same one");
        log.grows(SHORT);
        assert_eq!(log.is_read(log.frames - 1000), Readers::ComeAndGo);
        assert!(log.may_wait());
    }

    #[test]
    fn waits_in_vain_become_rare_until_the_log_is_begun_anew() {
        let mut log = Log::new();
        let began = log.now;
        let mut waits = 0;
        log.is_read(log.frames);
        while log.now < began + LONGEST_PAUSE * 4 {
            log.grows(SHORT);
            log.is_read(log.frames - 1000);
            if log.may_wait() {
                waits += 1;
                log.overlap.waited_in_vain(log.now, log.frames);
            }
        }
        assert!((8..=12).contains(&waits), "{waits}");
        log.overlap.forget();
        assert_eq!(log.is_read(900), Readers::Unknown);
        log.grows(SHORT);
        log.is_read(log.frames - 1000);
        assert!(log.may_wait());
    }

    #[test]
    fn a_log_that_others_have_begun_anew_is_another_one() {
        let mut log = Log::new();
        log.is_read(900);
        log.frames = 500;
        log.now += LONG;
        assert_eq!(log.is_read(400), Readers::Unknown);
        assert!(!log.may_wait());
    }
}
