//! Copying databases: the online backup between two connections, and databases as bytes.

use oxlite_sqlite::{
    Backup, BackupStep, Connection, LockError, Locked, OpenFlags, Step, ValueRef, codes,
};

fn memory() -> Connection {
    Connection::open(c":memory:", OpenFlags::default()).expect("opens")
}

fn run(connection: &Connection, sql: &str) {
    let locked = connection.lock().expect("open");
    locked.execute_batch(sql).expect("runs");
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

/// A backup of `source` over `target` that has begun.
fn begun(target: &Connection, source: &Locked<'_>) -> Backup {
    Backup::begin(target.lock().expect("open"), source, c"main").expect("begins")
}

#[test]
fn a_backup_copies_in_steps_and_reports_its_progress() {
    let (source, target) = (filled(), memory());
    let source = source.lock().expect("open");
    let mut backup = begun(&target, &source);
    let step_target = target.lock_as_backup_target().expect("open");
    assert_eq!(backup.step(&step_target, &source, 1), Ok(BackupStep::More));
    let (remaining, pages) = backup.progress();
    assert_eq!(remaining, pages - 1);
    assert_eq!(backup.step(&step_target, &source, -1), Ok(BackupStep::Done));
    assert_eq!(backup.progress().0, 0);
    backup.finish(&step_target, &source).expect("finishes");
    drop(step_target);
    assert_eq!(total(&target.lock().expect("open")), TOTAL);
}

#[test]
fn a_backup_that_is_not_complete_changes_nothing() {
    let (source, target) = (filled(), memory());
    let source = source.lock().expect("open");
    run(&target, "CREATE TABLE old(x)");
    let mut backup = begun(&target, &source);
    let step_target = target.lock_as_backup_target().expect("open");
    backup.step(&step_target, &source, 1).expect("steps");
    backup.finish(&step_target, &source).expect("finishes");
    drop(step_target);
    run(&target, "SELECT * FROM old");
}

#[test]
fn the_target_is_the_backups_alone_until_it_is_finished() {
    let (source, target) = (filled(), memory());
    let mut backup = begun(&target, &source.lock().expect("open"));
    let mut is_done = false;
    for _ in 0..3 {
        assert_eq!(target.lock().err(), Some(LockError::BackupTarget));
        let tried = target.try_lock().map(Result::err);
        assert_eq!(tried, Some(Some(LockError::BackupTarget)));
        assert!(target.is_open());
        assert!(target.interrupt_handle().interrupt());
        // The source may be used, but not take part in a backup over it.
        run(&source, "INSERT INTO t VALUES (0)");
        let other = memory();
        let refused = Backup::begin(
            source.lock().expect("open"),
            &other.lock().expect("open"),
            c"main",
        );
        assert_eq!(
            refused.err().map(|error| error.code()),
            Some(codes::SQLITE_BUSY)
        );
        let step_target = target.lock_as_backup_target().expect("open");
        let source = source.lock().expect("open");
        is_done |= backup.step(&step_target, &source, 2).expect("steps") == BackupStep::Done;
    }
    assert!(!is_done);
    {
        let step_target = target.lock_as_backup_target().expect("open");
        let source = source.lock().expect("open");
        backup.step(&step_target, &source, -1).expect("steps");
        backup.finish(&step_target, &source).expect("finishes");
    }
    assert_eq!(total(&target.lock().expect("open")), TOTAL);
}

#[test]
fn what_loses_its_owner_during_a_backup_waits_for_its_end() {
    let (source, target) = (filled(), memory());
    run(
        &target,
        "CREATE TEMP TABLE own(a); INSERT INTO own VALUES (zeroblob(9))",
    );
    let (statement, blob) = {
        let locked = target.lock().expect("open");
        let sql = "INSERT INTO own VALUES (1), (2) RETURNING a";
        let mut statement = locked.prepare(sql, false).expect("prepares").statement;
        let statement = statement.take().map(|mut statement| {
            assert_eq!(statement.step(&locked), Ok(Step::Row));
            statement
        });
        let blob = locked.open_blob(c"temp", c"own", c"a", 1, false);
        (statement, blob.expect("opens"))
    };
    let source = source.lock().expect("open");
    let mut backup = begun(&target, &source);
    {
        let step_target = target.lock_as_backup_target().expect("open");
        backup.step(&step_target, &source, 1).expect("steps");
    }
    // Finalised now, it would commit, with the backup's write transaction.
    drop((statement, blob));
    {
        let step_target = target.lock_as_backup_target().expect("open");
        assert_eq!(backup.step(&step_target, &source, -1), Ok(BackupStep::Done));
        backup.finish(&step_target, &source).expect("finishes");
    }
    let locked = target.lock().expect("open");
    assert!(!locked.is_in_use());
    assert_eq!(total(&locked), TOTAL);
    locked.close().expect("has nothing left");
}

#[test]
fn a_target_in_the_middle_of_a_call_is_refused() {
    let (source, target) = (filled(), memory());
    let outer = target.lock().expect("open");
    let inner = target.lock().expect("the same thread");
    let refused = Backup::begin(inner, &source.lock().expect("open"), c"main");
    assert_eq!(
        refused.err().map(|error| error.code()),
        Some(codes::SQLITE_MISUSE)
    );
    outer.execute_batch("SELECT 1").expect("goes on");
}

#[test]
fn neither_side_closes_before_the_backup_is_finished() {
    let (source, target) = (filled(), memory());
    let backup = begun(&target, &source.lock().expect("open"));
    let error = source.lock().expect("open").close().expect_err("busy");
    assert_eq!(error.primary_code(), codes::SQLITE_BUSY);
    assert_eq!(target.lock().err(), Some(LockError::BackupTarget));
    {
        let step_target = target.lock_as_backup_target().expect("open");
        let source = source.lock().expect("open");
        backup.finish(&step_target, &source).expect("finishes");
    }
    for connection in [&source, &target] {
        connection.lock().expect("open").close().expect("closes");
    }
}

#[test]
fn a_connection_is_not_copied_over_itself_nor_stepped_with_strangers() {
    let (source, target, stranger) = (filled(), memory(), memory());
    let locked = source.lock().expect("open");
    assert!(Backup::begin(source.lock().expect("open"), &locked, c"main").is_err());
    let unknown = Backup::begin(target.lock().expect("open"), &locked, c"no_such_schema");
    assert!(unknown.is_err());
    run(&target, "SELECT 'goes on'");
    let mut backup = begun(&target, &locked);
    let error = backup
        .step(&stranger.lock_as_backup_target().expect("open"), &locked, 1)
        .expect_err("not its target");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    let step_target = target.lock_as_backup_target().expect("open");
    backup.finish(&step_target, &locked).expect("finishes");
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
