//! What lies between two times, and arithmetic with it. A difference is a number of microseconds.

use std::fmt::Write;

use crate::calendar::{DAY, Date, Moment, SECOND};
use crate::text::{Said, Short, read};
use crate::{Answer, Argument};

/// The microseconds from one time of the day to another.
pub fn between_times(later: &[u8], earlier: &[u8]) -> Option<Answer> {
    match (read(later)?, read(earlier)?) {
        (Said::Time(later), Said::Time(earlier)) => {
            let difference = later.microseconds() - earlier.microseconds();
            Some(Answer::Integer(difference))
        }
        _ => None,
    }
}

/// The microseconds from one moment to another, or from one day to another.
pub fn between(later: &[u8], earlier: &[u8]) -> Option<Answer> {
    microseconds_between(read(later)?, read(earlier)?).map(Answer::Integer)
}

fn microseconds_between(later: Said, earlier: Said) -> Option<i64> {
    match (later, earlier) {
        (Said::Moment(later), Said::Moment(earlier)) => {
            Some(later.microseconds() - earlier.microseconds())
        }
        (Said::Date(later), Said::Date(earlier)) => Some((later.days() - earlier.days()) * DAY),
        _ => None,
    }
}

/// Integers up to here are doubles exactly.
const EXACT: u64 = 1 << 53;

/// Adds (`+`) or subtracts (`-`) differences, days and moments; multiplies (`*`) or divides (`/`)
/// numbers.
pub fn combine(operator: &[u8], left: Argument<'_>, right: Argument<'_>) -> Option<Answer> {
    match operator.trim_ascii() {
        b"+" => match (left, right) {
            (Argument::Integer(left), Argument::Integer(right)) => {
                difference(i128::from(left) + i128::from(right))
            }
            (Argument::Text(text), Argument::Integer(difference))
            | (Argument::Integer(difference), Argument::Text(text)) => {
                moved(read(text)?, i128::from(difference))
            }
            _ => None,
        },
        b"-" => match (left, right) {
            (Argument::Integer(left), Argument::Integer(right)) => {
                difference(i128::from(left) - i128::from(right))
            }
            (Argument::Text(text), Argument::Integer(difference)) => {
                moved_back(read(text)?, difference)
            }
            (Argument::Text(left), Argument::Text(right)) => {
                difference(i128::from(microseconds_between(read(left)?, read(right)?)?))
            }
            _ => None,
        },
        b"*" => match (left, right) {
            (Argument::Integer(left), Argument::Integer(right)) => {
                left.checked_mul(right).map(Answer::Integer)
            }
            _ => Some(Answer::Real(real(left)? * real(right)?)),
        },
        b"/" => {
            let (left, right) = (real(left)?, real(right)?);
            (right != 0.0).then(|| Answer::Real(left / right))
        }
        _ => None,
    }
}

/// A number as a double, if it is one exactly.
fn real(number: Argument<'_>) -> Option<f64> {
    match number {
        Argument::Real(real) => Some(real),
        Argument::Integer(integer) if integer.unsigned_abs() <= EXACT => Some(integer as f64),
        _ => None,
    }
}

fn moved(said: Said, difference: i128) -> Option<Answer> {
    match said {
        Said::Moment(moment) => {
            let moved = i128::from(moment.microseconds()) + difference;
            moment_text(Moment::from_microseconds(i64::try_from(moved).ok()?)?)
        }
        Said::Date(date) => {
            // Whole days count, rounded down.
            let days = difference.div_euclid(i128::from(DAY));
            date_text(date.days().checked_add(i64::try_from(days).ok()?)?)
        }
        Said::Time(_) => None,
    }
}

fn moved_back(said: Said, difference: i64) -> Option<Answer> {
    match said {
        // The difference is rounded down before it is taken away.
        Said::Date(date) => date_text(date.days() - difference.div_euclid(DAY)),
        other => moved(other, -i128::from(difference)),
    }
}

fn date_text(days: i64) -> Option<Answer> {
    let mut answer = Short::new();
    answer.date(Date::from_days(days)?)?;
    Some(Answer::Text(answer))
}

fn moment_text(moment: Moment) -> Option<Answer> {
    let mut answer = Short::new();
    answer.date(moment.date)?;
    answer.space()?;
    answer.clock(moment.time)?;
    answer.microseconds(moment.time.microsecond)?;
    Some(Answer::Text(answer))
}

/// A difference in words: `-1 day, 23:59:59.999999`.
fn difference(microseconds: i128) -> Option<Answer> {
    let day = i128::from(DAY);
    let days = i64::try_from(microseconds.div_euclid(day)).ok()?;
    let rest = i64::try_from(microseconds.rem_euclid(day)).ok()?;
    let mut answer = Short::new();
    match days {
        0 => {}
        1 | -1 => write!(answer, "{days} day, ").ok()?,
        _ => write!(answer, "{days} days, ").ok()?,
    }
    let seconds = rest / SECOND;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    write!(answer, "{hours}:{minutes:02}:{:02}", seconds % 60).ok()?;
    answer.microseconds(rest % SECOND)?;
    Some(Answer::Text(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(operator: &str, left: Argument<'_>, right: Argument<'_>) -> String {
        match combine(operator.as_bytes(), left, right) {
            Some(Answer::Text(text)) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn moments_move() {
        let moment = Argument::Text(b"2024-02-28 23:59:59.5");
        let day = Argument::Text(b"2024-02-28");
        let half = Argument::Integer(500_000);
        assert_eq!(said("+", moment, half), "2024-02-29 00:00:00");
        assert_eq!(said(" + ", half, moment), "2024-02-29 00:00:00");
        assert_eq!(said("-", moment, half), "2024-02-28 23:59:59");
        assert_eq!(said("-", day, half), "2024-02-28");
        assert_eq!(said("-", day, Argument::Integer(-1)), "2024-02-29");
        assert_eq!(said("+", day, Argument::Integer(-1)), "2024-02-27");
        assert_eq!(said("-", half, moment), "None");
        assert_eq!(said("+", moment, Argument::Integer(i64::MAX)), "None");
    }

    #[test]
    fn differences_are_words() {
        let number = Argument::Integer;
        assert_eq!(said("-", number(0), number(1)), "-1 day, 23:59:59.999999");
        assert_eq!(
            said("+", number(2 * DAY), number(SECOND)),
            "2 days, 0:00:01"
        );
        let longest = said("-", number(i64::MIN), number(i64::MAX));
        assert_eq!(longest, "-213503983 days, 15:58:10.448385");
        let (later, earlier) = (Argument::Text(b"2024-03-01"), Argument::Text(b"2024-02-28"));
        assert_eq!(said("-", later, earlier), "2 days, 0:00:00");
    }

    #[test]
    fn numbers_are_numbers() {
        let (two, half) = (Argument::Integer(2), Argument::Real(0.5));
        assert_eq!(combine(b"*", two, two), Some(Answer::Integer(4)));
        assert_eq!(combine(b"*", two, half), Some(Answer::Real(1.0)));
        assert_eq!(combine(b"/", half, two), Some(Answer::Real(0.25)));
        assert_eq!(combine(b"/", two, Argument::Integer(0)), None);
        assert_eq!(combine(b"*", Argument::Integer(i64::MAX), two), None);
        assert_eq!(combine(b"/", Argument::Integer(i64::MAX), two), None);
    }
}
