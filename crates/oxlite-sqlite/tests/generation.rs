//! Forks are counted from the first look on, without any connection; and once, with one.
//!
//! In a process of its own, in which nobody else has asked or opened anything.

#![cfg(unix)]

use oxlite_sqlite::{Connection, OpenFlags, fork_generation};

/// What `work` says in a forked child.
fn in_child(work: impl FnOnce() -> u32) -> u32 {
    // SAFETY: the child does what `work` says on its one thread, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends a child that hangs, and then one that does not.
        unsafe {
            libc::alarm(30);
            libc::_exit(work() as i32);
        }
    }
    assert!(child > 0, "forks");
    let mut status = 0;
    // SAFETY: our child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status));
    libc::WEXITSTATUS(status).unsigned_abs()
}

#[test]
fn a_child_is_of_another_generation_before_any_connection_is_opened() {
    assert_eq!(fork_generation(), 0);
    assert_eq!(in_child(fork_generation), 1);
    assert_eq!(in_child(|| in_child(fork_generation)), 2);
    assert_eq!(fork_generation(), 0, "in the parent nothing has changed");

    let open = || Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let kept = open();
    assert_eq!(in_child(fork_generation), 1, "each fork counts once");
    let opened_in_a_child = in_child(|| {
        let own = open();
        let is_right = kept.is_inherited() && !own.is_inherited();
        in_child(move || u32::from(is_right && own.is_inherited()) * fork_generation())
    });
    assert_eq!(opened_in_a_child, 2);
    assert!(!kept.is_inherited());
}
