//! A clock that is cheap to read, and as exact as the timer's tick.

/// Milliseconds of a clock that never goes back and is the same in all processes of the machine; where there is
/// none, of the day's.
#[cfg(target_os = "linux")]
pub fn coarse_milliseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for the time; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// Milliseconds of the day's clock.
#[cfg(not(target_os = "linux"))]
pub fn coarse_milliseconds() -> u64 {
    use std::time::SystemTime;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
