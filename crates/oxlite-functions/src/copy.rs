//! The text format of PostgreSQL's COPY (<https://www.postgresql.org/docs/current/sql-copy.html>).

use std::borrow::Cow;

/// A text as a column of a line of COPY: backslashes, tabs and line ends are escaped.
///
/// `None` for what no text of PostgreSQL's can be: one with a NUL, or one that is no UTF-8.
pub fn column(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    std::str::from_utf8(text).ok()?;
    let mut special = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| is_special(**byte));
    let Some(first) = special.next() else {
        return Some(Cow::Borrowed(text));
    };
    let mut escaped = Vec::with_capacity(text.len() + special.clone().count() + 1);
    let mut copied = 0;
    for (at, byte) in std::iter::once(first).chain(special) {
        escaped.extend_from_slice(&text[copied..at]);
        escaped.extend_from_slice(match byte {
            b'\\' => b"\\\\",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            _ => return None,
        });
        copied = at + 1;
    }
    escaped.extend_from_slice(&text[copied..]);
    Some(Cow::Owned(escaped))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, 0 | b'\\' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_line_is_escaped() {
        let escaped = |text: &str| {
            let made = column(text.as_bytes()).expect("fits");
            String::from_utf8(made.into_owned()).expect("is UTF-8")
        };
        assert_eq!(escaped(""), "");
        assert_eq!(
            escaped("ä, \u{b}\u{c} \u{1d11e}"),
            "ä, \u{b}\u{c} \u{1d11e}"
        );
        assert_eq!(escaped("\\N"), "\\\\N");
        assert_eq!(escaped("a\tb\nc\rd\\"), "a\\tb\\nc\\rd\\\\");
        assert_eq!(escaped("\n\n"), "\\n\\n");
    }

    #[test]
    fn what_is_no_text_there_is_none() {
        for text in [
            &b"\0"[..],
            b"a\0",
            b"\xff",
            b"\n\xc3",
            b"\xed\xa0\x80",
            b"\\\0",
        ] {
            assert_eq!(column(text), None, "{text:?}");
        }
    }
}
