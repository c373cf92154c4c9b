//! How an option is declared: its name, what it takes, its defaults, one sentence.
//!
//! The declarations themselves stand in `options`. Checks, messages and documentation are made from
//! them, here and in Python.

use crate::error::{Error, Result};

/// Where options are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The drop-in module: `sqlite3.connect`.
    DropIn,
    /// `connect`, with a production profile.
    Connect,
    /// A `Database`, of either face.
    Database,
}

/// A default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// Nothing.
    None,
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// A word.
    Text(&'static str),
}

/// What an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// True or false.
    Boolean,
    /// A whole number, of something.
    Integer(&'static str),
    /// A number, of something.
    Number(&'static str),
    /// One of these words.
    Choice(fn() -> Vec<&'static str>),
    /// True, false, or the whole number that stands for the standard library's own way.
    Autocommit,
    /// Names and values.
    Mapping,
    /// Several paths or names.
    List,
    /// Something that is called.
    Function,
    /// A subclass of the driver's connection.
    Class,
}

/// One option, as it is declared.
#[derive(Clone, Copy, Debug)]
pub struct OpenOption {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether it takes nothing (`None`) too.
    pub is_optional: bool,
    /// The least number that it takes.
    pub at_least: Option<f64>,
    /// A number that it takes only more than.
    pub more_than: Option<f64>,
    /// What it is for, in one sentence.
    pub description: &'static str,
    /// The defaults, by door; none where it is not taken.
    defaults: [Option<OptionValue>; 3],
}

impl OpenOption {
    /// An option of `connect` and of the drop-in module.
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        default: OptionValue,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            is_optional: matches!(default, OptionValue::None),
            at_least: None,
            more_than: None,
            description,
            defaults: [Some(default), Some(default), None],
        }
    }

    /// An option of a `Database` alone.
    pub(crate) const fn of_database(
        name: &'static str,
        kind: Kind,
        default: OptionValue,
        description: &'static str,
    ) -> Self {
        let mut option = Self::new(name, kind, default, description);
        option.defaults = [None, None, Some(default)];
        option
    }

    /// With this default in the drop-in module.
    pub(crate) const fn drop_in(mut self, default: OptionValue) -> Self {
        self.defaults[Door::DropIn as usize] = Some(default);
        self
    }

    /// Also for a `Database`, with this default.
    pub(crate) const fn database(mut self, default: OptionValue) -> Self {
        self.defaults[Door::Database as usize] = Some(default);
        self
    }

    /// Takes nothing (`None`) too.
    pub(crate) const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Takes no number below this.
    pub(crate) const fn at_least(mut self, number: f64) -> Self {
        self.at_least = Some(number);
        self
    }

    /// Takes only numbers above this.
    pub(crate) const fn more_than(mut self, number: f64) -> Self {
        self.more_than = Some(number);
        self
    }

    /// Its default, where it is taken there.
    pub fn default(&self, door: Door) -> Option<OptionValue> {
        self.defaults[door as usize]
    }

    /// The words that it takes, if it takes one of several.
    pub fn choices(&self) -> Option<Vec<&'static str>> {
        match self.kind {
            Kind::Choice(names) => Some(names()),
            _ => None,
        }
    }

    /// What it takes, in words: `a number of seconds`, `'each' or 'shared'`.
    pub fn takes(&self) -> String {
        let numbered = |kind: &str, of: &str| match (self.at_least, self.more_than) {
            (Some(least), _) => format!("a {kind} of {of}, at least {least}"),
            (None, Some(0.0)) => format!("a positive {kind} of {of}"),
            (None, Some(above)) => format!("a {kind} of {of}, more than {above}"),
            (None, None) => format!("a {kind} of {of}"),
        };
        match self.kind {
            Kind::Boolean => "true or false".into(),
            Kind::Integer(of) => numbered("whole number", of),
            Kind::Number(of) => numbered("number", of),
            Kind::Choice(names) => {
                let mut names: Vec<_> = names().iter().map(|name| format!("'{name}'")).collect();
                let last = names.pop().unwrap_or_default();
                format!("{} or {last}", names.join(", "))
            }
            Kind::Autocommit => "true, false or LEGACY_TRANSACTION_CONTROL".into(),
            Kind::Mapping => "a mapping".into(),
            Kind::List => "a list of paths or names".into(),
            Kind::Function => "a function".into(),
            Kind::Class => "a subclass of oxlite.Connection".into(),
        }
    }

    /// Refuses a number that is out of its range.
    pub fn check(&self, number: f64) -> Result<()> {
        let is_enough = self.at_least.is_none_or(|least| number >= least);
        let is_more = self.more_than.is_none_or(|above| number > above);
        if is_enough && is_more {
            return Ok(());
        }
        let or_none = if self.is_optional { " or None" } else { "" };
        Err(Error::Value(format!(
            "{} must be {}{or_none}, not {number}",
            self.name,
            self.takes()
        )))
    }
}
