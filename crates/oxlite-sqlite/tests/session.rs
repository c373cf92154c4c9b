//! Sessions, and their changesets applied to another database.

use std::ffi::CStr;
use std::sync::{Arc, Mutex};
use std::thread;

use oxlite_sqlite::{
    Conflict, ConflictAction, Connection, Error, LockError, Locked, OpenFlags, Result, Session,
    Step, ValueRef, codes, concat_changesets, invert_changeset, read_changeset,
};

fn open(script: &str) -> Connection {
    let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    run(&connection.lock().expect("open"), script);
    connection
}

fn run(locked: &Locked<'_>, script: &str) {
    locked.execute_batch(script).expect("runs");
}

fn record(locked: &Locked<'_>) -> Session {
    let session = locked.create_session(c"main").expect("creates");
    session.attach(locked, None).expect("attaches");
    session
}

/// The rows of a query, one text for each.
fn rows(locked: &Locked<'_>, query: &str) -> Vec<String> {
    let prepared = locked.prepare(query, false).expect("prepares");
    let mut statement = prepared.statement.expect("a statement");
    let mut rows = Vec::new();
    while statement.step(locked).expect("steps") == Step::Row {
        let row = statement.row(locked).expect("a row");
        let values = (0..row.len()).map(|index| format!("{:?}", row.get(index).expect("a value")));
        rows.push(values.collect::<Vec<_>>().join(" "));
    }
    rows
}

fn count(locked: &Locked<'_>, what: &str) -> String {
    rows(locked, &format!("SELECT count(*) FROM {what}")).remove(0)
}

fn no_conflict(conflict: &Conflict<'_>) -> ConflictAction {
    panic!("unexpected: {conflict:?}")
}

/// Applies with one answer to everything, and tells what was asked.
fn apply(
    locked: &Locked<'_>,
    changeset: &[u8],
    answer: ConflictAction,
) -> (Result<()>, Vec<String>) {
    let mut asked = Vec::new();
    let result = locked.apply_changeset(changeset, None, &mut |conflict| {
        asked.push(match conflict {
            Conflict::Data { change, row } => format!("data {:?} {row:?}", change.new),
            Conflict::NotFound { change } => format!("not found {:?}", change.old),
            Conflict::Conflict { change, row } => format!("conflict {:?} {row:?}", change.new),
            Conflict::Constraint { change } => format!("constraint {:?}", change.new),
            Conflict::ForeignKey { violations } => format!("foreign key {violations}"),
        });
        answer
    });
    (result, asked)
}

const ALL_TYPES: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, a);";

#[test]
fn changes_of_every_type_reach_the_other_database() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    run(&source, "INSERT INTO t VALUES(1, 'before'), (2, 'gone')");
    run(&target, "INSERT INTO t VALUES(1, 'before'), (2, 'gone')");
    let session = record(&source);
    assert_eq!(session.is_empty(&source), Ok(true));
    assert_eq!(session.changeset(&source), Ok(Vec::new()));
    let prepared = source.prepare("INSERT INTO t(a) VALUES(?)", false);
    let mut insert = prepared.expect("prepares").statement.expect("a statement");
    for value in [
        ValueRef::Null,
        ValueRef::Integer(i64::MIN),
        ValueRef::Integer(-1),
        ValueRef::Real(0.1),
        ValueRef::Real(f64::NEG_INFINITY),
        ValueRef::Text("naïve \0 inside \u{1f980}".as_bytes()),
        ValueRef::Text(b"not UTF-8 \xff"),
        ValueRef::Text(b""),
        ValueRef::Blob(b""),
        ValueRef::Blob(&[0, 255, 0]),
        ValueRef::Blob(&[7; 70_000]),
    ] {
        insert.bind(&source, 1, value).expect("binds");
        insert.step(&source).expect("inserts");
    }
    run(
        &source,
        "UPDATE t SET a = 'after' WHERE id = 1; DELETE FROM t WHERE id = 2",
    );
    assert_eq!(session.is_empty(&source), Ok(false));
    assert!(session.memory_used(&source).expect("tells") > 0);

    let changeset = session.changeset(&source).expect("a changeset");
    target
        .apply_changeset(&changeset, None, &mut no_conflict)
        .expect("applies");
    let all = "SELECT id, typeof(a), hex(a) FROM t ORDER BY id";
    assert_eq!(rows(&source, all), rows(&target, all));
    assert_eq!(count(&target, "t"), "Integer(12)");
    assert!(target.is_autocommit());

    // And back again.
    let inverse = invert_changeset(&changeset).expect("inverts");
    target
        .apply_changeset(&inverse, None, &mut no_conflict)
        .expect("applies");
    assert_eq!(
        rows(&target, "SELECT * FROM t"),
        [
            format!("Integer(1) {:?}", ValueRef::Text(b"before")),
            format!("Integer(2) {:?}", ValueRef::Text(b"gone")),
        ]
    );
}

#[test]
fn a_patchset_does_the_same_without_the_old_values() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    run(&source, "INSERT INTO t VALUES(1, 'one'), (2, 'two')");
    run(&target, "INSERT INTO t VALUES(1, 'other'), (2, 'other')");
    let session = record(&source);
    run(
        &source,
        "UPDATE t SET a = 'new' WHERE id = 1; DELETE FROM t WHERE id = 2",
    );
    let patchset = session.patchset(&source).expect("a patchset");
    let mut changes = read_changeset(&patchset);
    assert_eq!(changes.is_patchset(), None);
    let olds: Vec<_> = changes
        .by_ref()
        .map(|change| change.expect("reads").old)
        .collect();
    assert_eq!(changes.is_patchset(), Some(true));
    assert_eq!(olds.len(), 2);
    assert!(olds.iter().all(|old| old[0].is_some() && old[1].is_none()));
    // The other values are no conflict.
    target
        .apply_changeset(&patchset, None, &mut no_conflict)
        .expect("applies");
    assert_eq!(
        rows(&target, "SELECT a FROM t"),
        [format!("{:?}", ValueRef::Text(b"new"))]
    );
    let error = invert_changeset(&patchset).expect_err("lacks the old values");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
}

#[test]
fn conflicts_in_data_are_omitted_replaced_or_abort() {
    for (answer, expected) in [
        (ConflictAction::Omit, "theirs"),
        (ConflictAction::Replace, "new"),
        (ConflictAction::Abort, "theirs"),
    ] {
        let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
        let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
        run(&source, "INSERT INTO t VALUES(1, 'old')");
        run(&target, "INSERT INTO t VALUES(1, 'theirs')");
        let session = record(&source);
        run(
            &source,
            "INSERT INTO t VALUES(9, 'too'); UPDATE t SET a = 'new' WHERE id = 1",
        );
        let changeset = session.changeset(&source).expect("a changeset");
        let (result, asked) = apply(&target, &changeset, answer);
        assert_eq!(
            asked,
            [format!(
                "data {:?} {:?}",
                [None, Some(ValueRef::Text(b"new"))],
                [ValueRef::Integer(1), ValueRef::Text(b"theirs")]
            )]
        );
        let is_aborted = answer == ConflictAction::Abort;
        assert_eq!(
            result.map_err(|error| error.code()),
            if is_aborted {
                Err(codes::SQLITE_ABORT)
            } else {
                Ok(())
            }
        );
        let query = "SELECT CAST(a AS BLOB) FROM t WHERE id = 1";
        let blob = format!("{:?}", ValueRef::Blob(expected.as_bytes()));
        assert_eq!(rows(&target, query), [blob]);
        // All or nothing.
        let others = if is_aborted {
            "Integer(0)"
        } else {
            "Integer(1)"
        };
        assert_eq!(count(&target, "t WHERE id = 9"), others);
        assert!(target.is_autocommit());
    }
}

#[test]
fn a_row_that_is_missing_or_already_there_is_a_conflict() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    run(&source, "INSERT INTO t VALUES(1, 'one')");
    let session = record(&source);
    run(&source, "DELETE FROM t WHERE id = 1");
    let changeset = session.changeset(&source).expect("a changeset");
    let (result, asked) = apply(&target, &changeset, ConflictAction::Omit);
    assert_eq!(result, Ok(()));
    let row = [Some(ValueRef::Integer(1)), Some(ValueRef::Text(b"one"))];
    assert_eq!(asked, [format!("not found {row:?}")]);
    // There is nothing to replace.
    let (result, _) = apply(&target, &changeset, ConflictAction::Replace);
    let error = result.expect_err("cannot");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    assert!(error.message().contains("no row to replace"), "{error}");

    run(&target, "INSERT INTO t VALUES(1, 'theirs')");
    let insertion = invert_changeset(&changeset).expect("inverts");
    for (answer, expected) in [
        (ConflictAction::Omit, "theirs"),
        (ConflictAction::Abort, "theirs"),
        (ConflictAction::Replace, "one"),
    ] {
        let (result, asked) = apply(&target, &insertion, answer);
        assert_eq!(result.is_err(), answer == ConflictAction::Abort);
        let theirs = [ValueRef::Integer(1), ValueRef::Text(b"theirs")];
        assert_eq!(asked, [format!("conflict {row:?} {theirs:?}")]);
        let text = format!("{:?}", ValueRef::Text(expected.as_bytes()));
        assert_eq!(rows(&target, "SELECT a FROM t"), [text]);
    }
}

#[test]
fn constraints_and_foreign_keys_are_conflicts() {
    let schema = "PRAGMA foreign_keys = on;
        CREATE TABLE parent(id INTEGER PRIMARY KEY);
        CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent, u UNIQUE);";
    let (source, target) = (open(schema), open(schema));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    run(&source, "INSERT INTO parent VALUES(1)");
    run(&target, "INSERT INTO child VALUES(5, NULL, 'taken')");
    let session = record(&source);
    run(&source, "INSERT INTO child VALUES(6, 1, 'taken')");
    let changeset = session.changeset(&source).expect("a changeset");
    let (result, asked) = apply(&target, &changeset, ConflictAction::Omit);
    assert_eq!((result, asked.len()), (Ok(()), 1));
    assert!(asked[0].starts_with("constraint"), "{asked:?}");

    run(&target, "DELETE FROM child");
    let (result, asked) = apply(&target, &changeset, ConflictAction::Abort);
    assert_eq!(asked, ["foreign key 1"]);
    assert_eq!(
        result.expect_err("aborted").name(),
        "SQLITE_CONSTRAINT_FOREIGNKEY"
    );
    assert_eq!(count(&target, "child"), "Integer(0)");
    let (result, asked) = apply(&target, &changeset, ConflictAction::Omit);
    assert_eq!((result, asked.len()), (Ok(()), 1));
    assert_eq!(count(&target, "child"), "Integer(1)");
    assert!(target.is_autocommit());
}

#[test]
fn the_filter_chooses_tables_before_anything_is_applied() {
    let schema = "CREATE TABLE a(id PRIMARY KEY); CREATE TABLE b(id PRIMARY KEY);";
    let (source, target) = (open(schema), open(schema));
    let session = {
        let source = source.lock().expect("open");
        let session = record(&source);
        run(
            &source,
            "INSERT INTO a VALUES(1); INSERT INTO b VALUES(2), (3)",
        );
        session
    };
    let changeset = session
        .changeset(&source.lock().expect("open"))
        .expect("a changeset");
    let locked = target.lock().expect("open");
    let mut asked = Vec::new();
    let mut filter = |table: &CStr| {
        // It may use the connection.
        assert_eq!(count(&target.lock().expect("open"), "a"), "Integer(0)");
        asked.push(table.to_owned());
        Ok(table == c"b")
    };
    locked
        .apply_changeset(&changeset, Some(&mut filter), &mut no_conflict)
        .expect("applies");
    assert_eq!(asked, [c"a".to_owned(), c"b".to_owned()]);
    assert_eq!(count(&locked, "a"), "Integer(0)");
    assert_eq!(count(&locked, "b"), "Integer(2)");

    let mut filter = |table: &CStr| match table {
        table if table == c"a" => Ok(true),
        _ => Err(Error::new(codes::SQLITE_ABORT, "no more")),
    };
    let error = locked
        .apply_changeset(&changeset, Some(&mut filter), &mut no_conflict)
        .expect_err("the filter's");
    assert_eq!(error.message(), "no more");
    assert_eq!(count(&locked, "a"), "Integer(0)");
}

#[test]
fn the_conflict_handler_may_use_the_connection_but_not_close_it() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let source = source.lock().expect("open");
    let session = record(&source);
    run(&source, "INSERT INTO t VALUES(1, 'new'), (2, 'new')");
    let changeset = session.changeset(&source).expect("a changeset");
    let locked = target.lock().expect("open");
    run(
        &locked,
        "CREATE TABLE lost(id, a); INSERT INTO t VALUES(1, 'theirs'), (2, 'theirs')",
    );
    let mut handler = |conflict: &Conflict<'_>| {
        let inner = target.lock().expect("SQLite allows it");
        assert!(target.lock().expect("open").close().is_err());
        assert!(
            inner.execute_batch("DROP TABLE t").is_err(),
            "its row is being read"
        );
        let Conflict::Conflict { change, row } = conflict else {
            panic!("unexpected: {conflict:?}");
        };
        let ValueRef::Integer(id) = row[0] else {
            panic!("unexpected: {row:?}");
        };
        run(&inner, "INSERT INTO lost SELECT * FROM t");
        run(&inner, &format!("DELETE FROM t WHERE id = {id}"));
        // A session that comes and goes, and a whole application inside this one.
        let session = record(&inner);
        inner
            .apply_changeset(&[], None, &mut no_conflict)
            .expect("applies nothing");
        drop(session);
        assert_eq!(row[1], ValueRef::Text(b"theirs"));
        assert_eq!(change.new[1], Some(ValueRef::Text(b"new")));
        ConflictAction::Replace
    };
    locked
        .apply_changeset(&changeset, None, &mut handler)
        .expect("applies");
    let new = format!("{:?}", ValueRef::Text(b"new"));
    assert_eq!(rows(&locked, "SELECT a FROM t"), [new.clone(), new]);
    assert_eq!(count(&locked, "lost"), "Integer(4)");
    // The inner session is gone with the outermost guard.
    drop(locked);
    let locked = target.lock().expect("open");
    locked
        .set_preupdate_hook(Some(Box::new(|_| {})))
        .expect("no session is left");
}

#[test]
fn a_panic_in_the_conflict_handler_aborts() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let session = record(&source);
    run(&source, "INSERT INTO t VALUES(1, 'new'), (2, 'new')");
    let changeset = session.changeset(&source).expect("a changeset");
    run(&target, "INSERT INTO t VALUES(2, 'theirs')");
    let error = target
        .apply_changeset(&changeset, None, &mut |_| panic!("in the handler"))
        .expect_err("aborted");
    assert_eq!(error.code(), codes::SQLITE_ABORT);
    assert_eq!(error.message(), "the conflict handler panicked");
    assert_eq!(count(&target, "t"), "Integer(1)");
    assert!(target.is_autocommit());
}

#[test]
fn a_handler_that_ends_the_transaction_makes_the_application_fail() {
    for end in ["ROLLBACK", "COMMIT"] {
        let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
        let source = source.lock().expect("open");
        let session = record(&source);
        run(&source, "INSERT INTO t VALUES(1, 'new'), (2, 'new')");
        let changeset = session.changeset(&source).expect("a changeset");
        let locked = target.lock().expect("open");
        run(
            &locked,
            "INSERT INTO t VALUES(1, 'a long text of theirs'), (2, 'theirs')",
        );
        let mut handler = |conflict: &Conflict<'_>| {
            let _ = target.lock().expect("open").execute_batch(end);
            if let Conflict::Conflict { row, .. } = conflict {
                assert!(matches!(row[1], ValueRef::Text(text) if text.ends_with(b"theirs")));
            }
            ConflictAction::Omit
        };
        assert!(
            locked
                .apply_changeset(&changeset, None, &mut handler)
                .is_err()
        );
        assert!(locked.is_autocommit());
    }
}

#[test]
fn tables_that_do_not_match_are_passed_over_and_more_columns_do() {
    let source = open(
        "CREATE TABLE a(x PRIMARY KEY, y); CREATE TABLE b(x PRIMARY KEY, y);
        CREATE TABLE c(x PRIMARY KEY, y); CREATE TABLE d(x PRIMARY KEY, y)",
    );
    // There is no a, b has another key, c a column less, d a column more.
    let target = open(
        "CREATE TABLE b(x, y PRIMARY KEY); CREATE TABLE c(x PRIMARY KEY);
        CREATE TABLE d(x PRIMARY KEY, y, z DEFAULT 'more')",
    );
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let session = record(&source);
    for table in ["a", "b", "c", "d"] {
        run(&source, &format!("INSERT INTO {table} VALUES(1, 2)"));
    }
    let changeset = session.changeset(&source).expect("a changeset");
    assert_eq!(read_changeset(&changeset).count(), 4);
    target
        .apply_changeset(&changeset, None, &mut no_conflict)
        .expect("applies");
    assert_eq!(count(&target, "b"), "Integer(0)");
    assert_eq!(count(&target, "c"), "Integer(0)");
    let more = format!("{:?}", ValueRef::Text(b"more"));
    assert_eq!(rows(&target, "SELECT z FROM d"), [more]);
}

#[test]
fn a_session_records_what_it_is_attached_to_while_enabled() {
    let connection = open("CREATE TABLE a(id PRIMARY KEY); CREATE TABLE b(id PRIMARY KEY)");
    let locked = connection.lock().expect("open");
    let session = locked.create_session(c"main").expect("creates");
    run(&locked, "INSERT INTO a VALUES(1)");
    session.attach(&locked, Some(c"a")).expect("attaches");
    session.attach(&locked, Some(c"later")).expect("attaches");
    assert_eq!(session.is_empty(&locked), Ok(true));
    assert_eq!(session.is_enabled(&locked), Ok(true));
    session.set_enabled(&locked, false).expect("sets");
    assert_eq!(session.is_enabled(&locked), Ok(false));
    run(&locked, "INSERT INTO a VALUES(2)");
    session.set_enabled(&locked, true).expect("sets");
    run(&locked, "INSERT INTO a VALUES(3); INSERT INTO b VALUES(4)");
    run(
        &locked,
        "CREATE TABLE later(id PRIMARY KEY); INSERT INTO later VALUES(5)",
    );
    let changeset = session.changeset(&locked).expect("a changeset");
    let changes: Vec<_> = read_changeset(&changeset)
        .map(|change| change.expect("reads"))
        .map(|change| (change.table.to_owned(), change.new[0]))
        .collect();
    assert_eq!(
        changes,
        [
            (c"a".to_owned(), Some(ValueRef::Integer(3))),
            (c"later".to_owned(), Some(ValueRef::Integer(5))),
        ]
    );
}

#[test]
fn indirect_changes_are_marked() {
    let connection = open(
        "CREATE TABLE a(id PRIMARY KEY); CREATE TABLE b(id PRIMARY KEY);
         CREATE TRIGGER g AFTER INSERT ON a BEGIN INSERT INTO b VALUES(new.id); END;",
    );
    let locked = connection.lock().expect("open");
    let session = record(&locked);
    assert_eq!(session.is_indirect(&locked), Ok(false));
    run(&locked, "INSERT INTO a VALUES(1)");
    session.set_indirect(&locked, true).expect("sets");
    assert_eq!(session.is_indirect(&locked), Ok(true));
    run(&locked, "INSERT INTO b VALUES(2)");
    session.set_indirect(&locked, false).expect("sets");
    run(&locked, "INSERT INTO b VALUES(3)");
    let changeset = session.changeset(&locked).expect("a changeset");
    let mut marks: Vec<_> = read_changeset(&changeset)
        .map(|change| change.expect("reads"))
        .map(|change| {
            (
                change.table.to_owned(),
                format!("{:?}", change.new),
                change.is_indirect,
            )
        })
        .collect();
    marks.sort();
    let marks: Vec<_> = marks
        .into_iter()
        .map(|(_, _, is_indirect)| is_indirect)
        .collect();
    assert_eq!(marks, [false, true, true, false]);
}

#[test]
fn tables_without_a_key_are_not_recorded_those_without_rowid_are() {
    let schema = "CREATE TABLE plain(a); CREATE TABLE w(a, b, c, PRIMARY KEY(c, a)) WITHOUT ROWID";
    let (source, target) = (open(schema), open(schema));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let session = record(&source);
    run(&source, "INSERT INTO plain VALUES(1)");
    assert_eq!(session.is_empty(&source), Ok(true));
    run(&source, "INSERT INTO w VALUES(1, 2, 3), (4, 5, 6)");
    run(
        &source,
        "UPDATE w SET b = 7 WHERE a = 1; UPDATE w SET a = 8 WHERE a = 4",
    );
    let changeset = session.changeset(&source).expect("a changeset");
    for change in read_changeset(&changeset) {
        let key = change.expect("reads").primary_key;
        let is_in_key: Vec<_> = key.iter().map(|flag| *flag != 0).collect();
        assert_eq!(is_in_key, [true, false, true]);
    }
    target
        .apply_changeset(&changeset, None, &mut no_conflict)
        .expect("applies");
    let all = "SELECT * FROM w ORDER BY a";
    assert_eq!(rows(&target, all), rows(&source, all));
}

#[test]
fn what_is_rolled_back_leaves_no_change() {
    let connection = open(ALL_TYPES);
    let locked = connection.lock().expect("open");
    let session = record(&locked);
    run(&locked, "BEGIN; INSERT INTO t VALUES(1, 1); ROLLBACK");
    assert_eq!(session.changeset(&locked), Ok(Vec::new()));
    run(
        &locked,
        "BEGIN; INSERT INTO t VALUES(2, 2); SAVEPOINT s; DELETE FROM t; ROLLBACK TO s",
    );
    let changeset = session.changeset(&locked).expect("within the transaction");
    assert_eq!(read_changeset(&changeset).count(), 1);
    assert!(!locked.is_autocommit());
}

#[test]
fn a_session_of_an_attached_database_sees_that_one_only() {
    let connection = open(
        "ATTACH ':memory:' AS other;
         CREATE TABLE t(id PRIMARY KEY); CREATE TABLE other.t(id PRIMARY KEY)",
    );
    let locked = connection.lock().expect("open");
    let Err(error) = locked.create_session(c"nowhere") else {
        panic!("there is no such database");
    };
    assert_eq!(error.message(), "unknown database nowhere");
    let other = locked.create_session(c"other").expect("creates");
    other.attach(&locked, None).expect("attaches");
    let main = record(&locked);
    run(
        &locked,
        "INSERT INTO main.t VALUES(1); INSERT INTO other.t VALUES(2), (3)",
    );
    let count = |session: &Session| {
        read_changeset(&session.changeset(&locked).expect("a changeset")).count()
    };
    assert_eq!((count(&main), count(&other)), (1, 2));
}

#[test]
fn diff_records_what_makes_two_tables_equal() {
    let connection = open(
        "ATTACH ':memory:' AS old;
         CREATE TABLE t(id PRIMARY KEY, a); CREATE TABLE old.t(id PRIMARY KEY, a);
         INSERT INTO main.t VALUES(1, 1), (2, 2), (4, 4);
         INSERT INTO old.t VALUES(1, 1), (2, 'two'), (3, 3);
         CREATE TABLE only(id PRIMARY KEY);
         CREATE TABLE other(id PRIMARY KEY); CREATE TABLE old.other(id, b PRIMARY KEY);",
    );
    let locked = connection.lock().expect("open");
    let session = locked.create_session(c"main").expect("creates");
    session.diff(&locked, c"old", c"t").expect("compares");
    let changeset = session.changeset(&locked).expect("a changeset");
    let mut operations: Vec<_> = read_changeset(&changeset)
        .map(|change| change.expect("reads").operation)
        .collect();
    operations.sort_unstable();
    assert_eq!(
        operations,
        [
            codes::SQLITE_DELETE,
            codes::SQLITE_INSERT,
            codes::SQLITE_UPDATE
        ]
    );
    let error = session
        .diff(&locked, c"old", c"only")
        .expect_err("none there");
    assert_eq!(error.message(), "no such table: old.only");
    let error = session
        .diff(&locked, c"old", c"other")
        .expect_err("differs");
    assert_eq!(error.message(), "table schemas do not match");
    assert!(session.diff(&locked, c"nowhere", c"t").is_err());
}

/// Using a session while it reads would pull its tables away from under it.
#[test]
fn a_collation_cannot_use_the_connection_while_a_session_reads() {
    let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let locked = connection.lock().expect("open");
    let own = connection.clone();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&answers);
    let collation: oxlite_sqlite::Collation = Box::new(move |left, right| {
        sink.lock().expect("no panic").push(own.lock().err());
        left.cmp(right)
    });
    locked
        .create_collation(c"mine", Some(collation))
        .expect("creates");
    run(
        &locked,
        "ATTACH ':memory:' AS old;
         CREATE TABLE t(id TEXT PRIMARY KEY COLLATE mine, a);
         CREATE TABLE old.t(id TEXT PRIMARY KEY COLLATE mine, a);",
    );
    let session = record(&locked);
    run(&locked, "INSERT INTO t VALUES('a', 1), ('b', 2)");
    let take = || std::mem::take(&mut *answers.lock().expect("no panic"));
    assert!(take().iter().all(Option::is_none), "a statement may");
    session.changeset(&locked).expect("a changeset");
    let asked = take();
    assert!(!asked.is_empty());
    assert!(
        asked
            .iter()
            .all(|answer| *answer == Some(LockError::InCallback))
    );
    run(&locked, "INSERT INTO old.t VALUES('a', 3), ('c', 2)");
    take();
    session.diff(&locked, c"old", c"t").expect("compares");
    let asked = take();
    assert!(!asked.is_empty());
    assert!(
        asked
            .iter()
            .all(|answer| *answer == Some(LockError::InCallback))
    );
    // The collation holds the connection that holds the collation.
    drop(session);
    locked.close().expect("closes");
}

#[test]
fn a_changed_schema_is_an_error_and_added_columns_are_not() {
    let connection = open(ALL_TYPES);
    let locked = connection.lock().expect("open");
    let session = record(&locked);
    run(
        &locked,
        "INSERT INTO t VALUES(1, 1); ALTER TABLE t ADD COLUMN b DEFAULT 'added'",
    );
    run(&locked, "UPDATE t SET a = 2");
    let changeset = session.changeset(&locked).expect("a changeset");
    let change = read_changeset(&changeset)
        .next()
        .expect("one")
        .expect("reads");
    assert_eq!(change.new[2], Some(ValueRef::Text(b"added")));
    run(
        &locked,
        "DROP TABLE t; CREATE TABLE t(a, id PRIMARY KEY); INSERT INTO t VALUES(1, 2)",
    );
    let error = session.changeset(&locked).expect_err("another table");
    assert_eq!(error.code(), codes::SQLITE_SCHEMA);
}

/// SQLite empties a table at once when nobody looks at its rows, and compiles that in.
#[test]
fn a_statement_prepared_before_the_session_is_recorded() {
    let connection = open("CREATE TABLE t(id PRIMARY KEY); INSERT INTO t VALUES(1), (2)");
    let locked = connection.lock().expect("open");
    let prepared = locked.prepare("DELETE FROM t", true).expect("prepares");
    let mut statement = prepared.statement.expect("a statement");
    let session = record(&locked);
    statement.step(&locked).expect("deletes");
    let changeset = session.changeset(&locked).expect("a changeset");
    assert_eq!(read_changeset(&changeset).count(), 2);
}

#[test]
fn another_connections_guard_is_refused() {
    let (one, two) = (open(ALL_TYPES), open(ALL_TYPES));
    let (one, two) = (one.lock().expect("open"), two.lock().expect("open"));
    let session = record(&one);
    let error = session.changeset(&two).expect_err("not its connection");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    assert!(session.patchset(&two).is_err());
    assert!(session.attach(&two, None).is_err());
    assert!(session.set_enabled(&two, false).is_err());
    assert!(session.set_indirect(&two, true).is_err());
    assert!(session.is_enabled(&two).is_err());
    assert!(session.is_indirect(&two).is_err());
    assert!(session.is_empty(&two).is_err());
    assert!(session.memory_used(&two).is_err());
    assert!(session.diff(&two, c"main", c"t").is_err());
    assert_eq!(session.is_enabled(&one), Ok(true));
}

#[test]
fn closing_deletes_the_sessions_and_ends_all_use() {
    let connection = open(ALL_TYPES);
    let locked = connection.lock().expect("open");
    let (session, other) = (record(&locked), record(&locked));
    run(&locked, "INSERT INTO t VALUES(1, 1)");
    drop(other);
    locked.close().expect("closes");
    assert_eq!(connection.lock().err(), Some(LockError::Closed));
    drop(session);
}

#[test]
fn a_connection_lives_as_long_as_its_last_session() {
    let connection = open(ALL_TYPES);
    let locked = connection.lock().expect("open");
    let (first, last) = (record(&locked), record(&locked));
    run(&locked, "INSERT INTO t VALUES(1, 1)");
    drop(locked);
    drop(connection);
    drop(first);
    drop(last);
}

fn has_no_session(connection: &Connection) -> bool {
    let locked = connection.lock().expect("open");
    let is_set = locked.set_preupdate_hook(Some(Box::new(|_| {}))).is_ok();
    locked.set_preupdate_hook(None).expect("removes");
    is_set
}

#[test]
fn a_session_dropped_while_another_thread_holds_the_lock_is_deleted_later() {
    let connection = open(ALL_TYPES);
    let session = record(&connection.lock().expect("open"));
    let locked = connection.lock().expect("open");
    thread::scope(|scope| {
        // It does not wait for us, or this would never end.
        scope.spawn(move || drop(session));
    });
    run(&locked, "INSERT INTO t VALUES(1, 1)");
    drop(locked);
    assert!(has_no_session(&connection));
}

/// A callback may drop a session, for example by collecting garbage, while the sessions' own hook
/// is up the stack: it reads the schema of a table that changes for the first time.
#[test]
fn a_session_dropped_under_its_own_hook_is_deleted_later() {
    let connection = open("CREATE TABLE t(id PRIMARY KEY, a)");
    let locked = connection.lock().expect("open");
    let kept = record(&locked);
    let sessions = Mutex::new(vec![record(&locked), record(&locked)]);
    let dropped = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&dropped);
    locked
        .set_authorizer(Some(Box::new(move |asked| {
            if asked.arguments[0].is_some_and(|name| name == c"table_xinfo")
                && let Some(session) = sessions.lock().expect("no panic").pop()
            {
                drop(session);
                *counter.lock().expect("no panic") += 1;
            }
            codes::SQLITE_OK
        })))
        .expect("set");
    run(&locked, "INSERT INTO t VALUES(1, 1); UPDATE t SET a = 2");
    assert_eq!(*dropped.lock().expect("no panic"), 2);
    let changeset = kept.changeset(&locked).expect("a changeset");
    assert_eq!(read_changeset(&changeset).count(), 1);
    drop(kept);
    drop(locked);
    assert!(has_no_session(&connection));
}

/// A function of the user's in the default of a new column is run by the sessions' hook itself.
#[test]
fn a_session_dropped_by_a_function_is_deleted_later() {
    let connection = open("CREATE TABLE t(id PRIMARY KEY, a)");
    let locked = connection.lock().expect("open");
    let sessions = Arc::new(Mutex::new(vec![record(&locked), record(&locked)]));
    let left = Arc::clone(&sessions);
    let own = connection.clone();
    locked
        .create_function(
            c"forget",
            0,
            false,
            Some(Box::new(move |context| {
                let locked = own.lock().expect("functions may");
                drop(sessions.lock().expect("no panic").pop());
                let error = locked
                    .set_preupdate_hook(Some(Box::new(|_| {})))
                    .expect_err("they are still there");
                assert_eq!(error.code(), codes::SQLITE_MISUSE);
                context.set_result(ValueRef::Integer(1));
            })),
        )
        .expect("creates");
    run(&locked, "INSERT INTO t VALUES(1, 1); DROP TABLE t");
    run(
        &locked,
        "CREATE TABLE t(id PRIMARY KEY, a, b DEFAULT (forget()))",
    );
    run(&locked, "INSERT INTO t VALUES(1, 1, 1)");
    assert!(left.lock().expect("no panic").is_empty(), "the hook ran it");
    run(&locked, "INSERT INTO t(id) VALUES(2), (3), (4)");
    locked
        .create_function(c"forget", 0, false, None)
        .expect("removes");
    drop(locked);
    assert!(has_no_session(&connection));
}

#[test]
fn concatenated_changesets_do_both() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let (source, target) = (source.lock().expect("open"), target.lock().expect("open"));
    let first = {
        let session = record(&source);
        run(&source, "INSERT INTO t VALUES(1, 1), (2, 2)");
        session.changeset(&source).expect("a changeset")
    };
    let (second, patch) = {
        let session = record(&source);
        run(
            &source,
            "UPDATE t SET a = 'later' WHERE id = 1; DELETE FROM t WHERE id = 2",
        );
        (
            session.changeset(&source).expect("a changeset"),
            session.patchset(&source).expect("a patchset"),
        )
    };
    let both = concat_changesets(&first, &second).expect("concatenates");
    assert_eq!(read_changeset(&both).count(), 1);
    target
        .apply_changeset(&both, None, &mut no_conflict)
        .expect("applies");
    assert_eq!(
        rows(&target, "SELECT * FROM t"),
        rows(&source, "SELECT * FROM t")
    );
    assert_eq!(concat_changesets(&[], &[]), Ok(Vec::new()));
    assert_eq!(
        concat_changesets(&first, &[]),
        concat_changesets(&[], &first)
    );
    let error = concat_changesets(&first, &patch).expect_err("not of a kind");
    assert_eq!(error.code(), codes::SQLITE_MISUSE);
    // An empty one is of either kind.
    assert!(concat_changesets(&[], &patch).is_ok());
}

#[test]
fn an_interruption_does_not_stop_the_undoing() {
    let (source, target) = (open(ALL_TYPES), open(ALL_TYPES));
    let source = source.lock().expect("open");
    let session = record(&source);
    run(&source, "INSERT INTO t VALUES(1, 1), (2, 2), (3, 3)");
    let changeset = session.changeset(&source).expect("a changeset");
    let locked = target.lock().expect("open");
    for (action, is_unread) in [
        (ConflictAction::Abort, true),
        (ConflictAction::Replace, true),
        (ConflictAction::Omit, true),
        (ConflictAction::Omit, false),
    ] {
        run(
            &locked,
            "DELETE FROM t; INSERT INTO t VALUES(3, 0), (2, 0); BEGIN; INSERT INTO t VALUES(9, 9)",
        );
        let prepared = locked.prepare("VALUES (1), (2)", false).expect("prepares");
        let mut query = prepared.statement.expect("a statement");
        if is_unread {
            assert_eq!(query.step(&locked), Ok(Step::Row));
        }
        let error = locked
            .apply_changeset(&changeset, None, &mut |_| {
                assert!(target.interrupt_handle().interrupt());
                action
            })
            .expect_err("interrupted");
        assert_eq!(error.code(), codes::SQLITE_INTERRUPT);
        assert!(
            !locked.is_autocommit(),
            "the outer transaction is not the application's"
        );
        // The query is interrupted afterwards, as it would be by SQLite.
        assert_eq!(query.step(&locked).is_err(), is_unread);
        query.reset(&locked).ok();
        assert_eq!(count(&locked, "t"), "Integer(3)");
        assert!(locked.execute_batch("RELEASE changeset_apply").is_err());
        run(&locked, "COMMIT");
    }
}
