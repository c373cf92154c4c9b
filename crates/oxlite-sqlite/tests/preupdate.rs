//! The hook that sees a row before it changes.

use std::sync::{Arc, Mutex};

use oxlite_sqlite::{
    Connection, LockError, Locked, OpenFlags, Preupdate, PreupdateHook, Step, ValueRef, codes,
};

fn memory() -> Connection {
    Connection::open(c":memory:", OpenFlags::default()).expect("opens")
}

/// What the hook was told, one line for each row.
type Log = Arc<Mutex<Vec<String>>>;

fn values<'p>(
    row: &'p Preupdate<'_>,
    get: impl Fn(usize) -> oxlite_sqlite::Result<ValueRef<'p>>,
) -> String {
    let values: Result<Vec<_>, _> = (0..row.column_count()).map(get).collect();
    let show = |value| match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) => format!("{real:?}"),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(blob) => format!("x{blob:?}"),
    };
    match values {
        Ok(values) => values.into_iter().map(show).collect::<Vec<_>>().join(","),
        Err(error) => error.name().to_owned(),
    }
}

fn operation(operation: i32) -> &'static str {
    match operation {
        codes::SQLITE_INSERT => "insert",
        codes::SQLITE_UPDATE => "update",
        codes::SQLITE_DELETE => "delete",
        _ => "?",
    }
}

fn logging(log: &Log) -> Box<PreupdateHook> {
    let log = Arc::clone(log);
    Box::new(move |row| {
        log.lock().expect("no panic").push(format!(
            "{} {}.{} old {} new {} depth {}",
            operation(row.operation),
            row.database.to_string_lossy(),
            row.table.to_string_lossy(),
            values(row, |index| row.old_value(index)),
            values(row, |index| row.new_value(index)),
            row.depth(),
        ));
    })
}

fn take(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().expect("no panic"))
}

fn run(locked: &Locked<'_>, script: &str) {
    locked.execute_batch(script).expect("runs");
}

#[test]
fn it_sees_each_kind_of_change_with_its_values() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b REAL)");
    let log = Log::default();
    locked.set_preupdate_hook(Some(logging(&log))).expect("set");
    run(&locked, "INSERT INTO t VALUES(7, 'one', 2)");
    run(&locked, "UPDATE t SET id = 8, a = x'00ff'");
    run(&locked, "DELETE FROM t");
    assert_eq!(
        take(&log),
        [
            "insert main.t old SQLITE_MISUSE new 7,one,2.0 depth 0",
            "update main.t old 7,one,2.0 new 8,x[0, 255],2.0 depth 0",
            "delete main.t old 8,x[0, 255],2.0 new SQLITE_MISUSE depth 0",
        ]
    );
}

#[test]
fn it_sees_what_replace_triggers_and_foreign_keys_do() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(
        &locked,
        "PRAGMA foreign_keys = on;
         CREATE TABLE t(id INTEGER PRIMARY KEY, a);
         CREATE TABLE child(id INTEGER PRIMARY KEY, t REFERENCES t ON DELETE CASCADE);
         CREATE TABLE log(a);
         CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO log VALUES(new.a); END;
         CREATE TRIGGER h AFTER INSERT ON log BEGIN DELETE FROM log; END;
         INSERT INTO t VALUES(1, 'x'); INSERT INTO child VALUES(5, 1);",
    );
    let log = Log::default();
    locked.set_preupdate_hook(Some(logging(&log))).expect("set");
    run(&locked, "UPDATE t SET a = 'y'");
    assert_eq!(
        take(&log),
        [
            "update main.t old 1,x new 1,y depth 0",
            "insert main.log old SQLITE_MISUSE new y depth 1",
            "delete main.log old y new SQLITE_MISUSE depth 2",
        ]
    );
    run(&locked, "REPLACE INTO t VALUES(1, 'z')");
    assert_eq!(
        take(&log),
        [
            "delete main.t old 1,y new SQLITE_MISUSE depth 0",
            "delete main.child old 5,1 new SQLITE_MISUSE depth 1",
            "insert main.t old SQLITE_MISUSE new 1,z depth 0",
        ]
    );
}

#[test]
fn it_sees_tables_without_rowid_attached_ones_and_added_columns() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(
        &locked,
        "ATTACH ':memory:' AS other;
         CREATE TABLE other.w(a, b, c, PRIMARY KEY(c, a)) WITHOUT ROWID;
         CREATE TABLE t(a); INSERT INTO t VALUES(1);
         ALTER TABLE t ADD COLUMN b DEFAULT 'added';
         ALTER TABLE t ADD COLUMN c;
         ALTER TABLE t ADD COLUMN d AS (a + 1);",
    );
    let log = Log::default();
    locked.set_preupdate_hook(Some(logging(&log))).expect("set");
    run(&locked, "INSERT INTO w VALUES(1, 2, 3)");
    run(&locked, "UPDATE w SET b = 4");
    assert_eq!(
        take(&log),
        [
            "insert other.w old SQLITE_MISUSE new 1,2,3 depth 0",
            "update other.w old 1,2,3 new 1,4,3 depth 0",
        ]
    );
    // A virtual generated column is counted and cannot be read; the others can.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let hook: Box<PreupdateHook> = Box::new(move |row| {
        assert_eq!(row.column_count(), 4);
        assert_eq!((row.old_rowid, row.new_rowid), (1, 1));
        assert_eq!(row.old_value(0), Ok(ValueRef::Integer(1)));
        assert_eq!(row.old_value(1), Ok(ValueRef::Text(b"added")));
        assert_eq!(row.old_value(2), Ok(ValueRef::Null));
        for index in [3, 4, usize::MAX] {
            let error = row.old_value(index).expect_err("not stored");
            assert_eq!(error.code(), codes::SQLITE_RANGE);
            assert!(row.new_value(index).is_err());
        }
        assert_eq!(row.new_value(2), Ok(ValueRef::Integer(9)));
        sink.lock().expect("no panic").push(());
    });
    locked.set_preupdate_hook(Some(hook)).expect("set");
    run(&locked, "UPDATE t SET c = 9");
    assert_eq!(seen.lock().expect("no panic").len(), 1);
}

#[test]
fn values_of_a_utf16_database_are_read_as_utf8_more_than_once() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(
        &locked,
        "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(a, b); INSERT INTO t VALUES('naïve', 'x')",
    );
    let seen = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&seen);
    let hook: Box<PreupdateHook> = Box::new(move |row| {
        let first = row.old_value(0).expect("old");
        let other = row.new_value(0).expect("new");
        assert_eq!(row.old_value(0), Ok(first));
        assert_eq!(first, ValueRef::Text("naïve".as_bytes()));
        assert_eq!(other, ValueRef::Text("noël".as_bytes()));
        *counter.lock().expect("no panic") += 1;
    });
    locked.set_preupdate_hook(Some(hook)).expect("set");
    run(&locked, "UPDATE t SET a = 'noël'");
    assert_eq!(*seen.lock().expect("no panic"), 1);
}

#[test]
fn writing_a_blob_is_a_delete_that_names_its_column() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(
        &locked,
        "CREATE TABLE t(a, b); INSERT INTO t VALUES(1, zeroblob(2))",
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let hook: Box<PreupdateHook> = Box::new(move |row| {
        sink.lock()
            .expect("no panic")
            .push((row.operation, row.blob_column()));
    });
    locked.set_preupdate_hook(Some(hook)).expect("set");
    let blob = locked
        .open_blob(c"main", c"t", c"b", 1, false)
        .expect("opens");
    blob.write(&locked, 0, b"x").expect("writes");
    run(&locked, "DELETE FROM t");
    assert_eq!(
        *seen.lock().expect("no panic"),
        [
            (codes::SQLITE_DELETE, Some(1)),
            (codes::SQLITE_DELETE, None)
        ]
    );
}

/// SQLite empties a table at once when nobody looks at its rows, and compiles that in.
#[test]
fn a_statement_prepared_before_the_hook_is_seen_by_it() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(a); INSERT INTO t VALUES(1), (2)");
    let prepared = locked.prepare("DELETE FROM t", true).expect("prepares");
    let mut statement = prepared.statement.expect("a statement");
    let log = Log::default();
    locked.set_preupdate_hook(Some(logging(&log))).expect("set");
    assert_eq!(statement.step(&locked), Ok(Step::Done));
    assert_eq!(take(&log).len(), 2);
}

#[test]
fn installing_the_hook_leaves_the_authorizer_in_force() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(a)");
    locked
        .set_authorizer(Some(Box::new(|asked| {
            if asked.action == codes::SQLITE_DELETE {
                codes::SQLITE_DENY
            } else {
                codes::SQLITE_OK
            }
        })))
        .expect("set");
    locked
        .set_preupdate_hook(Some(Box::new(|_| {})))
        .expect("set");
    let error = locked.execute_batch("DELETE FROM t").expect_err("denied");
    assert_eq!(error.primary_code(), codes::SQLITE_AUTH);
}

#[test]
fn the_hook_cannot_use_its_connection_not_even_to_remove_itself() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(a)");
    let own = connection.clone();
    let calls = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&calls);
    let hook: Box<PreupdateHook> = Box::new(move |_| {
        assert_eq!(own.lock().err(), Some(LockError::InCallback));
        *counter.lock().expect("no panic") += 1;
    });
    locked.set_preupdate_hook(Some(hook)).expect("set");
    run(&locked, "INSERT INTO t VALUES(1)");
    locked.set_preupdate_hook(None).expect("removes");
    run(&locked, "INSERT INTO t VALUES(1)");
    assert_eq!(*calls.lock().expect("no panic"), 1);
}

#[test]
fn a_function_may_replace_or_remove_the_hook_in_mid_statement() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(a)");
    let log = Log::default();
    locked.set_preupdate_hook(Some(logging(&log))).expect("set");
    let own = connection.clone();
    locked
        .create_function(
            c"unhook",
            0,
            false,
            Some(Box::new(move |context| {
                let locked = own.lock().expect("functions may");
                locked.set_preupdate_hook(None).expect("removes");
                context.set_result(ValueRef::Integer(0));
            })),
        )
        .expect("creates");
    run(
        &locked,
        "INSERT INTO t SELECT iif(column1 = 2, unhook(), 1) FROM (VALUES(1), (2), (3))",
    );
    assert_eq!(take(&log).len(), 1);
    // The function holds the connection that holds the function.
    locked
        .create_function(c"unhook", 0, false, None)
        .expect("removes");
}

#[test]
fn a_panic_in_the_hook_is_forgotten() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(a)");
    locked
        .set_preupdate_hook(Some(Box::new(|_| panic!("in the hook"))))
        .expect("set");
    run(&locked, "INSERT INTO t VALUES(1)");
    run(&locked, "UPDATE t SET a = 2");
}

#[test]
fn a_hook_and_a_session_exclude_each_other() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    run(&locked, "CREATE TABLE t(a PRIMARY KEY)");
    locked
        .set_preupdate_hook(Some(Box::new(|_| {})))
        .expect("set");
    let Err(error) = locked.create_session(c"main") else {
        panic!("there is a hook");
    };
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    assert!(error.message().contains("remove the hook first"));

    locked.set_preupdate_hook(None).expect("removes");
    let session = locked.create_session(c"main").expect("creates");
    session.attach(&locked, None).expect("attaches");
    let error = locked
        .set_preupdate_hook(Some(Box::new(|_| {})))
        .expect_err("there is a session");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    assert!(error.message().contains("drop the sessions first"));
    // Removing what is not there must not remove the session's own hook.
    locked.set_preupdate_hook(None).expect("nothing to remove");
    run(&locked, "INSERT INTO t VALUES(1)");
    assert_eq!(session.is_empty(&locked), Ok(false));

    drop(session);
    let log = Log::default();
    locked.set_preupdate_hook(Some(logging(&log))).expect("set");
    run(&locked, "INSERT INTO t VALUES(2)");
    assert_eq!(take(&log).len(), 1);
}

#[test]
fn closing_lets_go_of_the_hook() {
    let connection = memory();
    let locked = connection.lock().expect("open");
    let held = Arc::new(());
    let captured = Arc::clone(&held);
    let hook: Box<PreupdateHook> = Box::new(move |_| {
        let _ = &captured;
    });
    locked.set_preupdate_hook(Some(hook)).expect("set");
    assert_eq!(Arc::strong_count(&held), 2);
    locked.close().expect("closes");
    assert_eq!(Arc::strong_count(&held), 1);
}
