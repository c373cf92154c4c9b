//! A connection that refuses writes for a time: `query_only`, without any statement being prepared anew.

use oxlite_sqlite::{Backup, Connection, Locked, OpenFlags, Statement, Step};

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

const ENDS_IT: [&str; 8] = [
    "PRAGMA query_only = OFF",
    "pragma main.query_only(0)",
    ";; /* a */ -- b\nPRAGMA query_only = 0",
    "EXPLAIN PRAGMA query_only = 0",
    "EXPLAIN QUERY PLAN PRAGMA query_only = 0",
    "PRAGMA \"query_only\" = 'no'",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = DELETE",
];

#[test]
fn no_pragma_ends_it() {
    with_table(|locked| {
        let mut read = prepared(locked, "SELECT a FROM t");
        for sql in ENDS_IT {
            locked.refuse_writes(true).expect("refuses");
            assert!(refused(locked, sql), "{sql}");
            assert!(refused(locked, "DELETE FROM t"), "{sql}");
            assert_eq!(read.step(locked), Ok(Step::Row), "{sql}");
            read.reset(locked).expect("resets");
            locked
                .execute_batch("PRAGMA query_only = 1; PRAGMA table_info(t); PRAGMA cache_size = 5")
                .expect("what writes nothing is done");
            locked.refuse_writes(false).expect("writes again");
            locked.execute_batch("UPDATE t SET a = a").expect("writes");
            locked.execute_batch(sql).expect("is done again");
        }
    });
}

#[test]
fn no_pragma_that_was_prepared_before_ends_it() {
    for has_authorizer in [false, true] {
        for sql in ENDS_IT {
            with_table(|locked| {
                if has_authorizer {
                    locked
                        .set_authorizer(Some(Box::new(|_| 0)))
                        .expect("is set");
                }
                let mut pragma = prepared(locked, sql);
                while pragma.step(locked).expect("is done") == Step::Row {}
                locked.refuse_writes(true).expect("refuses");
                let outcome = pragma.step(locked);
                assert!(
                    outcome.is_err_and(|error| error.primary_code() == READONLY),
                    "{sql}"
                );
                assert!(refused(locked, "DELETE FROM t"), "{sql}");
                locked.refuse_writes(false).expect("writes again");
                while pragma.step(locked).expect("is done") == Step::Row {}
            });
        }
    }
}

#[test]
fn what_was_set_before_is_set_after() {
    with_table(|locked| {
        for _ in 0..2 {
            locked
                .execute_batch("PRAGMA query_only = 1")
                .expect("is set");
            locked.refuse_writes(true).expect("refuses");
            locked.refuse_writes(true).expect("refuses still");
            locked.refuse_writes(false).expect("ends");
            assert!(refused(locked, "DELETE FROM t"));
            locked.refuse_writes(false).expect("has ended");
            assert!(refused(locked, "DELETE FROM t"));
            locked
                .execute_batch("PRAGMA query_only = 0; UPDATE t SET a = a")
                .expect("writes again");
        }
    });
}

#[test]
fn one_that_only_reads_for_good_goes_on_to() {
    with_table(|locked| {
        locked.refuse_writes(true).expect("refuses");
        locked.only_read().expect("only reads");
        locked.refuse_writes(false).expect("ends");
        assert!(refused(locked, "DELETE FROM t"));
        assert!(refused(locked, "PRAGMA query_only = 0"));
    });
}

#[test]
fn what_is_no_statement_is_refused_as_well() {
    with_table(|locked| {
        locked
            .execute_batch("UPDATE t SET a = x'0102'")
            .expect("writes");
        let open = |only_reads| locked.open_blob(c"main", c"t", c"a", 1, only_reads);
        let blob = open(false).expect("opens");
        let is_refused = |outcome: oxlite_sqlite::Result<()>| {
            outcome.is_err_and(|error| error.primary_code() == READONLY)
        };
        locked.refuse_writes(true).expect("refuses");
        assert!(is_refused(blob.write(locked, 0, b"x")));
        blob.close().expect("closes");
        assert!(is_refused(locked.deserialize(c"main", b"")));
        locked.refuse_writes(false).expect("writes again");
        let blob = open(false).expect("opens");
        blob.write(locked, 0, b"x").expect("writes");
        blob.close().expect("closes");
        locked.deserialize(c"main", b"").expect("is replaced");
    });
}

#[test]
fn a_copy_is_not_made_over_it() {
    let open = || Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let (target, source) = (open(), open());
    let begin = || {
        let source = source.lock().expect("open");
        Backup::begin(target.lock().expect("open"), &source, c"main").map(drop)
    };
    let refuse = |refuses| {
        let locked = target.lock().expect("open");
        locked.refuse_writes(refuses).expect("is told");
    };
    refuse(true);
    assert!(begin().is_err_and(|error| error.primary_code() == READONLY));
    refuse(false);
    begin().expect("begins");
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
