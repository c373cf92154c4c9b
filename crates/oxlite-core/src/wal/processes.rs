//! Which processes read a log: those that lock one of the read marks in its shared memory
//! (<https://sqlite.org/walformat.html#wal_locks>).
//!
//! Seen in `/proc`, on Linux: whose descriptors are open on that file is told with the locks taken
//! through each of them. The file itself is not opened, since closing it would take locks away.
//! Processes of other users, or in another PID namespace, are not seen.

use std::path::Path;

/// A process that reads the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) command: String,
}

/// The processes that lock a read mark of the shared memory at `shared_memory`; this one among them.
#[cfg(target_os = "linux")]
pub(super) fn readers_of(shared_memory: &Path) -> Vec<Process> {
    linux::readers_of(shared_memory).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn readers_of(_shared_memory: &Path) -> Vec<Process> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::ops::RangeInclusive;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::super::readers::in_a_line;
    use super::Process;

    /// The bytes of the five read marks.
    const READ_MARKS: RangeInclusive<u64> = 123..=127;

    /// Machines have many processes: looking ends after this time.
    const LOOK_FOR: Duration = Duration::from_millis(250);

    pub(super) fn readers_of(shared_memory: &Path) -> io::Result<Vec<Process>> {
        let file = fs::metadata(shared_memory)?;
        let wanted = (file.dev(), file.ino());
        let began = Instant::now();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(id) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            if began.elapsed() > LOOK_FOR {
                break;
            }
            let process = entry.path();
            if reads(&process, wanted).unwrap_or(false) {
                found.push(Process {
                    id,
                    command: command(&process),
                });
            }
        }
        Ok(found)
    }

    /// Whether the process locks a read mark through one of its descriptors of that file.
    fn reads(process: &Path, wanted: (u64, u64)) -> io::Result<bool> {
        for entry in fs::read_dir(process.join("fd"))?.flatten() {
            // Followed to the open file, whatever has become of its name.
            let is_wanted =
                fs::metadata(entry.path()).is_ok_and(|file| (file.dev(), file.ino()) == wanted);
            if is_wanted
                && let Ok(told) = fs::read_to_string(process.join("fdinfo").join(entry.file_name()))
                && told.lines().any(is_read_mark)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a line of a descriptor's information tells of a lock on a read mark:
    /// `lock: 1: OFDLCK ADVISORY READ -1 fe:00:1234 124 124`.
    pub(super) fn is_read_mark(line: &str) -> bool {
        let Some(lock) = line.strip_prefix("lock:") else {
            return false;
        };
        let mut words = lock.split_whitespace().rev();
        let (Some(end), Some(start)) = (words.next(), words.next()) else {
            return false;
        };
        let end = end.parse().unwrap_or(u64::MAX); // EOF
        start
            .parse::<u64>()
            .is_ok_and(|start| start <= *READ_MARKS.end() && end >= *READ_MARKS.start())
    }

    fn command(process: &Path) -> String {
        let bytes = fs::read(process.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&bytes).replace('\0', " ");
        match in_a_line(&words) {
            words if words.is_empty() => "its command line is not to be had".into(),
            words => words,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::is_read_mark;

    #[test]
    fn locks_are_told_by_their_bytes() {
        let line = |range: &str| format!("lock:\t1: OFDLCK ADVISORY  READ -1 fe:00:1234 {range}");
        assert!(is_read_mark(&line("123 123")));
        assert!(is_read_mark(&line("127 127")));
        assert!(is_read_mark(&line("0 EOF")));
        assert!(is_read_mark(
            "lock:\t2: POSIX  ADVISORY  READ 4711 00:2a:99 124 124"
        ));
        assert!(!is_read_mark(&line("120 120")), "the write lock");
        assert!(!is_read_mark(&line("128 128")), "whoever is there");
        assert!(!is_read_mark("pos:\t124 124"));
        assert!(!is_read_mark("lock:"));
    }
}
