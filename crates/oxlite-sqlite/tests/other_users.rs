//! Who else of a process has a file open is found whatever the numbers of his descriptors, and whatever an
//! earlier look has seen under them.
//!
//! It is a program of its own with one test, since a look sees what all threads open and close.

#![cfg(ofd_locks)]

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use oxlite_sqlite::{Connection, OpenFlags, other_users_of};

/// A connection of ours that has read, in WAL mode: a few descriptors.
fn open(path: &Path) -> Connection {
    let name = CString::new(path.to_str().expect("a plain name")).expect("without NUL");
    let flags = OpenFlags {
        read_only: false,
        uri: false,
        ..OpenFlags::default()
    };
    let connection = Connection::open(&name, flags).expect("opens");
    let locked = connection.lock().expect("open");
    locked
        .execute_batch(
            "PRAGMA journal_mode = wal; CREATE TABLE IF NOT EXISTS t (x); SELECT * FROM t",
        )
        .expect("valid SQL");
    drop(locked);
    connection
}

/// The same file under a number that is at least `least`.
fn at_least(file: &File, least: i32) -> OwnedFd {
    // SAFETY: an open descriptor; what comes back is new and nobody else's.
    unsafe {
        let copy = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least);
        assert!(copy >= least, "{copy}");
        OwnedFd::from_raw_fd(copy)
    }
}

/// The highest number that a descriptor may have.
fn highest_number() -> i32 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: filled in.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    assert_eq!(result, 0);
    i32::try_from(limit.rlim_cur.min(100_000)).expect("not more") - 1
}

/// Closes all that is open on this file and those beside it; the numbers.
fn close_behind_our_back(path: &Path) -> Vec<i32> {
    let name = path.to_str().expect("a plain name");
    let entries = fs::read_dir("/proc/self/fd").expect("is there");
    let numbers: Vec<i32> = entries
        .flatten()
        .filter(|entry| {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            target
                .to_str()
                .is_some_and(|target| target.starts_with(name))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in &numbers {
        // SAFETY: SQLite's, and never used again by the one connection that has it.
        let result = unsafe { libc::close(*number) };
        assert_eq!(result, 0);
    }
    numbers
}

#[test]
fn other_users_are_found_under_whatever_numbers_come_and_go() {
    let folder = std::env::temp_dir().join(format!("oxlite-other-users-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("is made");
    let (path, lost_path) = (folder.join("app.db"), folder.join("lost.db"));
    let _ours = open(&path);
    let found = |expected: &[&OwnedFd]| {
        let mut numbers: Vec<_> = expected.iter().map(|file| file.as_raw_fd()).collect();
        numbers.sort_unstable();
        let users = other_users_of(path.clone()).map(|users| users.descriptors);
        assert_eq!(users.unwrap_or_default(), numbers);
    };
    found(&[]);
    let file = File::open(&path).expect("opens");
    let another = File::create(folder.join("other.txt")).expect("is made");

    // The first is beyond what is tried where few are open; the next look begins with it.
    let far = at_least(&file, highest_number());
    let middle = at_least(&file, 700);
    drop(file);
    found(&[&far, &middle]);
    let low = at_least(&File::open(&path).expect("opens"), 3);
    found(&[&far, &middle, &low]);

    // A known number is another file by now, and then this one again.
    let number = middle.as_raw_fd();
    drop(middle);
    let replaced = at_least(&another, number);
    found(&[&far, &low]);
    drop(replaced);
    let replaced = at_least(&File::open(&path).expect("opens"), number);
    assert_eq!(replaced.as_raw_fd(), number);
    found(&[&far, &low, &replaced]);
    drop((far, low, replaced));
    found(&[]);

    // What somebody has closed behind SQLite's back does not count as seen.
    let lost = open(&lost_path);
    found(&[]);
    let numbers = close_behind_our_back(&lost_path);
    assert!(numbers.len() > 2, "{numbers:?}");
    std::mem::forget(lost);
    let first = numbers.iter().max().expect("some") + 1;
    let late = at_least(&File::open(&path).expect("opens"), first);
    found(&[&late]);
    fs::remove_dir_all(&folder).expect("is removed");
}
