//! Signals between threads and between processes: whoever listens is woken, and only he.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_core::{Listener, Signals, Topic};

const ORDERS: Topic = Topic::named("orders");
const INVOICES: Topic = Topic::named("invoices");

/// Ends what hangs; nothing waits for as long as that.
const AT_MOST: Duration = Duration::from_secs(30);

/// A file that has signals, gone when this is dropped.
struct Database(PathBuf);

impl Database {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxlite-{}-{name}.db", std::process::id()));
        std::fs::write(&path, b"").expect("a folder to write into");
        Self(path)
    }

    fn signals(&self) -> Arc<Signals> {
        Signals::of(&self.0).expect("memory to share")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn hears(listener: &Listener, seen: u64) -> bool {
    let ends = Instant::now() + AT_MOST;
    while Instant::now() < ends {
        if listener.wait(seen, Some(AT_MOST)).expect("a bell") {
            return true;
        }
    }
    false
}

fn hears_nothing(listener: &Listener, seen: u64) -> bool {
    !listener.wait(seen, Some(Duration::ZERO)).expect("a bell")
}

/// Another process, which does what its role says until it is dropped.
struct Other {
    process: Child,
    /// Kept open for what it goes on printing.
    _prints: BufReader<ChildStdout>,
}

impl Other {
    fn begin(role: &str, path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a name"))
            .args(["--exact", "other_process", "--nocapture"])
            .env("OXLITE_TEST_ROLE", role)
            .env("OXLITE_TEST_PATH", path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut prints = BufReader::new(child.stdout.take().expect("it is piped"));
        let is_ready = prints
            .by_ref()
            .lines()
            .any(|line| line.is_ok_and(|line| line.ends_with("ready")));
        assert!(is_ready, "the other process has ended before it was ready");
        Self {
            process: child,
            _prints: prints,
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test of its own: what [`Other`] runs.
#[test]
fn other_process() {
    let (Ok(role), Ok(path)) = (
        std::env::var("OXLITE_TEST_ROLE"),
        std::env::var("OXLITE_TEST_PATH"),
    ) else {
        return;
    };
    let signals = Signals::of(Path::new(&path)).expect("memory to share");
    match &*role {
        "listens" => {
            let listener = signals.listen(vec![ORDERS]).expect("a place");
            println!("ready");
            let mut seen = listener.seen();
            loop {
                if listener.wait(seen, None).expect("a bell") {
                    seen = listener.seen();
                }
            }
        }
        "signals" => {
            signals.signal(&[ORDERS]);
            println!("ready");
        }
        "answers" => {
            let listener = signals.listen(vec![ORDERS]).expect("a place");
            let seen = listener.seen();
            println!("ready");
            assert!(hears(&listener, seen));
            signals.signal(&[INVOICES]);
        }
        role => unreachable!("{role}"),
    }
}

#[test]
fn a_listener_hears_its_topic_and_no_other() {
    let database = Database::new("topics");
    let signals = database.signals();
    let orders = signals.listen(vec![ORDERS]).expect("a place");
    let both = signals.listen(vec![INVOICES, ORDERS]).expect("a place");
    let seen = orders.seen();

    signals.signal(&[INVOICES]);

    assert!(hears(&both, seen));
    assert!(hears_nothing(&orders, seen));

    signals.signal(&[ORDERS]);

    assert!(hears(&orders, seen));
    let seen = orders.seen();
    assert!(hears_nothing(&orders, seen));
}

#[test]
fn what_was_signalled_before_one_waits_is_not_lost() {
    let database = Database::new("before");
    let signals = database.signals();
    let listener = signals.listen(vec![ORDERS]).expect("a place");
    let seen = listener.seen();

    signals.signal(&[ORDERS]);
    signals.signal(&[ORDERS]);

    assert!(hears(&listener, seen));
    assert!(hears(&listener, seen), "what was seen is asked by number");
}

#[test]
fn who_listens_anew_is_heard_by_the_same_process() {
    let database = Database::new("anew");
    let signals = database.signals();
    for _ in 0..100 {
        let listener = signals.listen(vec![ORDERS]).expect("a place");
        let seen = listener.seen();
        signals.signal(&[ORDERS]);
        assert!(hears(&listener, seen));
    }
}

#[test]
fn another_process_is_heard_and_hears() {
    let database = Database::new("processes");
    let signals = database.signals();
    let listener = signals.listen(vec![INVOICES, ORDERS]).expect("a place");

    let seen = listener.seen();
    drop(Other::begin("signals", &database.0));
    assert!(hears(&listener, seen));

    let other = Other::begin("answers", &database.0);
    let seen = listener.seen();
    signals.signal(&[ORDERS]);
    assert!(hears(&listener, seen), "its own");
    assert!(hears(&listener, seen + 1), "what the other one answers");
    drop(other);
}

#[test]
fn killed_listeners_leave_their_places() {
    let database = Database::new("killed");
    let signals = database.signals();
    // More than there are places.
    for _ in 0..140 {
        drop(Other::begin("listens", &database.0));
    }
    let listener = signals.listen(vec![ORDERS]).expect("a place");
    let seen = listener.seen();

    signals.signal(&[ORDERS]);

    assert!(hears(&listener, seen));
}

#[test]
fn the_last_one_takes_the_page_along() {
    use std::os::unix::fs::MetadataExt;

    let database = Database::new("page");
    let status = std::fs::metadata(&database.0).expect("it is there");
    let ending = format!("-{:x}-{:x}", status.dev(), status.ino());
    let has_page = || {
        let pages = std::fs::read_dir("/dev/shm").expect("shared memory");
        pages
            .flatten()
            .any(|page| page.file_name().to_string_lossy().ends_with(&ending))
    };
    let signals = database.signals();
    assert!(has_page());
    let listener = signals.listen(vec![ORDERS]).expect("a place");
    drop(signals);
    assert!(has_page());

    drop(listener);

    let ends = Instant::now() + AT_MOST;
    while has_page() && Instant::now() < ends {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!has_page());
}
