//! What one may say when opening a database, checked in full before any file is touched.

use std::ffi::CString;
use std::time::Duration;

use crate::busy::BusyPolicy;
use crate::error::{Error, Result};
use crate::pragma::PragmaValue;
use crate::profile::{PlannedSetting, Profile, plan, replace};
use crate::uri::refuse_disabled_locking;

/// What to do about the journal mode of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalChoice {
    /// As the profile says; turning a file to WAL is persistent.
    Profile,
    /// Leave it as it is.
    Keep,
}

/// How a commit becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableCommit {
    /// Each by itself, as `synchronous` says.
    Each,
    /// Those of all processes that have chosen this share their syncs: see `shared_commit.rs`.
    Shared,
}

/// How to open a database. Built by [`new`](Self::new) and the `with_` methods, each of which
/// refuses what cannot work.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(crate) name: CString,
    pub(crate) uri: bool,
    pub(crate) profile: &'static Profile,
    pub(crate) settings: Vec<PlannedSetting>,
    pub(crate) journal: JournalChoice,
    pub(crate) durable_commit: DurableCommit,
    pub(crate) busy: BusyPolicy,
    pub(crate) timeout: Duration,
    pub(crate) cached_statements: usize,
    pub(crate) shared_cache: bool,
    pub(crate) is_cancelled: fn() -> bool,
}

impl OpenOptions {
    /// A database by its path, `:memory:`, or `""` for a temporary one; with the profile's choices,
    /// a wait of 5 s and 128 cached statements.
    pub fn new(name: impl Into<Vec<u8>>, profile: &'static Profile) -> Result<Self> {
        Ok(Self {
            name: CString::new(name)
                .map_err(|_| Error::Value("embedded null character in the database name".into()))?,
            uri: false,
            profile,
            settings: plan(profile, &[])?,
            journal: JournalChoice::Profile,
            durable_commit: DurableCommit::Each,
            busy: profile.busy.clone(),
            timeout: Duration::from_secs(5),
            cached_statements: 128,
            shared_cache: false,
            is_cancelled: || false,
        })
    }

    /// Reads the name as a URI when it begins with `file:`. A strict profile refuses parameters
    /// that switch locking off, unless `allow_no_locking`.
    pub fn with_uri(mut self, uri: bool, allow_no_locking: bool) -> Result<Self> {
        self.uri = uri;
        let name = self.name.as_bytes();
        if uri && self.profile.is_strict && !allow_no_locking && name.starts_with(b"file:") {
            refuse_disabled_locking(name)?;
        }
        Ok(self)
    }

    /// Sets pragmas over or beside the profile's.
    pub fn with_pragmas(mut self, overrides: &[(String, PragmaValue)]) -> Result<Self> {
        self.settings = plan(self.profile, overrides)?;
        Ok(self)
    }

    /// Whether an existing file keeps its journal mode: `profile` or `keep`.
    pub fn with_journal(mut self, choice: &str) -> Result<Self> {
        self.journal = match choice {
            "profile" => JournalChoice::Profile,
            "keep" => JournalChoice::Keep,
            _ => {
                return Err(crate::nearest::unknown(
                    "journal choice",
                    choice,
                    ["profile", "keep"],
                ));
            }
        };
        Ok(self)
    }

    /// How a commit becomes durable: `each` or `shared`, which sets `synchronous` by itself and needs the
    /// mode WAL. Comes after the pragmas.
    pub fn with_durable_commit(mut self, choice: &str) -> Result<Self> {
        self.durable_commit = match choice {
            "each" => return Ok(self),
            "shared" => DurableCommit::Shared,
            _ => {
                return Err(crate::nearest::unknown(
                    "durable commit",
                    choice,
                    ["each", "shared"],
                ));
            }
        };
        let refused = |why: &str| {
            Err(Error::Value(format!(
                "durable_commit=\"shared\" {why}, so that a commit is durable when it is answered"
            )))
        };
        if !["web", "durable"].contains(&self.profile.name) {
            return refused("needs the profile 'web' or 'durable'");
        }
        if matches!(self.name.as_bytes(), b"" | b":memory:") {
            return refused("needs a database in a file");
        }
        if self
            .settings
            .iter()
            .any(|setting| setting.is_asked("synchronous"))
        {
            return refused("sets the pragma 'synchronous' by itself");
        }
        for (name, value) in [("journal_mode", "wal"), ("locking_mode", "normal")] {
            if self
                .settings
                .iter()
                .any(|setting| !setting.is_or_not_set(name, value))
            {
                return refused(&format!("needs {name} = {value}"));
            }
        }
        // Until it is in a group, and where it cannot be: never less.
        replace(&mut self.settings, "synchronous", "FULL")?;
        Ok(self)
    }

    /// How locks are waited for, instead of the profile's policy.
    #[must_use]
    pub fn with_busy(mut self, busy: BusyPolicy) -> Self {
        self.busy = busy;
        self
    }

    /// How long a lock is waited for, in seconds; negative counts as zero.
    pub fn with_timeout(mut self, timeout_seconds: f64) -> Result<Self> {
        self.timeout = timeout_from_seconds(timeout_seconds)?;
        Ok(self)
    }

    /// How many prepared statements are kept; 0 for none.
    #[must_use]
    pub fn with_cached_statements(mut self, count: usize) -> Self {
        self.cached_statements = count;
        self
    }

    /// Shares the page cache with the other connections of this process that ask for it
    /// (<https://sqlite.org/sharedcache.html>), which SQLite discourages.
    #[must_use]
    pub fn with_shared_cache(mut self, shared_cache: bool) -> Self {
        self.shared_cache = shared_cache;
        self
    }

    /// Whether connections opened so may share a page cache.
    pub(crate) fn may_share_cache(&self) -> bool {
        let name = self.name.as_bytes();
        let asks = name
            .windows(b"cache=".len())
            .any(|part| part.eq_ignore_ascii_case(b"cache="));
        // An escaped name may ask for it in other letters.
        self.shared_cache || (self.uri && (asks || name.contains(&b'%')))
    }

    /// Asked now and then, while a statement works or waits, whether it is to be interrupted.
    #[must_use]
    pub fn with_cancellation(mut self, is_cancelled: fn() -> bool) -> Self {
        self.is_cancelled = is_cancelled;
        self
    }
}

/// A time limit in seconds; negative counts as zero.
pub fn timeout_from_seconds(seconds: f64) -> Result<Duration> {
    if seconds.is_nan() {
        return Err(Error::Value(
            "timeout must be a number of seconds, not NaN".into(),
        ));
    }
    // SQLite counts milliseconds in a 32-bit int: 24.8 days is as long as for ever.
    let seconds = seconds.clamp(0.0, f64::from(i32::MAX) / 1000.0);
    Ok(Duration::from_secs_f64(seconds))
}
