//! Opening by profile, on real files: what was asked for is in force, or it is an error.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use oxlite_core::{BusyPolicy, Connection, Error, OpenOptions, PROFILES, PragmaValue, Profile};

/// A folder of its own for each test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("oxlite-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("creates");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(name: &str, profile: &str) -> OpenOptions {
    OpenOptions::new(name, Profile::named(profile).expect("known")).expect("valid")
}

fn run(connection: &Connection, sql: &str) {
    let locked = connection.lock().expect("open");
    locked.execute_batch(sql).expect("runs");
}

#[test]
fn every_pragma_of_every_profile_is_in_force() {
    let folder = Folder::new();
    for profile in &PROFILES {
        let name = folder.file(profile.name);
        if profile.is_for_strangers {
            assert!(Connection::open(&options(&name, profile.name)).is_err());
            Connection::open(&options(&name, "stock")).expect("makes it");
        }
        let connection = Connection::open(&options(&name, profile.name)).expect("opens");
        let pragmas = profile.pragmas();
        let promised: Vec<_> = (profile.precautions())
            .chain(pragmas.map(|(name, value)| (name, value.to_owned())))
            .collect();
        assert_eq!(connection.settings().len(), promised.len());
        for (setting, (name, value)) in connection.settings().iter().zip(promised) {
            assert_eq!(setting.name, name);
            if name == "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE" {
                assert!(setting.skipped.is_some()); // there is no WAL
                continue;
            }
            assert_eq!(setting.effective, value, "{name} in {}", profile.name);
            assert_eq!(setting.skipped, None);
        }
    }
}

#[test]
fn what_cannot_apply_in_memory_is_skipped_and_said() {
    let connection = Connection::open(&options(":memory:", "web")).expect("opens");
    let skipped: Vec<_> = connection
        .settings()
        .iter()
        .filter(|setting| setting.skipped.is_some())
        .map(|setting| setting.name)
        .collect();
    assert_eq!(skipped, ["mmap_size", "journal_mode"]);
}

#[test]
fn an_existing_file_is_turned_to_wal_once_and_kept_on_request() {
    let folder = Folder::new();
    let name = folder.file("app.db");
    run(
        &Connection::open(&options(&name, "stock")).expect("opens"),
        "CREATE TABLE t(x)",
    );

    let keep = options(&name, "web").with_journal("keep").expect("valid");
    let kept = Connection::open(&keep).expect("opens");
    assert_eq!(kept.converted(), None);
    let kept_mode = kept.settings().last().expect("journal_mode comes last");
    assert_eq!(
        (kept_mode.name, kept_mode.effective.as_str()),
        ("journal_mode", "DELETE")
    );
    drop(kept);

    let converted = Connection::open(&options(&name, "web")).expect("opens");
    let conversion = converted.converted().expect("it was not WAL");
    assert_eq!(
        (conversion.before.as_str(), conversion.after.as_str()),
        ("delete", "wal")
    );
    let again = Connection::open(&options(&name, "web")).expect("opens");
    assert_eq!(again.converted(), None);
    let new = Connection::open(&options(&folder.file("new.db"), "web")).expect("opens");
    assert_eq!(new.converted(), None);
}

#[test]
fn an_ineffective_pragma_is_named() {
    let folder = Folder::new();
    let name = folder.file("app.db");
    run(
        &Connection::open(&options(&name, "stock")).expect("opens"),
        "CREATE TABLE t(x)",
    );
    let larger = options(&name, "stock")
        .with_pragmas(&[("page_size".into(), PragmaValue::Integer(16384))])
        .expect("valid");
    match Connection::open(&larger).map(|_| ()) {
        Err(Error::PragmaIneffective {
            pragma,
            requested,
            effective,
            ..
        }) => {
            assert_eq!(
                (pragma, requested.as_str(), effective.as_str()),
                ("page_size", "16384", "4096")
            );
        }
        other => panic!("expected an ineffective pragma, got {other:?}"),
    }
}

#[test]
fn many_threads_may_open_a_new_file_at_once() {
    let folder = Folder::new();
    let name = folder.file("app.db");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                Connection::open(&options(&name, "web"))
                    .map(|_| ())
                    .expect("opens");
            });
        }
    });
}

#[test]
fn a_fair_wait_ends_at_its_deadline_with_busy() {
    let folder = Folder::new();
    let name = folder.file("app.db");
    let holder = Connection::open(&options(&name, "web")).expect("opens");
    run(&holder, "CREATE TABLE t(x); BEGIN IMMEDIATE");
    let patient = options(&name, "web")
        .with_busy(BusyPolicy::Fair)
        .with_timeout(0.05)
        .expect("valid");
    let waiter = Connection::open(&patient).expect("opens");
    let locked = waiter.lock().expect("open");
    let error = locked.execute_batch("BEGIN IMMEDIATE").expect_err("locked");
    assert_eq!(error.name(), "SQLITE_BUSY");
}
