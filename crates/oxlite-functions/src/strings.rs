//! Texts made of texts as Python's `str` makes them: repeated, padded, cut off and reversed, by code
//! points.
//!
//! Invariant: a text of more than [`LARGEST`] bytes is never made, and nothing is answered where the
//! original would make one on its way. So whether memory suffices, and what is said if not, is left
//! to the original.

use std::borrow::Cow;

/// The most bytes that are made of a text.
pub const LARGEST: usize = 1 << 24;

/// `text * count`.
pub fn repeat<'a>(text: &'a str, count: i64) -> Option<Cow<'a, [u8]>> {
    let length = length_of_repeated(text, count)?;
    if length == text.len() {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut repeated = with_room(length)?;
    push_repeated(&mut repeated, text.as_bytes(), length);
    Some(Cow::Owned(repeated))
}

/// `text[::-1]`.
pub fn reverse(text: &str) -> Option<Cow<'_, [u8]>> {
    let mut reversed = with_room(text.len())?;
    for character in text.chars().rev() {
        reversed.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(Cow::Owned(reversed))
}

/// So many code points: the text with `fill` before it, again and again, or its beginning.
///
/// A negative length takes as many off the end, as a slice in Python does.
pub fn pad_left<'a>(text: &'a str, length: i64, fill: &str) -> Option<Cow<'a, [u8]>> {
    let missing = missing(text, length);
    if missing == 0 {
        return Some(Cow::Borrowed(beginning(text, length)));
    }
    let filling = length_of_filling(fill, length, missing)?;
    let mut padded = with_room(filling.checked_add(text.len())?)?;
    push_repeated(&mut padded, fill.as_bytes(), filling);
    padded.extend_from_slice(text.as_bytes());
    Some(Cow::Owned(padded))
}

/// So many code points: the text with `fill` after it, again and again, or its beginning.
///
/// A negative length takes as many off the end, as a slice in Python does.
pub fn pad_right<'a>(text: &'a str, length: i64, fill: &str) -> Option<Cow<'a, [u8]>> {
    // The original repeats it also where it needs none.
    length_of_repeated(fill, length)?;
    let missing = missing(text, length);
    if missing == 0 {
        return Some(Cow::Borrowed(beginning(text, length)));
    }
    let filling = length_of_filling(fill, length, missing)?;
    let mut padded = with_room(filling.checked_add(text.len())?)?;
    padded.extend_from_slice(text.as_bytes());
    push_repeated(&mut padded, fill.as_bytes(), filling);
    Some(Cow::Owned(padded))
}

/// How many bytes `text * count` has.
fn length_of_repeated(text: &str, count: i64) -> Option<usize> {
    if text.is_empty() || count <= 0 {
        return Some(0);
    }
    let length = text.len().checked_mul(usize::try_from(count).ok()?)?;
    (length <= LARGEST).then_some(length)
}

/// How many bytes the first code points of `fill * length` have, or all that there are.
fn length_of_filling(fill: &str, length: i64, wanted: usize) -> Option<usize> {
    length_of_repeated(fill, length)?;
    let characters = fill.chars().count();
    if characters == 0 {
        return Some(0);
    }
    let rest = first(fill, wanted % characters).len();
    (wanted / characters)
        .checked_mul(fill.len())?
        .checked_add(rest)
}

/// How many code points a text has too few.
fn missing(text: &str, length: i64) -> usize {
    let length = usize::try_from(length).unwrap_or(0);
    // It has no more of them than bytes, and a quarter at least.
    match length > text.len() / 4 {
        true => length.saturating_sub(text.chars().count()),
        false => 0,
    }
}

/// `text[:length]`.
fn beginning(text: &str, length: i64) -> &[u8] {
    let count = usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX);
    if length >= 0 {
        return first(text, count);
    }
    let last = text.char_indices().rev().nth(count - 1);
    &text.as_bytes()[..last.map_or(0, |(place, _)| place)]
}

/// The first code points of a text, or all that there are.
fn first(text: &str, count: usize) -> &[u8] {
    let after = text.char_indices().nth(count);
    &text.as_bytes()[..after.map_or(text.len(), |(place, _)| place)]
}

fn with_room(length: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    (length <= LARGEST && text.try_reserve_exact(length).is_ok()).then_some(text)
}

/// Appends `length` bytes: of a text that begins again where it ends.
fn push_repeated(to: &mut Vec<u8>, text: &[u8], length: usize) {
    let begin = to.len();
    let end = begin + length;
    to.extend_from_slice(&text[..text.len().min(length)]);
    // What is there is a multiple of the text until the last time.
    while to.len() < end {
        let more = (to.len() - begin).min(end - to.len());
        to.extend_from_within(begin..begin + more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(made: Option<Cow<'_, [u8]>>) -> Option<String> {
        made.map(|made| String::from_utf8(made.into_owned()).expect("Unicode"))
    }

    fn left(of: &str, length: i64, fill: &str) -> Option<String> {
        text(pad_left(of, length, fill))
    }

    fn right(of: &str, length: i64, fill: &str) -> Option<String> {
        text(pad_right(of, length, fill))
    }

    #[test]
    fn a_text_is_repeated() {
        for (of, count, repeated) in [
            ("ab", 3, "ababab"),
            ("é", 2, "éé"),
            ("ab", 1, "ab"),
            ("ab", 0, ""),
            ("ab", -1, ""),
            ("ab", i64::MIN, ""),
            ("", i64::MAX, ""),
        ] {
            assert_eq!(text(repeat(of, count)).as_deref(), Some(repeated));
        }
        let all = repeat("abc", 5_000).expect("short enough");
        assert_eq!(&*all, "abc".repeat(5_000).as_bytes());
    }

    #[test]
    fn a_text_is_reversed_by_code_points() {
        for (of, reversed) in [
            ("", ""),
            ("abc", "cba"),
            ("a\u{301}é\u{1f600}\0", "\0\u{1f600}é\u{301}a"),
        ] {
            assert_eq!(text(reverse(of)).as_deref(), Some(reversed));
        }
    }

    #[test]
    fn a_text_is_padded_to_so_many_code_points() {
        for (of, length, fill, on_the_left, on_the_right) in [
            ("a", 4, "xy", "xyxa", "axyx"),
            (
                "a",
                6,
                "é\u{1f600}",
                "é\u{1f600}é\u{1f600}éa",
                "aé\u{1f600}é\u{1f600}é",
            ),
            ("éé", 3, "x", "xéé", "ééx"),
            ("", 2, "xyz", "xy", "xy"),
            ("ab", 5, "", "ab", "ab"),
            ("ab", i64::MAX, "", "ab", "ab"),
        ] {
            assert_eq!(left(of, length, fill).as_deref(), Some(on_the_left));
            assert_eq!(right(of, length, fill).as_deref(), Some(on_the_right));
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_off() {
        for (of, length, beginning) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("\u{1f600}é", 1, "\u{1f600}"),
            ("abc", 0, ""),
            ("abc", -1, "ab"),
            ("a\u{1f600}é", -2, "a"),
            ("abc", -3, ""),
            ("abc", -4, ""),
            ("abc", i64::MIN, ""),
            ("", -1, ""),
        ] {
            assert_eq!(left(of, length, "x").as_deref(), Some(beginning));
            assert_eq!(right(of, length, "x").as_deref(), Some(beginning));
        }
    }

    #[test]
    fn what_is_too_large_is_left_to_others() {
        let largest = LARGEST as i64;
        assert!(repeat("a", largest).is_some());
        assert_eq!(repeat("a", largest + 1), None);
        assert_eq!(repeat("a", i64::MAX), None);
        assert_eq!(pad_left("a", i64::MAX, "b"), None);
        assert_eq!(pad_right("a", i64::MAX, "b"), None);
        // A part of it would do, which the original does not know.
        let long = "b".repeat(1 << 13);
        assert_eq!(pad_left("a", 1 << 12, &long), None);
        let text = "a".repeat(1 << 12);
        assert_eq!(pad_right(&text, 1 << 12, &long), None);
        assert!(pad_left(&text, 1 << 12, &long).is_some());
    }
}
