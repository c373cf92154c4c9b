//! The names of channels, and what one listens to.
//!
//! Invariant: whatever a listener may want of a channel is among the topics that its notifications signal.

use crate::error::{Error, Result};
use crate::signals::Topic;

/// The longest name, in bytes of UTF-8.
pub const CHANNEL_BYTES_AT_MOST: usize = 255;

/// What every notification signals, beside its own channel.
const ANY: Topic = Topic::named("oxlite.notification");

/// What every listener wants: something has happened to the database itself.
pub(super) const EVERYBODY: Topic = Topic::named("oxlite.notification/");

/// The name of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel(Box<str>);

impl Channel {
    /// Refuses what is no name.
    pub fn named(name: &str) -> Result<Self> {
        check(name)?;
        if name.contains('*') {
            return Err(Error::Value(format!(
                "a notification goes to one channel, and {name:?} is a pattern: only listeners use *"
            )));
        }
        Ok(Self(name.into()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// What a notification in it signals.
    pub fn topics(&self) -> [Topic; 2] {
        [topic_of(&self.0), ANY]
    }
}

/// What one listens to: a channel, or all whose names begin alike (`chat.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The channel of this name.
    Channel(Box<str>),
    /// Those whose names begin so.
    Prefix(Box<str>),
}

impl Pattern {
    /// Refuses what is neither.
    pub fn of(text: &str) -> Result<Self> {
        check(text)?;
        let pattern = match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Channel(text.into()),
        };
        let (Self::Channel(name) | Self::Prefix(name)) = &pattern;
        if name.contains('*') {
            return Err(Error::Value(format!(
                "{text:?}: * stands at the end of a pattern and means all channels that begin so"
            )));
        }
        Ok(pattern)
    }

    /// Whether it means that channel.
    pub fn matches(&self, channel: &str) -> bool {
        match self {
            Self::Channel(name) => **name == *channel,
            Self::Prefix(prefix) => channel.starts_with(&**prefix),
        }
    }

    /// What is signalled whenever there is one for it.
    pub(super) fn topic(&self) -> Topic {
        match self {
            Self::Channel(name) => topic_of(name),
            Self::Prefix(_) => ANY,
        }
    }
}

fn topic_of(channel: &str) -> Topic {
    Topic::named(&format!("oxlite.notification/{channel}"))
}

fn check(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::Value("a channel has a name".into()));
    }
    if text.len() > CHANNEL_BYTES_AT_MOST {
        return Err(Error::Value(format!(
            "the name of a channel has at most {CHANNEL_BYTES_AT_MOST} bytes in UTF-8, not {}",
            text.len()
        )));
    }
    if text.contains('\0') {
        return Err(Error::Value(
            "the name of a channel contains no null character".into(),
        ));
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_begins_so_and_a_name_only_itself() {
        let chat = Pattern::of("chat.*").expect("a pattern");
        assert!(chat.matches("chat.7") && chat.matches("chat."));
        assert!(!chat.matches("chat") && !chat.matches("Chat.7") && !chat.matches("my.chat.7"));
        let all = Pattern::of("*").expect("a pattern");
        assert!(all.matches("anything"));
        let one = Pattern::of("chat").expect("a name");
        assert!(one.matches("chat") && !one.matches("chat.7"));
    }

    #[test]
    fn what_a_pattern_wants_is_signalled_by_each_channel_that_it_matches() {
        for (pattern, channel) in [("chat.*", "chat.7"), ("*", "orders"), ("orders", "orders")] {
            let pattern = Pattern::of(pattern).expect("a pattern");
            let channel = Channel::named(channel).expect("a name");
            assert!(pattern.matches(channel.name()));
            assert!(channel.topics().contains(&pattern.topic()));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "a\0b", &"x".repeat(256), "a*b", "**"] {
            assert!(Pattern::of(text).is_err(), "{text:?}");
        }
        assert!(Channel::named("chat.*").is_err());
        assert!(Channel::named(&"x".repeat(255)).is_ok());
    }
}
