//! A connection that is handed over: its next user finds its statements prepared.

use std::path::PathBuf;

use oxlite_core::{Connection, OpenOptions, Profile};

const READ: &str = "SELECT a FROM t";

struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let file = format!("oxlite-{}-{name}.db", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn open(&self) -> Connection {
        let profile = Profile::named("web").expect("known");
        let name = self.0.to_str().expect("UTF-8");
        Connection::open(&OpenOptions::new(name, profile).expect("valid")).expect("opens")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-gate"] {
            let mut name = self.0.clone().into_os_string();
            name.push(suffix);
            let _ = std::fs::remove_file(name);
        }
    }
}

/// Reads once, and says how often the statement was prepared anew.
fn read(connection: &Connection) -> i32 {
    let locked = connection.lock().expect("open");
    let statement = connection.statement(&locked, READ).expect("prepares");
    let mut cached = statement.expect("a statement");
    while cached.statement.step(&locked).expect("steps") == oxlite_sqlite::Step::Row {}
    let count = cached.statement.reprepare_count(&locked);
    connection.keep(cached, &locked);
    count
}

#[test]
fn its_statements_stay_prepared() {
    let file = File::new("stays-prepared");
    let mut connection = file.open();
    connection
        .lock()
        .expect("open")
        .execute_batch("CREATE TABLE t(a)")
        .expect("runs");
    for _ in 0..3 {
        let locked = connection.lock().expect("open");
        assert!(!connection.note_prepared(&locked).expect("notes"));
        drop(locked);
        assert_eq!(read(&connection), 0);
        let locked = connection.lock().expect("open");
        let next = connection.hand_over(locked).expect("is handed over");
        connection = next;
    }
    assert_eq!(read(&connection), 0);
}

#[test]
fn one_that_was_told_to_refuse_writes_writes_again() {
    let file = File::new("writes-again");
    let connection = file.open();
    let locked = connection.lock().expect("open");
    locked.execute_batch("CREATE TABLE t(a)").expect("runs");
    connection.note_prepared(&locked).expect("notes");
    locked.refuse_writes(true).expect("refuses");
    assert!(locked.execute_batch("INSERT INTO t VALUES (1)").is_err());
    let next = connection.hand_over(locked).expect("is handed over");
    let locked = next.lock().expect("open");
    locked
        .execute_batch("INSERT INTO t VALUES (1)")
        .expect("writes");
}
