//! URI parameters that switch locking off (<https://sqlite.org/uri.html>).
//!
//! `nolock`, `immutable` and the VFSes that lock otherwise or not at all make a database corruptible
//! by a second user of it. They are legitimate for a file on read-only media, so they are refused,
//! not impossible: whoever means them says so.
//!
//! The reading is SQLite's, on bytes: a fragment ends the URI, `%HH` is decoded, a decoded NUL ends
//! a key or a value. In doubt a parameter is refused: what is not clearly harmless is not accepted.
//! `ATTACH` inside a connection opened with `uri=True` is not looked at.

use crate::error::{Error, Result};

/// Refuses a `file:` URI with a parameter that disables or replaces locking.
pub(crate) fn refuse_disabled_locking(uri: &[u8]) -> Result<()> {
    let uri = before(uri, b'#');
    let path = before(uri, b'?');
    let query = uri.get(path.len() + 1..).unwrap_or_default();
    for pair in query.split(|byte| *byte == b'&') {
        let key = before(pair, b'=');
        let value = pair.get(key.len() + 1..).unwrap_or_default();
        let (key, value) = (decode(key), decode(value));
        let is_harmless = match key.as_slice() {
            b"nolock" | b"immutable" => is_false(&value),
            b"vfs" => matches!(
                value.as_slice(),
                b"" | b"unix" | b"unix-excl" | b"win32" | b"memdb"
            ),
            _ => true,
        };
        if !is_harmless {
            return Err(Error::Value(format!(
                "the URI parameter '{}={}' switches file locking off or replaces it, which corrupts \
                 a database that anybody else uses; pass allow_no_locking=True if that is meant",
                String::from_utf8_lossy(&key),
                String::from_utf8_lossy(&value),
            )));
        }
    }
    Ok(())
}

/// The bytes before the first `mark`, or all.
fn before(bytes: &[u8], mark: u8) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == mark);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// The values that SQLite surely reads as false.
fn is_false(value: &[u8]) -> bool {
    [&b""[..], b"0", b"no", b"false", b"off"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

/// Undoes `%HH` escapes and cuts at a NUL; what is no valid escape stays as it is.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
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
    bytes.truncate(before(&bytes, 0).len());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_that_touch_locking_are_refused() {
        for harmless in [
            &b"file:a.db"[..],
            b"file:a.db?mode=ro&cache=shared",
            b"file:a.db?nolock=0",
            b"file:a.db?immutable=off",
            b"file:a.db?nolock",
            b"file:a.db?vfs=unix",
            b"file:a.db?mode=ro#?nolock=1",
            b"file:a#b?nolock=1",
        ] {
            assert_eq!(refuse_disabled_locking(harmless), Ok(()), "{harmless:?}");
        }
        for harmful in [
            &b"file:a.db?nolock=1"[..],
            b"file:a.db?mode=ro&immutable=yes",
            b"file:a.db?%6eolock=1",
            b"file:a.db?nolock=007",
            b"file:a.db?nolock=0x1",
            b"file:a.db?nolock%00z=1",
            b"file:a.db?immutable%00q=yes",
            b"file:\xff.db?nolock=1",
            b"file:a.db?vfs=unix-none",
            b"file:a.db?vfs=unix-none%00q",
            b"file:a.db?vfs=unix-dotfile",
            b"file:a.db?a?nolock=1&nolock=1",
        ] {
            assert!(refuse_disabled_locking(harmful).is_err(), "{harmful:?}");
        }
    }
}
