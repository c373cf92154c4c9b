//! "Did you mean …?": the known name closest to a mistyped one.

use crate::error::Error;

/// The error for a name that is not in the list: it names the list, and the likely intention.
pub(crate) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> Error {
    let known = known.into_iter();
    let list: Vec<&str> = known.clone().collect();
    let hint = match nearest(name, known) {
        Some(nearest) => format!("; did you mean '{nearest}'?"),
        None => format!("; known are {}", list.join(", ")),
    };
    Error::Value(format!("unknown {what} '{name}'{hint}"))
}

/// The candidate within an edit distance of half its length, three at most, if any.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(2).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, one row at a time.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, left_char) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right_char) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(left_char != *right_char);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_noise_is_not() {
        let profiles = ["stock", "web", "durable", "cache"];
        assert_eq!(nearest("durabel", profiles), Some("durable"));
        assert_eq!(nearest("WEB", profiles), Some("web"));
        assert_eq!(nearest("wbe", profiles), Some("web"));
        assert_eq!(nearest("postgres", profiles), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
