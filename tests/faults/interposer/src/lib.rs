//! Makes chosen system calls and allocations of one loaded library fail: of Oxlite's extension module,
//! exactly as it was built.
//!
//! A library calls others through slots that the dynamic linker has filled in. Here the slots of that
//! one library, and nobody else's, are given other functions ([`relocations`]). These count, by
//! [`faults::Kind`], and either do what they stand for or fail ([`calls`], [`memory`]). So the faults
//! come below all that is Oxlite's, and neither Python nor any other library notices.
//!
//! Called from Python through ctypes, by one thread, in a process that is there for nothing else.

#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64"
)))]
compile_error!("the slots of an ELF library on x86-64 Linux are what this knows");

mod calls;
mod faults;
mod memory;
mod relocations;

use std::ffi::{CStr, c_char, c_int};

use faults::{Fault, Kind};

/// Puts our functions into the slots of the loaded library whose path is `path`; how many slots, or -1
/// if there is no such library, or one whose allocations by SQLite cannot be told from those by Rust.
///
/// # Safety
///
/// `path` is NUL-terminated; no other thread is in the library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faults_install(path: *const c_char) -> c_int {
    // SAFETY: this function's contract.
    unsafe {
        relocations::replace(
            CStr::from_ptr(path).to_bytes(),
            &[calls::CALLS, memory::CALLS].concat(),
        )
    }
    .filter(|replaced| {
        memory::CALLS
            .iter()
            .all(|call| replaced.contains(&(call.name, call.slot)))
    })
    .map_or(-1, |replaced| replaced.len() as c_int)
}

/// Has the `first` call of a kind from now on fail, and all after it if `is_persistent`.
///
/// # Safety
///
/// `kind` is NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faults_arm(
    kind: *const c_char,
    first: u64,
    is_persistent: bool,
    effect: c_int,
) -> c_int {
    // SAFETY: this function's contract.
    let Some(kind) = Kind::named(unsafe { CStr::from_ptr(kind) }) else {
        return -1;
    };
    faults::arm(Fault {
        kind,
        first,
        is_persistent,
        effect,
    });
    0
}

/// Has nothing fail any more, and counts no more; how many calls have failed since arming.
#[unsafe(no_mangle)]
pub extern "C" fn faults_disarm() -> u64 {
    faults::disarm()
}

/// How many calls have failed since arming.
#[unsafe(no_mangle)]
pub extern "C" fn faults_struck() -> u64 {
    faults::struck()
}

/// How many calls of a kind were made while armed.
///
/// # Safety
///
/// `kind` is NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faults_count(kind: *const c_char) -> i64 {
    // SAFETY: this function's contract.
    Kind::named(unsafe { CStr::from_ptr(kind) }).map_or(-1, faults::count)
}

/// Blocks that SQLite has allocated and not freed, since the installation.
#[unsafe(no_mangle)]
pub extern "C" fn faults_live_sqlite() -> i64 {
    memory::live_of_sqlite()
}

/// Blocks that the Rust code has allocated and not freed, since the installation.
#[unsafe(no_mangle)]
pub extern "C" fn faults_live_rust() -> i64 {
    memory::live_of_rust()
}
