//! All orders in which a few threads can ask, lead, answer, give up and close. No thread may ever need the
//! time to pass in order to go on, and every request is answered once.

use super::*;
use crate::sync::model::{explore, run};

type Numbers = Line<u32, u32>;
type Work = Box<dyn FnOnce() + Send>;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(10);

const NEVER: fn(Duration) -> bool = |_| false;

fn thread(line: &Arc<Numbers>, work: impl FnOnce(&Arc<Numbers>) + Send + 'static) -> Work {
    let line = Arc::clone(line);
    Box::new(move || work(&line))
}

/// Asks, and leads if it comes to that: answers are twice the request.
fn ask(line: &Arc<Numbers>, thread: u64, timeout: Duration) -> Result<(), LineError> {
    let request = u32::try_from(thread).expect("small");
    let answer = match line.submit(thread, request, timeout, || true)? {
        Submitted::Answered(answer) => answer,
        Submitted::Leads(mut batch) => {
            let answers: Vec<u32> = batch.requests().map(|number| number * 2).collect();
            batch.answer_others(answers[1..].iter().copied());
            answers[0]
        }
    };
    assert_eq!(answer, request * 2, "its own answer");
    Ok(())
}

fn assert_is_free(line: &Arc<Numbers>) {
    assert_eq!(line.statistics().waiting, 0);
    assert_eq!(line.holder(), None);
}

#[test]
fn requests_are_answered_and_the_line_is_free() {
    explore(3, || {
        let line = Arc::new(Numbers::new(8));
        let asks = |number: u64| {
            thread(&line, move |line| {
                ask(line, number, LONG).expect("answered")
            })
        };
        run((0, SHORT), NEVER, vec![asks(1), asks(2), asks(3)]);
        assert_is_free(&line);
        assert_eq!(line.statistics().batched, 3);
    });
}

#[test]
fn requests_and_a_lone_writer_come_through() {
    explore(3, || {
        let line = Arc::new(Numbers::new(8));
        let alone = thread(&line, |line| {
            line.take(9, LONG, || true).expect("in time");
            line.give();
        });
        let asks = |number: u64| {
            thread(&line, move |line| {
                ask(line, number, LONG).expect("answered")
            })
        };
        run((0, SHORT), NEVER, vec![alone, asks(1), asks(2)]);
        assert_is_free(&line);
    });
}

#[test]
fn a_timeout_loses_neither_the_writer_nor_an_answer() {
    explore(2, || {
        let line = Arc::new(Numbers::new(8));
        let hasty = thread(&line, |line| {
            if let Err(reason) = ask(line, 1, SHORT) {
                assert_eq!(reason, LineError::TimedOut);
            }
        });
        let asks = |number: u64| {
            thread(&line, move |line| {
                ask(line, number, LONG).expect("answered")
            })
        };
        run((1, SHORT), NEVER, vec![hasty, asks(2), asks(3)]);
        assert_is_free(&line);
    });
}

#[test]
fn what_a_leader_leaves_is_run_by_the_next() {
    explore(3, || {
        let line = Arc::new(Numbers::new(8));
        let leaves = thread(&line, |line| {
            if let Submitted::Leads(batch) = line.submit(1, 1, LONG, || true).expect("in time") {
                drop(batch);
            }
        });
        let asks = |number: u64| {
            thread(&line, move |line| {
                ask(line, number, LONG).expect("answered")
            })
        };
        run((0, SHORT), NEVER, vec![leaves, asks(2), asks(3)]);
        assert_is_free(&line);
    });
}

#[test]
fn closing_sends_everybody_away() {
    explore(3, || {
        let line = Arc::new(Numbers::new(8));
        let closes = thread(&line, |line| {
            line.close();
            assert!(line.wait_for_return(LONG, || true));
        });
        let asks = |number: u64| {
            thread(&line, move |line| {
                if let Err(reason) = ask(line, number, LONG) {
                    assert_eq!(reason, LineError::Closed);
                }
            })
        };
        run((0, SHORT), NEVER, vec![closes, asks(1), asks(2)]);
        assert_is_free(&line);
    });
}
