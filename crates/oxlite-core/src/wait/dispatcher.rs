//! Work for a few members (connections) that is done in the order in which it came, in native threads;
//! nobody waits for it.
//!
//! Invariants:
//! - A member works on one thing at a time, or is lent.
//! - Who asks first is served first, be it with work or with a member; only tasks that follow one another
//!   directly are handed to a member together.
//! - What waits is found wherever it stands: giving up one of many costs no look at the others. It stands in
//!   the order in which it came, so those who have waited too long are the first.
//! - Nothing is taken up by a member that is not ready: what one makes ready for goes on waiting meanwhile,
//!   and may give up.
//! - As long as a member is idle nothing waits for long. But waking a thread costs more than a short task: on
//!   two processors, four readers of single rows did a third less than one reader alone. So another
//!   member is called only once tasks queue.
//! - What has been taken up is gone from here: its answer is the business of whoever does it. What cannot
//!   be done (a panic, no thread to be had) is dropped, and has to tell of that itself.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use oxlite_sqlite::fork_generation;

use crate::sync::{Condvar, Instant, Mutex, MutexGuard, sleep};
use crate::wait::workers::hand_in;

#[cfg(all(test, loom))]
mod model;

/// How often it is looked whether tasks wait while members are idle.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Tasks that wait for longer are helped along, though others before them have had their turn meanwhile.
const WAIT_AT_MOST: Duration = Duration::from_millis(1);

/// Looks at which nothing waited before it is looked no more.
const LAST_LOOKS: u32 = 50;

/// Does some tasks with a member: gives the member back, and those of the tasks that are still to be done,
/// the last ones of them, if any.
type Perform<M, T> = dyn Fn(M, Vec<T>) -> (M, Vec<T>) + Send + Sync;

/// Tells whoever is the first in line why no member could be made ready for it.
pub type Refusal<T, B> = Box<dyn FnOnce(Wanted<T, B>)>;

/// How a member becomes ready for its work.
struct Preparation<M, T, B> {
    /// Whether it is. Asked each time.
    is_ready: fn(&M) -> bool,
    prepare: Box<Prepare<M, T, B>>,
}

type Prepare<M, T, B> = dyn Fn(&mut M) -> Result<(), Refusal<T, B>> + Send + Sync;

/// Where something waits, and by which it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

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
    /// Of those that work, members that are being made ready, or will be first.
    pub preparing: usize,
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
    preparation: Option<Preparation<M, T, B>>,
    /// In place of one that was lost in a panic.
    make: fn() -> M,
    /// That of the process that made it.
    generation: u32,
}

struct State<M, T, B> {
    waiting: Queue<T, B>,
    idle: Vec<M>,
    working: usize,
    preparing: usize,
    lent: usize,
    /// Whether somebody looks after those who wait.
    is_watched: bool,
    is_closed: bool,
    batches: u64,
    tasks: u64,
}

/// What waits, in order.
struct Queue<T, B> {
    places: BTreeMap<Place, Waiting<T, B>>,
    /// The last place that was given; no place is given twice.
    last: Place,
}

struct Waiting<T, B> {
    since: Instant,
    wanted: Wanted<T, B>,
}

impl<T, B> Queue<T, B> {
    const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            last: Place(0),
        }
    }

    fn first(&self) -> Option<&Waiting<T, B>> {
        self.places.first_key_value().map(|(_, first)| first)
    }

    fn push(&mut self, wanted: Wanted<T, B>) -> Place {
        self.last.0 += 1;
        let since = Instant::now();
        self.places.insert(self.last, Waiting { since, wanted });
        self.last
    }

    fn pop(&mut self) -> Option<(Place, Waiting<T, B>)> {
        self.places.pop_first()
    }

    fn take_all(&mut self) -> Vec<Wanted<T, B>> {
        let all = std::mem::take(&mut self.places).into_values();
        all.map(|waiting| waiting.wanted).collect()
    }
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
                waiting: Queue::new(),
                idle: std::iter::repeat_with(make).take(count).collect(),
                working: 0,
                preparing: 0,
                lent: 0,
                is_watched: false,
                is_closed: false,
                batches: 0,
                tasks: 0,
            }),
            returned: Condvar::new(),
            batch_limit: batch_limit.max(1),
            perform: Box::new(perform),
            preparation: None,
            make,
            generation: fork_generation(),
        }
    }

    /// Has a member made ready by `prepare` before it gets anything to do, unless it `is_ready`. Where that
    /// fails the first in line is told.
    #[must_use]
    pub fn preparing(
        mut self,
        is_ready: fn(&M) -> bool,
        prepare: impl Fn(&mut M) -> Result<(), Refusal<T, B>> + Send + Sync + 'static,
    ) -> Self {
        let prepare = Box::new(prepare);
        self.preparation = Some(Preparation { is_ready, prepare });
        self
    }

    /// Whether this is a forked child, which has no thread that would do anything, but perhaps a lock that
    /// such a thread had.
    pub fn is_inherited(&self) -> bool {
        self.generation != fork_generation()
    }

    /// Has it done when its turn has come; never waits. The place where it waits until then. Handed back if
    /// all is closed.
    pub fn submit(self: &Arc<Self>, wanted: Wanted<T, B>) -> Result<Place, Wanted<T, B>> {
        if self.is_inherited() {
            return Err(wanted);
        }
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(wanted);
        }
        let is_task = matches!(wanted, Wanted::Task(_));
        let place = state.waiting.push(wanted);
        if state.idle.is_empty() {
            return Ok(place);
        }
        if is_task && state.working > 0 {
            // Who works may come to it at once; somebody sees to it if not.
            if state.is_watched {
                return Ok(place);
            }
            let this = Arc::clone(self);
            if hand_in(move || this.watch()).is_ok() {
                state.is_watched = true;
                return Ok(place);
            }
        }
        self.start_one(state);
        Ok(place)
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
        if state.waiting.first().is_none() {
            state.idle.push(member);
            return None;
        }
        self.start(state, member);
        None
    }

    /// Takes out what waits at this place, if it still does.
    pub fn withdraw(&self, place: Place) -> Option<Wanted<T, B>> {
        if self.is_inherited() {
            return None;
        }
        let mut state = self.state.lock();
        let waiting = state.waiting.places.remove(&place);
        waiting.map(|waiting| waiting.wanted)
    }

    /// Takes out what has waited for `timeout`, but no more than `at_most`; and in how long there is more to
    /// be taken out, if anything is left.
    pub fn expire(
        &self,
        timeout: Duration,
        at_most: usize,
    ) -> (Vec<Wanted<T, B>>, Option<Duration>) {
        let mut expired = Vec::new();
        if self.is_inherited() {
            return (expired, None);
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        loop {
            let Some(first) = state.waiting.first() else {
                return (expired, None);
            };
            let waited = now.saturating_duration_since(first.since);
            let rest = timeout.saturating_sub(waited);
            if !rest.is_zero() || expired.len() == at_most {
                return (expired, Some(rest));
            }
            expired.extend(state.waiting.pop().map(|(_, waiting)| waiting.wanted));
        }
    }

    /// Takes up nothing any more. What waits is handed back.
    pub fn close(&self) -> Vec<Wanted<T, B>> {
        if self.is_inherited() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        state.is_closed = true;
        state.waiting.take_all()
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
            preparing: state.preparing,
            lent: state.lent,
            waiting: state.waiting.places.len(),
            batches: state.batches,
            tasks: state.tasks,
        }
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
            let Some(first) = state.waiting.first() else {
                quiet += 1;
                if quiet > LAST_LOOKS {
                    state.is_watched = false;
                    return;
                }
                continue;
            };
            let is_stuck = state.tasks == seen || first.since.elapsed() >= WAIT_AT_MOST;
            (seen, quiet) = (state.tasks, 0);
            if is_stuck && !state.idle.is_empty() {
                self.start_one(state);
            }
        }
    }

    /// Has one of the idle members, of which there is one, begin to work.
    fn start_one(self: &Arc<Self>, mut state: MutexGuard<'_, State<M, T, B>>) {
        if let Some(member) = state.idle.pop() {
            self.start(state, member);
        }
    }

    /// Has a thread go through what waits, with a member that counts as working from here on.
    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State<M, T, B>>, member: M) {
        // The thread may be long in coming, and who gives up meanwhile is told what it is about to do.
        let is_preparing = !self.is_ready(&member);
        state.working += 1;
        state.preparing += usize::from(is_preparing);
        drop(state);
        // Outside the closure, so that it is not lost with it.
        let place = Arc::new(Mutex::new(Some(member)));
        let (this, taken) = (Arc::clone(self), Arc::clone(&place));
        let started = hand_in(move || {
            let member = taken.lock().take();
            if let Some(member) = member {
                this.serve(member, is_preparing);
            }
        });
        if started.is_err() {
            let mut state = self.state.lock();
            state.working -= 1;
            state.preparing -= usize::from(is_preparing);
            state.idle.extend(place.lock().take());
            // Others that work, or come back, see to what waits.
            let is_last = state.working + state.lent == 0;
            let waiting = is_last.then(|| state.waiting.take_all());
            drop(state);
            drop(waiting);
        }
    }

    /// Goes through what waits; whether the member counts as one that is being made ready is said.
    fn serve(&self, mut member: M, mut is_preparing: bool) {
        loop {
            let is_ready = self.is_ready(&member);
            let mut state = self.state.lock();
            state.preparing -= usize::from(std::mem::take(&mut is_preparing));
            if !is_ready && state.waiting.first().is_some() {
                state.preparing += 1;
                drop(state);
                let refusal;
                (member, refusal) = self.prepare(member);
                state = self.state.lock();
                state.preparing -= 1;
                if let Some(refusal) = refusal {
                    let first = state.waiting.pop();
                    drop(state);
                    if let Some((_, first)) = first {
                        let _ = catch_unwind(AssertUnwindSafe(|| refusal(first.wanted)));
                    }
                    continue;
                }
            }
            let Some((place, first)) = state.waiting.pop() else {
                state.working -= 1;
                state.idle.push(member);
                let is_closed = state.is_closed;
                drop(state);
                if is_closed {
                    self.returned.notify_all();
                }
                return;
            };
            match first.wanted {
                Wanted::Task(task) => {
                    let (mut places, mut tasks) = (vec![(place, first.since)], vec![task]);
                    self.batch(&mut state, &mut places, &mut tasks);
                    drop(state);
                    let done = catch_unwind(AssertUnwindSafe(|| (self.perform)(member, tasks)));
                    let left;
                    (member, left) = done.unwrap_or_else(|_| ((self.make)(), Vec::new()));
                    self.put_back(places, left);
                }
                Wanted::Member(borrower) => {
                    state.working -= 1;
                    state.lent += 1;
                    drop(state);
                    let lent = catch_unwind(AssertUnwindSafe(|| borrower.lend(member)));
                    let Some(unwanted) = lent.unwrap_or_else(|_| Some((self.make)())) else {
                        return;
                    };
                    member = unwanted;
                    let mut state = self.state.lock();
                    state.lent -= 1;
                    state.working += 1;
                }
            }
        }
    }

    fn is_ready(&self, member: &M) -> bool {
        let preparation = self.preparation.as_ref();
        preparation.is_none_or(|preparation| (preparation.is_ready)(member))
    }

    /// Makes a member ready; or whoever is first is to be refused.
    fn prepare(&self, mut member: M) -> (M, Option<Refusal<T, B>>) {
        let Some(preparation) = &self.preparation else {
            return (member, None);
        };
        let prepared = catch_unwind(AssertUnwindSafe(|| {
            let refusal = (preparation.prepare)(&mut member).err();
            (member, refusal)
        }));
        // After a panic the first in line is dropped, and says so itself.
        prepared.unwrap_or_else(|_| ((self.make)(), Some(Box::new(drop))))
    }

    /// Adds the tasks that follow.
    fn batch(
        &self,
        state: &mut State<M, T, B>,
        places: &mut Vec<(Place, Instant)>,
        tasks: &mut Vec<T>,
    ) {
        while tasks.len() < self.batch_limit
            && let Some(next) = state.waiting.places.first_entry()
            && matches!(next.get().wanted, Wanted::Task(_))
        {
            let (place, waiting) = next.remove_entry();
            if let Wanted::Task(task) = waiting.wanted {
                places.push((place, waiting.since));
                tasks.push(task);
            }
        }
        state.batches += 1;
        state.tasks += tasks.len() as u64;
    }

    /// Has the last ones of some tasks wait where they have waited before.
    fn put_back(&self, places: Vec<(Place, Instant)>, left: Vec<T>) {
        if left.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let places = places.into_iter().rev().zip(left.into_iter().rev());
        for ((place, since), task) in places {
            let wanted = Wanted::Task(task);
            state
                .waiting
                .places
                .insert(place, Waiting { since, wanted });
        }
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
        assert_eq!(dispatcher.close().len(), 2);
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
    fn who_waits_gives_up_or_is_given_up_wherever_he_stands() {
        let (dispatcher, told, go) = telling(1);
        submit(&dispatcher, 1);
        while dispatcher.statistics().batches == 0 {
            std::thread::yield_now();
        }
        let places = [2, 3, 4].map(|task| dispatcher.submit(Wanted::Task(task)).ok());
        let second = places[1].expect("open");
        assert!(matches!(dispatcher.withdraw(second), Some(Wanted::Task(3))));
        assert!(dispatcher.withdraw(second).is_none());
        let (expired, rest) = dispatcher.expire(LONG, usize::MAX);
        assert!(expired.is_empty() && rest.is_some_and(|rest| rest <= LONG));
        let (expired, rest) = dispatcher.expire(Duration::ZERO, 1);
        assert!(matches!(expired[..], [Wanted::Task(2)]));
        assert_eq!(rest, Some(Duration::ZERO), "there is one more");
        let (expired, rest) = dispatcher.expire(Duration::ZERO, 1);
        assert!(matches!(expired[..], [Wanted::Task(4)]));
        assert_eq!(rest, None);
        let _ = go.send(());
        assert_eq!(told.recv_timeout(LONG), Ok(vec![1]));
        // A place is nobody else's later.
        submit(&dispatcher, 5);
        submit(&dispatcher, 6);
        assert!(dispatcher.withdraw(second).is_none());
        let _ = (go.send(()), go.send(()));
        assert_eq!(told.recv_timeout(LONG), Ok(vec![5]));
        assert_eq!(told.recv_timeout(LONG), Ok(vec![6]));
    }

    #[test]
    fn nothing_is_taken_up_before_a_member_is_ready() {
        let (tell, told) = channel();
        let (go, goes) = channel();
        let goes = Mutex::new(goes);
        let (refused_by, refused) = channel();
        let dispatcher = Arc::new(
            Dispatcher::<bool, u32, std::convert::Infallible>::new(
                1,
                4,
                || false,
                move |is_ready, tasks: Vec<u32>| {
                    assert!(is_ready);
                    let _ = tell.send(tasks);
                    (is_ready, Vec::new())
                },
            )
            .preparing(
                |is_ready| *is_ready,
                move |is_ready| {
                    let word = goes.lock().recv_timeout(LONG);
                    match word.expect("it is told what to do") {
                        "panic" => panic!("meant"),
                        "ready" => {
                            *is_ready = true;
                            Ok(())
                        }
                        _ => {
                            let refused = refused_by.clone();
                            Err(Box::new(move |wanted| {
                                let _ = refused.send(matches!(wanted, Wanted::Task(2)));
                            }))
                        }
                    }
                },
            ),
        );
        for task in 1..=4 {
            assert!(dispatcher.submit(Wanted::Task(task)).is_ok());
        }
        // From the first one on, whether or not its thread has come.
        assert_eq!(dispatcher.statistics().preparing, 1);
        assert_eq!(dispatcher.statistics().waiting, 4);
        let (expired, _) = dispatcher.expire(Duration::ZERO, 1);
        assert!(matches!(expired[..], [Wanted::Task(1)]));
        for word in ["fail", "panic", "ready"] {
            let _ = go.send(word);
        }
        assert_eq!(refused.recv_timeout(LONG), Ok(true));
        assert_eq!(told.recv_timeout(LONG), Ok(vec![4]));
        assert_eq!(dispatcher.statistics().preparing, 0);
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
