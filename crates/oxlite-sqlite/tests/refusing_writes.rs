//! A connection that refuses writes for a time: `query_only`, without any statement being prepared anew.

use oxlite_sqlite::{Connection, Locked, OpenFlags, Statement, Step};

/// <https://sqlite.org/rescode.html#readonly>
const READONLY: i32 = 8;

fn prepared(locked: &Locked<'_>, sql: &str) -> Statement {
    let prepared = locked.prepare(sql, true).expect("prepares");
    prepared.statement.expect("a statement")
}

fn with_table(work: impl FnOnce(&Locked<'_>)) {
    let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let locked = connection.lock().expect("open");
    locked
        .execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        .expect("runs");
    work(&locked);
}

fn refused(locked: &Locked<'_>, sql: &str) -> bool {
    let outcome = locked.execute_batch(sql);
    outcome.is_err_and(|error| error.primary_code() == READONLY)
}

#[test]
fn reads_are_prepared_once() {
    with_table(|locked| {
        let mut read = prepared(locked, "SELECT a FROM t");
        for _ in 0..3 {
            locked.refuse_writes(true).expect("refuses");
            locked.execute_batch("BEGIN").expect("begins");
            assert_eq!(read.step(locked), Ok(Step::Row));
            read.reset(locked).expect("resets");
            locked.execute_batch("COMMIT").expect("ends");
            locked.refuse_writes(false).expect("writes again");
        }
        assert_eq!(read.reprepare_count(locked), 0);
    });
}

#[test]
fn writes_are_refused_until_they_are_not() {
    with_table(|locked| {
        for sql in [
            "INSERT INTO t VALUES (2)",
            "WITH n(i) AS (SELECT 2) INSERT INTO t SELECT i FROM n",
            "BEGIN IMMEDIATE",
            "CREATE TABLE u(a)",
            "CREATE TEMP TABLE u(a)",
            "PRAGMA user_version = 7",
            "ANALYZE",
            ";; /* a */ -- b\nDELETE FROM t",
        ] {
            locked.refuse_writes(true).expect("refuses");
            assert!(refused(locked, sql), "{sql}");
            assert!(refused(locked, sql), "{sql}, once more");
            locked.refuse_writes(false).expect("writes again");
            locked.execute_batch("SAVEPOINT s").expect("begins");
            locked
                .execute_batch("INSERT INTO t VALUES (3)")
                .expect("writes");
            locked
                .execute_batch("ROLLBACK TO s; RELEASE s")
                .expect("ends");
        }
    });
}

#[test]
fn what_has_nothing_to_write_is_done_until_it_has() {
    with_table(|locked| {
        let mut create = prepared(locked, "CREATE TABLE IF NOT EXISTS t(a)");
        locked.refuse_writes(true).expect("refuses");
        assert_eq!(create.step(locked), Ok(Step::Done));
        assert!(!refused(locked, "EXPLAIN INSERT INTO t VALUES (2)"));
        locked.refuse_writes(false).expect("writes again");

        locked.execute_batch("DROP TABLE t").expect("drops");
        locked.refuse_writes(true).expect("refuses");
        let outcome = create.step(locked);
        assert!(outcome.is_err_and(|error| error.primary_code() == READONLY));
    });
}

#[test]
fn a_blob_is_opened_for_reading_alone() {
    with_table(|locked| {
        locked.refuse_writes(true).expect("refuses");
        locked
            .execute_batch("SELECT * FROM t")
            .expect("is refused nothing");
        let open = |only_reads| locked.open_blob(c"main", c"t", c"a", 1, only_reads).err();
        let for_writing = open(false).expect("is refused");
        assert_eq!(for_writing.primary_code(), READONLY);
    });
}

#[test]
fn a_read_in_the_middle_of_its_rows_goes_on() {
    with_table(|locked| {
        locked
            .execute_batch("INSERT INTO t VALUES (2)")
            .expect("writes");
        let of_each =
            "SELECT a, (SELECT count(*) FROM t AS u WHERE u.a <= t.a) FROM t UNION ALL SELECT 0, 0";
        let mut read = prepared(locked, of_each);
        assert_eq!(read.step(locked), Ok(Step::Row));
        locked.refuse_writes(true).expect("refuses");
        assert!(refused(locked, "DELETE FROM t"));
        assert_eq!(read.step(locked), Ok(Step::Row));
        locked.refuse_writes(false).expect("writes again");
        assert_eq!(read.step(locked), Ok(Step::Row));
        assert_eq!(read.step(locked), Ok(Step::Done));
    });
}

#[test]
fn what_a_read_writes_is_refused_as_well() {
    with_table(|locked| {
        locked
            .execute_batch("CREATE INDEX i ON t(a)")
            .expect("creates");
        locked.refuse_writes(true).expect("refuses");
        assert!(refused(locked, "SELECT * FROM pragma_optimize(0x10002)"));
    });
}
