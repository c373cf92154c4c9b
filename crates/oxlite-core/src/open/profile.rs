//! Profiles: named sets of pragmas and switches. They are data; `settings` applies them.

use crate::error::Result;
use crate::text::nearest::unknown;
use crate::wait::busy::BusyPolicy;

/// A pragma and its value.
type Pragmas = &'static [(&'static str, &'static str)];

/// A named set of pragmas and flags.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name under which users ask for it.
    pub name: &'static str,
    /// What this profile alone sets, or sets otherwise than `shared`.
    own: Pragmas,
    /// What it sets like others.
    shared: Pragmas,
    /// How a lock is waited for unless the caller chooses.
    pub busy: BusyPolicy,
    /// Whether double-quoted strings are errors, extension loading is closed, and URI parameters
    /// that disable locking are refused.
    pub is_strict: bool,
}

/// What the three production profiles share.
const PRODUCTION: Pragmas = &[
    ("foreign_keys", "ON"),
    ("mmap_size", "134217728"),
    ("journal_size_limit", "67108864"),
    ("cache_size", "2000"),
    ("temp_store", "MEMORY"),
    ("trusted_schema", "OFF"),
    ("journal_mode", "WAL"),
];

/// All profiles. What each value is for: `docs/profiles.md`.
pub static PROFILES: [Profile; 4] = [
    Profile {
        name: "stock",
        own: &[],
        shared: &[],
        busy: BusyPolicy::Backoff,
        is_strict: false,
    },
    Profile {
        name: "web",
        own: &[("synchronous", "NORMAL")],
        shared: PRODUCTION,
        busy: BusyPolicy::Gate,
        is_strict: true,
    },
    Profile {
        name: "durable",
        own: &[("synchronous", "FULL")],
        shared: PRODUCTION,
        busy: BusyPolicy::Gate,
        is_strict: true,
    },
    Profile {
        name: "cache",
        own: &[("synchronous", "OFF")],
        shared: PRODUCTION,
        busy: BusyPolicy::Gate,
        is_strict: true,
    },
];

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Result<&'static Self> {
        PROFILES
            .iter()
            .find(|profile| profile.name == name)
            .ok_or_else(|| unknown("profile", name, Self::names()))
    }

    /// The names of all profiles.
    pub(crate) fn names() -> Vec<&'static str> {
        PROFILES.iter().map(|profile| profile.name).collect()
    }

    /// Each pragma with its value, in the order in which they are applied.
    pub fn pragmas(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (own, shared) = (self.own, self.shared);
        let is_own = move |name: &str| own.iter().any(|(other, _)| *other == name);
        let shared = shared.iter().filter(move |(name, _)| !is_own(name));
        own.iter().chain(shared).copied()
    }
}
