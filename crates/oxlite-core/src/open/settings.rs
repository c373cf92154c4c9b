//! What is set on opening: the profile's pragmas and the caller's, planned before any file is touched,
//! applied, and then **read back**. A setting that is not in force afterwards is an error, not a hope.
//!
//! Opening is paid by each connection, so what a profile plans is planned once in a process, and nothing is
//! asked that SQLite has told already: a pragma that answers to being set answers with the value in force,
//! by the code that answers to reading it.

use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use oxlite_sqlite::{Locked, Step, ValueRef, codes};

use crate::error::{Error, Result};
use crate::open::choice::Choice;
use crate::open::pragma::{Checked, Needs, Pragma, PragmaValue};
use crate::open::precaution::Precaution;
use crate::open::profile::{PROFILES, Profile};
use crate::open::setting::Setting;
use crate::process::per_process::PerProcess;
use crate::wait::busy::BusyPolicy;

/// What to do about the journal mode of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalChoice {
    /// As the profile says; turning a file to WAL is persistent.
    Profile,
    /// Leave it as it is.
    Keep,
}

impl Choice for JournalChoice {
    const WHAT: &'static str = "journal choice";
    const ALL: &'static [Self] = &[Self::Profile, Self::Keep];

    fn name(&self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Keep => "keep",
        }
    }
}

/// What [`apply`] has to know.
pub(crate) struct Wanted<'a> {
    /// Whether switches are set that make SQLite strict.
    pub(crate) is_strict: bool,
    /// Whether the file is read once at the end, so that what is wrong with it shows now.
    pub(crate) is_for_strangers: bool,
    pub(crate) precautions: &'static [Precaution],
    pub(crate) settings: &'a [PlannedSetting],
    pub(crate) journal: JournalChoice,
    /// How a lock is waited for, and for how long.
    pub(crate) busy: &'a BusyPolicy,
    pub(crate) timeout: Duration,
}

/// What is to be set, in this order.
pub(crate) type Plan = Arc<[PlannedSetting]>;

/// A pragma with a value that has been found good, before any file is touched.
#[derive(Clone, Debug)]
pub(crate) struct PlannedSetting {
    pragma: &'static Pragma,
    value: Checked,
    /// The statement that sets it, and the one that reads it.
    command: String,
    query: String,
    /// The caller named it; otherwise the profile did.
    is_explicit: bool,
}

impl PlannedSetting {
    /// Whether the caller has named that pragma.
    pub(crate) fn is_asked(&self, name: &str) -> bool {
        self.pragma.name == name && self.is_explicit
    }

    /// Whether it leaves that pragma alone, or sets it so.
    pub(crate) fn is_or_not_set(&self, name: &str, value: &str) -> bool {
        self.pragma.name != name || self.value.expected == value
    }
}

/// Sets a pragma of the profile to another value.
pub(crate) fn replace(plan: &mut Plan, name: &str, value: &str) -> Result<()> {
    let mut changed = plan.to_vec();
    for setting in &mut changed {
        if setting.pragma.name == name {
            *setting = planned(name, &PragmaValue::from(value), false)?;
        }
    }
    *plan = changed.into();
    Ok(())
}

/// Sets a pragma that has been set already, and reads it back.
pub(crate) fn set_again(
    locked: &Locked<'_>,
    wanted: &Wanted<'_>,
    settings: &mut [Setting],
    (name, value): (&str, &str),
) -> Result<()> {
    let planned = planned(name, &PragmaValue::from(value), false)?;
    let setting = apply_one(locked, &planned, wanted, &mut None)?;
    for known in settings {
        if known.name == name {
            *known = setting.clone();
        }
    }
    Ok(())
}

impl std::fmt::Debug for Pragma {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// What each of the profiles sets by itself.
static PLANS: PerProcess<Vec<Result<Plan>>> = PerProcess::new();

/// What a profile sets by itself.
pub(crate) fn plan_of(profile: &'static Profile) -> Result<Plan> {
    let plan_anew = |profile: &Profile| -> Result<Plan> {
        let pragmas = profile.pragmas();
        let plan: Result<Vec<_>> = pragmas
            .map(|(name, value)| planned(name, &PragmaValue::from(value), false))
            .collect();
        Ok(in_order(plan?).into())
    };
    let position = PROFILES.iter().position(|other| ptr::eq(other, profile));
    let known = PLANS.get_or_make(|| PROFILES.iter().map(plan_anew).collect());
    match position.zip(known).and_then(|(at, known)| known.get(at)) {
        Some(known) => known.clone(),
        None => plan_anew(profile),
    }
}

/// The profile's pragmas with the caller's in their place or behind them.
pub(crate) fn plan(profile: &'static Profile, overrides: &[(String, PragmaValue)]) -> Result<Plan> {
    if overrides.is_empty() {
        return plan_of(profile);
    }
    let mut plan = plan_of(profile)?.to_vec();
    for (name, value) in overrides {
        let setting = planned(name, value, true)?;
        match plan
            .iter_mut()
            .find(|other| other.pragma.name == setting.pragma.name)
        {
            Some(other) if other.is_explicit => {
                return Err(Error::Value(format!("the pragma '{name}' is given twice")));
            }
            Some(other) => *other = setting,
            None => plan.push(setting),
        }
    }
    Ok(in_order(plan).into())
}

/// In the order in which they are applied.
fn in_order(mut plan: Vec<PlannedSetting>) -> Vec<PlannedSetting> {
    plan.sort_by_key(|setting| match setting.pragma.name {
        // These shape a new file and must come before anything writes its first page.
        "page_size" | "auto_vacuum" => 0,
        // This is the one that lasts, so it comes when nothing else can fail any more.
        "journal_mode" => 2,
        _ => 1,
    });
    plan
}

fn planned(name: &str, value: &PragmaValue, is_explicit: bool) -> Result<PlannedSetting> {
    let pragma = Pragma::named(name)?;
    let value = pragma.check(value)?;
    Ok(PlannedSetting {
        command: format!("PRAGMA {} = {}", pragma.name, value.sql),
        query: format!("PRAGMA {}", pragma.name),
        pragma,
        value,
        is_explicit,
    })
}

/// What applying a profile came to.
pub(crate) struct Applied {
    pub(crate) settings: Vec<Setting>,
    pub(crate) converted: Option<JournalConversion>,
}

/// A journal mode that opening has changed for good, in a file that others may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConversion {
    /// The mode before, as SQLite reports it.
    pub before: String,
    /// The mode since then, likewise.
    pub after: String,
}

/// Applies the plan and reads every pragma back.
pub(crate) fn apply(locked: &Locked<'_>, wanted: &Wanted<'_>) -> Result<Applied> {
    if wanted.is_strict {
        for switch in [
            codes::SQLITE_DBCONFIG_DQS_DML,
            codes::SQLITE_DBCONFIG_DQS_DDL,
            codes::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
        ] {
            locked.config(switch, Some(false))?;
        }
    }
    let mut applied = Applied {
        settings: Vec::with_capacity(wanted.settings.len()),
        converted: None,
    };
    for precaution in wanted.precautions {
        applied.settings.push(precaution.apply(locked)?);
    }
    for planned in wanted.settings {
        let setting = apply_one(locked, planned, wanted, &mut applied.converted)?;
        applied.settings.push(setting);
    }
    if wanted.is_for_strangers {
        // Its header alone: the schema is not parsed before somebody asks for it.
        asked(locked, "PRAGMA schema_version")?;
    }
    Ok(applied)
}

fn apply_one(
    locked: &Locked<'_>,
    planned: &PlannedSetting,
    wanted: &Wanted<'_>,
    converted: &mut Option<JournalConversion>,
) -> Result<Setting> {
    let pragma = planned.pragma;
    let setting = |effective: &str, skipped| Setting {
        name: pragma.name,
        requested: planned.value.sql.clone(),
        effective: pragma.in_words(effective),
        skipped,
    };
    let answer = if pragma.name == "journal_mode" {
        if let Some(known) = asked(locked, &planned.query)?
            && known == planned.value.expected
        {
            return Ok(setting(&known, None));
        }
        // In this order: a file that another process is just creating has no pages yet.
        let had_content = read(locked, "PRAGMA page_count")? != "0";
        let before = read(locked, &planned.query)?;
        if before == planned.value.expected {
            return Ok(setting(&before, None));
        }
        if wanted.journal == JournalChoice::Keep && !planned.is_explicit {
            return Ok(setting(&before, Some("journal=\"keep\"")));
        }
        if let Some(reason) = inapplicable(locked, pragma) {
            return Ok(setting(&before, Some(reason)));
        }
        set_journal_mode(locked, planned, wanted)?;
        // Of all journal modes only WAL, and the end of it, is stored in the file.
        if had_content && (before == "wal" || planned.value.expected == "wal") {
            *converted = Some(JournalConversion {
                before,
                after: planned.value.expected.clone(),
            });
        }
        None
    } else if let Some(switch) = pragma.switch {
        let is_on = locked.config(switch, Some(planned.value.expected == "1"))?;
        Some(i32::from(is_on).to_string())
    } else {
        let answer = asked(locked, &planned.command)?;
        locked.leave_write_queue();
        answer
    };
    let effective = match answer {
        Some(answer) => answer,
        None => read(locked, &planned.query)?,
    };
    if effective == planned.value.expected {
        return Ok(setting(&effective, None));
    }
    if let Some(reason) = inapplicable(locked, pragma) {
        return Ok(setting(&effective, Some(reason)));
    }
    Err(Error::PragmaIneffective {
        pragma: pragma.name,
        requested: planned.value.sql.clone(),
        effective: match pragma.in_words(&effective) {
            nothing if nothing.is_empty() => "nothing".into(),
            words => words,
        },
        advice: pragma.advice,
    })
}

/// Why a pragma cannot apply to this database, if it cannot.
fn inapplicable(locked: &Locked<'_>, pragma: &Pragma) -> Option<&'static str> {
    match pragma.needs {
        Needs::Nothing => None,
        Needs::File | Needs::WritableFile if locked.filename().is_empty() => {
            Some("the database is not in a file")
        }
        Needs::WritableFile if locked.is_read_only() => Some("the database is read-only"),
        Needs::File | Needs::WritableFile => None,
    }
}

/// Changes the journal mode, waiting as the busy policy allows: SQLite does not ask the busy handler for the
/// exclusive lock that this needs, so many processes that open a new file at once would fail.
fn set_journal_mode(
    locked: &Locked<'_>,
    planned: &PlannedSetting,
    wanted: &Wanted<'_>,
) -> Result<()> {
    let begun = Instant::now();
    let may_retry = |calls: u32| match wanted.busy {
        BusyPolicy::None => false,
        BusyPolicy::Backoff | BusyPolicy::Fair | BusyPolicy::Gate => {
            thread::sleep(Duration::from_millis(1));
            begun.elapsed() < wanted.timeout
        }
        BusyPolicy::Handler(handler) => handler.ask(calls),
    };
    let mut calls = 0;
    loop {
        match locked.execute_batch(&planned.command) {
            Err(error) if error.primary_code() == codes::SQLITE_BUSY && may_retry(calls) => {
                calls += 1;
            }
            Err(error) => {
                let mode = &planned.value.sql;
                let context = format!(" while switching to journal_mode {mode}");
                return Err(error.with_context(&context).into());
            }
            Ok(()) => return Ok(()),
        }
    }
}

/// The pragma's value as text; empty if it returns no row.
fn read(locked: &Locked<'_>, query: &str) -> Result<String> {
    Ok(asked(locked, query)?.unwrap_or_default())
}

/// Runs a pragma; what it answers, as text, if it returns a row.
fn asked(locked: &Locked<'_>, sql: &str) -> Result<Option<String>> {
    let prepared = locked.prepare(sql, false)?;
    let Some(mut statement) = prepared.statement else {
        return Ok(None);
    };
    if statement.step(locked)? == Step::Done {
        return Ok(None);
    }
    let answer = match statement.row(locked) {
        None => None,
        Some(row) => Some(match row.get(0)? {
            ValueRef::Integer(value) => value.to_string(),
            ValueRef::Text(value) => String::from_utf8_lossy(value).to_ascii_lowercase(),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => String::new(),
        }),
    };
    while statement.step(locked)? == Step::Row {}
    Ok(answer)
}
