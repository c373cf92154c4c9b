//! Who watches what the processes of Oxlite do with a database.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxlite_sqlite::LockFile;

use super::note::ProcessActivity;
use super::{PLACES, WATCHERS, byte_of};
use crate::file::{beside, network};
use crate::text::harmless;
use crate::write::queue::{self, Holder};

/// For how long the file is opened anew that somebody takes away just then, and how often.
const OPENING_AT_MOST: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// How often a note is read again that is being written.
const READINGS: usize = 3;

/// Has the processes of Oxlite that use a database tell what they do, for as long as it lives.
pub struct ActivityWatcher {
    database: PathBuf,
    path: PathBuf,
    file: LockFile,
}

impl ActivityWatcher {
    /// Watches the database at `path`, which exists. Whoever uses it hears of that within a second.
    ///
    /// Fails where no file can be made beside it, or none whose locks others see.
    pub fn new(path: &Path) -> io::Result<Self> {
        if network::holds(path) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, network::REASON));
        }
        let database = path.canonicalize()?;
        let path = beside::activity(&database);
        let began = Instant::now();
        while began.elapsed() < OPENING_AT_MOST {
            match LockFile::open_for_notes(&path, &database) {
                // Else the last watcher takes it away.
                Ok(file) if file.try_lock(WATCHERS, true)? && file.is_at(&path) => {
                    return Ok(Self {
                        database,
                        path,
                        file,
                    });
                }
                Ok(_) => {}
                // It was there when it was to be made, and gone when it was to be opened.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = path.to_string_lossy();
                    let said = format!("{}: {error}", harmless(&path));
                    return Err(io::Error::new(error.kind(), said));
                }
            }
            std::thread::sleep(PAUSE);
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!(
                "{}: another watcher that takes it away does not come to an end",
                harmless(&path.to_string_lossy())
            ),
        ))
    }

    /// What each of them has told last.
    pub fn processes(&self) -> io::Result<Vec<ProcessActivity>> {
        let mut told = Vec::new();
        for number in 0..PLACES {
            let byte = byte_of(number);
            if self.file.locked_by_another(byte, byte)?.is_none() {
                continue;
            }
            for _ in 0..READINGS {
                if let Some(activity) = ProcessActivity::read(&self.file.read_slot(number)?) {
                    told.push(activity);
                    break;
                }
            }
        }
        Ok(told)
    }

    /// Who has the database's write lock, if that has told so.
    pub fn holder(&self) -> Option<Holder> {
        queue::published_holder(&self.database)
    }
}

impl Drop for ActivityWatcher {
    fn drop(&mut self) {
        self.file.remove_if_unlocked(WATCHERS, &self.path);
    }
}
