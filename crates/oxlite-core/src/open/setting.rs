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
