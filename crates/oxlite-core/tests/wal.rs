//! The policy of the log on a real file, without Python: what it keeps short, and what it leaves alone.

use std::path::{Path, PathBuf};

use oxlite_core::{
    CheckpointMode, Connection, OpenOptions, PragmaValue, Profile, WalStatistics, checkpoint_mode,
};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxlite-wal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("app.db")
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.0.join("app.db-wal")).map_or(0, |file| file.len())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path, profile: &str, pragmas: &[(&str, i64)]) -> Connection {
    let pragmas: Vec<_> = pragmas
        .iter()
        .map(|(name, value)| ((*name).to_owned(), PragmaValue::Integer(*value)))
        .collect();
    let profile = Profile::named(profile).expect("a profile");
    let options = OpenOptions::new(path.to_str().expect("UTF-8"), profile)
        .and_then(|options| options.with_pragmas(&pragmas))
        .expect("options");
    Connection::open(&options).expect("it opens")
}

fn write(connection: &Connection, commits: u32) {
    let locked = connection.lock().expect("open");
    locked
        .execute_batch("CREATE TABLE IF NOT EXISTS t (x)")
        .expect("a table");
    for _ in 0..commits {
        connection
            .run(&locked, "INSERT INTO t VALUES (zeroblob(3000))")
            .expect("a row");
    }
}

fn statistics(connection: &Connection) -> WalStatistics {
    connection.wal_statistics().expect("a log that is kept")
}

#[test]
fn the_log_stays_short_and_a_reader_that_goes_lets_it_shrink() {
    let folder = Folder::new("short");
    let limit = 5 << 20;
    let pragmas = [("journal_size_limit", limit)];
    let writer = open(&folder.database(), "web", &pragmas);
    write(&writer, 3000);
    assert!(folder.log_bytes() < limit as u64);
    assert!(statistics(&writer).checkpoints >= 3);

    let reader = open(&folder.database(), "web", &pragmas);
    let locked = reader.lock().expect("open");
    locked
        .execute_batch("BEGIN; SELECT count(*) FROM t")
        .expect("a snapshot");
    drop(locked);
    write(&writer, 3000);
    let found = statistics(&writer);
    assert!(folder.log_bytes() > limit as u64);
    // Frames are three for each row: about one try for a thousand of them.
    assert!((1..=12).contains(&found.incomplete), "{found:?}");
    assert_eq!(found.errors, 0);

    let locked = reader.lock().expect("open");
    locked.execute_batch("COMMIT").expect("it ends");
    drop(locked);
    write(&writer, 3000);
    assert!(folder.log_bytes() <= limit as u64);
}

#[test]
fn other_choices_are_left_alone() {
    let folder = Folder::new("choices");
    let writer = open(&folder.database(), "durable", &[("wal_autocheckpoint", 0)]);
    write(&writer, 1200);
    assert!(folder.log_bytes() > 1200 * 4000);
    assert_eq!(statistics(&writer).checkpoints, 0);
    let stock = open(&folder.database(), "stock", &[]);
    assert_eq!(stock.wal_statistics(), None);
    let memory = open(Path::new(":memory:"), "web", &[]);
    assert_eq!(memory.wal_statistics(), None);
}

#[test]
fn a_checkpoint_on_demand_says_how_far_it_came() {
    let folder = Folder::new("demand");
    let writer = open(&folder.database(), "web", &[]);
    write(&writer, 5);
    let patience = std::time::Duration::from_secs(1);
    let locked = writer.lock().expect("open");
    let mode = checkpoint_mode("passive").expect("a mode");
    let outcome = writer.checkpoint(&locked, c"main", mode, patience);
    assert!(outcome.expect("it works").is_complete());
    let outcome = writer
        .checkpoint(&locked, c"main", CheckpointMode::Truncate, patience)
        .expect("it works");
    assert_eq!((outcome.frames, outcome.remaining()), (Some(0), 0));
    assert_eq!(folder.log_bytes(), 0);
    let unknown = writer.checkpoint(&locked, c"none", CheckpointMode::Full, patience);
    assert!(
        unknown
            .expect_err("unknown")
            .to_string()
            .contains("unknown database")
    );
}
