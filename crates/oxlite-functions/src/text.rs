//! Days and times as texts: the one form in which they are written into databases, and no other.
//!
//! Invariant: what is read here is `YYYY-MM-DD`, `HH:MM:SS` with up to six more digits after a
//! point, or both with one space between them, in ASCII. All else is left to who reads more.

use std::fmt::{Result, Write};

use crate::calendar::{Date, Moment, Time};

/// A text that fits into its place: no result here is longer than `-213503982 days, 8:01:49.551616`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    bytes: [u8; 47],
    length: u8,
}

impl Short {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; 47],
            length: 0,
        }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let begin = usize::from(self.length);
        let place = self.bytes.get_mut(begin..begin + bytes.len())?;
        place.copy_from_slice(bytes);
        self.length += bytes.len() as u8;
        Some(())
    }

    /// A number of so many digits, with zeros before it.
    fn digits<const N: usize>(&mut self, mut number: i64) -> Option<()> {
        let mut digits = [b'0'; N];
        for digit in digits.iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        self.push(&digits)
    }

    /// `YYYY-MM-DD`.
    pub(crate) fn date(&mut self, date: Date) -> Option<()> {
        self.digits::<4>(date.year)?;
        self.push(b"-")?;
        self.digits::<2>(date.month)?;
        self.push(b"-")?;
        self.digits::<2>(date.day)
    }

    /// `HH:MM:SS`.
    pub(crate) fn clock(&mut self, time: Time) -> Option<()> {
        self.digits::<2>(time.hour)?;
        self.push(b":")?;
        self.digits::<2>(time.minute)?;
        self.push(b":")?;
        self.digits::<2>(time.second)
    }

    /// `.ffffff`, if that is not nothing.
    pub(crate) fn microseconds(&mut self, microseconds: i64) -> Option<()> {
        if microseconds == 0 {
            return Some(());
        }
        self.push(b".")?;
        self.digits::<6>(microseconds)
    }

    /// A space.
    pub(crate) fn space(&mut self) -> Option<()> {
        self.push(b" ")
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> Result {
        self.push(text.as_bytes()).ok_or(std::fmt::Error)
    }
}

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// `YYYY-MM-DD`
    Date(Date),
    /// `YYYY-MM-DD HH:MM:SS[.ffffff]`
    Moment(Moment),
    /// `HH:MM:SS[.ffffff]`
    Time(Time),
}

/// Reads a text.
pub fn read(text: &[u8]) -> Option<Said> {
    if text.get(2) == Some(&b':') {
        return time(text).map(Said::Time);
    }
    let (day, rest) = text.split_at_checked(10)?;
    let date = date(day)?;
    match rest.split_first() {
        None => Some(Said::Date(date)),
        Some((b' ', rest)) => {
            let time = time(rest)?;
            Some(Said::Moment(Moment { date, time }))
        }
        Some(_) => None,
    }
}

fn date(text: &[u8]) -> Option<Date> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *text else {
        return None;
    };
    Date::new(
        number(&[y0, y1, y2, y3])?,
        number(&[m0, m1])?,
        number(&[d0, d1])?,
    )
}

fn time(text: &[u8]) -> Option<Time> {
    let (clock, rest) = text.split_at_checked(8)?;
    let [h0, h1, b':', m0, m1, b':', s0, s1] = *clock else {
        return None;
    };
    let microsecond = match rest.split_first() {
        None => 0,
        Some((b'.', digits)) if (1..=6).contains(&digits.len()) => {
            number(digits)? * 10_i64.pow(6 - digits.len() as u32)
        }
        Some(_) => return None,
    };
    Time::new(
        number(&[h0, h1])?,
        number(&[m0, m1])?,
        number(&[s0, s1])?,
        microsecond,
    )
}

/// A number of a few digits and nothing else.
fn number(digits: &[u8]) -> Option<i64> {
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_is_read() {
        let date = Date {
            year: 2024,
            month: 2,
            day: 29,
        };
        let time = Time {
            hour: 1,
            minute: 2,
            second: 3,
            microsecond: 40_000,
        };
        assert_eq!(read(b"2024-02-29"), Some(Said::Date(date)));
        assert_eq!(read(b"01:02:03.04"), Some(Said::Time(time)));
        let both = Said::Moment(Moment { date, time });
        assert_eq!(read(b"2024-02-29 01:02:03.04"), Some(both));
    }

    #[test]
    fn no_other_is() {
        for text in [
            "",
            "2024",
            "2023-02-29",
            "2024-2-29",
            "+024-02-29",
            "2024-02-29T01:02:03",
            "2024-02-29 ",
            "2024-02-29 01:02",
            "2024-02-29  01:02:03",
            "2024-02-29 01:02:03+00:00",
            "01:02:03.",
            "01:02:03.1234567",
            "01:02:60",
            "24:00:00",
            "01:02:03 ",
            "\u{661}\u{662}:00:00",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
