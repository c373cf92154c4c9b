//! Time zones, read from the bytes of a TZif file (RFC 8536), as Python's `zoneinfo` understands
//! them; and the change from one zone's clock to another's.
//!
//! What a local time means where clocks go forward or back is what it means with `fold=0` there. A
//! file with something in it that is not certainly understood alike (rules by the day of the year,
//! transitions out of order) is no zone here.

use crate::calendar::{Date, Moment, SECOND, days_in_month};

/// A zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// When the clock changes, in seconds since 1970-01-01 UTC.
    changes: Vec<i64>,
    /// The same by the clock; of a time that it shows twice, or not at all, the later of both.
    local_changes: Vec<i64>,
    /// What is added to UTC, in seconds, from each change on.
    offsets: Vec<i64>,
    /// What is added before the first change.
    before: i64,
    /// What is added after the last change.
    after: After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Always(i64),
    Summer(Summer),
}

/// A rule for all years that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Summer {
    standard: i64,
    summer: i64,
    begins: YearDay,
    ends: YearDay,
}

/// The n-th (5: the last) of a weekday of a month, and seconds from that day's midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct YearDay {
    month: i64,
    week: i64,
    /// 0 for Sunday.
    weekday: i64,
    seconds: i64,
}

impl YearDay {
    /// In seconds since 1970-01-01, by the clock.
    fn of_year(self, year: i64) -> i64 {
        let first = Date {
            year,
            month: self.month,
            day: 1,
        };
        let mut day = (self.weekday - first.iso_weekday()).rem_euclid(7) + 1 + (self.week - 1) * 7;
        if day > days_in_month(year, self.month) {
            day -= 7;
        }
        (first.days() + day - 1) * 86_400 + self.seconds
    }
}

impl Summer {
    fn offset(self, seconds: i64, begins: i64, ends: i64) -> i64 {
        let is_summer = match begins < ends {
            true => (begins..ends).contains(&seconds),
            false => !(ends..begins).contains(&seconds),
        };
        if is_summer {
            self.summer
        } else {
            self.standard
        }
    }

    fn offset_of_local(self, seconds: i64, year: i64) -> i64 {
        let saved = self.summer - self.standard;
        let (mut begins, mut ends) = (self.begins.of_year(year), self.ends.of_year(year));
        match saved >= 0 {
            true => begins += saved,
            false => ends -= saved,
        }
        self.offset(seconds, begins, ends)
    }

    fn offset_of_utc(self, seconds: i64, year: i64) -> i64 {
        let begins = self.begins.of_year(year) - self.standard;
        let ends = self.ends.of_year(year) - self.summer;
        self.offset(seconds, begins, ends)
    }
}

impl Zone {
    /// Reads a file; `None` if it is none, or has something in it that is not known here.
    pub fn from_file(file: &[u8]) -> Option<Self> {
        let mut input = Input(file);
        let first = Header::read(&mut input)?;
        if first.version == 0 {
            return Self::from_block(&mut input, &first, 4, b"");
        }
        input.take(first.length_of_block(4)?)?;
        let header = Header::read(&mut input)?;
        let mut block = Input(input.take(header.length_of_block(8)?)?);
        let (b"\n", rule) = input.0.split_at_checked(1)? else {
            return None;
        };
        let end = rule.iter().position(|byte| *byte == b'\n')?;
        Self::from_block(&mut block, &header, 8, &rule[..end])
    }

    fn from_block(
        input: &mut Input<'_>,
        header: &Header,
        time_length: usize,
        rule: &[u8],
    ) -> Option<Self> {
        let times: Option<Vec<i64>> = (0..header.times)
            .map(|_| match time_length {
                4 => input.i32(),
                _ => input.i64(),
            })
            .collect();
        let changes = times?;
        let kinds_of_changes = input.take(header.times)?;
        let kinds: Option<Vec<(i64, bool)>> = (0..header.kinds)
            .map(|_| Some((input.i32()?, input.take(2)?[0] != 0)))
            .collect();
        let kinds = kinds?;
        let offset_of = |kind: &u8| kinds.get(usize::from(*kind)).map(|kind| kind.0);
        let offsets: Option<Vec<i64>> = kinds_of_changes.iter().map(offset_of).collect();
        let offsets = offsets?;
        let before = kinds.iter().find(|(_, is_summer)| !is_summer)?.0;
        let latest = offsets.last().copied();
        let after = match rule {
            b"" => After::Always(latest.or(kinds.last().map(|kind| kind.0))?),
            rule => read_rule(rule)?,
        };
        // Of a rule that contradicts the last change `zoneinfo` in C and in Python make different things.
        if matches!((after, latest), (After::Always(after), Some(latest)) if after != latest) {
            return None;
        }
        let earlier = std::iter::once(&kinds[0].0).chain(&offsets);
        let local = changes.iter().zip(earlier.zip(&offsets));
        let local_changes: Vec<i64> = local
            .map(|(change, (earlier, later))| change.checked_add(*earlier.max(later)))
            .collect::<Option<_>>()?;
        let all_offsets = kinds.iter().map(|kind| kind.0);
        let is_known = changes.is_sorted()
            && local_changes.is_sorted()
            && all_offsets.into_iter().all(|offset| offset.abs() < 86_400);
        is_known.then_some(Self {
            changes,
            local_changes,
            offsets,
            before,
            after,
        })
    }

    /// What is added to UTC when the clock shows this.
    fn offset_of_local(&self, seconds: i64, year: i64) -> i64 {
        let after = |rule: Summer| rule.offset_of_local(seconds, year);
        self.offset(&self.local_changes, seconds, after)
    }

    /// What is added to UTC at this moment of UTC.
    fn offset_of_utc(&self, seconds: i64, year: i64) -> i64 {
        let after = |rule: Summer| rule.offset_of_utc(seconds, year);
        self.offset(&self.changes, seconds, after)
    }

    fn offset(&self, changes: &[i64], seconds: i64, after: impl FnOnce(Summer) -> i64) -> i64 {
        match (changes.first(), changes.last()) {
            (Some(first), _) if seconds < *first => self.before,
            (_, Some(last)) if seconds <= *last => {
                self.offsets[changes.partition_point(|change| *change <= seconds) - 1]
            }
            _ => match self.after {
                After::Always(offset) => offset,
                After::Summer(rule) => after(rule),
            },
        }
    }
}

/// From the clock of one zone to that of another.
#[derive(Clone, Debug)]
pub struct Change {
    /// The zone whose clock shows what is converted.
    pub source: Zone,
    /// What is added to it first, in microseconds.
    pub shift: i64,
    /// The zone to whose clock it is converted; `None` for the same.
    pub target: Option<Zone>,
}

impl Change {
    /// What the other clock shows; `None` outside of the years that there are.
    pub fn of(&self, moment: Moment) -> Option<Moment> {
        let mut moment = moment;
        if self.shift != 0 {
            let shifted = moment.microseconds().checked_add(self.shift)?;
            moment = Moment::from_microseconds(shifted)?;
        }
        let Some(target) = &self.target else {
            return Some(moment);
        };
        let local = moment.microseconds();
        let seconds = local.div_euclid(SECOND);
        let utc = local - self.source.offset_of_local(seconds, moment.date.year) * SECOND;
        let year = Moment::from_microseconds(utc)?.date.year;
        let offset = target.offset_of_utc(utc.div_euclid(SECOND), year);
        Moment::from_microseconds(utc + offset * SECOND)
    }
}

struct Header {
    version: u8,
    utc_flags: usize,
    standard_flags: usize,
    leaps: usize,
    times: usize,
    kinds: usize,
    names: usize,
}

impl Header {
    fn read(input: &mut Input<'_>) -> Option<Self> {
        let (b"TZif", [version, ..]) = input.take(20)?.split_at_checked(4)? else {
            return None;
        };
        let mut count = || usize::try_from(input.i32()?).ok();
        let header = Self {
            version: *version,
            utc_flags: count()?,
            standard_flags: count()?,
            leaps: count()?,
            times: count()?,
            kinds: count()?,
            names: count()?,
        };
        (header.kinds > 0).then_some(header)
    }

    fn length_of_block(&self, time: usize) -> Option<usize> {
        let parts = [
            (self.times, time + 1),
            (self.kinds, 6),
            (self.names, 1),
            (self.leaps, time + 4),
            (self.standard_flags, 1),
            (self.utc_flags, 1),
        ];
        parts.iter().try_fold(0_usize, |sum, (count, size)| {
            sum.checked_add(count.checked_mul(*size)?)
        })
    }
}

/// What is left of a file.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn i32(&mut self) -> Option<i64> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(i64::from(i32::from_be_bytes(bytes)))
    }

    fn i64(&mut self) -> Option<i64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(i64::from_be_bytes(bytes))
    }
}

/// Reads POSIX' rule for the years after the last change, such as `CET-1CEST,M3.5.0,M10.5.0/3`.
fn read_rule(rule: &[u8]) -> Option<After> {
    let mut rest = std::str::from_utf8(rule).ok()?;
    skip_name(&mut rest)?;
    let standard = -read_seconds(&mut rest, 24)?;
    if rest.is_empty() {
        return Some(After::Always(standard));
    }
    skip_name(&mut rest)?;
    let summer = match rest.starts_with(',') {
        true => standard + 3600,
        false => -read_seconds(&mut rest, 24)?,
    };
    let begins = read_year_day(&mut rest)?;
    let ends = read_year_day(&mut rest)?;
    rest.is_empty().then_some(After::Summer(Summer {
        standard,
        summer,
        begins,
        ends,
    }))
}

fn skip_name(rest: &mut &str) -> Option<()> {
    let length = match rest.strip_prefix('<') {
        Some(quoted) => quoted.find('>')? + 2,
        None => rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len()),
    };
    *rest = &rest[length..];
    (length > 2).then_some(())
}

/// `[+-]hh[:mm[:ss]]`
fn read_seconds(rest: &mut &str, most_hours: i64) -> Option<i64> {
    let is_negative = rest.starts_with('-');
    *rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let hours = read_number(rest)?;
    let mut seconds = hours * 3600;
    for unit in [60, 1] {
        let Some(more) = rest.strip_prefix(':') else {
            break;
        };
        *rest = more;
        seconds += read_number(rest)? * unit;
    }
    let seconds = if is_negative { -seconds } else { seconds };
    (hours <= most_hours).then_some(seconds)
}

fn read_number(rest: &mut &str) -> Option<i64> {
    let length = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let number = rest.get(..length).filter(|digits| digits.len() <= 3)?;
    let number = number.parse().ok()?;
    *rest = &rest[length..];
    Some(number)
}

/// `,Mm.w.d[/time]`
fn read_year_day(rest: &mut &str) -> Option<YearDay> {
    *rest = rest.strip_prefix(",M")?;
    let month = read_number(rest)?;
    *rest = rest.strip_prefix('.')?;
    let week = read_number(rest)?;
    *rest = rest.strip_prefix('.')?;
    let weekday = read_number(rest)?;
    let mut seconds = 2 * 3600;
    if let Some(more) = rest.strip_prefix('/') {
        *rest = more;
        seconds = read_seconds(rest, 167)?;
    }
    let exists = (1..=12).contains(&month) && (1..=5).contains(&week) && (0..=6).contains(&weekday);
    exists.then_some(YearDay {
        month,
        week,
        weekday,
        seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Time;

    /// A file of the second version whose clock changes never, or by the rule alone.
    fn file(rule: &str) -> Vec<u8> {
        let header = |version: u8| {
            let mut header = b"TZif".to_vec();
            header.push(version);
            header.extend([0; 15]);
            for count in [0_i32, 0, 0, 0, 1, 4] {
                header.extend(count.to_be_bytes());
            }
            header
        };
        let block = b"\0\0\x0e\x10\0\0CET\0";
        let rule = format!("\n{rule}\n");
        [
            &header(b'2')[..],
            block,
            &header(b'2'),
            block,
            rule.as_bytes(),
        ]
        .concat()
    }

    fn moment(year: i64, month: i64, day: i64, hour: i64) -> Moment {
        Moment {
            date: Date { year, month, day },
            time: Time {
                hour,
                minute: 30,
                second: 0,
                microsecond: 5,
            },
        }
    }

    fn change(source: &str, target: &str) -> Change {
        Change {
            source: Zone::from_file(&file(source)).expect("a zone"),
            shift: 0,
            target: Zone::from_file(&file(target)),
        }
    }

    #[test]
    fn a_rule_changes_the_clock() {
        let to_berlin = change("UTC0", "CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(
            to_berlin.of(moment(2024, 3, 31, 0)),
            Some(moment(2024, 3, 31, 1))
        );
        assert_eq!(
            to_berlin.of(moment(2024, 3, 31, 1)),
            Some(moment(2024, 3, 31, 3))
        );
        assert_eq!(
            to_berlin.of(moment(2024, 10, 27, 0)),
            Some(moment(2024, 10, 27, 2))
        );
        assert_eq!(
            to_berlin.of(moment(2024, 10, 27, 1)),
            Some(moment(2024, 10, 27, 2))
        );
    }

    #[test]
    fn a_time_that_is_shown_twice_is_the_earlier() {
        let from_berlin = change("CET-1CEST,M3.5.0,M10.5.0/3", "UTC0");
        assert_eq!(
            from_berlin.of(moment(2024, 10, 27, 2)),
            Some(moment(2024, 10, 27, 0))
        );
        // And one that is not shown is read by the clock before.
        assert_eq!(
            from_berlin.of(moment(2024, 3, 31, 2)),
            Some(moment(2024, 3, 31, 1))
        );
    }

    #[test]
    fn the_years_have_an_end() {
        let east = change("UTC0", "<+14>-14");
        assert_eq!(east.of(moment(9999, 12, 31, 23)), None);
        let west = change("UTC0", "<-12>12");
        assert_eq!(west.of(moment(1, 1, 1, 0)), None);
    }

    #[test]
    fn no_cut_file_is_a_zone() {
        let whole = file("CET-1");
        assert!(Zone::from_file(&whole).is_some());
        for length in 0..whole.len() {
            assert!(Zone::from_file(&whole[..length]).is_none());
        }
    }

    #[test]
    fn an_unknown_rule_is_no_zone() {
        for rule in [
            "CET-1CEST",
            "CET-1CEST,J60,J300",
            "CET-1CEST,M13.1.0,M10.5.0",
            "C",
            "CET-25",
            "CET",
        ] {
            assert!(Zone::from_file(&file(rule)).is_none(), "{rule}");
        }
    }
}
