//! The locks of database files: what keeps them, and what lets them go.
//!
//! What a lock keeps out is asked of a process of its own: this test binary once more, as an outsider.
//! (A real second SQLite in the process: `tests/test_two_sqlites.py`.)

#![cfg(ofd_locks)]

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, thread};

use oxlite_sqlite::{Connection, OpenFlags, Statement, Step, other_users_of};

/// SQLite's lock bytes (<https://sqlite.org/fileformat.html#the_lock_byte_page>).
const RESERVED_BYTE: i64 = 0x4000_0001;
/// The first of the bytes that every reader locks.
const SHARED_FIRST: i64 = 0x4000_0002;

/// A folder of its own for each test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("oxlite-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// A database with one row, in this journal mode.
    fn database(&self, journal: &str) -> PathBuf {
        let path = self.0.join("app.db");
        let connection = open(&path);
        run(&connection, &format!("PRAGMA journal_mode = {journal}"));
        run(
            &connection,
            "CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)",
        );
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open_as(path: &Path, flags: OpenFlags) -> Connection {
    let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    Connection::open(&name, flags).expect("opens")
}

fn open(path: &Path) -> Connection {
    open_as(path, OpenFlags::default())
}

fn run(connection: &Connection, script: &str) {
    let locked = connection.lock().expect("open");
    locked.execute_batch(script).expect("valid SQL");
}

/// A query stopped at its first row, so that it keeps its read lock.
fn start_reading(connection: &Connection) -> Statement {
    let locked = connection.lock().expect("open");
    let prepared = locked.prepare("SELECT x FROM t", false).expect("valid SQL");
    let mut statement = prepared.statement.expect("a statement");
    assert_eq!(statement.step(&locked), Ok(Step::Row));
    statement
}

/// Runs SQL in another process; whether it succeeds.
fn outsider(path: &Path, script: &str) -> bool {
    let this = env::current_exe().expect("this binary");
    let done = Command::new(this)
        .args(["--exact", "the_outsider", "--nocapture"])
        .env("OXLITE_OUTSIDER_PATH", path)
        .env("OXLITE_OUTSIDER_SCRIPT", script)
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}");
    said.contains("outsider: done")
}

/// Not a test, but what `outsider` runs.
#[test]
fn the_outsider() {
    let (Ok(path), Ok(script)) = (
        env::var("OXLITE_OUTSIDER_PATH"),
        env::var("OXLITE_OUTSIDER_SCRIPT"),
    ) else {
        return;
    };
    let connection = open(Path::new(&path));
    let locked = connection.lock().expect("open");
    match locked.execute_batch(&script) {
        Ok(()) => println!("outsider: done"),
        Err(error) => println!("outsider: {error}"),
    }
}

const WRITE: &str = "BEGIN IMMEDIATE; ROLLBACK";

/// Whether no lock of a reader is in an outsider's way, in a database without WAL.
fn outsider_gets_everything(path: &Path) -> bool {
    outsider(path, "BEGIN EXCLUSIVE; ROLLBACK")
}

/// Asks for a POSIX lock of this process, as another SQLite would.
fn posix_lock(file: &File, start: i64, length: i64, kind: i32) -> bool {
    let lock = libc::flock {
        l_type: kind as _,
        l_whence: libc::SEEK_SET as _,
        l_start: start,
        l_len: length,
        l_pid: 0,
    };
    // SAFETY: an open descriptor and a complete lock.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) == 0 }
}

fn read_write(path: &Path) -> File {
    let options = OpenOptions::new().read(true).write(true).open(path);
    options.expect("opens")
}

/// How many descriptors of this process are open on the file.
fn descriptors_of(path: &Path) -> usize {
    let entries = fs::read_dir("/proc/self/fd").expect("there is /proc");
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target == path)
        .count()
}

#[test]
fn closing_another_descriptor_keeps_our_locks() {
    for journal in ["delete", "wal"] {
        let folder = Folder::new(&format!("closing-{journal}"));
        let path = folder.database(journal);
        let ours = open(&path);
        run(&ours, "BEGIN IMMEDIATE; INSERT INTO t VALUES (3)");
        for name in ["app.db", "app.db-shm", "app.db-wal", "app.db-journal"] {
            let touched = folder.0.join(name);
            if touched.exists() {
                drop(read_write(&touched));
            }
        }
        assert!(!outsider(&path, WRITE), "{journal}");
        run(&ours, "COMMIT");
        assert!(outsider(&path, WRITE), "{journal}");
    }
}

#[test]
fn overlapping_readers_leave_no_lock() {
    let folder = Folder::new("overlapping");
    let path = folder.database("delete");
    for first in [0, 1] {
        let connections = [open(&path), open(&path), open(&path)];
        let mut readings = [
            start_reading(&connections[0]),
            start_reading(&connections[1]),
        ];
        for index in [first, 1 - first] {
            assert!(!outsider_gets_everything(&path));
            let locked = connections[index].lock().expect("open");
            readings[index].reset(&locked).expect("resets");
        }
        assert!(outsider_gets_everything(&path));
    }
}

#[test]
fn the_lock_descriptor_goes_with_the_last_connection() {
    for journal in ["delete", "wal"] {
        let folder = Folder::new(&format!("last-{journal}"));
        let path = folder.database(journal);
        assert_eq!(descriptors_of(&path), 0, "{journal}");
        let many: Vec<_> = (0..10).map(|_| open(&path)).collect();
        many.iter().for_each(|one| drop(start_reading(one)));
        assert_eq!(descriptors_of(&path), 11, "{journal}: one is for the locks");
        let mut many = many.into_iter();
        let last = many.next_back();
        many.for_each(drop);
        // In WAL mode SQLite itself keeps the others: it has a lock for as long as it is connected.
        let kept = if journal == "wal" { 11 } else { 2 };
        assert_eq!(descriptors_of(&path), kept, "{journal}");
        drop(last);
        assert_eq!(descriptors_of(&path), 0, "{journal}");
        assert!(outsider_gets_everything(&path), "{journal}");
    }
}

#[test]
fn a_writer_takes_the_locks_over_from_a_reader_of_a_read_only_descriptor() {
    let folder = Folder::new("read-only");
    let path = folder.database("delete");
    let reader = open_as(
        &path,
        OpenFlags {
            read_only: true,
            ..OpenFlags::default()
        },
    );
    let mut reading = start_reading(&reader);
    let writer = open(&path);
    run(&writer, "BEGIN IMMEDIATE");
    assert!(!outsider(&path, WRITE));
    run(&writer, "ROLLBACK");
    assert!(!outsider_gets_everything(&path), "the reader's lock moved");
    drop(writer);
    assert!(!outsider_gets_everything(&path), "and stayed");
    let locked = reader.lock().expect("open");
    reading.reset(&locked).expect("resets");
    assert!(outsider_gets_everything(&path));
}

#[test]
fn a_descriptor_number_that_is_used_again_is_another_file() {
    let folder = Folder::new("numbers");
    let first = folder.database("delete");
    let second = folder.0.join("second.db");
    fs::copy(&first, &second).expect("copies");
    for _ in 0..20 {
        for (before, after) in [(&first, &second), (&second, &first)] {
            let one = open(before);
            run(&one, WRITE);
            drop(one);
            let two = open(after);
            run(&two, "BEGIN IMMEDIATE");
            let other = read_write(before);
            assert!(posix_lock(&other, RESERVED_BYTE, 1, libc::F_WRLCK));
            let same = read_write(after);
            assert!(!posix_lock(&same, RESERVED_BYTE, 1, libc::F_WRLCK));
        }
    }
}

#[test]
fn our_close_keeps_anothers_posix_locks_and_the_descriptor_is_closed_later() {
    let folder = Folder::new("mirror");
    let path = folder.database("delete");
    let other = read_write(&path);
    assert!(posix_lock(&other, SHARED_FIRST, 510, libc::F_RDLCK));
    for _ in 0..20 {
        let ours = open(&path);
        drop(start_reading(&ours));
    }
    assert!(!outsider_gets_everything(&path), "the other's lock stands");
    assert_eq!(descriptors_of(&path), 3, "parked ones are used again");
    assert!(posix_lock(&other, 0, 0, libc::F_UNLCK));
    drop(open(&folder.0.join("any.db")));
    assert_eq!(descriptors_of(&path), 1, "the other's own");
    assert!(outsider_gets_everything(&path));
}

#[test]
fn other_users_are_found_and_ours_are_not() {
    let folder = Folder::new("others");
    let path = folder.database("wal");
    let (ours, idle) = (open(&path), open(&path));
    run(&ours, "SELECT * FROM t");
    assert_eq!(other_users_of(path.clone()), None);
    let other = File::open(&path).expect("opens");
    let linked = folder.0.join("link.db");
    std::os::unix::fs::symlink(&path, &linked).expect("links");
    for name in [&path, &linked] {
        let found = other_users_of(name.clone()).expect("there is one");
        assert_eq!(found.descriptors, [other.as_raw_fd()]);
    }
    drop((other, idle));
    assert_eq!(other_users_of(path.clone()), None);
    assert_eq!(other_users_of(folder.0.join("missing")), None);
}

#[test]
fn no_two_writers_are_ever_inside() {
    for journal in ["delete", "wal"] {
        let folder = Folder::new(&format!("writers-{journal}"));
        let path = folder.database(journal);
        let inside = Mutex::new(());
        let written = thread::scope(|scope| {
            let threads: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| write_often(&path, &inside)))
                .collect();
            let outsiders: Vec<_> = (0..2)
                .map(|_| {
                    let path = &path;
                    scope.spawn(move || {
                        let times = (0..15).filter(|_| {
                            outsider(path, "BEGIN IMMEDIATE; INSERT INTO t VALUES (4); COMMIT")
                        });
                        times.count()
                    })
                })
                .collect();
            let all = threads.into_iter().chain(outsiders);
            all.map(|one| one.join().expect("no panic")).sum::<usize>()
        });
        let connection = open(&path);
        let locked = connection.lock().expect("open");
        let sql = "SELECT count(*) FROM t";
        let prepared = locked.prepare(sql, false).expect("valid SQL");
        let mut statement = prepared.statement.expect("a statement");
        assert_eq!(statement.step(&locked), Ok(Step::Row));
        let row = statement.row(&locked).expect("a row");
        let expected = 2 + i64::try_from(written).expect("few");
        assert_eq!(
            row.get(0),
            Ok(oxlite_sqlite::ValueRef::Integer(expected)),
            "{journal}"
        );
    }
}

/// Writes until it has succeeded often enough, with connections that come and go.
fn write_often(path: &Path, inside: &Mutex<()>) -> usize {
    let mut written = 0;
    while written < 40 {
        let connection = open(path);
        for _ in 0..5 {
            let locked = connection.lock().expect("open");
            if locked.execute_batch("BEGIN IMMEDIATE").is_err() {
                thread::yield_now();
                continue;
            }
            let alone = inside.try_lock().expect("another writer is inside");
            locked
                .execute_batch("INSERT INTO t VALUES (3)")
                .expect("writes");
            drop(alone);
            match locked.execute_batch("COMMIT") {
                Ok(()) => written += 1,
                Err(_) => locked.execute_batch("ROLLBACK").expect("rolls back"),
            }
        }
    }
    written
}
