//! NOTIFY and LISTEN: what is committed arrives once and in order, and nothing is lost without a word.

#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_core::{
    Channel, Connection, End, Feed, Notification, OpenOptions, Outcome, Pattern, Position, Profile,
    Request, Signals, Subscription, Value, announce, notifying, prepare, run_batch,
};

/// Ends what hangs; nothing waits for as long as that.
const AT_MOST: Duration = Duration::from_secs(30);

/// A database with its table, gone when this is dropped.
struct Database(PathBuf);

impl Database {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxlite-{}-n-{name}.db", std::process::id()));
        let database = Self(path);
        database.remove();
        let writer = database.connect();
        prepare(&writer, &writer.lock().expect("it is open")).expect("a table");
        database
    }

    fn connect(&self) -> Arc<Connection> {
        let profile = Profile::named("web").expect("a profile");
        let path = self.0.to_str().expect("a name");
        let options = OpenOptions::new(path, profile).expect("options");
        Arc::new(Connection::open(&options).expect("a database"))
    }

    fn feed(&self) -> Feed {
        Feed::new(self.connect()).expect("signals")
    }

    fn notify(&self, writer: &Connection, channel: &str, payload: &str) {
        let requests = [self.request(channel, payload)];
        let locked = writer.lock().expect("it is open");
        let Outcome::Done(answers) = run_batch(writer, &locked, &requests, AT_MOST, None) else {
            panic!("it has not begun");
        };
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }

    fn request(&self, channel: &str, payload: &str) -> Request {
        let signals = Signals::of(&self.0).expect("shared memory");
        let channel = Channel::named(channel).expect("a name");
        let payload = Value::Text(payload.as_bytes().into());
        notifying(&channel, payload, Some(signals)).expect("a payload")
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm", "-lock"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.remove();
    }
}

fn listen(feed: &Feed, patterns: &[&str], since: Option<Position>) -> Subscription {
    let patterns = patterns
        .iter()
        .map(|text| Pattern::of(text).expect("a pattern"));
    let listened = feed.listen(patterns.collect(), since);
    listened.expect("a feed").expect("nothing is lost")
}

/// The next one, which is waited for.
fn next(subscription: &Subscription) -> Arc<Notification> {
    let ends = Instant::now() + AT_MOST;
    while Instant::now() < ends {
        if let Some(notification) = subscription.take().expect("no end") {
            return notification;
        }
        subscription.wait(Some(AT_MOST)).expect("a bell");
    }
    panic!("nothing has come");
}

fn end_of(subscription: &Subscription) -> End {
    let ends = Instant::now() + AT_MOST;
    while Instant::now() < ends {
        match subscription.take() {
            Err(end) => return end,
            Ok(Some(_)) => {}
            Ok(None) => subscription.wait(Some(AT_MOST)).expect("a bell"),
        }
    }
    panic!("it has not ended");
}

fn payload(notification: &Notification) -> &str {
    match &notification.payload {
        Value::Text(bytes) => std::str::from_utf8(bytes).expect("text"),
        other => panic!("{other:?} is no text"),
    }
}

#[test]
fn each_listener_is_given_what_is_for_it_in_order() {
    let database = Database::new("order");
    let (feed, writer) = (database.feed(), database.connect());
    let orders = listen(&feed, &["orders"], None);
    let chat = listen(&feed, &["chat.*", "orders"], None);

    for number in 0..10 {
        database.notify(&writer, "orders", &format!("o{number}"));
        database.notify(&writer, "chat.1", &format!("c{number}"));
        database.notify(&writer, "other", "");
    }

    for number in 0..10 {
        assert_eq!(payload(&next(&orders)), format!("o{number}"));
        assert_eq!(payload(&next(&chat)), format!("o{number}"));
        let from_chat = next(&chat);
        assert_eq!(payload(&from_chat), format!("c{number}"));
        assert_eq!(&*from_chat.channel, "chat.1");
    }
    assert!(orders.take().expect("no end").is_none());
}

#[test]
fn whoever_reads_by_himself_goes_on_when_another_one_comes_and_when_it_leaves() {
    let database = Database::new("alone");
    let (feed, writer) = (database.feed(), database.connect());
    let alone = listen(&feed, &["orders"], None);
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| (0..3).map(|_| payload(&next(&alone)).to_owned()).collect());
        database.notify(&writer, "orders", "by himself");
        std::thread::sleep(Duration::from_millis(50));
        let other = listen(&feed, &["orders"], None);
        std::thread::sleep(Duration::from_millis(50));
        database.notify(&writer, "orders", "by the thread");
        assert_eq!(payload(&next(&other)), "by the thread");
        drop(other);
        database.notify(&writer, "orders", "after that");
        let heard: Vec<String> = reader.join().expect("no panic");
        assert_eq!(heard, ["by himself", "by the thread", "after that"]);
    });
}

#[test]
fn all_threads_that_wait_for_one_listener_hear_of_its_end() {
    let database = Database::new("ends");
    let (feed, writer) = (database.feed(), database.connect());
    database.notify(&writer, "orders", "first");
    let subscription = listen(&feed, &["orders"], None);
    std::thread::scope(|threads| {
        let waiting: Vec<_> = (0..3)
            .map(|_| threads.spawn(|| end_of(&subscription)))
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        {
            let locked = writer.lock().expect("it is open");
            let sql = "INSERT INTO oxlite_notification (channel) VALUES ('orders'), ('orders')";
            for sql in [
                "BEGIN",
                sql,
                "DELETE FROM oxlite_notification WHERE id < 3",
                "COMMIT",
            ] {
                writer.run(&locked, sql).expect("a table");
            }
        }
        for thread in waiting {
            assert!(matches!(thread.join().expect("no panic"), End::Lost(_)));
        }
    });
}

#[test]
fn listening_begins_at_the_call() {
    let database = Database::new("begin");
    let (feed, writer) = (database.feed(), database.connect());
    database.notify(&writer, "orders", "before");
    let subscription = listen(&feed, &["orders"], None);

    database.notify(&writer, "orders", "after");

    assert_eq!(payload(&next(&subscription)), "after");
}

#[test]
fn what_was_rolled_back_never_was() {
    let database = Database::new("rollback");
    let (feed, writer) = (database.feed(), database.connect());
    let subscription = listen(&feed, &["orders"], None);
    let signals = Signals::of(&database.0).expect("shared memory");
    let orders = Channel::named("orders").expect("a name");
    for (payload, end) in [("lost", "ROLLBACK"), ("kept", "COMMIT")] {
        let locked = writer.lock().expect("it is open");
        let insert = format!(
            "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', '{payload}')"
        );
        writer.run(&locked, "BEGIN IMMEDIATE").expect("the lock");
        writer.run(&locked, &insert).expect("a row");
        announce(&locked, orders.topics().into(), Arc::clone(&signals));
        assert!(
            subscription.take().expect("no end").is_none(),
            "before the end"
        );
        writer.run(&locked, end).expect("an end");
    }

    assert_eq!(payload(&next(&subscription)), "kept");
    assert!(subscription.take().expect("no end").is_none());
}

#[test]
fn notifications_of_one_batch_arrive_in_its_order() {
    let database = Database::new("batch");
    let (feed, writer) = (database.feed(), database.connect());
    let subscription = listen(&feed, &["*"], None);
    let requests: Vec<_> = (0..100)
        .map(|number| database.request("orders", &number.to_string()))
        .collect();
    let locked = writer.lock().expect("it is open");

    let mut left = &requests[..];
    while !left.is_empty() {
        match run_batch(&writer, &locked, left, AT_MOST, None) {
            Outcome::Done(answers) => left = &left[answers.len()..],
            Outcome::NotBegun(error) => panic!("{error}"),
        }
    }

    for number in 0..100 {
        assert_eq!(payload(&next(&subscription)), number.to_string());
    }
}

#[test]
fn who_comes_back_goes_on_where_he_stopped() {
    let database = Database::new("since");
    let (feed, writer) = (database.feed(), database.connect());
    let subscription = listen(&feed, &["orders"], None);
    for number in 0..3 {
        database.notify(&writer, "orders", &number.to_string());
    }
    let position = next(&subscription).position;
    drop(subscription);

    let text = position.to_string();
    let again = listen(&feed, &["orders"], Some(text.parse().expect("a position")));

    assert_eq!(payload(&next(&again)), "1");
    assert_eq!(payload(&next(&again)), "2");
}

#[test]
fn what_is_not_kept_any_more_is_said() {
    let database = Database::new("lost");
    let (feed, writer) = (database.feed(), database.connect());
    let subscription = listen(&feed, &["orders"], None);
    for number in 0..5 {
        database.notify(&writer, "orders", &number.to_string());
    }
    let first = next(&subscription).position;
    {
        let locked = writer.lock().expect("it is open");
        writer
            .run(&locked, "DELETE FROM oxlite_notification WHERE id <= 3")
            .expect("rows");
    }
    let patterns = || vec![Pattern::of("orders").expect("a pattern")];

    let lost = feed.listen(patterns(), Some(first)).expect("a feed");

    let lost = lost.err().expect("some are gone");
    assert!(!lost.is_of_another_epoch);
    let again = listen(&feed, &["orders"], Some(lost.resume_from));
    assert_eq!(payload(&next(&again)), "3");

    // Another history, and a number that there has not been yet.
    let beyond = Position { number: 6, ..first };
    let lost = feed.listen(patterns(), Some(beyond)).expect("a feed");
    assert!(lost.err().expect("it went back").is_of_another_epoch);
    let other: Position = "0123456789abcdef-5".parse().expect("a position");
    let lost = feed.listen(patterns(), Some(other)).expect("a feed");
    assert!(lost.err().expect("another one").is_of_another_epoch);
}

#[test]
fn a_listener_that_does_not_read_is_given_all_that_is_kept() {
    let database = Database::new("slow");
    let (feed, writer) = (database.feed(), database.connect());
    let slow = listen(&feed, &["orders"], None);
    let quick = listen(&feed, &["orders"], None);
    for number in 0..5000 {
        database.notify(&writer, "orders", &number.to_string());
        assert_eq!(payload(&next(&quick)), number.to_string());
    }

    for number in 0..5000 {
        assert_eq!(payload(&next(&slow)), number.to_string());
    }
}

#[test]
fn a_listener_that_falls_behind_what_is_kept_is_told() {
    let database = Database::new("behind");
    let (feed, writer) = (database.feed(), database.connect());
    let slow = listen(&feed, &["orders"], None);
    for number in 0..3000 {
        database.notify(&writer, "orders", &number.to_string());
    }
    {
        let locked = writer.lock().expect("it is open");
        writer
            .run(&locked, "DELETE FROM oxlite_notification WHERE id < 3000")
            .expect("rows");
    }

    let End::Lost(lost) = end_of(&slow) else {
        panic!("it was given what is not there");
    };
    assert_eq!(lost.resume_from.number, 2999);
}

#[test]
fn the_table_keeps_itself_short_and_the_newest() {
    let database = Database::new("prune");
    let writer = database.connect();
    let locked = writer.lock().expect("it is open");
    let run = |sql: &str| writer.run(&locked, sql).expect("a statement");
    // The first ones two days old.
    run("INSERT INTO oxlite_notification (channel, created_at) \
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 511) \
         SELECT 'orders', CAST((julianday('now') - 2440587.5 - (i < 200) * 2) * 86400000 AS INTEGER) FROM n");
    run("INSERT INTO oxlite_notification (channel) VALUES ('orders')");
    let feed = database.feed();
    let first = feed
        .listen(
            vec![Pattern::of("*").expect("a pattern")],
            Some("0000000000000000-1".parse().expect("one")),
        )
        .expect("a feed")
        .err()
        .expect("another epoch");
    assert_eq!(first.resume_from.number, 199);
    run("INSERT INTO oxlite_notification (channel) \
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100096) \
         SELECT 'orders' FROM n");
    let first = feed
        .listen(
            vec![Pattern::of("*").expect("a pattern")],
            Some("0000000000000000-1".parse().expect("one")),
        )
        .expect("a feed")
        .err()
        .expect("another epoch");
    assert_eq!(first.resume_from.number, 512 + 100_096 - 100_000 - 1);
}

#[test]
fn a_feed_that_is_closed_ends_its_listeners() {
    let database = Database::new("closed");
    let feed = database.feed();
    let subscription = listen(&feed, &["orders"], None);

    feed.close();

    assert!(matches!(end_of(&subscription), End::Closed));
    assert!(
        feed.listen(vec![Pattern::of("*").expect("a pattern")], None)
            .is_err()
    );
}

const INSERT: &str =
    "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', 'unsaid')";

#[test]
fn what_nobody_signals_is_heard() {
    let database = Database::new("unsaid");
    let (feed, writer) = (database.feed(), database.connect());
    let subscription = listen(&feed, &["orders"], None);
    for _ in 0..20 {
        {
            let locked = writer.lock().expect("it is open");
            writer.run(&locked, INSERT).expect("a row");
        }
        assert_eq!(payload(&next(&subscription)), "unsaid");
    }
}

/// Not a test of its own: another process, which listens until it is killed.
#[test]
fn other_process() {
    let Ok(path) = std::env::var("OXLITE_TEST_LISTENS_TO") else {
        return;
    };
    let database = std::mem::ManuallyDrop::new(Database(path.into()));
    let feed = database.feed();
    let subscription = listen(&feed, &["orders"], None);
    println!("ready");
    loop {
        println!("{}", payload(&next(&subscription)));
    }
}

#[test]
fn when_the_one_that_watches_is_killed_another_one_does() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let database = Database::new("watcher");
    let writer = database.connect();
    for _ in 0..5 {
        let mut other = Command::new(std::env::current_exe().expect("a name"))
            .args(["--exact", "other_process", "--nocapture"])
            .env("OXLITE_TEST_LISTENS_TO", &database.0)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut said = BufReader::new(other.stdout.take().expect("it is piped")).lines();
        let mut hears = |what: &str| said.any(|line| line.is_ok_and(|line| line.ends_with(what)));
        assert!(hears("ready"));
        let feed = database.feed();
        let subscription = listen(&feed, &["orders"], None);
        let insert = || {
            let locked = writer.lock().expect("it is open");
            writer.run(&locked, INSERT).expect("a row");
        };
        insert();
        assert!(hears("unsaid"), "the other one, which watches");
        assert_eq!(payload(&next(&subscription)), "unsaid");

        other.kill().expect("it is ours");
        insert();

        assert_eq!(payload(&next(&subscription)), "unsaid");
        other.wait().expect("it has ended");
    }
}

#[test]
fn a_database_that_is_replaced_ends_its_listeners() {
    let database = Database::new("replaced");
    let feed = database.feed();
    let subscription = listen(&feed, &["orders"], None);

    std::fs::remove_file(&database.0).expect("it is there");

    let End::Failed(error) = end_of(&subscription) else {
        panic!("it was not told");
    };
    assert!(
        error.to_string().contains("was deleted or replaced"),
        "{error}"
    );
}

#[test]
fn one_knows_whether_anybody_writes_in_this_process_too() {
    let database = Database::new("writes");
    let writer = database.connect();
    let mut index = database.0.clone().into_os_string();
    index.push("-shm");
    let is_written = || oxlite_sqlite::is_write_locked(std::path::Path::new(&index));
    for end in ["COMMIT", "ROLLBACK"] {
        assert_eq!(is_written(), Some(false));
        for statement in [
            "BEGIN IMMEDIATE",
            "INSERT INTO oxlite_notification (channel) VALUES ('a')",
        ] {
            let locked = writer.lock().expect("it is open");
            writer.run(&locked, statement).expect("it writes");
            drop(locked);
            assert_eq!(is_written(), Some(true));
        }
        let locked = writer.lock().expect("it is open");
        writer.run(&locked, end).expect("it ends");
    }
    assert_eq!(is_written(), Some(false));
}
