//! Why nothing of a group may be acknowledged any more, as a number in the shared page and in words.

/// Why nothing may be acknowledged any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    SyncFailed = 1,
    LogReplaced = 2,
    UnknownEnd = 3,
}

impl Reason {
    pub(super) fn of(number: u64) -> Option<Self> {
        match number {
            0 => None,
            2 => Some(Self::LogReplaced),
            3 => Some(Self::UnknownEnd),
            _ => Some(Self::SyncFailed),
        }
    }

    /// In words.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::SyncFailed => {
                "a sync of this database has failed, in this process or in another one"
            }
            Self::LogReplaced => {
                "the write-ahead log of this database has been removed or replaced"
            }
            Self::UnknownEnd => {
                "a process that synced this database for others has died in it, and nobody who was \
                 there before can tell how it went"
            }
        }
    }
}
