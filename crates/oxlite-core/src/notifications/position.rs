//! Which notification, in which history of which file: the text that a client keeps to go on later.
//!
//! Invariants:
//! - Two histories in which one number may mean two notifications have two epochs: another file, a table that
//!   was made anew, and another start of the machine, since whoever has written may have lost commits with the power
//!   after others had heard of them.
//! - A position is text without spaces, fit for the header `Last-Event-ID`.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use oxlite_sqlite::codes;

use crate::error::Error;
use crate::process::per_process::PerProcess;

/// A history of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// That of the file at `path`, whose table was made with `key`, and of this start of the machine.
    ///
    /// Fails where the system does not tell: that must not be taken for another history.
    pub(super) fn of(path: &Path, key: &str) -> Result<Self, Error> {
        let mut hasher = Hasher::new();
        hasher.add(key.as_bytes());
        for number in birth(path).map_err(unknown)? {
            hasher.add(&number.to_le_bytes());
        }
        hasher.add(boot().map_err(unknown)?.as_bytes());
        Ok(Self(hasher.0))
    }
}

/// FNV-1a (RFC 9923): every process and every build comes to the same.
struct Hasher(u64);

impl Hasher {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // The length as well, so that two parts are not another two.
        for byte in bytes.iter().copied().chain([bytes.len() as u8]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The number of a file, and when it was made where the file system knows that: numbers are used again.
///
/// Not when it was changed: see `FileNumbers`.
#[cfg(target_os = "linux")]
fn birth(path: &Path) -> io::Result<[u64; 3]> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let status = statx(CWD, path, AtFlags::empty(), wanted)?;
    Ok([
        status.stx_ino,
        status.stx_btime.tv_sec.cast_unsigned(),
        status.stx_btime.tv_nsec.into(),
    ])
}

#[cfg(not(target_os = "linux"))]
fn birth(_path: &Path) -> io::Result<[u64; 3]> {
    Ok([0; 3])
}

/// Which start of the machine this is; asked once, since it is needed for each notification that is read.
fn boot() -> io::Result<Cow<'static, str>> {
    static BOOT: PerProcess<String> = PerProcess::new();
    if let Some(known) = BOOT.get() {
        return Ok(Cow::Borrowed(known));
    }
    let read = match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(), // another system
        read => read?,
    };
    Ok(match BOOT.get_or_make(|| read.clone()) {
        Some(boot) => Cow::Borrowed(boot),
        None => Cow::Owned(read),
    })
}

fn unknown(error: io::Error) -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_IOERR,
        format!("cannot tell which history of notifications this is: {error}"),
    ))
}

/// A notification's place in its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The history.
    pub epoch: Epoch,
    /// The place in it; 0 is before the first.
    pub number: i64,
}

impl Position {
    /// That of a file without a table of notifications.
    pub(super) fn before_the_first(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            epoch: Epoch::of(path, "")?,
            number: 0,
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}-{}", self.epoch.0, self.number)
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let no_position = || {
            Error::Value(format!(
                "since must be the position of a notification, such as 0123456789abcdef-42, not {:?}",
                crate::text::cut(text.into(), 60)
            ))
        };
        let (epoch, number) = text.split_once('-').ok_or_else(no_position)?;
        let is_epoch = epoch.len() == 16 && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_epoch || !is_number {
            return Err(no_position());
        }
        Ok(Self {
            epoch: Epoch(u64::from_str_radix(epoch, 16).map_err(|_| no_position())?),
            number: number.parse().map_err(|_| no_position())?,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let position = Position {
            epoch: Epoch(0x0123_4567_89ab_cdef),
            number: 42,
        };
        assert_eq!(position.to_string(), "0123456789abcdef-42");
        assert_eq!("0123456789abcdef-42".parse(), Ok(position));
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            "",
            "42",
            "0123456789abcdef-",
            "0123456789abcdef--1",
            "0123456789abcdef-+1",
            "0123456789abcdeg-1",
            "123-4",
            "0123456789abcdef-99999999999999999999",
        ] {
            assert!(text.parse::<Position>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn another_key_and_another_file_are_other_epochs() {
        let here = Path::new("/");
        assert_eq!(Epoch::of(here, "a"), Epoch::of(here, "a"));
        assert_ne!(Epoch::of(here, "a"), Epoch::of(here, "b"));
        assert_ne!(Epoch::of(here, "a"), Epoch::of(Path::new("/proc"), "a"));
    }
}
