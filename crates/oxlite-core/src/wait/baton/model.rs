//! All orders in which a few threads can take the baton.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as Unmodelled};

use super::*;
use crate::sync::model::{explore, run};

/// What the threads have done, noted where loom sees nothing: it adds no order.
#[derive(Default)]
struct Notes {
    gone: Vec<u64>,
    arrivals: HashMap<u64, usize>,
}

/// So many threads take it so often each, beside so many early ticks.
fn take_often(preemptions: usize, counts: &'static [usize], ticks: usize) {
    explore(preemptions, move || {
        let baton = Arc::new(Baton::new());
        let notes = Arc::new(Unmodelled::new(Notes::default()));
        let threads = (1..).zip(counts).map(|(me, &count)| {
            let (baton, notes) = (Arc::clone(&baton), Arc::clone(&notes));
            Box::new(move || {
                for _ in 0..count {
                    baton.see(me, baton.now());
                    take_once(&baton, &notes, me, ticks == 0);
                }
                notes.lock().expect("no model has failed").gone.push(me);
            }) as Box<dyn FnOnce() + Send>
        });
        let threads = threads.collect();
        let (who, noted) = (Arc::clone(&baton), Arc::clone(&notes));
        // Only a holder who has gone, or the lack of any, may keep all others waiting.
        let is_holder_gone = move |_| {
            let holder = who.holder.load(Ordering::Relaxed);
            let notes = noted.lock().expect("no model has failed");
            holder == NOBODY || notes.gone.contains(&holder)
        };
        run((ticks, 2 * HOLDER_LOST), is_holder_gone, threads);
        let order = baton.order.lock();
        assert!(order.parked.is_empty());
        assert!((1..=counts.len() as u64).contains(&order.holder));
    });
}

fn take_once(baton: &Baton, notes: &Unmodelled<Notes>, me: u64, is_in_order: bool) {
    let arrivals = |thread: &u64| {
        let notes = notes.lock().expect("no model has failed");
        notes.arrivals.get(thread).copied().unwrap_or_default()
    };
    let mut ahead = Vec::new();
    if is_in_order {
        let order = baton.order.lock();
        ahead.extend(
            order
                .parked
                .iter()
                .map(|thread| (*thread, arrivals(thread))),
        );
    }
    *notes
        .lock()
        .expect("no model has failed")
        .arrivals
        .entry(me)
        .or_default() += 1;
    baton.take(me);
    let order = baton.order.lock();
    assert!(!order.parked.contains(&me), "goes on and is parked");
    assert!(
        !order.parked.contains(&order.holder),
        "has the baton and is parked"
    );
    let mut parked: Vec<_> = order.parked.iter().collect();
    parked.sort_unstable();
    parked.dedup();
    assert_eq!(parked.len(), order.parked.len(), "parked twice");
    assert_eq!(baton.holder.load(Ordering::Relaxed), order.holder);
    for (thread, arrival) in ahead {
        assert!(
            !order.parked.contains(&thread) || arrivals(&thread) != arrival,
            "goes ahead of one who came before"
        );
    }
}

#[test]
fn the_baton_goes_round_without_the_help_of_time() {
    take_often(3, &[2, 2], 0);
    take_often(1, &[2, 1, 1], 0);
}

#[test]
fn a_holder_can_lose_it_at_any_moment() {
    take_often(3, &[2, 2], 1);
    take_often(2, &[2, 2], 2);
}
