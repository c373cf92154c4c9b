//! Whether a text matches a regular expression, in time that is linear in the text.
//!
//! Invariant: the expression is written in this crate's language by who knows that it means what
//! the original says, perhaps of texts in ASCII alone; of other texts nothing is answered.

use regex::bytes::{Regex, RegexBuilder};

/// A compiled expression is not to be larger, in bytes.
const SIZE_AT_MOST: usize = 1 << 20;

/// A regular expression.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    is_of_ascii: bool,
}

impl Pattern {
    /// Compiles an expression; `None` for one that is wrong or too large. What is said of case and of
    /// classes holds `is_of_ascii` alone.
    pub fn new(expression: &str, is_of_ascii: bool, ignores_case: bool) -> Option<Self> {
        let regex = RegexBuilder::new(expression)
            .unicode(!is_of_ascii)
            .case_insensitive(ignores_case)
            .size_limit(SIZE_AT_MOST)
            .dfa_size_limit(SIZE_AT_MOST)
            .build()
            .ok()?;
        (is_of_ascii || !ignores_case).then_some(Self { regex, is_of_ascii })
    }

    /// Whether the text has a match anywhere.
    pub fn is_in(&self, text: &[u8]) -> Option<bool> {
        let is_known = match self.is_of_ascii {
            true => text.is_ascii(),
            false => std::str::from_utf8(text).is_ok(),
        };
        is_known.then(|| self.regex.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match() {
        let pattern = Pattern::new("a[^b]c", false, false).expect("an expression");
        assert_eq!(pattern.is_in("xaéc".as_bytes()), Some(true));
        assert_eq!(pattern.is_in(b"abc"), Some(false));
        assert_eq!(pattern.is_in(b"a\xffc"), None);
    }

    #[test]
    fn of_other_texts_than_ascii_nothing_is_said() {
        let pattern = Pattern::new("K", true, true).expect("an expression");
        assert_eq!(pattern.is_in(b"k"), Some(true));
        assert_eq!(pattern.is_in("\u{212a}".as_bytes()), None);
    }

    #[test]
    fn what_is_wrong_or_too_large_is_none() {
        assert!(Pattern::new("(", false, false).is_none());
        assert!(Pattern::new("(?:(?:a{1000}){1000}){1000}", false, false).is_none());
        assert!(Pattern::new("a", false, true).is_none());
    }

    #[test]
    fn no_pattern_takes_for_ever() {
        let pattern = Pattern::new("^(?:a+)+$", true, false).expect("an expression");
        let text = [&[b'a'; 100_000][..], b"b"].concat();
        assert_eq!(pattern.is_in(&text), Some(false));
    }
}
