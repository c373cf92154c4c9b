//! Work for a few members (connections) that is done in the order in which it came, in native threads;
//! nobody waits for it.
//!
//! Invariants:
//! - A member works on one thing at a time, or is lent.
//! - Who asks first is served first, be it with work or with a member; only tasks that follow one another
//!   directly are handed to a member together.
//! - As long as a member is idle nothing waits for long. Short tasks are done fastest by one member that goes
//!   on from one to the next: on two processors four readers of a row each got a third less done than one,
//!   for the threads' waking up. So the next one is called only when the tasks are seen to wait.
//! - What has been taken up is gone from here: its answer is the business of whoever does it. What cannot
//!   be done (a panic, no thread to be had) is dropped, and has to tell of that itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use oxlite_sqlite::fork_generation;

use crate::sync::{Condvar, Instant, Mutex, MutexGuard, sleep};
use crate::workers::hand_in;

#[cfg(all(test, loom))]
mod model;

/// How often it is looked whether tasks wait while members are idle.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Tasks that wait for longer are helped along, though others before them have had their turn meanwhile.
const WAIT_AT_MOST: Duration = Duration::from_millis(1);

/// Looks at which nothing waited before it is looked no more.
const LAST_LOOKS: u32 = 50;

/// Does some tasks with a member: gives the member back, and the tasks that are still to be done, if any.
type Perform<M, T> = dyn Fn(M, Vec<T>) -> (M, Vec<T>) + Send + Sync;

/// Who asks for a member.
pub trait Borrower<M>: Send + 'static {
    /// Gets it, to keep; gives it back at once if it is not wanted any more.
    fn lend(self, member: M) -> Option<M>;
}

/// Nobody does.
impl<M> Borrower<M> for std::convert::Infallible {
    fn lend(self, _: M) -> Option<M> {
        match self {}
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted<T, B> {
    /// That this be done.
    Task(T),
    /// A member, to be given back.
    Member(B),
}

/// What a dispatcher is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DispatcherStatistics {
    /// Members that do nothing.
    pub idle: usize,
    /// Members that work.
    pub working: usize,
    /// Members that are lent.
    pub lent: usize,
    /// Tasks, and wishes for a member, that nobody has taken up.
    pub waiting: usize,
    /// How often tasks were taken up,
    pub batches: u64,
    /// and how many.
    pub tasks: u64,
}

/// Hands work to its members.
pub struct Dispatcher<M, T, B> {
    state: Mutex<State<M, T, B>>,
    /// Told when a member of a closed dispatcher has come back.
    returned: Condvar,
    batch_limit: usize,
    perform: Box<Perform<M, T>>,
    /// In place of one that was lost in a panic.
    make: fn() -> M,
    /// That of the process that made it.
    generation: u32,
}

struct State<M, T, B> {
    waiting: VecDeque<(Instant, Wanted<T, B>)>,
    idle: Vec<M>,
    working: usize,
    lent: usize,
    /// Whether somebody looks after those who wait.
    is_watched: bool,
    is_closed: bool,
    batches: u64,
    tasks: u64,
}

impl<M: Send + 'static, T: Send + 'static, B: Borrower<M>> Dispatcher<M, T, B> {
    /// With so many members, each of which gets at most `batch_limit` tasks at once.
    pub fn new(
        count: usize,
        batch_limit: usize,
        make: fn() -> M,
        perform: impl Fn(M, Vec<T>) -> (M, Vec<T>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                idle: std::iter::repeat_with(make).take(count).collect(),
                working: 0,
                lent: 0,
                is_watched: false,
                is_closed: false,
                batches: 0,
                tasks: 0,
            }),
            returned: Condvar::new(),
            batch_limit: batch_limit.max(1),
            perform: Box::new(perform),
            make,
            generation: fork_generation(),
        }
    }

    /// Whether this is a forked child, which has no thread that would do anything, but perhaps a lock that
    /// such a thread had.
    fn is_inherited(&self) -> bool {
        self.generation != fork_generation()
    }

    /// Has it done when its turn has come; never waits. Handed back if all is closed.
    pub fn submit(self: &Arc<Self>, wanted: Wanted<T, B>) -> Result<(), Wanted<T, B>> {
        if self.is_inherited() {
            return Err(wanted);
        }
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(wanted);
        }
        let is_task = matches!(wanted, Wanted::Task(_));
        state.waiting.push_back((Instant::now(), wanted));
        if state.idle.is_empty() {
            return Ok(());
        }
        if is_task && state.working > 0 {
            // Who works may come to it at once; somebody sees to it if not.
            if state.is_watched {
                return Ok(());
            }
            let this = Arc::clone(self);
            if hand_in(move || this.watch()).is_ok() {
                state.is_watched = true;
                return Ok(());
            }
        }
        self.start_one(state);
        Ok(())
    }

    /// Gives a member back that was lent. It is handed on to the caller once all is closed.
    pub fn give(self: &Arc<Self>, member: M) -> Option<M> {
        if self.is_inherited() {
            return Some(member);
        }
        let mut state = self.state.lock();
        state.lent -= 1;
        if state.is_closed {
            drop(state);
            self.returned.notify_all();
            return Some(member);
        }
        if state.waiting.is_empty() {
            state.idle.push(member);
            return None;
        }
        state.working += 1;
        drop(state);
        self.start(member);
        None
    }

    /// Takes out what is to wait no longer, wherever it stands.
    pub fn take_out(&self, mut is_to_go: impl FnMut(&Wanted<T, B>) -> bool) -> Vec<Wanted<T, B>> {
        if self.is_inherited() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let (taken_out, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(_, wanted)| is_to_go(wanted));
        state.waiting = rest.into();
        taken_out.into_iter().map(|(_, wanted)| wanted).collect()
    }

    /// Takes up nothing any more. What waits is handed back.
    pub fn close(&self) -> Vec<Wanted<T, B>> {
        if self.is_inherited() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        state.is_closed = true;
        state.waiting.drain(..).map(|(_, wanted)| wanted).collect()
    }

    /// The members that are idle once all is closed and all have come back, or `timeout` has passed; and
    /// whether all have.
    pub fn wait_for_all(&self, timeout: Duration) -> (Vec<M>, bool) {
        if self.is_inherited() {
            return (Vec::new(), true);
        }
        let ends = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            let are_back = state.working + state.lent == 0;
            let remaining = ends.saturating_duration_since(Instant::now());
            if are_back || remaining.is_zero() {
                return (std::mem::take(&mut state.idle), are_back);
            }
            self.returned.wait_for(&mut state, remaining);
        }
    }

    /// What it is doing.
    pub fn statistics(&self) -> DispatcherStatistics {
        if self.is_inherited() {
            return DispatcherStatistics::default();
        }
        let state = self.state.lock();
        DispatcherStatistics {
            idle: state.idle.len(),
            working: state.working,
            lent: state.lent,
            waiting: state.waiting.len(),
            batches: state.batches,
            tasks: state.tasks,
        }
    }

    /// How many of those that wait are such.
    pub fn waiting(&self, is_such: impl Fn(&Wanted<T, B>) -> bool) -> usize {
        if self.is_inherited() {
            return 0;
        }
        let state = self.state.lock();
        state
            .waiting
            .iter()
            .filter(|(_, wanted)| is_such(wanted))
            .count()
    }

    /// Looks at the members that are idle.
    pub fn look(&self, mut at: impl FnMut(&M)) {
        if !self.is_inherited()
            && let Some(state) = self.state.try_lock()
        {
            state.idle.iter().for_each(&mut at);
        }
    }

    /// Calls one more member whenever tasks are seen to wait for long, as long as any are about.
    fn watch(self: &Arc<Self>) {
        let (mut seen, mut quiet) = (0, 0);
        loop {
            sleep(LOOK_EVERY);
            let mut state = self.state.lock();
            let Some((since, _)) = state.waiting.front() else {
                quiet += 1;
                if quiet > LAST_LOOKS {
                    state.is_watched = false;
                    return;
                }
                continue;
            };
            let is_stuck = state.tasks == seen || since.elapsed() >= WAIT_AT_MOST;
            (seen, quiet) = (state.tasks, 0);
            if is_stuck && !state.idle.is_empty() {
                self.start_one(state);
            }
        }
    }

    /// Has one of the idle members, of which there is one, begin to work.
    fn start_one(self: &Arc<Self>, mut state: MutexGuard<'_, State<M, T, B>>) {
        if let Some(member) = state.idle.pop() {
            state.working += 1;
            drop(state);
            self.start(member);
        }
    }

    /// Has a thread go through what waits, with a member that counts as working.
    fn start(self: &Arc<Self>, member: M) {
        // Outside the closure, so that it is not lost with it.
        let place = Arc::new(Mutex::new(Some(member)));
        let (this, taken) = (Arc::clone(self), Arc::clone(&place));
        let started = hand_in(move || {
            let member = taken.lock().take();
            if let Some(member) = member {
                this.serve(member);
            }
        });
        if started.is_err() {
            let mut state = self.state.lock();
            state.working -= 1;
            state.idle.extend(place.lock().take());
            // Others that work, or come back, see to what waits.
            let is_last = state.working + state.lent == 0;
            let waiting = is_last.then(|| std::mem::take(&mut state.waiting));
            drop(state);
            drop(waiting);
        }
    }

    fn serve(&self, mut member: M) {
        loop {
            let (tasks, borrower) = {
                let mut state = self.state.lock();
                match state.waiting.pop_front().map(|(_, wanted)| wanted) {
                    None => {
                        state.working -= 1;
                        state.idle.push(member);
                        let is_closed = state.is_closed;
                        drop(state);
                        if is_closed {
                            self.returned.notify_all();
                        }
                        return;
                    }
                    Some(Wanted::Task(task)) => (self.batch(&mut state, task), None),
                    Some(Wanted::Member(borrower)) => {
                        state.working -= 1;
                        state.lent += 1;
                        (Vec::new(), Some(borrower))
                    }
                }
            };
            if let Some(borrower) = borrower {
                let lent = catch_unwind(AssertUnwindSafe(|| borrower.lend(member)));
                let Some(unwanted) = lent.unwrap_or_else(|_| Some((self.make)())) else {
                    return;
                };
                member = unwanted;
                let mut state = self.state.lock();
                state.lent -= 1;
                state.working += 1;
                continue;
            }
            let done = catch_unwind(AssertUnwindSafe(|| (self.perform)(member, tasks)));
            let left;
            (member, left) = done.unwrap_or_else(|_| ((self.make)(), Vec::new()));
            if !left.is_empty() {
                let mut state = self.state.lock();
                for task in left.into_iter().rev() {
                    state
                        .waiting
                        .push_front((Instant::now(), Wanted::Task(task)));
                }
            }
        }
    }

    /// `first` and the tasks that follow it.
    fn batch(&self, state: &mut State<M, T, B>, first: T) -> Vec<T> {
        let mut batch = vec![first];
        while batch.len() < self.batch_limit
            && matches!(state.waiting.front(), Some((_, Wanted::Task(_))))
            && let Some((_, Wanted::Task(task))) = state.waiting.pop_front()
        {
            batch.push(task);
        }
        state.batches += 1;
        state.tasks += batch.len() as u64;
        batch
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    type Wish = Box<dyn FnOnce(()) -> Option<()> + Send>;

    impl Borrower<()> for Wish {
        fn lend(self, member: ()) -> Option<()> {
            self(member)
        }
    }

    type Numbers = Dispatcher<(), u32, Wish>;

    /// A dispatcher that tells which tasks it does together, and does them when it is told to.
    fn telling(batch_limit: usize) -> (Arc<Numbers>, Receiver<Vec<u32>>, Sender<()>) {
        let (tell, told) = channel();
        let (go, goes) = channel();
        let goes = Mutex::new(goes);
        let dispatcher = Dispatcher::new(
            1,
            batch_limit,
            || (),
            move |(), tasks: Vec<u32>| {
                let _ = goes.lock().recv_timeout(LONG);
                let left = tasks.iter().copied().filter(|task| *task == 100).map(|_| 7);
                let left = left.collect();
                let _ = tell.send(tasks);
                ((), left)
            },
        );
        (Arc::new(dispatcher), told, go)
    }

    fn submit(dispatcher: &Arc<Numbers>, task: u32) {
        assert!(dispatcher.submit(Wanted::Task(task)).is_ok());
    }

    #[test]
    fn what_follows_one_another_is_done_together_and_in_order() {
        let (dispatcher, told, go) = telling(3);
        for task in 1..=6 {
            submit(&dispatcher, task);
        }
        for _ in 0..8 {
            let _ = go.send(());
        }
        let mut done = Vec::new();
        while done.len() < 6 {
            let batch = told.recv_timeout(LONG).expect("all are done");
            assert!(batch.len() <= 3);
            done.extend(batch);
        }
        assert_eq!(done, [1, 2, 3, 4, 5, 6]);
        // What is left over comes first.
        submit(&dispatcher, 100);
        submit(&dispatcher, 8);
        let mut done = Vec::new();
        while done.len() < 3 {
            done.extend(told.recv_timeout(LONG).expect("all are done"));
        }
        assert!(done == [100, 7, 8] || done == [100, 8, 7], "{done:?}");
        assert_eq!(dispatcher.statistics().tasks, 9);
    }

    #[test]
    fn who_asks_for_a_member_gets_it_between_the_tasks() {
        let (dispatcher, told, go) = telling(10);
        let (lent, borrowed) = channel();
        let wish = |lent: Sender<()>| {
            let wish: Wish = Box::new(move |()| lent.send(()).err().map(|_| ()));
            Wanted::Member(wish)
        };
        submit(&dispatcher, 1);
        assert!(dispatcher.submit(wish(lent.clone())).is_ok());
        submit(&dispatcher, 2);
        let _ = (go.send(()), go.send(()), go.send(()));
        assert_eq!(told.recv_timeout(LONG), Ok(vec![1]));
        assert_eq!(borrowed.recv_timeout(LONG), Ok(()));
        assert!(told.recv_timeout(Duration::from_millis(5)).is_err());
        assert_eq!(
            (
                dispatcher.statistics().lent,
                dispatcher.statistics().waiting
            ),
            (1, 1)
        );
        assert!(dispatcher.give(()).is_none());
        assert_eq!(told.recv_timeout(LONG), Ok(vec![2]));
        // One that nobody wants any more goes on to the next.
        drop(borrowed);
        assert!(dispatcher.submit(wish(lent)).is_ok());
        submit(&dispatcher, 3);
        assert_eq!(told.recv_timeout(LONG), Ok(vec![3]));
    }

    #[test]
    fn a_closed_one_takes_up_nothing_and_waits_for_all() {
        let (dispatcher, told, go) = telling(1);
        submit(&dispatcher, 1);
        while dispatcher.statistics().batches == 0 {
            std::thread::yield_now();
        }
        submit(&dispatcher, 2);
        submit(&dispatcher, 3);
        let is_second = |wanted: &_| matches!(wanted, Wanted::Task(2));
        assert!(matches!(
            dispatcher.take_out(is_second)[..],
            [Wanted::Task(2)]
        ));
        assert_eq!(dispatcher.close().len(), 1);
        assert!(matches!(
            dispatcher.submit(Wanted::Task(4)),
            Err(Wanted::Task(4))
        ));
        assert!(!dispatcher.wait_for_all(Duration::ZERO).1);
        let _ = go.send(());
        assert_eq!(dispatcher.wait_for_all(LONG), (vec![()], true));
        assert_eq!(told.recv_timeout(LONG), Ok(vec![1]));
    }

    #[test]
    fn who_waits_behind_a_long_task_is_helped_by_the_others() {
        let (tell, told) = channel();
        let (go, goes) = channel::<()>();
        let goes = Mutex::new(goes);
        let dispatcher = Arc::new(Numbers::new(
            3,
            1,
            || (),
            move |(), tasks: Vec<u32>| {
                if tasks == [1] {
                    let _ = goes.lock().recv_timeout(LONG);
                }
                let _ = tell.send(tasks);
                ((), Vec::new())
            },
        ));
        for task in 1..=4 {
            submit(&dispatcher, task);
        }
        for task in 2..=4 {
            assert_eq!(told.recv_timeout(LONG), Ok(vec![task]));
        }
        let _ = go.send(());
        assert_eq!(told.recv_timeout(LONG), Ok(vec![1]));
    }

    #[test]
    fn a_panic_costs_the_task_and_not_the_member() {
        let (tell, told) = channel();
        let dispatcher = Arc::new(Numbers::new(
            1,
            1,
            || (),
            move |(), tasks: Vec<u32>| {
                assert_ne!(tasks, [1], "meant");
                let _ = tell.send(tasks);
                ((), Vec::new())
            },
        ));
        submit(&dispatcher, 1);
        let wish: Wish = Box::new(|()| panic!("meant"));
        assert!(dispatcher.submit(Wanted::Member(wish)).is_ok());
        submit(&dispatcher, 2);
        assert_eq!(told.recv_timeout(LONG), Ok(vec![2]));
    }
}
