//! Where the number of a process is one.

/// Where the number of a process is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// Here.
    Own,
    /// In another PID namespace, such as another container's.
    Another,
    /// That could not be found out, here or there.
    Unknown,
}

impl PidNamespace {
    /// That of a process whose namespace has this number, seen from here.
    pub(crate) fn of(theirs: u64) -> Self {
        match (theirs, current()) {
            (UNKNOWN, _) | (_, UNKNOWN) => Self::Unknown,
            (theirs, ours) if theirs == ours => Self::Own,
            _ => Self::Another,
        }
    }
}

/// The number of no PID namespace.
const UNKNOWN: u64 = 0;

/// The PID namespace of this process, by the number of its file; no other one has that while it lives.
#[cfg(target_os = "linux")]
pub(crate) fn current() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(UNKNOWN, |file| file.ino())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current() -> u64 {
    UNKNOWN
}
