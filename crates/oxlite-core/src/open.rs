//! Opening a database: what is asked for, what a profile sets, and why a file cannot be opened.

pub(crate) mod cannot_open;
pub(crate) mod choice;
pub(crate) mod options;
pub(crate) mod pragma;
pub(crate) mod precaution;
pub(crate) mod profile;
pub(crate) mod schema;
pub(crate) mod setting;
pub(crate) mod settings;
pub(crate) mod strangers;
pub(crate) mod uri;
