//! What a process tells those who watch, as text: written by one, read by another.
//!
//! Invariants:
//! - A note fits into its slot, and has its number at its beginning and at its end: one that is being written is
//!   not taken for a whole one.
//! - What a note says is foreign text, and made harmless when it is read.

use std::io::Write;
use std::time::Duration;

use oxlite_sqlite::{Reading, SLOT_BYTES};

use crate::process::namespace::{self, PidNamespace};
use crate::text::{cut, in_a_line};

/// What a note begins with: another form of it is not read as this one.
const FORM: &str = "oxlite activity 1";

/// No more of a reader's statement than this is told, in characters.
const READING_TEXT_AT_MOST: usize = 100;

/// What a process of Oxlite does with a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessActivity {
    /// Its number in its own PID namespace.
    pub process_id: u32,
    /// Whether that is this process's as well.
    pub pid_namespace: PidNamespace,
    /// When it has told this, in milliseconds of the machine's monotonic clock.
    pub told_ms: u64,
    /// What it has counted, by name.
    pub counters: Vec<(String, u64)>,
    /// Its slowest statements of the last minute, the slowest first.
    pub slowest: Vec<StatementActivity>,
    /// Who of it has had a snapshot for some time, the oldest first.
    pub readings: Vec<ReadingActivity>,
}

/// A statement that was slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementActivity {
    /// Its text, in a line, cut short if it is long.
    pub sql: String,
    /// What the slowest run of it took, with what that waited.
    pub longest: Duration,
    /// What that waited for locks.
    pub waited: Duration,
    /// How often it was among the slowest.
    pub count: u64,
    /// When it last was, in milliseconds of the machine's monotonic clock.
    pub last_ms: u64,
}

/// A connection that has a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadingActivity {
    /// The thread that used it last; 0 if unknown.
    pub thread_id: u32,
    /// For how long it has had its snapshot.
    pub held_for: Duration,
    /// The statement it is in the midst of, if that is known.
    pub sql: Option<String>,
}

/// The process that writes a note.
#[derive(Clone, Copy)]
pub(super) struct Author {
    namespace: u64,
    process_id: u32,
}

impl Author {
    pub(super) fn current() -> Self {
        Self {
            namespace: namespace::current(),
            process_id: std::process::id(),
        }
    }
}

/// The note of that number.
pub(super) fn write_note(
    number: u64,
    author: Author,
    now_ms: u64,
    counters: &[(&str, u64)],
    slowest: &[StatementActivity],
    readings: &[Reading],
) -> Vec<u8> {
    let Author {
        namespace,
        process_id,
    } = author;
    let mut lines = vec![format!(
        "{FORM}\n{number} {namespace} {process_id} {now_ms}"
    )];
    lines.extend(
        counters
            .iter()
            .map(|(name, count)| format!("c {name} {count}")),
    );
    lines.extend(slowest.iter().map(|slow| {
        let (longest, waited) = (slow.longest.as_micros(), slow.waited.as_micros());
        format!(
            "s {longest} {waited} {} {} {}",
            slow.count, slow.last_ms, slow.sql
        )
    }));
    lines.extend(readings.iter().map(|reading| {
        let sql = reading.statement.as_deref().unwrap_or_default();
        let sql = cut(in_a_line(sql), READING_TEXT_AT_MOST);
        format!(
            "r {} {} {sql}",
            reading.thread_id,
            reading.held_for.as_millis()
        )
    }));
    let end = format!("end {number}\n");
    let mut note = Vec::with_capacity(SLOT_BYTES);
    for line in lines {
        // What does not fit is left out: the last of the statements.
        if note.len() + line.len() + end.len() < SLOT_BYTES {
            // A vector takes all that is written.
            let _ = writeln!(note, "{line}");
        }
    }
    note.extend_from_slice(end.as_bytes());
    note
}

impl ProcessActivity {
    /// From the bytes of a slot; `None` if they are no whole note.
    pub(super) fn read(slot: &[u8]) -> Option<Self> {
        // Behind it stands what is left of a longer one.
        let text = String::from_utf8_lossy(slot);
        let mut lines = text.lines();
        if lines.next()? != FORM {
            return None;
        }
        let mut head = lines.next()?.split(' ');
        let number = head.next()?;
        let pid_namespace = PidNamespace::of(head.next()?.parse().ok()?);
        let mut activity = Self {
            process_id: head.next()?.parse().ok()?,
            pid_namespace,
            told_ms: head.next()?.parse().ok()?,
            counters: Vec::new(),
            slowest: Vec::new(),
            readings: Vec::new(),
        };
        for line in lines {
            let (kind, rest) = line.split_once(' ')?;
            match kind {
                "end" => return (rest == number).then_some(activity),
                "c" => {
                    let (name, count) = rest.split_once(' ')?;
                    activity
                        .counters
                        .push((in_a_line(name), count.parse().ok()?));
                }
                "s" => activity.slowest.push(StatementActivity::read(rest)?),
                "r" => activity.readings.push(ReadingActivity::read(rest)?),
                _ => return None,
            }
        }
        None
    }
}

impl StatementActivity {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        let mut number = || words.next()?.parse().ok();
        Some(Self {
            longest: Duration::from_micros(number()?),
            waited: Duration::from_micros(number()?),
            count: number()?,
            last_ms: number()?,
            sql: in_a_line(words.next()?),
        })
    }
}

impl ReadingActivity {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        Some(Self {
            thread_id: words.next()?.parse().ok()?,
            held_for: Duration::from_millis(words.next()?.parse().ok()?),
            sql: words.next().filter(|sql| !sql.is_empty()).map(in_a_line),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(sql: &str) -> StatementActivity {
        StatementActivity {
            sql: sql.into(),
            longest: Duration::from_micros(1500),
            waited: Duration::from_micros(700),
            count: 3,
            last_ms: 99,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let author = Author::current();
        let reading = Reading {
            thread_id: 7,
            held_for: Duration::from_millis(250),
            statement: Some("SELECT\n 1".into()),
        };
        let idle = Reading {
            statement: None,
            ..reading.clone()
        };
        let counters = [("commits", 12), ("turns", 3)];
        let note = write_note(
            5,
            author,
            100,
            &counters,
            &[slow("UPDATE t")],
            &[reading, idle],
        );
        let read = |sql: Option<&str>| ReadingActivity {
            thread_id: 7,
            held_for: Duration::from_millis(250),
            sql: sql.map(str::to_owned),
        };
        let expected = ProcessActivity {
            process_id: std::process::id(),
            pid_namespace: PidNamespace::of(namespace::current()),
            told_ms: 100,
            counters: counters.map(|(name, count)| (name.into(), count)).to_vec(),
            slowest: vec![slow("UPDATE t")],
            readings: vec![read(Some("SELECT 1")), read(None)],
        };
        assert_eq!(ProcessActivity::read(&note).as_ref(), Some(&expected));

        let mut over_a_longer_one = vec![b'x'; SLOT_BYTES];
        over_a_longer_one[..note.len()].copy_from_slice(&note);
        assert_eq!(ProcessActivity::read(&over_a_longer_one), Some(expected));
    }

    #[test]
    fn what_is_no_whole_note_is_not_read() {
        let author = Author::current();
        let note = write_note(5, author, 100, &[("commits", 12)], &[slow("UPDATE t")], &[]);
        for length in 0..note.len() - 1 {
            assert_eq!(
                ProcessActivity::read(&note[..length]),
                None,
                "{length} bytes"
            );
        }
        let next = write_note(6, author, 101, &[("commits", 13)], &[slow("UPDATE t")], &[]);
        let torn = [&next[..40], &note[40..]].concat();
        assert_eq!(ProcessActivity::read(&torn), None);
        assert_eq!(ProcessActivity::read(&[0xff; 100]), None);
        assert_eq!(ProcessActivity::read(b""), None);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_what_a_terminal_obeys_is_written_out() {
        let long = slow(&"é".repeat(SLOT_BYTES / 4));
        let slowest = [long.clone(), long.clone(), slow("'\u{1b}[2J'")];
        let note = write_note(1, Author::current(), 1, &[("commits", 1)], &slowest, &[]);
        assert!(note.len() <= SLOT_BYTES);
        let read = ProcessActivity::read(&note).expect("whole");
        assert_eq!(read.slowest, [long, slow("'\\x1b[2J'")]);
    }
}
