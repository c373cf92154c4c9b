//! Batches of write requests: whatever one of them does, the others come through, once each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxlite_core::{
    Answer, Connection, Error, OpenOptions, Outcome, Parameters, Profile, Request, Value, run_batch,
};
use oxlite_sqlite::codes;

const SCHEMA: &str = "
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE entry (id INTEGER PRIMARY KEY, caller INTEGER UNIQUE NOT NULL,
        parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE guard (x);
    CREATE TRIGGER refuse AFTER INSERT ON guard WHEN new.x = 'rollback'
        BEGIN SELECT raise(ROLLBACK, 'rolled back'); END;
    CREATE TRIGGER fail AFTER INSERT ON guard WHEN new.x = 'fail'
        BEGIN SELECT raise(FAIL, 'failed'); END;
    INSERT INTO entry (caller) VALUES (-1);
";

/// A database of its own for each test, removed at its end.
struct Scratch {
    folder: PathBuf,
    connection: Connection,
}

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oxlite-batch-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("creates");
        let path = folder.join("app.db").to_str().expect("UTF-8").to_owned();
        // What is tested here is not the disk.
        let profile = Profile::named("cache").expect("known");
        let options = OpenOptions::new(path, profile).expect("valid");
        let connection = Connection::open(&options).expect("opens");
        let scratch = Self { folder, connection };
        scratch.script(SCHEMA);
        scratch
    }

    fn script(&self, sql: &str) {
        let locked = self.connection.lock().expect("open");
        locked.execute_batch(sql).expect("runs");
    }

    /// The values of the first column.
    fn column(&self, sql: &str) -> Vec<i64> {
        let locked = self.connection.lock().expect("open");
        let prepared = self.connection.statement(&locked, sql).expect("prepares");
        let mut cached = prepared.expect("not empty");
        let mut values = Vec::new();
        while cached.statement.step(&locked).expect("steps") == oxlite_core::Step::Row {
            let row = cached.statement.row(&locked).expect("a row");
            match row.get(0).expect("a value") {
                oxlite_core::ValueRef::Integer(value) => values.push(value),
                other => panic!("{other:?}"),
            }
        }
        self.connection.keep(cached, &locked);
        values
    }

    /// Runs them to the last, as the line of writers does with those that a batch has not taken up.
    fn run(&self, requests: &[Request]) -> Vec<Result<Answer, Error>> {
        let locked = self.connection.lock().expect("open");
        let mut answers = Vec::new();
        while answers.len() < requests.len() {
            let rest = &requests[answers.len()..];
            match run_batch(
                &self.connection,
                &locked,
                rest,
                Duration::from_secs(5),
                None,
            ) {
                Outcome::Done(done) => {
                    assert!(!done.is_empty(), "every batch does something");
                    answers.extend(done);
                }
                Outcome::NotBegun(error) => panic!("{error}"),
            }
            assert!(locked.is_autocommit(), "no transaction is left open");
        }
        answers
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn request(sql: &str, values: Vec<Value>) -> Request {
    Request {
        sql: sql.into(),
        sets: vec![Parameters::Positional(values)],
        is_many: false,
        announces: None,
    }
}

fn good(caller: i64) -> Request {
    request(
        "INSERT INTO entry (caller) VALUES (?) RETURNING id",
        vec![Value::Integer(caller)],
    )
}

/// What ruins a transaction, or only itself: SQL, and the result code it ends with; none for an error that
/// SQLite never sees.
const POISONS: &[(&str, Option<i32>)] = &[
    (
        "INSERT INTO entry (caller) VALUES (-1)",
        Some(codes::SQLITE_CONSTRAINT_UNIQUE),
    ),
    (
        "INSERT OR ROLLBACK INTO entry (caller) VALUES (-1)",
        Some(codes::SQLITE_CONSTRAINT_UNIQUE),
    ),
    (
        "INSERT INTO guard VALUES ('rollback')",
        Some(codes::SQLITE_CONSTRAINT_TRIGGER),
    ),
    (
        "INSERT INTO entry (caller, parent) VALUES (-2, 7)",
        Some(codes::SQLITE_CONSTRAINT_FOREIGNKEY),
    ),
    ("INSERT INTO nowhere VALUES (1)", Some(codes::SQLITE_ERROR)),
    ("INSERT INTO guard VALUES (?)", None),
    ("INSERT INTO guard VALUES (1); DELETE FROM entry", None),
];

/// The sizes of batches: all where there is time, else these.
fn sizes() -> Vec<usize> {
    match std::env::var_os("OXLITE_ALL_BATCHES") {
        Some(_) => (1..=256).collect(),
        None => vec![1, 2, 3, 5, 16, 61, 256],
    }
}

#[test]
fn poison_at_every_position_fails_alone() {
    let scratch = Scratch::new();
    let mut batches = 0;
    for size in sizes() {
        for position in 0..size {
            // One kind each, so that every kind comes to every place in time.
            let (poison, code) = POISONS[(position + size + batches) % POISONS.len()];
            batches += 1;
            let mut requests: Vec<Request> = (0..size).map(|caller| good(caller as i64)).collect();
            requests[position] = request(poison, vec![]);
            let answers = scratch.run(&requests);
            for (caller, answer) in answers.iter().enumerate() {
                match answer {
                    Ok(answer) if caller != position => {
                        assert_eq!(answer.rowcount, 1);
                        let id = answer.last_insert_rowid.expect("it has inserted");
                        assert_eq!(answer.rows, [Value::Integer(id)]);
                    }
                    Err(error) if caller == position => match (error, code) {
                        (Error::Sqlite(error), Some(code)) => {
                            assert_eq!(error.code(), code, "{poison}");
                        }
                        (Error::Programming(_), None) => {}
                        (error, _) => panic!("{poison}: {error}"),
                    },
                    other => panic!("{poison} at {position} of {size}: {caller} {other:?}"),
                }
            }
            let there =
                scratch.column("SELECT caller FROM entry WHERE caller >= 0 ORDER BY caller");
            let wanted: Vec<i64> = (0..size as i64)
                .filter(|caller| *caller != position as i64)
                .collect();
            assert_eq!(there, wanted, "{poison} at {position} of {size}");
            scratch.script("DELETE FROM entry WHERE caller <> -1");
        }
    }
    assert_eq!(scratch.column("SELECT count(*) FROM guard"), [0]);
    eprintln!("{batches} batches");
}

#[test]
fn a_batch_of_nothing_but_poison_leaves_nothing() {
    let scratch = Scratch::new();
    for (poison, _) in POISONS {
        let requests: Vec<Request> = (0..64).map(|_| request(poison, vec![])).collect();
        assert!(
            scratch.run(&requests).iter().all(Result::is_err),
            "{poison}"
        );
    }
    assert_eq!(scratch.column("SELECT count(*) FROM entry"), [1]);
}

#[test]
fn all_that_end_the_transaction_do_not_keep_the_others_from_it() {
    let scratch = Scratch::new();
    let requests: Vec<Request> = (0..40)
        .map(|caller| match caller % 2 {
            0 => good(caller),
            _ => request("INSERT INTO guard VALUES ('rollback')", vec![]),
        })
        .collect();
    let answers = scratch.run(&requests);
    for (caller, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), caller % 2 == 0, "{caller}: {answer:?}");
    }
    assert_eq!(
        scratch.column("SELECT count(*) FROM entry WHERE caller >= 0"),
        [20]
    );
}

#[test]
fn those_that_are_run_alone_do_not_wait_one_after_the_other() {
    let scratch = Scratch::new();
    let path = scratch.folder.join("app.db");
    let name = path.to_str().expect("UTF-8");
    let profile = Profile::named("cache").expect("known");
    let options = OpenOptions::new(name, profile).expect("valid");
    // It cannot wait for us, in whose midst it runs.
    let options = options.with_timeout(0.0).expect("valid");
    let other = Arc::new(Connection::open(&options).expect("opens"));
    let locked = scratch.connection.lock().expect("open");
    // With the fourth loss, after which each is run alone, somebody else takes the lock.
    let (taker, losses) = (Arc::clone(&other), AtomicU32::new(0));
    locked.set_rollback_hook(Some(Box::new(move || {
        if losses.fetch_add(1, Ordering::Relaxed) == 3 {
            let locked = taker.lock().expect("open");
            locked.execute_batch("BEGIN IMMEDIATE").expect("is free");
        }
    })));
    let poison = || request("INSERT INTO guard VALUES ('rollback')", vec![]);
    let mut requests = vec![good(0), good(1)];
    requests.extend((0..4).map(|_| poison()));
    requests.push(good(2));
    let timeout = Duration::from_millis(50);
    let outcome = run_batch(&scratch.connection, &locked, &requests, timeout, None);
    let Outcome::Done(answers) = outcome else {
        panic!("{outcome:?}")
    };
    // The first waits for its time; the second is left to wait for its own.
    assert!(
        matches!(answers[..], [Err(Error::Locked { .. })]),
        "{answers:?}"
    );
    let taken = other.lock().expect("open");
    taken.execute_batch("ROLLBACK").expect("is open");
}

#[test]
fn or_fail_keeps_what_sqlite_keeps_alone_and_together() {
    let scratch = Scratch::new();
    let failing = request(
        "INSERT OR FAIL INTO entry (caller) VALUES (100), (-1), (101)",
        vec![],
    );
    for others in [vec![], vec![good(0)]] {
        let mut requests = vec![failing.clone()];
        requests.extend(others);
        assert!(scratch.run(&requests)[0].is_err());
        assert_eq!(
            scratch.column("SELECT caller FROM entry WHERE caller >= 100"),
            [100]
        );
        scratch.script("DELETE FROM entry WHERE caller >= 0");
    }
}

#[test]
fn many_sets_are_all_there_or_none() {
    let scratch = Scratch::new();
    let many = |callers: &[i64]| Request {
        sql: "INSERT INTO entry (caller) VALUES (:caller)".into(),
        sets: callers
            .iter()
            .map(|caller| Parameters::Named(vec![("caller".into(), Value::Integer(*caller))]))
            .collect(),
        is_many: true,
        announces: None,
    };
    for others in [vec![], vec![good(50)]] {
        let mut requests = vec![many(&[1, 2, -1]), many(&[3, 4]), many(&[])];
        requests.extend(others);
        let answers = scratch.run(&requests);
        assert!(answers[0].is_err());
        assert_eq!(answers[1].as_ref().expect("goes well").rowcount, 2);
        assert_eq!(answers[2], Ok(Answer::default()));
        assert_eq!(
            scratch.column("SELECT caller FROM entry WHERE caller BETWEEN 0 AND 9"),
            [3, 4]
        );
        scratch.script("DELETE FROM entry WHERE caller >= 0");
        assert!(scratch.run(&[many(&[1, -1])])[0].is_err());
        assert_eq!(scratch.column("SELECT count(*) FROM entry"), [1]);
    }
}

#[test]
fn each_caller_has_its_own_row_id_and_count() {
    let scratch = Scratch::new();
    let answers = scratch.run(&[
        good(1),
        request("UPDATE entry SET parent = NULL", vec![]),
        request("INSERT OR IGNORE INTO entry (caller) VALUES (1)", vec![]),
        request(
            "WITH x(c) AS (VALUES (2), (3)) INSERT INTO entry (caller) SELECT c FROM x",
            vec![],
        ),
    ]);
    let shown: Vec<_> = answers
        .iter()
        .map(|answer| {
            let answer = answer.as_ref().expect("goes well");
            (answer.rowcount, answer.last_insert_rowid)
        })
        .collect();
    assert_eq!(shown, [(1, Some(2)), (2, None), (0, None), (2, Some(4))]);
}

#[test]
fn a_long_batch_leaves_the_rest_for_the_next() {
    let scratch = Scratch::new();
    let slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
                INSERT INTO guard SELECT max(i) FROM n";
    let requests: Vec<Request> = (0..4).map(|_| request(slow, vec![])).collect();
    let locked = scratch.connection.lock().expect("open");
    let outcome = run_batch(
        &scratch.connection,
        &locked,
        &requests,
        Duration::from_secs(5),
        None,
    );
    let Outcome::Done(answers) = outcome else {
        panic!("{outcome:?}")
    };
    assert!((1..4).contains(&answers.len()), "{}", answers.len());
    drop(locked);
    assert_eq!(
        scratch.column("SELECT count(*) FROM guard"),
        [answers.len() as i64]
    );
}

#[test]
fn a_statement_beyond_its_time_fails_alone() {
    let scratch = Scratch::new();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                   INSERT INTO guard SELECT max(i) FROM n";
    let locked = scratch.connection.lock().expect("open");
    let timeout = Some(Duration::from_millis(50));
    locked.set_progress_handler(1000, {
        let deadline = std::sync::Arc::clone(scratch.connection.deadline());
        Some(Box::new(move || deadline.is_over()))
    });
    let requests = [good(1), request(endless, vec![]), good(2)];
    let outcome = run_batch(
        &scratch.connection,
        &locked,
        &requests,
        Duration::from_secs(5),
        timeout,
    );
    drop(locked);
    let Outcome::Done(answers) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(answers[0].is_ok());
    assert!(
        matches!(answers[1], Err(Error::StatementTimeout(_))),
        "{:?}",
        answers[1]
    );
    assert_eq!(scratch.column("SELECT count(*) FROM guard"), [0]);
}
