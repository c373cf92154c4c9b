//! All orders in which a few connections of one process can stand in line, without a gate.

use std::sync::atomic::AtomicUsize as Unmodelled;

use super::*;
use crate::sync::model::{explore, run};

const LONG: Duration = Duration::from_secs(60);
/// As long as a turn, so that a tick can end both.
const SHORT: Duration = TURN;

/// Each connection writes so many times, and waits for so long at most.
fn write(preemptions: usize, writers: &'static [(usize, Duration)], ticks: usize) {
    explore(preemptions, move || {
        let lane = Arc::new(Lane::new(PathBuf::new()));
        *lane.refusal() = Some(Refusal::new(String::new()));
        let inside = Arc::new(Unmodelled::new(0));
        let threads = writers.iter().map(|&(count, timeout)| {
            let (lane, inside) = (Arc::clone(&lane), Arc::clone(&inside));
            Box::new(move || {
                let deadline = Arc::new(Deadline::new(|| false));
                for _ in 0..count {
                    let comer = Comer {
                        deadline: &deadline,
                        thread: 0,
                    };
                    let pass = lane.enter(comer, &Patience::of(&deadline, timeout), false);
                    if let Ok(Some(_pass)) = pass {
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two passes");
                        // Where others may come by.
                        loom::thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                    } else {
                        assert_ne!(timeout, LONG, "has waited in vain");
                    }
                }
            }) as Box<dyn FnOnce() + Send>
        });
        let threads = threads.collect();
        let waited_for = Arc::clone(&lane);
        // Time has to pass where the turn of one who is gone has to end, and nowhere else. It may be
        // late, by a turn at most: who sets the timer can be held up before.
        let is_in_a_turn = move |step| {
            let line = waited_for.line();
            !line.is_taken && line.turn.is_timed && step <= TURN
        };
        run((ticks, TURN), is_in_a_turn, threads);
        let line = lane.line();
        assert!(!line.is_taken && line.waiting.is_empty());
    });
}

#[test]
fn the_pass_goes_round() {
    write(3, &[(2, LONG), (2, LONG)], 0);
    write(2, &[(1, LONG), (1, LONG), (1, LONG)], 0);
}

#[test]
fn a_turn_can_end_at_any_moment() {
    write(2, &[(2, LONG), (1, LONG)], 1);
    write(2, &[(1, LONG), (1, LONG), (1, LONG)], 1);
}

#[test]
fn who_gives_up_holds_nobody_up() {
    write(2, &[(1, LONG), (1, SHORT), (1, LONG)], 1);
}
