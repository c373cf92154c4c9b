//! What became of a setting on opening, as users see it.

/// What became of one pragma of a profile, or of one of its switches and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The pragma, or the switch or limit of SQLite's.
    pub name: &'static str,
    /// What was asked for.
    pub requested: String,
    /// What SQLite reports; empty where it reports nothing.
    pub effective: String,
    /// Why it was not applied, if it could not be.
    pub skipped: Option<&'static str>,
}

/// Whether a database that was opened with these settings is in WAL mode.
pub(crate) fn are_of_wal_mode(settings: &[Setting]) -> bool {
    settings.iter().any(|setting| {
        setting.name == "journal_mode" && setting.effective.eq_ignore_ascii_case("wal")
    })
}
