//! What one may say when opening a database: declared once, and checked in full before any file is
//! touched.
//!
//! Whoever adds an option declares it in [`OPTIONS`], and says here what it does to [`OpenOptions`].

use std::ffi::CString;
use std::time::Duration;

use crate::activity::SlowStatements;
use crate::error::{Error, Result};
use crate::open::choice::Choice;
use crate::open::pragma::PragmaValue;
use crate::open::profile::Profile;
use crate::open::schema::{Door, Kind, OpenOption, OptionValue};
use crate::open::settings::{JournalChoice, Plan, Wanted, plan, plan_of, replace};
use crate::open::uri::refuse_disabled_locking;
use crate::text::nearest::nearest;
use crate::wait::busy::BusyPolicy;
use crate::write::transaction::IsolationLevel;

use OptionValue::{Boolean, Integer, Number, Text};

const TIMEOUT_SECONDS: f64 = 5.0;
const CACHED_STATEMENTS: i64 = 128;
const NONE: OptionValue = OptionValue::None;

/// Every option, in the order of `connect`; then what a `Database` alone takes.
#[rustfmt::skip]
pub static OPTIONS: &[OpenOption] = &[
    OpenOption::new("timeout", Kind::Number("seconds"), Number(TIMEOUT_SECONDS),
        "How long a lock is waited for.").database(Number(TIMEOUT_SECONDS)),
    OpenOption::new("detect_types", Kind::Integer("flags"), Integer(0),
        "Where converters are looked for: PARSE_DECLTYPES, PARSE_COLNAMES, or both.").database(Integer(0)),
    OpenOption::new("isolation_level", Kind::Choice(IsolationLevel::names), Text("IMMEDIATE"),
        "How an implicit transaction begins; None for none.").drop_in(Text("")).optional(),
    OpenOption::new("check_same_thread", Kind::Boolean, Boolean(true),
        "Refuse use from any other thread."),
    OpenOption::new("factory", Kind::Class, NONE,
        "The class to create."),
    OpenOption::new("cached_statements", Kind::Integer("statements"), Integer(CACHED_STATEMENTS),
        "How many prepared statements are kept.").database(Integer(CACHED_STATEMENTS)),
    OpenOption::new("uri", Kind::Boolean, Boolean(false),
        "Read a name that begins with file: as a URI."),
    OpenOption::new("autocommit", Kind::Autocommit, Integer(LEGACY_TRANSACTION_CONTROL),
        "Who begins transactions: SQL, the connection always, or as isolation_level says."),
    OpenOption::new("profile", Kind::Choice(Profile::names), Text("web"),
        "Which set of pragmas and flags is applied.").drop_in(Text(DROP_IN_PROFILE)).database(Text("web")),
    OpenOption::new("pragmas", Kind::Mapping, NONE,
        "Pragmas to set over or beside the profile's.").database(NONE),
    OpenOption::new("journal", Kind::Choice(JournalChoice::names), Text("profile"),
        "Whether an existing file keeps its journal mode.").database(Text("profile")),
    OpenOption::new("busy", Kind::Choice(BusyPolicy::names), NONE,
        "How a lock is waited for; None for the profile's way."),
    OpenOption::new("busy_handler", Kind::Function, NONE,
        "Waits for a lock in your own way."),
    OpenOption::new("statement_timeout", Kind::Number("seconds"), NONE,
        "How long a statement may work before it is interrupted.").more_than(0.0).database(NONE),
    OpenOption::new("slow_statement", Kind::Number("seconds"), NONE,
        "Statements that take longer are logged with their plan.").at_least(0.0).database(NONE),
    OpenOption::new("extensions", Kind::List, NONE,
        "Loadable extensions: paths, or names of packages or libraries.").database(NONE),
    OpenOption::new("allow_no_locking", Kind::Boolean, Boolean(false),
        "Accept URI parameters that switch file locking off."),
    OpenOption::new("durable_commit", Kind::Choice(DurableCommit::names), Text("each"),
        "Whether commits share their syncs of the disk with those of other processes."),
    OpenOption::of_database("readers", Kind::Integer("connections"), Integer(4),
        "How many queries can run at the same time.").at_least(1.0),
    OpenOption::of_database("setup", Kind::Function, NONE,
        "Called with each new connection before it is used."),
    OpenOption::of_database("row_factory", Kind::Function, NONE,
        "What makes the rows; None for tuples."),
    OpenOption::of_database("busy", Kind::Choice(BusyPolicy::names), Text("gate"),
        "How a lock of the file is waited for."),
    OpenOption::of_database("durable_commit", Kind::Choice(|| vec!["group", "each", "shared"]), Text("group"),
        "Whether writes share their commits, and these their syncs of the disk."),
];

/// What `autocommit` is where an implicit transaction begins as the isolation level says.
pub const LEGACY_TRANSACTION_CONTROL: i64 = -1;

/// The profile of the drop-in module: SQLite's own settings.
pub const DROP_IN_PROFILE: &str = "stock";

/// The options that are taken somewhere.
pub fn options(door: Door) -> impl Iterator<Item = &'static OpenOption> {
    OPTIONS
        .iter()
        .filter(move |option| option.default(door).is_some())
}

/// The option of that name.
pub fn option(door: Door, name: &str) -> Result<&'static OpenOption> {
    let found = options(door).find(|option| option.name == name);
    found.ok_or_else(|| unexpected(door, name))
}

/// The error of an argument that is no option.
pub fn unexpected(door: Door, name: &str) -> Error {
    let hint = nearest(name, options(door).map(|option| option.name));
    let hint = hint.map(|name| format!("; did you mean '{name}'?"));
    let hint = hint.unwrap_or_default();
    Error::Type(format!(
        "connect() got an unexpected keyword argument '{name}'{hint}"
    ))
}

/// The `slow_statement` option.
pub fn slow_statement(seconds: Option<f64>) -> Result<Option<Duration>> {
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    option(Door::Connect, "slow_statement")?.check(seconds)?;
    // What is so long that no duration has it is never reached.
    Ok(Some(
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
    ))
}

/// The `statement_timeout` option.
pub fn statement_timeout(seconds: Option<f64>) -> Result<Option<Duration>> {
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    let option = option(Door::Connect, "statement_timeout")?;
    option.check(seconds)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if !timeout.is_zero() => Ok(Some(timeout)),
        _ => option.check(f64::NAN).map(|()| None),
    }
}

/// How a commit becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableCommit {
    /// Each by itself, as `synchronous` says.
    Each,
    /// Those of all processes that have chosen this share their syncs: see `shared_commit.rs`.
    Shared,
}

impl Choice for DurableCommit {
    const WHAT: &'static str = "durable commit";
    const ALL: &'static [Self] = &[Self::Each, Self::Shared];

    fn name(&self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Shared => "shared",
        }
    }
}

/// How to open a database. Built by [`new`](Self::new) and the `with_` methods, each of which
/// refuses what cannot work.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(crate) name: CString,
    pub(crate) uri: bool,
    pub(crate) profile: &'static Profile,
    pub(crate) settings: Plan,
    pub(crate) journal: JournalChoice,
    pub(crate) durable_commit: DurableCommit,
    pub(crate) busy: BusyPolicy,
    pub(crate) timeout: Duration,
    pub(crate) cached_statements: usize,
    pub(crate) shared_cache: bool,
    pub(crate) is_cancelled: fn() -> bool,
    pub(crate) slow_statements: Option<SlowStatements>,
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
            settings: plan_of(profile)?,
            journal: JournalChoice::Profile,
            durable_commit: DurableCommit::Each,
            busy: profile.busy.clone(),
            timeout: timeout_from_seconds(TIMEOUT_SECONDS)?,
            cached_statements: kept_statements(CACHED_STATEMENTS),
            shared_cache: false,
            is_cancelled: || false,
            slow_statements: None,
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
        self.journal = JournalChoice::named(choice)?;
        Ok(self)
    }

    /// How a commit becomes durable: `each` or `shared`, which sets `synchronous` by itself and needs the
    /// mode WAL. Comes after the pragmas.
    pub fn with_durable_commit(mut self, choice: &str) -> Result<Self> {
        self.durable_commit = DurableCommit::named(choice)?;
        if self.durable_commit == DurableCommit::Each {
            return Ok(self);
        }
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

    /// How many prepared statements are kept; none if it is not positive.
    #[must_use]
    pub fn with_cached_statements(mut self, count: i64) -> Self {
        self.cached_statements = kept_statements(count);
        self
    }

    /// Shares the page cache with the other connections of this process that ask for it
    /// (<https://sqlite.org/sharedcache.html>), which SQLite discourages.
    #[must_use]
    pub fn with_shared_cache(mut self, shared_cache: bool) -> Self {
        self.shared_cache = shared_cache;
        self
    }

    /// What is set on opening, and how.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            is_strict: self.profile.is_strict,
            is_for_strangers: self.profile.is_for_strangers,
            precautions: self.profile.precautions,
            settings: &self.settings,
            journal: self.journal,
            busy: &self.busy,
            timeout: self.timeout,
        }
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

    /// Has somebody told of statements that take long.
    #[must_use]
    pub fn with_slow_statements(mut self, slow_statements: Option<SlowStatements>) -> Self {
        self.slow_statements = slow_statements;
        self
    }

    /// Asked now and then, while a statement works or waits, whether it is to be interrupted.
    #[must_use]
    pub fn with_cancellation(mut self, is_cancelled: fn() -> bool) -> Self {
        self.is_cancelled = is_cancelled;
        self
    }
}

fn kept_statements(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
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
