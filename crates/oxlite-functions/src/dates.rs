//! What is asked of days and times: a part of them, a beginning (of the month, of the hour), the
//! day or the time alone.
//!
//! Each function takes what was asked for by name, the text, and the change of clocks that goes
//! before, if there is one. A day without a time has no clock to change.

use crate::Answer;
use crate::calendar::{Date, Moment, Time};
use crate::text::{Said, Short, read};
use crate::zone::Change;

const MIDNIGHT: Time = Time {
    hour: 0,
    minute: 0,
    second: 0,
    microsecond: 0,
};

/// A day, and the time if the text has one.
struct Parts {
    date: Date,
    time: Option<Time>,
}

fn parts(text: &[u8], change: Option<&Change>) -> Option<Parts> {
    match (read(text)?, change) {
        (Said::Date(date), None) => Some(Parts { date, time: None }),
        (Said::Moment(moment), change) => {
            let Moment { date, time } = match change {
                Some(change) => change.of(moment)?,
                None => moment,
            };
            Some(Parts {
                date,
                time: Some(time),
            })
        }
        _ => None,
    }
}

fn part_of_time(part: &[u8], time: Time) -> Option<i64> {
    match part {
        b"hour" => Some(time.hour),
        b"minute" => Some(time.minute),
        b"second" => Some(time.second),
        b"microsecond" => Some(time.microsecond),
        _ => None,
    }
}

/// A part of a day or a moment, by its name.
pub fn extract(part: &[u8], text: &[u8], change: Option<&Change>) -> Option<Answer> {
    let Parts { date, time } = parts(text, change)?;
    let number = match part {
        b"year" => date.year,
        b"month" => date.month,
        b"day" => date.day,
        b"week_day" => date.iso_weekday() % 7 + 1,
        b"iso_week_day" => date.iso_weekday(),
        b"week" => date.iso_week().1,
        b"iso_year" => date.iso_week().0,
        b"quarter" => date.quarter(),
        _ => part_of_time(part, time?)?,
    };
    Some(Answer::Integer(number))
}

/// A part of a time, by its name.
pub fn extract_of_time(part: &[u8], text: &[u8]) -> Option<Answer> {
    match read(text)? {
        Said::Time(time) => part_of_time(part, time).map(Answer::Integer),
        _ => None,
    }
}

/// The day on which a period of that name begins.
fn first_day(period: &[u8], date: Date) -> Option<Date> {
    match period {
        b"year" => Some(Date {
            month: 1,
            day: 1,
            ..date
        }),
        b"quarter" => Some(Date {
            month: date.quarter() * 3 - 2,
            day: 1,
            ..date
        }),
        b"month" => Some(Date { day: 1, ..date }),
        b"week" => date.monday(),
        b"day" => Some(date),
        _ => None,
    }
}

/// When a period of that name begins within the day.
fn first_second(period: &[u8], time: Time) -> Option<Time> {
    match period {
        b"hour" => Some(Time {
            minute: 0,
            second: 0,
            ..time
        }),
        b"minute" => Some(Time { second: 0, ..time }),
        b"second" => Some(time),
        _ => None,
    }
}

/// The first day of a period, as a day.
pub fn begin_as_date(period: &[u8], text: &[u8], change: Option<&Change>) -> Option<Answer> {
    let date = first_day(period, parts(text, change)?.date)?;
    let mut answer = Short::new();
    answer.date(date)?;
    Some(Answer::Text(answer))
}

/// The beginning of a period, as a day and a time.
pub fn begin(period: &[u8], text: &[u8], change: Option<&Change>) -> Option<Answer> {
    let Parts { date, time } = parts(text, change)?;
    let (date, time) = match first_day(period, date) {
        Some(first) => (first, MIDNIGHT),
        None => (date, first_second(period, time?)?),
    };
    let mut answer = Short::new();
    answer.date(date)?;
    answer.space()?;
    answer.clock(time)?;
    Some(Answer::Text(answer))
}

/// The beginning of a period within a day, as a time.
pub fn begin_as_time(period: &[u8], text: &[u8], change: Option<&Change>) -> Option<Answer> {
    let time = match read(text)? {
        // A time alone has no day, without which no zone has a clock.
        Said::Time(time) => time,
        _ => parts(text, change)?.time?,
    };
    let mut answer = Short::new();
    answer.clock(first_second(period, time)?)?;
    Some(Answer::Text(answer))
}

/// The day of a moment.
pub fn date_of(text: &[u8], change: Option<&Change>) -> Option<Answer> {
    let Parts { date, time } = parts(text, change)?;
    time?;
    let mut answer = Short::new();
    answer.date(date)?;
    Some(Answer::Text(answer))
}

/// The time of a moment.
pub fn time_of(text: &[u8], change: Option<&Change>) -> Option<Answer> {
    let time = parts(text, change)?.time?;
    let mut answer = Short::new();
    answer.clock(time)?;
    answer.microseconds(time.microsecond)?;
    Some(Answer::Text(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(answer: Option<Answer>) -> String {
        match answer {
            Some(Answer::Text(text)) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
            Some(Answer::Integer(number)) => number.to_string(),
            other => format!("{other:?}"),
        }
    }

    const TEXT: &[u8] = b"2024-05-16 13:14:15.000160";

    #[test]
    fn parts_have_names() {
        for (part, expected) in [
            ("year", "2024"),
            ("month", "5"),
            ("day", "16"),
            ("week_day", "5"),
            ("iso_week_day", "4"),
            ("week", "20"),
            ("iso_year", "2024"),
            ("quarter", "2"),
            ("hour", "13"),
            ("minute", "14"),
            ("second", "15"),
            ("microsecond", "160"),
            ("decade", "None"),
        ] {
            assert_eq!(
                said(extract(part.as_bytes(), TEXT, None)),
                expected,
                "{part}"
            );
        }
        assert_eq!(extract(b"hour", b"2024-05-16", None), None);
        assert_eq!(said(extract_of_time(b"second", b"13:14:15")), "15");
        assert_eq!(extract_of_time(b"second", TEXT), None);
    }

    #[test]
    fn periods_begin() {
        for (period, expected) in [
            ("year", "2024-01-01 00:00:00"),
            ("quarter", "2024-04-01 00:00:00"),
            ("month", "2024-05-01 00:00:00"),
            ("week", "2024-05-13 00:00:00"),
            ("day", "2024-05-16 00:00:00"),
            ("hour", "2024-05-16 13:00:00"),
            ("minute", "2024-05-16 13:14:00"),
            ("second", "2024-05-16 13:14:15"),
            ("era", "None"),
        ] {
            assert_eq!(said(begin(period.as_bytes(), TEXT, None)), expected);
        }
        assert_eq!(
            said(begin_as_date(b"week", b"2024-05-16", None)),
            "2024-05-13"
        );
        assert_eq!(
            said(begin_as_time(b"minute", b"13:14:15.5", None)),
            "13:14:00"
        );
        assert_eq!(said(begin_as_time(b"hour", TEXT, None)), "13:00:00");
    }

    #[test]
    fn a_moment_has_a_day_and_a_time() {
        assert_eq!(said(date_of(TEXT, None)), "2024-05-16");
        assert_eq!(said(time_of(TEXT, None)), "13:14:15.000160");
        assert_eq!(said(time_of(b"2024-05-16 13:14:15.0", None)), "13:14:15");
        assert_eq!(date_of(b"2024-05-16", None), None);
    }
}
