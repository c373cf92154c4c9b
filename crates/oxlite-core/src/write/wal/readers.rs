//! Who reads a log that ought to be begun anew, in words.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use oxlite_sqlite::{Reading, Watch};

use crate::file::beside;
use crate::process::processes::{self, Process, Wanted};
use crate::text::{cut, in_a_line};

/// No more of a statement than this is told, in characters, and no more readers.
const TEXT_AT_MOST: usize = 200;
const READERS_AT_MOST: usize = 8;

/// The bytes of the five read marks in the log's shared memory.
const READ_MARKS: RangeInclusive<u64> = 123..=127;

/// A read mark that nobody uses is let go after less than this (docs/kept-read-marks.md), where its process can
/// run.
const KEPT_AT_MOST: Duration = Duration::from_millis(5);

/// All readers that can be seen: connections of this process, longest first, then other processes.
pub(super) fn describe(watches: &[Watch], database: &Path) -> String {
    let mut readings: Vec<Reading> = watches.iter().filter_map(Watch::reading).collect();
    readings.sort_by_key(|reading| std::cmp::Reverse(reading.held_for));
    let read_marks = Wanted {
        file: beside::shared_memory(database),
        bytes: READ_MARKS,
        is_alone: false,
    };
    in_words(&readings, &that_stay(&[read_marks]))
}

/// The processes that lock any of them for longer than one keeps a mark that it does not use.
fn that_stay(wanted: &[Wanted]) -> Vec<Process> {
    // Lets go what this process keeps, too.
    oxlite_sqlite::about_to_wait();
    let mut found = processes::that_lock(wanted, processes::LOOK_FOR);
    if !found.is_empty() {
        std::thread::sleep(KEPT_AT_MOST);
        let again = processes::that_lock(wanted, processes::LOOK_FOR);
        found.retain(|process| again.iter().any(|other| other.id == process.id));
    }
    found
}

fn in_words(readings: &[Reading], processes: &[Process]) -> String {
    let own = processes::own_id();
    let mut words: Vec<String> = readings.iter().map(connection).collect();
    if readings.is_empty() && processes.iter().any(|process| process.id == own) {
        words.push("another connection of this process".into());
    }
    let others = processes.iter().filter(|process| process.id != own);
    words.extend(others.map(|process| {
        let state = if process.is_stopped { ", stopped" } else { "" };
        format!("process {} ({}{state})", process.id, process.command)
    }));
    let unnamed = words.len().saturating_sub(READERS_AT_MOST);
    words.truncate(READERS_AT_MOST);
    if unnamed > 0 {
        words.push(format!("and {unnamed} more"));
    }
    if words.is_empty() {
        return "by somebody who cannot be seen from here, such as a process of another user, or who \
                has just gone"
            .into();
    }
    words.join("; ")
}

fn connection(reading: &Reading) -> String {
    let Reading {
        thread_id,
        held_for,
        statement,
    } = reading;
    let seconds = held_for.as_secs_f64();
    let what = match statement {
        Some(statement) => format!("with: {}", cut(in_a_line(statement), TEXT_AT_MOST)),
        None => "in a transaction".into(),
    };
    format!("thread {thread_id} of this process, for {seconds:.1} s, {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_named_with_what_is_known_of_them() {
        let reading = |statement: Option<&str>| Reading {
            thread_id: 7,
            held_for: Duration::from_millis(1500),
            statement: statement.map(str::to_owned),
        };
        let other = Process {
            id: u32::MAX,
            command: "python app.py".into(),
            is_stopped: true,
        };
        let own = Process {
            id: processes::own_id(),
            command: String::new(),
            is_stopped: false,
        };
        assert_eq!(
            in_words(
                &[reading(Some("SELECT\n  '\u{1b}'")), reading(None)],
                &[other, own.clone()]
            ),
            "thread 7 of this process, for 1.5 s, with: SELECT '\\x1b'; \
             thread 7 of this process, for 1.5 s, in a transaction; \
             process 4294967295 (python app.py, stopped)"
        );
        assert_eq!(in_words(&[], &[own]), "another connection of this process");
        assert!(in_words(&[], &[]).contains("cannot be seen"));
        let many = vec![reading(None); READERS_AT_MOST + 2];
        assert!(in_words(&many, &[]).ends_with("; and 2 more"));
        let long = in_words(&[reading(Some(&"é".repeat(1000)))], &[]);
        assert!(long.ends_with("é…") && long.len() < 600, "{long}");
    }
}
