//! Profiles: named sets of pragmas and switches. They are data; `settings` applies them.

use crate::error::Result;
use crate::open::precaution::{AGAINST_STRANGERS, Precaution};
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
    /// Whether it is for files of strangers, so that nothing is made, rolled back or checkpointed.
    pub is_for_strangers: bool,
    /// What it sets beside pragmas.
    pub(crate) precautions: &'static [Precaution],
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

/// For files of strangers; the journal mode stays.
const UNTRUSTED: Pragmas = &[
    ("trusted_schema", "OFF"),
    ("foreign_keys", "OFF"),
    ("mmap_size", "0"),
    ("cell_size_check", "ON"),
    ("query_only", "ON"),
];

/// All profiles. What each value is for: `docs/profiles.md`.
pub static PROFILES: [Profile; 5] = [
    Profile {
        name: "stock",
        own: &[],
        shared: &[],
        busy: BusyPolicy::Backoff,
        is_strict: false,
        is_for_strangers: false,
        precautions: &[],
    },
    Profile {
        name: "web",
        own: &[("synchronous", "NORMAL")],
        shared: PRODUCTION,
        busy: BusyPolicy::Gate,
        is_strict: true,
        is_for_strangers: false,
        precautions: &[],
    },
    Profile {
        name: "durable",
        own: &[("synchronous", "FULL")],
        shared: PRODUCTION,
        busy: BusyPolicy::Gate,
        is_strict: true,
        is_for_strangers: false,
        precautions: &[],
    },
    Profile {
        name: "cache",
        own: &[("synchronous", "OFF")],
        shared: PRODUCTION,
        busy: BusyPolicy::Gate,
        is_strict: true,
        is_for_strangers: false,
        precautions: &[],
    },
    Profile {
        name: "untrusted",
        own: UNTRUSTED,
        shared: &[],
        // No file of a queue is made beside it.
        busy: BusyPolicy::Fair,
        is_strict: true,
        is_for_strangers: true,
        precautions: AGAINST_STRANGERS,
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

    /// Each switch and limit of SQLite's with its value, likewise; they come before the pragmas.
    pub fn precautions(&self) -> impl Iterator<Item = (&'static str, String)> {
        let all = self.precautions.iter();
        all.map(|precaution| (precaution.name, precaution.value()))
    }
}
