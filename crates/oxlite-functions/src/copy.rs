//! The text format of PostgreSQL's COPY (<https://www.postgresql.org/docs/current/sql-copy.html>), and rows in it.
//!
//! Invariant: a row is written only where each value certainly fits, and is in the one form that mappers write.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

use crate::Argument;
use crate::calendar::Date;

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

/// What a row is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// To be copied: a line of COPY.
    Copied,
    /// To be compared with what PostgreSQL has.
    Compared,
}

impl Form {
    /// What stands between two columns.
    fn separator(self) -> u8 {
        match self {
            Self::Copied => b'\t',
            Self::Compared => 0x1f,
        }
    }

    fn null(self) -> &'static [u8] {
        match self {
            Self::Copied => b"\\N",
            Self::Compared => b"\x1e",
        }
    }
}

/// A whole number up to which each double is one.
const WHOLE_DOUBLE: i64 = 1 << 53;

/// Writes a row, whose columns have the kinds that `kinds` says, a letter for each:
///
/// | letter | PostgreSQL's type |
/// |---|---|
/// | `s`, `i`, `l` | smallint, integer, bigint |
/// | `r` | double precision |
/// | `o` | boolean |
/// | `t`, `v20,` | text, and one of at most so many characters |
/// | `b` | bytea |
/// | `d`, `h`, `m`, `z` | date, time, timestamp, and timestamp with time zone |
/// | `u` | uuid |
/// | `x` | what is given as it is to be written |
///
/// `None` where a value does not certainly fit, or is not in the one form that is known here: then whoever
/// asks has to find out in another way.
pub fn row<'a>(
    kinds: &str,
    form: Form,
    mut value: impl FnMut(usize) -> Option<Argument<'a>>,
    row: &mut Vec<u8>,
) -> Option<()> {
    let mut letters = kinds.bytes();
    let mut index = 0;
    while let Some(letter) = letters.next() {
        let mut most = usize::MAX;
        if letter == b'v' {
            most = 0;
            for digit in letters.by_ref().take_while(|letter| *letter != b',') {
                most = most
                    .checked_mul(10)?
                    .checked_add(usize::from(digit.checked_sub(b'0')?))?;
            }
        }
        if index > 0 {
            row.push(form.separator());
        }
        match value(index)? {
            Argument::Null if letter == b'x' => return None,
            Argument::Null => row.extend_from_slice(form.null()),
            value => append(letter, most, form, value, row)?,
        }
        index += 1;
    }
    Some(())
}

fn append(
    letter: u8,
    most: usize,
    form: Form,
    value: Argument<'_>,
    row: &mut Vec<u8>,
) -> Option<()> {
    match (letter, value) {
        (b's', Argument::Integer(integer)) => push(row, i16::try_from(integer).ok()?),
        (b'i', Argument::Integer(integer)) => push(row, i32::try_from(integer).ok()?),
        (b'l', Argument::Integer(integer)) => push(row, integer),
        (b'r', Argument::Real(real)) => push_real(row, form, real),
        (b'r', Argument::Integer(integer)) if (-WHOLE_DOUBLE..=WHOLE_DOUBLE).contains(&integer) => {
            push_real(row, form, integer as f64);
        }
        (b'o', Argument::Integer(0)) => row.push(b'f'),
        (b'o', Argument::Integer(1)) => row.push(b't'),
        (b't' | b'v', Argument::Text(text)) => {
            let escaped = column(text)?;
            if most < text.len() && most < std::str::from_utf8(text).ok()?.chars().count() {
                return None;
            }
            row.extend_from_slice(match form {
                Form::Copied => &escaped,
                Form::Compared => text,
            });
        }
        (b'b', Argument::Blob(bytes)) => {
            if form == Form::Copied {
                row.extend_from_slice(b"\\\\x");
            }
            push_hexadecimal(row, bytes, b"0123456789ABCDEF");
        }
        (b'd', Argument::Text(text)) => {
            date(text)?;
            row.extend_from_slice(text);
        }
        (b'h', Argument::Text(text)) => {
            time(text)?;
            match form {
                Form::Copied => row.extend_from_slice(text),
                Form::Compared => push_padded(row, text, 15),
            }
        }
        (b'm' | b'z', Argument::Text(text)) => {
            push_moment(row, text)?;
            if letter == b'z' && form == Form::Copied {
                row.extend_from_slice(b"+00");
            }
        }
        (b'u', Argument::Text(text)) => push_uuid(row, text)?,
        (b'u', Argument::Blob(bytes)) if bytes.len() == 16 => {
            push_hexadecimal(row, bytes, b"0123456789abcdef");
        }
        (b'x', Argument::Text(text)) => row.extend_from_slice(text),
        (b'x', Argument::Integer(integer)) => push(row, integer),
        _ => return None,
    }
    Some(())
}

fn push(row: &mut Vec<u8>, number: impl Display) {
    // Writing into memory does not fail.
    let _ = write!(row, "{number}");
}

fn push_real(row: &mut Vec<u8>, form: Form, real: f64) {
    let written = match form {
        Form::Compared => write!(row, "{:016x}", real.to_bits()),
        Form::Copied if real.is_infinite() => {
            write!(row, "{}Infinity", if real < 0.0 { "-" } else { "" })
        }
        Form::Copied => write!(row, "{real:e}"),
    };
    let _ = written;
}

fn push_hexadecimal(row: &mut Vec<u8>, bytes: &[u8], digits: &[u8; 16]) {
    row.reserve(2 * bytes.len());
    for byte in bytes {
        row.push(digits[usize::from(byte >> 4)]);
        row.push(digits[usize::from(byte & 15)]);
    }
}

/// A number of so many digits, and nothing else.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + i64::from(digit - b'0'))
    })
}

fn date(text: &[u8]) -> Option<()> {
    let [a, b, c, d, b'-', e, f, b'-', g, h] = *text else {
        return None;
    };
    Date::new(number(&[a, b, c, d])?, number(&[e, f])?, number(&[g, h])?).map(drop)
}

/// `HH:MM`, `HH:MM:SS`, or that with one to six digits of a second.
fn time(text: &[u8]) -> Option<()> {
    let is_below = |digits: &[u8], limit| number(digits).is_some_and(|number| number < limit);
    let (minutes, rest) = text.split_at_checked(5)?;
    let is_time = minutes[2] == b':' && is_below(&minutes[..2], 24) && is_below(&minutes[3..], 60);
    let is_exact = match rest {
        [] => true,
        [b':', a, b, fraction @ ..] if is_below(&[*a, *b], 60) => match fraction {
            [] => true,
            [b'.', digits @ ..] => {
                (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
            }
            _ => false,
        },
        _ => false,
    };
    (is_time && is_exact).then_some(())
}

/// A day, and a time after a space or a T: with microseconds.
fn push_moment(row: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    let (day, rest) = text.split_at_checked(10)?;
    date(day)?;
    let of_day: &[u8] = match rest {
        [] => b"00:00",
        [b' ' | b'T', of_day @ ..] => of_day,
        _ => return None,
    };
    time(of_day)?;
    row.extend_from_slice(day);
    row.push(b' ');
    push_padded(row, of_day, 15);
    Some(())
}

/// A time, filled up to a length.
fn push_padded(row: &mut Vec<u8>, text: &[u8], length: usize) {
    const ZEROS: &[u8; 15] = b"00:00:00.000000";
    row.extend_from_slice(text);
    row.extend_from_slice(&ZEROS[text.len().min(length)..length]);
}

fn push_uuid(row: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    let has_hyphens = text.len() == 36;
    if !has_hyphens && text.len() != 32 {
        return None;
    }
    for (at, byte) in text.iter().enumerate() {
        match has_hyphens && matches!(at, 8 | 13 | 18 | 23) {
            true if *byte == b'-' => {}
            false if byte.is_ascii_hexdigit() => row.push(byte.to_ascii_lowercase()),
            _ => return None,
        }
    }
    Some(())
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

    fn written(kinds: &str, form: Form, values: &[Argument<'_>]) -> Option<String> {
        let mut made = Vec::new();
        row(kinds, form, |index| values.get(index).copied(), &mut made)?;
        Some(String::from_utf8(made).expect("is UTF-8"))
    }

    #[test]
    fn a_row_is_written_for_copy_and_to_be_compared() {
        use Argument::{Blob, Integer, Null, Real, Text};
        let values = [
            Integer(-7),
            Real(0.1),
            Integer(1),
            Text(b"a\tb"),
            Text("\u{e9}".as_bytes()),
            Blob(b"\x00\xff"),
            Text(b"2024-02-29"),
            Text(b"09:05"),
            Text(b"2024-02-29T09:05:01.5"),
            Text(b"2024-02-29"),
            Text(b"0123456789abcdef0123456789ABCDEF"),
            Text(b"given"),
            Null,
        ];
        let kinds = "lrotv1,bdhmzuxs";
        assert_eq!(
            written(kinds, Form::Copied, &values).as_deref(),
            Some(
                "-7\t1e-1\tt\ta\\tb\t\u{e9}\t\\\\x00FF\t2024-02-29\t09:05\t2024-02-29 09:05:01.500000\t\
                 2024-02-29 00:00:00.000000+00\t0123456789abcdef0123456789abcdef\tgiven\t\\N"
            )
        );
        let compared = written(kinds, Form::Compared, &values).expect("fits");
        let compared: Vec<_> = compared.split('\u{1f}').collect();
        assert_eq!(compared[1], "3fb999999999999a");
        assert_eq!(compared[3], "a\tb");
        assert_eq!(compared[5], "00FF");
        assert_eq!(compared[7], "09:05:00.000000");
        assert_eq!(compared[9], "2024-02-29 00:00:00.000000");
        assert_eq!(compared[12], "\u{1e}");
    }

    #[test]
    fn what_does_not_certainly_fit_is_not_written() {
        use Argument::{Blob, Integer, Null, Real, Text};
        let cases: &[(&str, Argument<'_>)] = &[
            ("s", Integer(32768)),
            ("i", Integer(1 << 31)),
            ("l", Text(b"1")),
            ("r", Integer((1 << 53) + 1)),
            ("r", Text(b"1")),
            ("o", Integer(2)),
            ("v1,", Text(b"ab")),
            ("v0,", Text(b"a")),
            ("t", Text(b"\xff")),
            ("t", Text(b"a\0")),
            ("t", Blob(b"a")),
            ("b", Text(b"a")),
            ("d", Text(b"2023-02-29")),
            ("d", Text(b"0000-01-01")),
            ("d", Text(b"2023-2-09")),
            ("h", Text(b"24:00")),
            ("h", Text(b"09:60")),
            ("h", Text(b"09:05:60")),
            ("h", Text(b"09:05:01.")),
            ("h", Text(b"09:05:01.1234567")),
            ("h", Text(b"9:05")),
            ("m", Text(b"2024-02-29 09:05:01Z")),
            ("m", Text(b"2024-02-29x09:05")),
            ("m", Text(b"2024-02-29 ")),
            ("m", Real(0.5)),
            ("u", Text(b"0123456789abcdef0123456789abcde")),
            ("u", Text(b"0123456789abcdef0123456789abcdeg")),
            ("u", Text(b"01234567-89abcdef-0123-456789ab-cdef")),
            ("x", Null),
            ("?", Integer(1)),
        ];
        for (kinds, value) in cases {
            for form in [Form::Copied, Form::Compared] {
                assert_eq!(written(kinds, form, &[*value]), None, "{kinds} {value:?}");
            }
        }
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
