//! Text that others have written (a file, another process, whoever named a file), made harmless before it
//! gets into a message, a log or a terminal.
//!
//! Invariant: what comes out is one line, has no character that a terminal obeys, and none that shows the
//! others in another order than theirs.

pub(crate) mod nearest;

use std::borrow::Cow;

/// The text with each character that does something, instead of showing something, written out: `\n`,
/// `\x1b`, `\u202e`.
///
/// Those are the control characters (C0, DEL, C1), the separators of lines and paragraphs, and what sets
/// the direction of writing (<https://unicode.org/reports/tr9/>).
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if !is_harmful(character) => out.push(character),
            _ => {
                let number = u32::from(character);
                let written = match number {
                    0..=0xff => format!("\\x{number:02x}"),
                    _ => format!("\\u{number:04x}"),
                };
                out.push_str(&written);
            }
        }
    }
    Cow::Owned(out)
}

/// The same of a text whose white space means nothing, such as a statement: each stretch of it is one space.
pub fn in_a_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    harmless(&words.join(" ")).into_owned()
}

/// The text without what stands beyond so many characters; an ellipsis tells that there was more.
pub fn cut(mut text: String, characters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        assert!(matches!(harmless("Grüße, 数据库 🦀"), Cow::Borrowed(_)));
        assert_eq!(
            harmless("a\u{1b}[31mb\r\n\t\0\u{7f}\u{9b}c\u{85}"),
            "a\\x1b[31mb\\r\\n\\t\\x00\\x7f\\x9bc\\x85"
        );
        assert_eq!(
            harmless("x\u{202e}cod.exe\u{2066}\u{2028}\u{200f}\u{61c}"),
            "x\\u202ecod.exe\\u2066\\u2028\\u200f\\u061c"
        );
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(cut("größer".into(), 6), "größer");
        assert_eq!(cut("größer".into(), 3), "grö…");
        assert_eq!(cut(String::new(), 0), "");
    }

    #[test]
    fn a_statement_is_one_line() {
        assert_eq!(
            in_a_line("UPDATE t\n   SET x\t= '\u{1b}]0;owned\u{7}'\u{2028}-- \r"),
            "UPDATE t SET x = '\\x1b]0;owned\\x07' --"
        );
    }
}
