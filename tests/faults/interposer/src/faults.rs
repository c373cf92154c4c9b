//! Which call is to fail, and the counts by which it is found.
//!
//! Invariant: counted and struck is only between [`arm`] and [`disarm`].

use std::ffi::{CStr, c_int};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log::{self, Record};

/// What a call does, as far as faults are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    Malloc,
    Open,
    Close,
    Read,
    Write,
    Sync,
    Truncate,
    Lock,
    ShmLock,
    Unlock,
    ShmUnlock,
    Control,
    Stat,
    Map,
    ShmMap,
    Remap,
    Unlink,
    Access,
    Path,
    Owner,
}

/// The names by which Python knows them.
const NAMES: [(&CStr, Kind); KINDS] = [
    (c"malloc", Kind::Malloc),
    (c"open", Kind::Open),
    (c"close", Kind::Close),
    (c"read", Kind::Read),
    (c"write", Kind::Write),
    (c"sync", Kind::Sync),
    (c"truncate", Kind::Truncate),
    (c"lock", Kind::Lock),
    (c"shm-lock", Kind::ShmLock),
    (c"unlock", Kind::Unlock),
    (c"shm-unlock", Kind::ShmUnlock),
    (c"control", Kind::Control),
    (c"stat", Kind::Stat),
    (c"map", Kind::Map),
    (c"shm-map", Kind::ShmMap),
    (c"remap", Kind::Remap),
    (c"unlink", Kind::Unlink),
    (c"access", Kind::Access),
    (c"path", Kind::Path),
    (c"owner", Kind::Owner),
];

const KINDS: usize = Kind::Owner as usize + 1;

impl Kind {
    pub(crate) fn named(name: &CStr) -> Option<Self> {
        let mut all = NAMES.iter();
        all.find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// What is to fail.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// The first call of that kind to fail, counted from one.
    pub(crate) first: u64,
    /// Whether all after it fail too.
    pub(crate) is_persistent: bool,
    /// The `errno` of the failing call; or [`SHORT`], [`KILL`] or [`STOP`].
    pub(crate) effect: c_int,
}

/// Not a failure: the call transfers half of what it was asked to.
pub(crate) const SHORT: c_int = -1;

/// Not a failure: the process is killed where it was about to make the call.
const KILL: c_int = -2;

/// Not a failure: the process is stopped before the call, which is made when it goes on.
const STOP: c_int = -3;

struct State {
    fault: Option<Fault>,
    counts: [u64; KINDS],
    struck: u64,
}

static STATE: Mutex<State> = Mutex::new(State {
    fault: None,
    counts: [0; KINDS],
    struck: 0,
});

/// Whether there is a fault, to be asked without the mutex.
static IS_ARMED: AtomicBool = AtomicBool::new(false);

pub(crate) fn arm(fault: Fault) {
    if let Ok(mut state) = STATE.lock() {
        *state = State {
            fault: Some(fault),
            counts: [0; KINDS],
            struck: 0,
        };
        IS_ARMED.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn is_armed() -> bool {
    IS_ARMED.load(Ordering::SeqCst)
}

/// Whether SQLite is not to sleep between two tries for a lock: one that fails may never be granted, but
/// where the process is to be killed, others have the locks.
pub(crate) fn skips_sleep() -> bool {
    is_armed()
        && STATE
            .lock()
            .is_ok_and(|state| state.fault.is_some_and(|fault| fault.effect != KILL))
}

pub(crate) fn disarm() -> u64 {
    IS_ARMED.store(false, Ordering::SeqCst);
    STATE.lock().map_or(0, |mut state| {
        state.fault = None;
        state.struck
    })
}

pub(crate) fn struck() -> u64 {
    STATE.lock().map_or(0, |state| state.struck)
}

pub(crate) fn count(kind: Kind) -> i64 {
    STATE
        .lock()
        .map_or(-1, |state| state.counts[kind as usize] as i64)
}

/// Counts a call; what is to become of it, if it is to fail.
pub(crate) fn strike(kind: Kind) -> Option<c_int> {
    if !is_armed() {
        return None;
    }
    let mut state = STATE.lock().ok()?;
    let fault = state.fault?;
    state.counts[kind as usize] += 1;
    let number = state.counts[kind as usize];
    let is_struck = fault.kind == kind
        && (number == fault.first || (fault.is_persistent && number > fault.first));
    if !is_struck {
        return None;
    }
    state.struck += 1;
    log::add(Record::Mark, 0, 0, 0, br#"{"what": "struck"}"#);
    if fault.effect == KILL {
        // SAFETY: there is nothing that comes after it.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    if fault.effect == STOP {
        // Whoever is let go on finds nothing wrong.
        drop(state);
        // SAFETY: the process goes on here when it is told to.
        unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
        return None;
    }
    Some(fault.effect)
}

/// Sets `errno` and gives back what a failing call returns.
pub(crate) fn failed<T>(errno: c_int, returned: T) -> T {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = errno };
    returned
}
