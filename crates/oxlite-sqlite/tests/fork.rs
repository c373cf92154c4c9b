//! A forked child and what it has inherited. (With Python above: `tests/test_fork.py`.)
//!
//! A child of a test has only the thread that forked; it prints nothing and ends with `_exit`.

#![cfg(unix)]

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, thread};

use oxlite_sqlite::{Backup, Connection, LockError, OpenFlags, Session, Statement, Step};

/// Whether `work` says yes in a forked child.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child does what `work` says on its one thread, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends a child that hangs; it would not even be heard by a debugger otherwise.
        unsafe { libc::alarm(30) };
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child, without anything of the parent's.
        unsafe { libc::_exit(i32::from(!matches!(said, Ok(true)))) };
    }
    assert!(child > 0, "forks");
    let mut status = 0;
    // SAFETY: our child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn database(name: &str) -> (PathBuf, CString) {
    let folder = env::temp_dir().join(format!("oxlite-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("app.db");
    let c_path = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    (folder, c_path)
}

fn open(path: &CString) -> Connection {
    Connection::open(path, OpenFlags::default()).expect("opens")
}

fn run(connection: &Connection, script: &str) {
    let locked = connection.lock().expect("open");
    locked.execute_batch(script).expect("valid SQL");
}

fn prepare(connection: &Connection, sql: &str) -> Statement {
    let locked = connection.lock().expect("open");
    let prepared = locked.prepare(sql, false).expect("valid SQL");
    prepared.statement.expect("a statement")
}

fn is_refused(connection: &Connection) -> bool {
    let tried = connection.try_lock().map(Result::err);
    connection.lock().err() == Some(LockError::Forked) && tried == Some(Some(LockError::Forked))
}

#[test]
fn an_inherited_connection_is_refused_and_dropped_in_peace() {
    let (folder, path) = database("refused");
    let connection = open(&path);
    run(
        &connection,
        "PRAGMA cache_size = 1; CREATE TABLE t (x PRIMARY KEY)",
    );
    run(
        &connection,
        "BEGIN IMMEDIATE; INSERT INTO t VALUES (zeroblob(9))",
    );
    let mut reading = prepare(&connection, "SELECT x FROM t");
    let other = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let (session, blob): (Session, _) = {
        let locked = connection.lock().expect("open");
        assert_eq!(reading.step(&locked), Ok(Step::Row));
        let session = locked.create_session(c"main").expect("a session");
        let blob = locked.open_blob(c"main", c"t", c"x", 1, true);
        (session, blob.expect("a blob"))
    };
    let interrupt = connection.interrupt_handle();

    let mut held = Some((connection, reading, session, blob, other));
    let well = in_child(|| {
        let (connection, reading, session, blob, other) = held.take().expect("all of it");
        let copy = connection.clone();
        let well = is_refused(&connection)
            && is_refused(&copy)
            && is_refused(&other)
            && connection.is_inherited()
            && !connection.is_open()
            && !interrupt.interrupt();
        drop((reading, session, blob));
        drop((connection, copy, other));
        well && !interrupt.interrupt()
    });
    assert!(well);

    let (connection, mut reading, _session, blob, _other) = held.expect("the parent has it still");
    {
        let locked = connection.lock().expect("open");
        assert_eq!(reading.step(&locked), Ok(Step::Done));
        let mut bytes = [std::mem::MaybeUninit::uninit(); 9];
        assert_eq!(blob.read(&locked, 0, &mut bytes).expect("reads"), &[0; 9]);
    }
    drop(blob);
    run(&connection, "COMMIT");
    assert!(interrupt.interrupt());
    fs::remove_dir_all(folder).expect("goes");
}

#[test]
fn a_connection_that_another_thread_has_is_refused_at_once() {
    let (folder, path) = database("busy");
    let connection = open(&path);
    run(&connection, "CREATE TABLE t (x)");
    let (entered, has_entered) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let held = connection.clone();
    thread::scope(|scope| {
        scope.spawn(move || {
            let _locked = held.lock().expect("open");
            entered.send(()).expect("heard");
            let _ = goes_on.recv_timeout(Duration::from_secs(60));
        });
        has_entered.recv().expect("said");
        assert!(in_child(|| is_refused(&connection)));
        go_on.send(()).expect("heard");
    });
    fs::remove_dir_all(folder).expect("goes");
}

#[test]
fn a_backup_and_a_statement_dropped_in_the_child_stay_the_parents() {
    let (folder, path) = database("backup");
    let source = open(&path);
    run(&source, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let target = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let backup = {
        let (target, source) = (target.lock().expect("open"), source.lock().expect("open"));
        Backup::begin(target, &source, c"main").expect("begins")
    };
    let mut held = Some(backup);
    assert!(in_child(|| {
        drop(held.take());
        is_refused(&source) && is_refused(&target)
    }));
    {
        let target = target.lock_as_backup_target().expect("open");
        let source = source.lock().expect("open");
        let mut backup = held.expect("the parent has it still");
        backup.step(&target, &source, -1).expect("copies");
        backup.finish(&target, &source).expect("finishes");
    }
    run(&target, "SELECT x FROM t");
    fs::remove_dir_all(folder).expect("goes");
}

#[test]
fn a_statement_finalised_in_the_child_with_an_outer_guard_stays_the_parents() {
    let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    run(&connection, "CREATE TABLE t (x)");
    let locked = connection.lock().expect("open");
    let has_committed = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&has_committed);
    locked.set_commit_hook(Some(Box::new(move || {
        noted.store(true, Ordering::Relaxed);
        false
    })));
    // It commits when it is stopped.
    let prepared = locked.prepare("INSERT INTO t VALUES (1) RETURNING x", false);
    let mut statement = prepared.expect("valid SQL").statement.expect("one");
    assert_eq!(statement.step(&locked), Ok(Step::Row));
    let mut held = Some(statement);
    assert!(in_child(|| {
        held.take().expect("there").finalize(&locked);
        !has_committed.load(Ordering::Relaxed)
    }));
    held.expect("the parent has it still").finalize(&locked);
    assert!(has_committed.load(Ordering::Relaxed));
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_of_busy_threads_opens_its_own_connections() {
    for journal in ["delete", "wal"] {
        let (folder, path) = database(&format!("threads-{journal}"));
        let kept = open(&path);
        run(
            &kept,
            &format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (x)"),
        );
        let is_over = Arc::new(Mutex::new(false));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !*is_over.lock().expect("no panic") {
                        let own = open(&path);
                        let locked = own.lock().expect("open");
                        let _ = locked.execute_batch("SELECT count(*) FROM t");
                    }
                });
            }
            for _ in 0..50 {
                let well = in_child(|| {
                    let own = open(&path);
                    let locked = own.lock().expect("open");
                    locked
                        .set_busy_timeout(Duration::from_secs(20))
                        .expect("set");
                    is_refused(&kept) && locked.execute_batch("INSERT INTO t VALUES (1)").is_ok()
                });
                assert!(well, "{journal}");
            }
            *is_over.lock().expect("no panic") = true;
        });
        let mut count = prepare(&kept, "SELECT count(*) FROM t");
        let locked = kept.lock().expect("open");
        assert_eq!(count.step(&locked), Ok(Step::Row));
        let row = count.row(&locked).expect("a row");
        assert_eq!(
            row.get(0),
            Ok(oxlite_sqlite::ValueRef::Integer(50)),
            "{journal}"
        );
        fs::remove_dir_all(folder).expect("goes");
    }
}

#[test]
fn a_statement_that_forks_cannot_write_in_the_child() {
    let (folder, path) = database("callback");
    let connection = open(&path);
    let locked = connection.lock().expect("open");
    // The child's end, once it has come; in the child there is none. The parent waits for it, so the
    // child is the first that could commit.
    let ended = Arc::new(Mutex::new(None));
    let answer = Arc::clone(&ended);
    locked.set_commit_hook(Some(Box::new(move || {
        let mut status = 0;
        // SAFETY: the child ends in this test, below; a place for its status.
        unsafe {
            let child = libc::fork();
            if child > 0 && libc::waitpid(child, &raw mut status, 0) == child {
                *answer.lock().expect("no panic") = Some(status);
            }
        }
        false
    })));
    let outcome = locked.execute_batch("CREATE TABLE t (x)");
    let Some(status) = *ended.lock().expect("no panic") else {
        // SAFETY: ends the child, without anything of the parent's.
        unsafe { libc::_exit(i32::from(outcome.is_ok())) };
    };
    assert_eq!(status, 0, "the child has not committed");
    outcome.expect("the parent has");
    locked.set_commit_hook(None);
    locked
        .execute_batch("INSERT INTO t VALUES (1)")
        .expect("goes on");
    fs::remove_dir_all(folder).expect("goes");
}
