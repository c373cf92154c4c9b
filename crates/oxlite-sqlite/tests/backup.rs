//! Copying databases: the online backup between two connections, and databases as bytes.

use oxlite_sqlite::{Backup, BackupStep, Connection, Locked, OpenFlags, Step, ValueRef, codes};

fn memory() -> Connection {
    Connection::open(c":memory:", OpenFlags::default()).expect("opens")
}

fn filled() -> Connection {
    let connection = memory();
    let locked = connection.lock().expect("open");
    locked
        .execute_batch(
            "CREATE TABLE t(a);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
             INSERT INTO t SELECT i FROM n",
        )
        .expect("runs");
    drop(locked);
    connection
}

fn total(locked: &Locked<'_>) -> i64 {
    let prepared = locked.prepare("SELECT sum(a) FROM t", false);
    let mut statement = prepared.expect("prepares").statement.expect("a statement");
    assert_eq!(statement.step(locked), Ok(Step::Row));
    match statement.row(locked).expect("a row").get(0) {
        Ok(ValueRef::Integer(total)) => total,
        other => panic!("expected an integer, got {other:?}"),
    }
}

const TOTAL: i64 = 5000 * 5001 / 2;

#[test]
fn a_backup_copies_in_steps_and_reports_its_progress() {
    let (source, target) = (filled(), memory());
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let mut backup = Backup::begin(&target, &source, c"main").expect("begins");
    assert_eq!(backup.step(&target, &source, 1), Ok(BackupStep::More));
    let (remaining, pages) = backup.progress();
    assert_eq!(remaining, pages - 1);
    assert_eq!(backup.step(&target, &source, -1), Ok(BackupStep::Done));
    assert_eq!(backup.progress().0, 0);
    backup.finish(&target, &source).expect("finishes");
    assert_eq!(total(&target), TOTAL);
}

#[test]
fn a_backup_that_is_not_complete_changes_nothing() {
    let (source, target) = (filled(), memory());
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    target.execute_batch("CREATE TABLE old(x)").expect("runs");
    let mut backup = Backup::begin(&target, &source, c"main").expect("begins");
    backup.step(&target, &source, 1).expect("steps");
    backup.finish(&target, &source).expect("finishes");
    target
        .execute_batch("SELECT * FROM old")
        .expect("is still there");
}

#[test]
fn neither_side_closes_before_the_backup_is_finished() {
    let (source, target) = (filled(), memory());
    let backup = {
        let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
        Backup::begin(&target, &source, c"main").expect("begins")
    };
    for connection in [&source, &target] {
        let error = connection.lock().expect("open").close().expect_err("busy");
        assert_eq!(error.primary_code(), codes::SQLITE_BUSY);
    }
    {
        let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
        backup.finish(&target, &source).expect("finishes");
    }
    for connection in [&source, &target] {
        connection.lock().expect("open").close().expect("closes");
    }
}

#[test]
fn a_connection_is_not_copied_over_itself_nor_stepped_with_strangers() {
    let (source, target, stranger) = (filled(), memory(), memory());
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let stranger = stranger.lock().expect("open");
    assert!(Backup::begin(&source, &source, c"main").is_err());
    assert!(Backup::begin(&target, &source, c"no_such_schema").is_err());
    let mut backup = Backup::begin(&target, &source, c"main").expect("begins");
    let error = backup
        .step(&stranger, &source, 1)
        .expect_err("not its target");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    backup.finish(&target, &source).expect("finishes");
}

#[test]
fn bytes_make_the_round_trip() {
    let (source, target) = (filled(), memory());
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let bytes = source.serialize(c"main").expect("serialises");
    assert!(bytes.starts_with(b"SQLite format 3\0"));
    target.deserialize(c"main", &bytes).expect("deserialises");
    assert_eq!(total(&target), TOTAL);
    target
        .execute_batch("INSERT INTO t VALUES(1)")
        .expect("can be written");
    assert_eq!(total(&target), TOTAL + 1);
    // In memory only now: SQLite hands its own copy out without another one.
    assert_eq!(
        target.serialize(c"main").expect("serialises").len(),
        bytes.len()
    );
}

#[test]
fn bytes_that_are_no_database_are_found_out_on_use() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    locked
        .deserialize(c"main", b"not a database, but bytes all the same")
        .expect("is lazy");
    assert!(locked.execute_batch("SELECT * FROM sqlite_schema").is_err());
}
