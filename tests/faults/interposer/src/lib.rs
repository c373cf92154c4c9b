//! Makes chosen system calls and allocations of one loaded library fail: of Oxlite's extension module,
//! exactly as it was built.
//!
//! A library calls others through slots that the dynamic linker has filled in. Here the slots of that
//! one library, and nobody else's, are given other functions ([`relocations`]). These count, by
//! [`faults::Kind`], and either do what they stand for or fail ([`calls`], [`memory`]). So the faults
//! come below all that is Oxlite's, and neither Python nor any other library notices.
//!
//! What the calls do to the files of one folder can be recorded as well ([`recorder`]).
//!
//! Called from Python through ctypes, in a process that is there for nothing else; by one thread, except
//! for [`recorder_mark`].

#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64"
)))]
compile_error!("the slots of an ELF library on x86-64 Linux are what this knows");

mod calls;
mod faults;
mod log;
mod memory;
mod recorder;
mod relocations;

use std::ffi::{CStr, c_char, c_int};
use std::slice;

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

/// Has what the library does to the files of `folder` recorded in the log at `path`; 0 if it could. Each
/// sync takes so many microseconds longer.
///
/// # Safety
///
/// Both are NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recorder_begin(
    path: *const c_char,
    folder: *const c_char,
    sync_microseconds: u32,
) -> c_int {
    // SAFETY: this function's contract.
    let (path, folder) = unsafe { (CStr::from_ptr(path), CStr::from_ptr(folder)) };
    if recorder::begin(path, folder, sync_microseconds) {
        0
    } else {
        -1
    }
}

/// Puts something that the process says into the log.
///
/// # Safety
///
/// At `bytes` are `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recorder_mark(bytes: *const c_char, length: usize) {
    // SAFETY: this function's contract.
    let bytes = unsafe { slice::from_raw_parts(bytes.cast(), length) };
    log::add(log::Record::Mark, 0, 0, 0, bytes);
}

/// Records no more.
#[unsafe(no_mangle)]
pub extern "C" fn recorder_end() {
    log::end();
}
