//! How a checkpoint waits that has a limit of its own: whatever the busy handler, and for as long as nobody
//! tells its connection to stop.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use oxlite_sqlite::{CheckpointMode, Connection, OpenFlags, codes};

/// Longer than any of this takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of its own for each test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("oxlite-checkpoint-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("app.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A connection whose busy handler gives up at once.
fn open(path: &Path) -> Connection {
    let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    let connection = Connection::open(&name, OpenFlags::default()).expect("opens");
    let locked = connection.lock().expect("open");
    locked.set_busy_handler(|_| false).expect("set");
    drop(locked);
    connection
}

fn run(connection: &Connection, script: &str) {
    let locked = connection.lock().expect("open");
    locked.execute_batch(script).expect("valid SQL");
}

/// A log with a reader that is in the way of a checkpoint.
fn with_a_reader(folder: &Folder) -> (Connection, Connection) {
    let (writer, reader) = (open(&folder.database()), open(&folder.database()));
    run(&writer, "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    run(&reader, "BEGIN; SELECT count(*) FROM t");
    run(&writer, "INSERT INTO t VALUES (1)");
    (writer, reader)
}

#[test]
fn an_interruption_ends_the_wait() {
    let folder = Folder::new("interruption");
    let (writer, _reader) = with_a_reader(&folder);
    let handle = writer.interrupt_handle();
    let (done, is_done) = mpsc::channel::<()>();
    let interrupter = thread::spawn(move || {
        // One that comes before the wait has begun is forgotten, so there are several.
        while is_done.recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout)
        {
            handle.interrupt();
        }
    });
    let began = Instant::now();
    let locked = writer.lock().expect("open");
    let outcome = locked.checkpoint_within(c"main", CheckpointMode::Restart, PATIENCE, false);
    drop(done);
    interrupter.join().expect("it ends");
    match outcome {
        Ok(checkpoint) => assert!(checkpoint.is_busy),
        Err(error) => assert_eq!(error.code(), codes::SQLITE_INTERRUPT),
    }
    assert!(began.elapsed() < PATIENCE, "it has hung");
}

#[test]
fn the_end_of_the_reader_ends_the_wait() {
    let folder = Folder::new("reader");
    let (writer, reader) = with_a_reader(&folder);
    let checkpoint = thread::spawn(move || {
        let locked = writer.lock().expect("open");
        locked.checkpoint_within(c"main", CheckpointMode::Truncate, PATIENCE, false)
    });
    run(&reader, "COMMIT");
    let outcome = checkpoint.join().expect("no panic").expect("no failure");
    assert!(!outcome.is_busy);
    assert_eq!(outcome.frames, Some(0));
}
