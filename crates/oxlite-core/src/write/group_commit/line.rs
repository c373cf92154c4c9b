//! The line in front of a process's one writer.
//!
//! Invariants:
//! - One thread has the writer at a time: alone, or as the leader of a batch.
//! - Whoever waits is served in order among its kind, and the kinds alternate: a batch of all requests
//!   that wait, then one thread alone.
//! - A request is answered once. It can be withdrawn until a leader has taken it up, not after.
//! - A thread never waits for itself: that is refused.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, Instant, Mutex};

#[cfg(all(test, loom))]
mod model;

/// How often whoever waits is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Where threads wait for a writer, with requests `Q` that are answered by `A`.
pub struct Line<Q, A> {
    state: Mutex<State<Q, A>>,
    /// Told when the writer has come back to a line that is closed.
    returned: Condvar,
    /// How many requests are run together at most.
    batch_limit: usize,
}

struct State<Q, A> {
    /// Who has the writer, and since when.
    holder: Option<(u64, Instant)>,
    requests: VecDeque<Arc<Seat<Q, A>>>,
    alone: VecDeque<Arc<Seat<Q, A>>>,
    /// Which kind comes next when both wait.
    is_alone_next: bool,
    is_closed: bool,
    batches: u64,
    batched: u64,
}

/// Where a thread waits.
struct Seat<Q, A> {
    thread: u64,
    request: Mutex<Option<Q>>,
    handed: Mutex<Handed<A>>,
    changed: Condvar,
}

enum Handed<A> {
    Nothing,
    /// The writer.
    Writer,
    /// A leader has taken the request up.
    TakenUp,
    Answer(A),
    /// The line has been closed.
    Closed,
}

/// Why the writer was not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// It has not come back in time.
    TimedOut,
    /// Whoever waits was told to go on no longer.
    Cancelled,
    /// The line is closed.
    Closed,
    /// This thread has it already, or waits for it.
    Reentrant,
}

/// What has become of a request.
pub enum Submitted<Q, A> {
    /// This thread has the writer, and runs the request with those of others.
    Leads(Batch<Q, A>),
    /// Another thread has run it.
    Answered(A),
}

/// What a line has done, and who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStatistics {
    /// Threads that wait, alone or with a request.
    pub waiting: usize,
    /// How many batches there were, of one request or more.
    pub batches: u64,
    /// How many requests were in them.
    pub batched: u64,
}

impl<Q, A> Line<Q, A> {
    /// A line in which nobody waits, whose batches have `batch_limit` requests at most.
    pub fn new(batch_limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
                holder: None,
                requests: VecDeque::new(),
                alone: VecDeque::new(),
                is_alone_next: false,
                is_closed: false,
                batches: 0,
                batched: 0,
            }),
            returned: Condvar::new(),
            batch_limit,
        }
    }

    /// Takes the writer for `thread` alone, waiting for at most `timeout`; now and then asks whether to go
    /// on waiting. It must be given back.
    pub fn take(
        &self,
        thread: u64,
        timeout: Duration,
        may_go_on: impl Fn() -> bool,
    ) -> Result<(), LineError> {
        let seat = {
            let mut state = self.state.lock();
            if state.try_take(thread)? {
                return Ok(());
            }
            let seat = Seat::new(thread, None);
            state.alone.push_back(Arc::clone(&seat));
            seat
        };
        match self.wait(&seat, timeout, may_go_on)? {
            None => Ok(()),
            Some(_) => unreachable!("only a request is answered"),
        }
    }

    /// Leads at once, if the writer is free and nobody waits; else gives the request back.
    pub fn try_submit(
        self: &Arc<Self>,
        thread: u64,
        request: Q,
    ) -> Result<Result<Batch<Q, A>, Q>, LineError> {
        let mut state = self.state.lock();
        if !state.try_take(thread)? {
            return Ok(Err(request));
        }
        state.count_batch(1);
        Ok(Ok(Batch::new(self, request)))
    }

    /// Stands in line with a request, for at most `timeout` until somebody takes it up.
    pub fn submit(
        self: &Arc<Self>,
        thread: u64,
        request: Q,
        timeout: Duration,
        may_go_on: impl Fn() -> bool,
    ) -> Result<Submitted<Q, A>, LineError> {
        let seat = {
            let mut state = self.state.lock();
            if state.try_take(thread)? {
                state.count_batch(1);
                return Ok(Submitted::Leads(Batch::new(self, request)));
            }
            let seat = Seat::new(thread, Some(request));
            state.requests.push_back(Arc::clone(&seat));
            seat
        };
        match self.wait(&seat, timeout, may_go_on)? {
            Some(answer) => Ok(Submitted::Answered(answer)),
            None => Ok(Submitted::Leads(self.lead(&seat))),
        }
    }

    /// Waits for the writer (nothing), or for an answer.
    fn wait(
        &self,
        seat: &Arc<Seat<Q, A>>,
        timeout: Duration,
        may_go_on: impl Fn() -> bool,
    ) -> Result<Option<A>, LineError> {
        let ends = Instant::now() + timeout;
        loop {
            let remaining = ends.saturating_duration_since(Instant::now());
            let mut handed = seat.handed.lock();
            let is_taken_up = matches!(*handed, Handed::TakenUp);
            if is_taken_up || matches!(*handed, Handed::Nothing) {
                let pause = match is_taken_up {
                    true => ASK_EVERY,
                    false => remaining.min(ASK_EVERY),
                };
                seat.changed.wait_for(&mut handed, pause);
            }
            if let Some(outcome) = handed.take() {
                return outcome;
            }
            // What has been taken up is waited for.
            let is_waiting = matches!(*handed, Handed::Nothing);
            drop(handed);
            if !is_waiting {
                continue;
            }
            let goes_on = may_go_on();
            if goes_on && ends > Instant::now() {
                continue;
            }
            // Whoever hands something over has the line's lock, so it has come before this or never.
            let mut state = self.state.lock();
            let mut handed = seat.handed.lock();
            if let Some(outcome) = handed.take() {
                return outcome;
            }
            if matches!(*handed, Handed::Nothing) {
                state.withdraw(seat);
                return Err(match goes_on {
                    true => LineError::TimedOut,
                    false => LineError::Cancelled,
                });
            }
        }
    }

    /// Takes up the requests that wait, behind that of `seat`.
    fn lead(self: &Arc<Self>, seat: &Arc<Seat<Q, A>>) -> Batch<Q, A> {
        let own = seat.request.lock().take();
        let own = own.expect("a request is taken once, by whoever has its turn");
        let mut batch = Batch::new(self, own);
        let mut state = self.state.lock();
        while batch.others.len() + 1 < self.batch_limit {
            let Some(other) = state.requests.pop_front() else {
                break;
            };
            *other.handed.lock() = Handed::TakenUp;
            let request = other.request.lock().take();
            batch.others.extend(request.map(|request| (other, request)));
        }
        state.count_batch(batch.others.len() + 1);
        batch
    }

    /// Gives the writer back: to whoever is next.
    pub fn give(&self) {
        let mut state = self.state.lock();
        state.holder = None;
        if state.is_closed {
            self.returned.notify_all();
            return;
        }
        state.hand_over();
    }

    /// Lends the writer no more, and sends away all that wait.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let State {
            requests, alone, ..
        } = &mut *state;
        for seat in requests.drain(..).chain(alone.drain(..)) {
            seat.hand(Handed::Closed);
        }
    }

    /// Whether it lends the writer no more.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Waits until the writer has come back; tells whether it has, in time.
    pub fn wait_for_return(&self, timeout: Duration, may_go_on: impl Fn() -> bool) -> bool {
        let ends = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            let remaining = ends.saturating_duration_since(Instant::now());
            if state.holder.is_none() || remaining.is_zero() {
                return state.holder.is_none();
            }
            self.returned.wait_for(&mut state, remaining.min(ASK_EVERY));
            if state.holder.is_some() {
                // It may run code of the layer above.
                drop(state);
                if !may_go_on() {
                    return false;
                }
                state = self.state.lock();
            }
        }
    }

    /// Which thread has the writer, and for how long.
    pub fn holder(&self) -> Option<(u64, Duration)> {
        let holder = self.state.lock().holder;
        holder.map(|(thread, since)| (thread, since.elapsed()))
    }

    /// What it has done.
    pub fn statistics(&self) -> LineStatistics {
        let state = self.state.lock();
        LineStatistics {
            waiting: state.requests.len() + state.alone.len(),
            batches: state.batches,
            batched: state.batched,
        }
    }
}

impl<Q, A> State<Q, A> {
    /// Takes the writer if it is free and nobody waits: what comes back is handed to those who do.
    fn try_take(&mut self, thread: u64) -> Result<bool, LineError> {
        if self.is_closed {
            return Err(LineError::Closed);
        }
        match self.holder {
            Some((holder, _)) if holder == thread => Err(LineError::Reentrant),
            // A signal handler runs in the middle of a wait.
            Some(_) if self.waits(thread) => Err(LineError::Reentrant),
            Some(_) => Ok(false),
            None => {
                self.holder = Some((thread, Instant::now()));
                Ok(true)
            }
        }
    }

    fn waits(&self, thread: u64) -> bool {
        let mut seats = self.requests.iter().chain(&self.alone);
        seats.any(|seat| seat.thread == thread)
    }

    /// Gives the writer, which is free, to the next in line.
    fn hand_over(&mut self) {
        let is_alone = match (self.requests.is_empty(), self.alone.is_empty()) {
            (true, true) => return,
            (false, false) => self.is_alone_next,
            (has_no_requests, _) => has_no_requests,
        };
        let next = match is_alone {
            true => self.alone.pop_front(),
            false => self.requests.pop_front(),
        };
        self.is_alone_next = !is_alone;
        if let Some(seat) = next {
            self.holder = Some((seat.thread, Instant::now()));
            seat.hand(Handed::Writer);
        }
    }

    fn withdraw(&mut self, seat: &Arc<Seat<Q, A>>) {
        for line in [&mut self.requests, &mut self.alone] {
            line.retain(|other| !Arc::ptr_eq(other, seat));
        }
    }

    fn count_batch(&mut self, requests: usize) {
        self.batches += 1;
        self.batched += requests as u64;
    }
}

impl<Q, A> Seat<Q, A> {
    fn new(thread: u64, request: Option<Q>) -> Arc<Self> {
        Arc::new(Self {
            thread,
            request: Mutex::new(request),
            handed: Mutex::new(Handed::Nothing),
            changed: Condvar::new(),
        })
    }

    fn hand(&self, what: Handed<A>) {
        *self.handed.lock() = what;
        self.changed.notify_one();
    }
}

impl<A> Handed<A> {
    /// What ends a wait, if it has come: the writer (nothing), or an answer.
    fn take(&mut self) -> Option<Result<Option<A>, LineError>> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Writer => Some(Ok(None)),
            Self::Answer(answer) => Some(Ok(Some(answer))),
            Self::Closed => Some(Err(LineError::Closed)),
            waiting @ (Self::Nothing | Self::TakenUp) => {
                *self = waiting;
                None
            }
        }
    }
}

/// The requests that a leader runs, its own first. It has the writer until this goes; what has not been
/// answered by then is put back in line.
pub struct Batch<Q, A> {
    line: Arc<Line<Q, A>>,
    own: Q,
    /// In order.
    others: VecDeque<(Arc<Seat<Q, A>>, Q)>,
}

impl<Q, A> Batch<Q, A> {
    fn new(line: &Arc<Line<Q, A>>, own: Q) -> Self {
        Self {
            line: Arc::clone(line),
            own,
            others: VecDeque::new(),
        }
    }

    /// What is to be run, in this order.
    pub fn requests(&self) -> impl Iterator<Item = &Q> {
        std::iter::once(&self.own).chain(self.others.iter().map(|(_, request)| request))
    }

    /// Answers the other requests in order, as far as there are answers; the others are put back in line.
    pub fn answer_others(&mut self, answers: impl IntoIterator<Item = A>) {
        for answer in answers {
            if let Some((seat, _)) = self.others.pop_front() {
                seat.hand(Handed::Answer(answer));
            }
        }
        self.put_back();
    }

    /// Gives the writer on before the others are answered. Those behind the first `taken_up` of them are
    /// put back in line.
    pub fn give_on(mut self, taken_up: usize) -> Unanswered<Q, A> {
        let seats = self
            .others
            .drain(..taken_up.min(self.others.len()))
            .map(|(seat, _)| seat)
            .collect();
        Unanswered { seats }
    }

    /// Puts those without an answer back at the head of the line.
    fn put_back(&mut self) {
        if self.others.is_empty() {
            return;
        }
        let mut state = self.line.state.lock();
        while let Some((seat, request)) = self.others.pop_back() {
            state.batched -= 1;
            if state.is_closed {
                seat.hand(Handed::Closed);
                continue;
            }
            *seat.request.lock() = Some(request);
            *seat.handed.lock() = Handed::Nothing;
            // It may have waited beyond its time.
            seat.changed.notify_one();
            state.requests.push_front(seat);
        }
    }
}

/// Those whose requests have been run, and who are to be told.
#[must_use = "they wait to be answered"]
pub struct Unanswered<Q, A> {
    /// In order.
    seats: VecDeque<Arc<Seat<Q, A>>>,
}

impl<Q, A> Unanswered<Q, A> {
    /// Answers them in order.
    pub fn answer(mut self, answers: impl IntoIterator<Item = A>) {
        for answer in answers {
            if let Some(seat) = self.seats.pop_front() {
                seat.hand(Handed::Answer(answer));
            }
        }
    }
}

impl<Q, A> Drop for Unanswered<Q, A> {
    fn drop(&mut self) {
        // There is an answer for each; whoever has none must not wait for ever.
        for seat in self.seats.drain(..) {
            seat.hand(Handed::Closed);
        }
    }
}

impl<Q, A> Drop for Batch<Q, A> {
    fn drop(&mut self) {
        self.put_back();
        self.line.give();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    type Numbers = Line<u32, u32>;

    fn submit(line: &Arc<Numbers>, thread: u64, request: u32) -> Result<u32, LineError> {
        match line.submit(thread, request, LONG, || true)? {
            Submitted::Answered(answer) => Ok(answer),
            Submitted::Leads(mut batch) => {
                let answers: Vec<u32> = batch.requests().map(|number| number * 2).collect();
                batch.answer_others(answers[1..].iter().copied());
                Ok(answers[0])
            }
        }
    }

    fn until(line: &Numbers, waiting: usize) {
        while line.statistics().waiting < waiting {
            thread::yield_now();
        }
    }

    #[test]
    fn a_lonely_request_leads_and_the_line_is_free_afterwards() {
        let line = Arc::new(Numbers::new(8));
        assert_eq!(submit(&line, 1, 21), Ok(42));
        assert!(matches!(line.try_submit(1, 1), Ok(Ok(_))));
        assert_eq!(line.holder(), None, "dropped with the batch");
        let counted = line.statistics();
        assert_eq!((counted.batches, counted.batched), (2, 2));
    }

    #[test]
    fn those_that_wait_are_run_together_in_order() {
        let line = Arc::new(Numbers::new(3));
        line.take(99, LONG, || true).expect("free");
        thread::scope(|scope| {
            let waiters: Vec<_> = (0..4)
                .map(|number| {
                    let line = &line;
                    let waiter = scope.spawn(move || submit(line, number.into(), number));
                    until(line, number as usize + 1);
                    waiter
                })
                .collect();
            line.give();
            for (number, waiter) in (0..).zip(waiters) {
                assert_eq!(waiter.join().expect("no panic"), Ok(number * 2));
            }
        });
        // Three at most, then the fourth.
        let counted = line.statistics();
        assert_eq!((counted.batches, counted.batched), (2, 4));
    }

    #[test]
    fn batches_and_lone_writers_alternate() {
        // Of one request each, so that some are left after the first.
        let line = Arc::new(Numbers::new(1));
        let order = Mutex::new(Vec::new());
        line.take(99, LONG, || true).expect("free");
        thread::scope(|scope| {
            let (line, order) = (&line, &order);
            for number in 0..2 {
                scope.spawn(move || {
                    line.take(number, LONG, || true).expect("in time");
                    order.lock().push("alone");
                    line.give();
                });
                until(line, number as usize * 2 + 1);
                scope.spawn(move || {
                    match line.submit(10 + number, 0, LONG, || true).expect("in time") {
                        Submitted::Answered(_) => {}
                        Submitted::Leads(mut batch) => {
                            order.lock().push("batch");
                            let count = batch.requests().count() - 1;
                            batch.answer_others(vec![0; count]);
                        }
                    }
                });
                until(line, number as usize * 2 + 2);
            }
            line.give();
        });
        assert_eq!(*order.lock(), ["batch", "alone", "batch", "alone"]);
    }

    #[test]
    fn what_is_not_answered_is_put_back() {
        let line = Arc::new(Numbers::new(8));
        let batch = line.try_submit(1, 1).expect("open").expect("free");
        thread::scope(|scope| {
            let line = &line;
            let second = scope.spawn(move || {
                // Leads, and does nothing for the others.
                match line.submit(2, 2, LONG, || true) {
                    Ok(Submitted::Leads(batch)) => batch.requests().count(),
                    _ => 0,
                }
            });
            until(line, 1);
            let third = scope.spawn(move || submit(line, 3, 3));
            until(line, 2);
            drop(batch);
            assert_eq!(second.join().expect("no panic"), 2);
            assert_eq!(third.join().expect("no panic"), Ok(6));
        });
    }

    #[test]
    fn waiting_ends_with_the_time_when_cancelled_and_when_closed() {
        let line = Arc::new(Numbers::new(8));
        line.take(1, LONG, || true).expect("free");
        assert_eq!(line.take(1, LONG, || true), Err(LineError::Reentrant));
        assert!(matches!(line.try_submit(1, 0), Err(LineError::Reentrant)));
        let hasty = line.submit(2, 0, Duration::ZERO, || true);
        assert!(matches!(hasty, Err(LineError::TimedOut)));
        assert_eq!(line.take(2, LONG, || false), Err(LineError::Cancelled));
        assert_eq!(line.statistics().waiting, 0);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| submit(&line, 3, 0));
            until(&line, 1);
            line.close();
            assert_eq!(waiter.join().expect("no panic"), Err(LineError::Closed));
        });
        assert_eq!(line.take(4, LONG, || true), Err(LineError::Closed));
        assert!(!line.wait_for_return(Duration::ZERO, || true));
        line.give();
        assert!(line.wait_for_return(LONG, || true));
    }
}
