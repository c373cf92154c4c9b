//! URI parameters that switch locking off (<https://sqlite.org/uri.html>).
//!
//! `nolock`, `immutable` and the lock-free VFSes make a database corruptible by a second user of
//! it. They are legitimate for a file on read-only media, so they are refused, not impossible:
//! whoever means them says so.

use crate::error::{Error, Result};

/// Refuses a `file:` URI with a parameter that disables locking.
pub(crate) fn refuse_disabled_locking(uri: &str) -> Result<()> {
    let Some((_, query)) = uri.split_once('?') else {
        return Ok(());
    };
    let query = query.split('#').next().unwrap_or_default();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decode(key), decode(value));
        let disables = match key.as_str() {
            "nolock" | "immutable" => is_true(&value),
            "vfs" => matches!(value.as_str(), "unix-none" | "win32-none"),
            _ => false,
        };
        if disables {
            return Err(Error::Value(format!(
                "the URI parameter '{key}={value}' switches file locking off, which corrupts a \
                 database that anybody else uses; pass allow_no_locking=True if that is meant"
            )));
        }
    }
    Ok(())
}

/// SQLite's reading of a boolean URI parameter: `yes`, `true`, `on` or a number other than 0.
fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "yes" | "true" | "on")
        || value
            .bytes()
            .take_while(u8::is_ascii_digit)
            .any(|digit| digit != b'0')
}

/// Undoes `%HH` escapes; what is no valid escape stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%'
            && let [high, low, after @ ..] = tail
            && let Some(high) = char::from(*high).to_digit(16)
            && let Some(low) = char::from(*low).to_digit(16)
        {
            bytes.push((high * 16 + low) as u8);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_that_disable_locking_are_refused() {
        for harmless in [
            "file:a.db",
            "file:a.db?mode=ro&cache=shared",
            "file:a.db?nolock=0",
            "file:a.db?immutable=off",
            "file:a.db?vfs=unix",
            "file:a.db?mode=ro#?nolock=1",
        ] {
            assert_eq!(refuse_disabled_locking(harmless), Ok(()), "{harmless}");
        }
        for harmful in [
            "file:a.db?nolock=1",
            "file:a.db?mode=ro&immutable=yes",
            "file:a.db?%6eolock=1",
            "file:a.db?nolock=007",
            "file:a.db?vfs=unix-none",
        ] {
            assert!(refuse_disabled_locking(harmful).is_err(), "{harmful}");
        }
    }
}
