//! Days and times of the proleptic Gregorian calendar, years 1 to 9999, to the microsecond.
//!
//! Invariant: a [`Moment`] that exists lies within those years.

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY: i64 = 86_400 * SECOND;

/// 0001-01-01, in days since 1970-01-01.
const FIRST_DAY: i64 = -719_162;
/// 9999-12-31, in days since 1970-01-01.
const LAST_DAY: i64 = 2_932_896;

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// 1 to 9999.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
}

impl Date {
    /// The day, if there is one of these numbers.
    pub fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        exists.then_some(Self { year, month, day })
    }

    /// Of days since 1970-01-01.
    pub fn from_days(days: i64) -> Option<Self> {
        if !(FIRST_DAY..=LAST_DAY).contains(&days) {
            return None;
        }
        // Years that begin in March end with the day that not all have.
        let days = days - FIRST_DAY + 306;
        let era = days / 146_097;
        let of_era = days % 146_097;
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = match month_from_march {
            0..=9 => month_from_march + 3,
            _ => month_from_march - 9,
        };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Some(Self { year, month, day })
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, year_of_era) = (year / 400, year % 400);
        let month_from_march = (self.month + 9) % 12;
        let of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        era * 146_097 + of_era + FIRST_DAY - 306
    }

    /// 1 for Monday to 7 for Sunday.
    pub fn iso_weekday(self) -> i64 {
        // 1970-01-01 was a Thursday.
        (self.days() + 3).rem_euclid(7) + 1
    }

    /// ISO 8601's year, and the week in it.
    pub fn iso_week(self) -> (i64, i64) {
        // A week belongs to the year of its Thursday.
        let thursday = self.days() - self.iso_weekday() + 4;
        let january_first = |year| {
            Self {
                year,
                month: 1,
                day: 1,
            }
            .days()
        };
        let year = match self.year {
            year if thursday < january_first(year) => year - 1,
            year if thursday >= january_first(year + 1) => year + 1,
            year => year,
        };
        (year, (thursday - january_first(year)) / 7 + 1)
    }

    /// The Monday of its week.
    pub fn monday(self) -> Option<Self> {
        Self::from_days(self.days() - self.iso_weekday() + 1)
    }

    /// 1 to 4.
    pub fn quarter(self) -> i64 {
        (self.month + 2) / 3
    }
}

/// How many days a month has.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
    /// 0 to 999,999.
    pub microsecond: i64,
}

impl Time {
    /// The time, if there is one of these numbers.
    pub fn new(hour: i64, minute: i64, second: i64, microsecond: i64) -> Option<Self> {
        let exists = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..SECOND).contains(&microsecond);
        exists.then_some(Self {
            hour,
            minute,
            second,
            microsecond,
        })
    }

    /// Of microseconds since midnight, less than a day of them.
    fn from_microseconds(microseconds: i64) -> Self {
        let seconds = microseconds / SECOND;
        Self {
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            microsecond: microseconds % SECOND,
        }
    }

    /// Microseconds since midnight.
    pub fn microseconds(self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * SECOND + self.microsecond
    }
}

/// A day with a time, of no zone in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The day.
    pub date: Date,
    /// The time.
    pub time: Time,
}

impl Moment {
    /// Of microseconds since 1970-01-01 00:00:00.
    pub fn from_microseconds(microseconds: i64) -> Option<Self> {
        Some(Self {
            date: Date::from_days(microseconds.div_euclid(DAY))?,
            time: Time::from_microseconds(microseconds.rem_euclid(DAY)),
        })
    }

    /// Microseconds since 1970-01-01 00:00:00.
    pub fn microseconds(self) -> i64 {
        self.date.days() * DAY + self.time.microseconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_its_number() {
        let mut expected = Date {
            year: 1,
            month: 1,
            day: 1,
        };
        for days in FIRST_DAY..=LAST_DAY {
            assert_eq!(Date::from_days(days), Some(expected));
            assert_eq!(expected.days(), days);
            expected.day += 1;
            if expected.day > days_in_month(expected.year, expected.month) {
                expected = Date {
                    day: 1,
                    month: expected.month + 1,
                    ..expected
                };
            }
            if expected.month > 12 {
                expected = Date {
                    month: 1,
                    year: expected.year + 1,
                    ..expected
                };
            }
        }
        assert_eq!(expected.year, 10_000);
        assert_eq!(Date::from_days(FIRST_DAY - 1), None);
        assert_eq!(Date::from_days(LAST_DAY + 1), None);
    }

    #[test]
    fn a_week_belongs_to_the_year_of_its_thursday() {
        let week = |year, month, day| Date { year, month, day }.iso_week();
        assert_eq!(week(2021, 1, 3), (2020, 53));
        assert_eq!(week(2021, 1, 4), (2021, 1));
        assert_eq!(week(2018, 12, 31), (2019, 1));
        assert_eq!(week(1, 1, 1), (1, 1));
        assert_eq!(week(9999, 12, 31), (9999, 52));
    }

    #[test]
    fn what_does_not_exist_is_none() {
        assert_eq!(Date::new(2023, 2, 29), None);
        assert_eq!(Date::new(0, 1, 1), None);
        assert_eq!(Time::new(24, 0, 0, 0), None);
        assert_eq!(Moment::from_microseconds((LAST_DAY + 1) * DAY), None);
    }
}
