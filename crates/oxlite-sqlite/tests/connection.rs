//! The owner types against a real SQLite: what their invariants promise.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use oxlite_sqlite::{
    BusyWait, Connection, LockError, Locked, OpenFlags, Statement, Step, TransactionState,
    ValueRef, WriteQueue, codes,
};

fn memory() -> Connection {
    Connection::open(c":memory:", OpenFlags::default()).expect("opens")
}

fn prepare(locked: &Locked<'_>, sql: &str) -> Statement {
    let prepared = locked.prepare(sql, false).expect("valid SQL");
    prepared.statement.expect("a statement")
}

#[test]
fn every_storage_class_makes_the_round_trip() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let mut statement = prepare(&locked, "SELECT ?1");
    for value in [
        ValueRef::Null,
        ValueRef::Integer(i64::MIN),
        ValueRef::Integer(i64::MAX),
        ValueRef::Real(-0.5),
        ValueRef::Text(b""),
        ValueRef::Text("naïve \u{1f980} \0 inside".as_bytes()),
        ValueRef::Blob(b""),
        ValueRef::Blob(&[0, 255, 0]),
    ] {
        statement.bind(&locked, 1, value).expect("binds");
        assert_eq!(statement.step(&locked), Ok(Step::Row));
        let row = statement.row(&locked).expect("a row");
        assert_eq!(row.get(0), Ok(value));
        assert!(row.get(1).is_err(), "there is one column");
        statement.reset(&locked).expect("resets");
    }
}

#[test]
fn what_is_lent_is_read_in_place_and_given_back() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let mut create = prepare(&locked, "CREATE TABLE t(a, b)");
    create.step(&locked).expect("creates");
    let mut insert = prepare(&locked, "INSERT INTO t VALUES(?1, ?2)");
    for text in ["short".to_owned(), "x".repeat(100_000), String::new()] {
        let outcome = insert.lending(&locked, |lending| {
            lending.bind(&locked, 1, ValueRef::Text(text.as_bytes()))?;
            lending.bind(&locked, 2, ValueRef::Blob(text.as_bytes()))?;
            lending.step(&locked)
        });
        assert_eq!(outcome, Ok(Step::Done));
        drop(text);
        assert_eq!(insert.step(&locked), Ok(Step::Done), "with NULL, twice");
    }
    let mut select = prepare(
        &locked,
        "SELECT group_concat(a || length(b)), count(*) FROM t",
    );
    assert_eq!(select.step(&locked), Ok(Step::Row));
    let row = select.row(&locked).expect("a row");
    let all = format!("short5,{}100000,0", "x".repeat(100_000));
    assert_eq!(row.get(0), Ok(ValueRef::Text(all.as_bytes())));
    assert_eq!(row.get(1), Ok(ValueRef::Integer(6)));
}

#[test]
fn a_statement_left_at_a_row_of_what_is_lent_is_stopped() {
    let (one, two) = (memory(), memory());
    let (locked, other) = (one.lock().expect("open"), two.lock().expect("open"));
    let mut statement = prepare(&locked, "SELECT ?1");
    let text = "lent".to_owned();
    let refused = statement.lending(&other, |lending| {
        lending.bind(&locked, 1, ValueRef::Text(text.as_bytes()))
    });
    assert_eq!(
        refused.expect_err("refused").code(),
        codes::SQLITE_MISUSE,
        "with the guard of another connection it could not be given back"
    );
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        statement.lending(&locked, |lending| {
            lending
                .bind(&locked, 1, ValueRef::Text(text.as_bytes()))
                .expect("binds");
            assert_eq!(lending.step(&locked), Ok(Step::Row));
            panic!("meant");
        });
    }));
    assert!(panicked.is_err());
    drop(text);
    assert!(statement.row(&locked).is_none());
    assert_eq!(statement.step(&locked), Ok(Step::Row));
    let row = statement.row(&locked).expect("a row");
    assert_eq!(row.get(0), Ok(ValueRef::Null));
}

#[test]
fn a_cell_opens_with_its_own_connections_guard() {
    let (one, two) = (memory(), memory());
    let cell = one.cell(1);
    let (locked, other) = (one.lock().expect("open"), two.lock().expect("open"));
    cell.with(&locked, |value| *value += 1);
    let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cell.with(&other, |value| *value += 1);
    }));
    assert!(opened.is_err());
    assert_eq!(cell.with(&locked, |value| *value), 2);
}

/// A queue that lets everybody in, and counts what it is told. It is told too early at first.
struct Told(Arc<AtomicU32>);

impl WriteQueue for Told {
    fn enter(&self, _wait: &BusyWait<'_>) -> oxlite_sqlite::Result<()> {
        Ok(())
    }

    fn lead(&self, _wait: &BusyWait<'_>) -> bool {
        true
    }

    fn work<'s>(&self, _sql: &dyn Fn() -> Option<&'s std::ffi::CStr>) {}

    fn hold(&self, _sql: &std::ffi::CStr) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= 3
    }

    fn leave(&self) {}
}

#[test]
fn a_statement_run_again_and_again_tells_the_queue_until_it_is_noted() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let told = Arc::new(AtomicU32::new(0));
    let run = |sql| prepare(&locked, sql).step(&locked).expect("runs");
    run("CREATE TABLE t(a)");
    locked.set_write_queue(Box::new(Told(Arc::clone(&told))));
    let mut insert = prepare(&locked, "INSERT INTO t VALUES(1)");
    let mut update = prepare(&locked, "UPDATE t SET a = 2");
    let mut again = |times: u32| {
        let before = told.load(Ordering::Relaxed);
        for _ in 0..times {
            insert.step(&locked).expect("inserts");
        }
        told.load(Ordering::Relaxed) - before
    };
    run("BEGIN IMMEDIATE");
    assert_eq!(again(1), 1);
    assert_eq!(again(31), 0, "it was too early for news");
    assert_eq!(again(64), 2, "once more each time");
    assert_eq!(again(1000), 0, "it is noted");
    update.step(&locked).expect("updates");
    assert_eq!(again(1000), 1, "another statement was, meanwhile");
    run("COMMIT");
    run("BEGIN IMMEDIATE");
    assert_eq!(again(1000), 1, "a new transaction");
    run("ROLLBACK");
}

#[test]
fn a_finished_statement_has_no_row_and_may_run_again() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let mut statement = prepare(&locked, "SELECT 1");
    for _ in 0..3 {
        assert!(statement.row(&locked).is_none());
        assert_eq!(statement.step(&locked), Ok(Step::Row));
        assert_eq!(statement.step(&locked), Ok(Step::Done));
    }
}

#[test]
fn another_connections_guard_is_refused() {
    let (one, two) = (memory(), memory());
    let (one, two) = (one.lock().expect("open"), two.lock().expect("open"));
    let mut statement = prepare(&one, "SELECT 1");
    let error = statement.step(&two).expect_err("not its connection");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    assert!(statement.bind(&two, 1, ValueRef::Null).is_err());
    assert!(statement.row(&two).is_none());
    assert_eq!(statement.column_count(&two), 0);
    assert_eq!(statement.step(&one), Ok(Step::Row));
}

#[test]
fn closing_finalises_statements_and_ends_all_use() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let mut unread = prepare(&locked, "SELECT 1 UNION ALL SELECT 2");
    assert_eq!(unread.step(&locked), Ok(Step::Row));
    locked.close().expect("closes with a statement in mid-step");
    assert_eq!(connection.lock().err(), Some(LockError::Closed));
    drop(unread);
    drop(connection);
}

#[test]
fn closing_under_an_outer_guard_is_refused() {
    let connection = memory();
    let outer = connection.lock().expect("open");
    let inner = connection.lock().expect("the same thread may lock again");
    assert!(inner.close().is_err());
    assert!(outer.is_autocommit(), "still open");
    outer.close().expect("the outermost guard closes");
}

#[test]
fn a_statement_dropped_while_another_thread_holds_the_lock_is_finalised_later() {
    let connection = memory();
    let statement = {
        let locked = connection.lock().expect("open");
        prepare(&locked, "SELECT 1")
    };
    let locked = connection.lock().expect("open");
    thread::scope(|scope| {
        scope.spawn(move || drop(statement));
    });
    drop(locked);
    // The next lock finalises it, so closing finds nothing left: sqlite3_close would refuse.
    let locked = connection.lock().expect("open");
    locked.close().expect("closes");
}

#[test]
fn a_connection_lives_as_long_as_its_last_statement() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let statement = prepare(&locked, "SELECT 1");
    drop(locked);
    drop(connection);
    drop(statement);
}

#[test]
fn errors_carry_extended_code_message_and_offset() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    locked
        .execute_batch("CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES(1);")
        .expect("runs");
    let error = prepare(&locked, "INSERT INTO t VALUES(1)")
        .step(&locked)
        .expect_err("not unique");
    assert_eq!(error.name(), "SQLITE_CONSTRAINT_UNIQUE");
    assert_eq!(error.primary_code(), codes::SQLITE_CONSTRAINT);
    assert_eq!(error.message(), "UNIQUE constraint failed: t.a");
    let Err(error) = locked.prepare("SELECT nonsense", false) else {
        panic!("there is no such column");
    };
    assert_eq!(error.sql_offset(), Some("SELECT ".len()));
}

#[test]
fn a_script_stops_at_a_nul_byte_and_ends() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    locked
        .execute_batch("CREATE TABLE a(x); \0 CREATE TABLE b(x)")
        .expect("runs");
    locked
        .execute_batch(";;; -- nothing")
        .expect("nothing to run");
}

#[test]
fn interrupting_stops_a_running_statement_and_a_closed_one_is_left_alone() {
    let connection = memory();
    let handle = connection.interrupt_handle();
    let worker = {
        let connection = connection.clone();
        thread::spawn(move || {
            let locked = connection.lock().expect("open");
            let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
            prepare(&locked, endless)
                .step(&locked)
                .expect_err("it never ends by itself")
                .code()
        })
    };
    while !worker.is_finished() {
        handle.interrupt();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(worker.join().expect("no panic"), codes::SQLITE_INTERRUPT);
    connection.lock().expect("open").close().expect("closes");
    handle.interrupt();
    drop(connection);
    handle.interrupt();
}

#[test]
fn a_callback_knows_whether_the_step_may_be_broken_off() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let seen = Arc::new(AtomicU32::new(0));
    let (asked, counter) = (connection.clone(), Arc::clone(&seen));
    locked.set_progress_handler(
        10,
        Some(Box::new(move || {
            counter.fetch_or(1 << u32::from(asked.is_breakable()), Ordering::Relaxed);
            false
        })),
    );
    let seen_by = |sql: &str| {
        seen.store(0, Ordering::Relaxed);
        prepare(&locked, sql).step(&locked).expect("runs");
        seen.load(Ordering::Relaxed)
    };
    seen_by("CREATE TABLE t (x)");
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)";
    let write = format!("{numbers} INSERT INTO t SELECT i FROM n");
    assert_eq!(seen_by(&write), 1);
    assert_eq!(seen_by(&format!("{numbers} SELECT count(*) FROM n")), 2);
    assert!(!connection.is_breakable());
}

#[test]
fn reads_that_were_left_in_the_middle_are_ended() {
    let connection = memory();
    let lock = || connection.lock().expect("open");
    lock()
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)")
        .expect("runs");
    let mut read = prepare(&lock(), "SELECT x FROM t");
    assert_eq!(read.step(&lock()), Ok(Step::Row));
    let outer = lock();
    assert!(!lock().end_reads(), "rows of another guard may be in use");
    drop(outer);
    lock()
        .execute_batch("DROP TABLE t")
        .expect_err("it is being read");
    assert!(lock().end_reads());
    let mut write = prepare(&lock(), "INSERT INTO t VALUES (3), (4) RETURNING x");
    assert_eq!(write.step(&lock()), Ok(Step::Row));
    assert!(!lock().end_reads(), "it is no read");
    drop(write);
    assert!(lock().end_reads());
    assert!(read.row(&lock()).is_none(), "its row is gone");
    let ended = read
        .step(&lock())
        .expect_err("it does not go on as if nothing had been");
    assert_eq!(ended.name(), "SQLITE_ABORT");
    read.reset(&lock()).expect("resets");
    assert_eq!(read.step(&lock()), Ok(Step::Row), "it begins anew");
    drop(read);
    lock().execute_batch("DROP TABLE t").expect("runs");
}

#[test]
fn the_busy_handler_decides_and_its_panic_means_no() {
    let directory = std::env::temp_dir().join(format!("oxlite-busy-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("creates");
    let path = directory.join("busy.db");
    let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    let open = || Connection::open(&name, OpenFlags::default()).expect("opens");
    let (holder, waiter) = (open(), open());
    let holder = holder.lock().expect("open");
    holder
        .execute_batch("BEGIN IMMEDIATE")
        .expect("takes the lock");

    let waiter = waiter.lock().expect("open");
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    waiter
        .set_busy_handler(move |wait| {
            assert_eq!(wait.calls, counter.fetch_add(1, Ordering::Relaxed));
            assert!(wait.calls < 3, "the fourth call panics");
            true
        })
        .expect("installs");
    let error = waiter.execute_batch("BEGIN IMMEDIATE").expect_err("locked");
    assert_eq!(error.code(), codes::SQLITE_BUSY);
    assert_eq!(calls.load(Ordering::Relaxed), 4);

    waiter.set_busy_timeout(Duration::ZERO).expect("installs");
    assert!(waiter.execute_batch("BEGIN IMMEDIATE").is_err());
    assert_eq!(calls.load(Ordering::Relaxed), 4, "the handler is gone");
    std::fs::remove_dir_all(&directory).expect("removes");
}

/// Virtual tables prepare statements of their own on our connection; closing must leave those to
/// them.
#[test]
fn closing_leaves_the_statements_of_virtual_tables_alone() {
    for (module, row) in [
        ("fts4(x)", "('a')"),
        ("fts5(x)", "('a')"),
        ("rtree(id, low, high)", "(1, 2, 3)"),
    ] {
        for keeps_a_statement in [false, true] {
            let connection = memory();
            let locked = connection.lock().expect("open");
            locked
                .execute_batch(&format!("CREATE VIRTUAL TABLE t USING {module}"))
                .expect("creates");
            locked
                .execute_batch(&format!("INSERT INTO t VALUES{row}"))
                .expect("inserts");
            let mut statement = prepare(&locked, "SELECT * FROM t");
            let _ = statement.step(&locked);
            let kept = keeps_a_statement.then_some(statement);
            locked.close().expect("closes");
            drop(kept);
        }
    }
}

#[test]
fn an_orphan_is_finalised_as_soon_as_the_lock_is_let_go() {
    let connection = memory();
    let statement = {
        let locked = connection.lock().expect("open");
        locked
            .execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES(1), (2)")
            .expect("runs");
        let mut statement = prepare(&locked, "SELECT x FROM t");
        assert_eq!(statement.step(&locked), Ok(Step::Row));
        statement
    };
    let locked = connection.lock().expect("open");
    thread::scope(|scope| {
        scope.spawn(move || drop(statement));
    });
    assert_eq!(locked.transaction_state(), TransactionState::Read);
    drop(locked);
    let locked = connection.lock().expect("open");
    assert_eq!(locked.transaction_state(), TransactionState::None);
}

#[test]
fn a_callback_cannot_lock_its_own_connection() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let own = connection.clone();
    let seen = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&seen);
    locked.set_progress_handler(
        1,
        Some(Box::new(move || {
            assert_eq!(own.lock().err(), Some(LockError::InCallback));
            counter.fetch_add(1, Ordering::Relaxed);
            false
        })),
    );
    locked.execute_batch("SELECT 1").expect("runs");
    assert!(seen.load(Ordering::Relaxed) > 0);
    // The handler holds the connection that holds the handler.
    locked.set_progress_handler(0, None);
}
