//! Which processes lock which bytes of a file (<https://sqlite.org/walformat.html#wal_locks>).
//!
//! Seen in `/proc`, on Linux: the locks taken through each descriptor are told with the numbers of its file.
//! The file itself is not opened, since closing it would take locks away; nor is any file system asked, whose
//! server may not answer.
//! Processes of other users are not seen, nor those that `/proc` does not show: what is mounted there
//! decides whose numbers these are, also that of this process ([`own_id`]).

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// A process that locks some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
    /// Its command line, harmless.
    pub(crate) command: String,
    /// Whether it has been stopped (SIGSTOP, a debugger).
    pub(crate) is_stopped: bool,
}

/// Bytes of a file that somebody may have locked.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) file: PathBuf,
    pub(crate) bytes: RangeInclusive<u64>,
    /// Whether only locks count that one has alone.
    pub(crate) is_alone: bool,
}

/// For how long they are looked for, at most.
pub(crate) const LOOK_FOR: Duration = Duration::from_millis(250);

/// The processes that lock any of them, this one among them. Machines have many processes: looking ends
/// after `look_for`.
#[cfg(target_os = "linux")]
pub(crate) fn that_lock(wanted: &[Wanted], look_for: Duration) -> Vec<Process> {
    linux::that_lock(wanted, look_for).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn that_lock(_wanted: &[Wanted], _look_for: Duration) -> Vec<Process> {
    Vec::new()
}

/// By which number `/proc` knows this process, which may be that of another PID namespace.
#[cfg(target_os = "linux")]
pub(crate) fn own_id() -> u32 {
    let number = std::fs::read_link("/proc/self").ok();
    let number = number.and_then(|path| path.to_str()?.parse().ok());
    number.unwrap_or_else(std::process::id)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn own_id() -> u32 {
    std::process::id()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::fs::{major, minor};

    use super::{Process, Wanted};
    use crate::text::{cut, in_a_line};

    /// No more of a command line than this is told, in characters.
    const COMMAND_AT_MOST: usize = 200;

    /// What is looked for, by the file's numbers as the kernel tells them with a lock. (Of a subvolume of
    /// btrfs it tells others than `stat`: there nobody is found.)
    pub(super) struct Sought<'w> {
        pub(super) file: String,
        pub(super) wanted: &'w Wanted,
    }

    pub(super) fn that_lock(wanted: &[Wanted], look_for: Duration) -> io::Result<Vec<Process>> {
        let began = Instant::now();
        let sought: Vec<_> = wanted
            .iter()
            .filter_map(|wanted| {
                let file = fs::metadata(&wanted.file).ok()?;
                let device = file.dev();
                let (major, minor) = (major(device), minor(device));
                Some(Sought {
                    file: format!("{major:02x}:{minor:02x}:{}", file.ino()),
                    wanted,
                })
            })
            .collect();
        let mut found = Vec::new();
        if sought.is_empty() {
            return Ok(found);
        }
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(id) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            if began.elapsed() >= look_for {
                break;
            }
            let process = entry.path();
            let is_over = || began.elapsed() >= look_for;
            if locks(&process, &sought, is_over).unwrap_or(false) {
                found.push(Process {
                    id,
                    command: command(&process),
                    is_stopped: is_stopped(&process),
                });
            }
        }
        Ok(found)
    }

    /// Whether the process has such a lock through one of its descriptors.
    fn locks(
        process: &Path,
        sought: &[Sought<'_>],
        is_over: impl Fn() -> bool,
    ) -> io::Result<bool> {
        for entry in fs::read_dir(process.join("fdinfo"))?.flatten() {
            if is_over() {
                break;
            }
            // It may have been closed meanwhile.
            let told = fs::read_to_string(entry.path()).unwrap_or_default();
            if told.lines().any(|line| is_lock(line, sought)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a line of a descriptor's information tells of such a lock:
    /// `lock: 1: OFDLCK ADVISORY READ -1 fe:00:1234 124 124`.
    pub(super) fn is_lock(line: &str, sought: &[Sought<'_>]) -> bool {
        let Some(lock) = line.strip_prefix("lock:") else {
            return false;
        };
        let mut words = lock.split_whitespace().rev();
        let (Some(end), Some(start), Some(file)) = (words.next(), words.next(), words.next())
        else {
            return false;
        };
        let is_alone = words.nth(1) == Some("WRITE");
        let end = end.parse().unwrap_or(u64::MAX); // EOF
        let Ok(start) = start.parse::<u64>() else {
            return false;
        };
        sought.iter().any(|Sought { file: of, wanted }| {
            let overlaps = start <= *wanted.bytes.end() && end >= *wanted.bytes.start();
            of == file && overlaps && (is_alone || !wanted.is_alone)
        })
    }

    fn command(process: &Path) -> String {
        let bytes = fs::read(process.join("cmdline")).unwrap_or_default();
        let words = in_a_line(&String::from_utf8_lossy(&bytes).replace('\0', " "));
        match words.is_empty() {
            true => "its command line is not to be had".into(),
            false => cut(words, COMMAND_AT_MOST),
        }
    }

    /// Its state stands behind its name in brackets, in which there may be anything.
    fn is_stopped(process: &Path) -> bool {
        fs::read(process.join("stat")).is_ok_and(|line| {
            let end = line.iter().rposition(|byte| *byte == b')');
            let state = end.and_then(|end| line.get(end + 2));
            matches!(state, Some(b'T' | b't'))
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Wanted;
    use super::linux::{Sought, is_lock};

    #[test]
    fn locks_are_told_by_their_file_and_their_bytes() {
        let read_marks = Wanted {
            file: "app.db-shm".into(),
            bytes: 123..=127,
            is_alone: false,
        };
        let of = |file: &str, line: &str, wanted: &Wanted| {
            let file = file.into();
            is_lock(line, &[Sought { file, wanted }])
        };
        let is_read_mark = |line: &str| of("fe:00:1234", line, &read_marks);
        let line = |range: &str| format!("lock:\t1: OFDLCK ADVISORY  READ -1 fe:00:1234 {range}");
        assert!(is_read_mark(&line("123 123")));
        assert!(is_read_mark(&line("127 127")));
        assert!(is_read_mark(&line("0 EOF")));
        assert!(is_read_mark(
            "lock:\t2: POSIX  ADVISORY  READ 4711 fe:00:1234 124 124"
        ));
        assert!(!is_read_mark(&line("120 120")), "the write lock");
        assert!(!is_read_mark(&line("128 128")), "whoever is there");
        assert!(!is_read_mark("pos:\t124 124"));
        assert!(!is_read_mark("lock:"));
        assert!(
            !of("fe:00:1235", &line("123 123"), &read_marks),
            "another file"
        );
        assert!(
            !of("fe:01:1234", &line("123 123"), &read_marks),
            "another device"
        );
        let alone = Wanted {
            bytes: 120..=120,
            is_alone: true,
            ..read_marks
        };
        assert!(!of("fe:00:1234", &line("120 120"), &alone));
        let written = line("120 120").replace("READ", "WRITE");
        assert!(of("fe:00:1234", &written, &alone));
    }
}
