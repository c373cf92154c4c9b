//! The allocations of the library, SQLite's and Rust's apart.
//!
//! SQLite is C and calls `malloc` through the procedure linkage table; Rust, on x86-64, calls it by its
//! address in the global offset table. So each has slots of its own. Only SQLite's allocations fail:
//! Rust ends the process when its own do, by design.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::faults::{Kind, failed, strike};
use crate::relocations::{Call, Slot};

static SQLITE: AtomicI64 = AtomicI64::new(0);
static RUST: AtomicI64 = AtomicI64::new(0);

pub(crate) fn live_of_sqlite() -> i64 {
    SQLITE.load(Ordering::SeqCst)
}

pub(crate) fn live_of_rust() -> i64 {
    RUST.load(Ordering::SeqCst)
}

/// Counts a block that the C library has made for the Rust code to free.
pub(crate) fn given_to_rust() {
    RUST.fetch_add(1, Ordering::SeqCst);
}

pub(crate) const CALLS: &[Call] = &[
    Call::through(Slot::Linkage, "malloc", sqlite_malloc as *const ()),
    Call::through(Slot::Linkage, "realloc", sqlite_realloc as *const ()),
    Call::through(Slot::Linkage, "free", sqlite_free as *const ()),
    Call::through(Slot::Offset, "malloc", rust_malloc as *const ()),
    Call::through(Slot::Offset, "calloc", rust_calloc as *const ()),
    Call::through(Slot::Offset, "posix_memalign", rust_memalign as *const ()),
    Call::through(Slot::Offset, "realloc", rust_realloc as *const ()),
    Call::through(Slot::Offset, "free", rust_free as *const ()),
];

fn counted(counter: &AtomicI64, block: *mut c_void) -> *mut c_void {
    if !block.is_null() {
        counter.fetch_add(1, Ordering::SeqCst);
    }
    block
}

fn uncounted(counter: &AtomicI64, block: *mut c_void) -> *mut c_void {
    if !block.is_null() {
        counter.fetch_sub(1, Ordering::SeqCst);
    }
    block
}

unsafe extern "C" fn sqlite_malloc(size: usize) -> *mut c_void {
    if let Some(errno) = strike(Kind::Malloc) {
        return failed(errno, ptr::null_mut());
    }
    // SAFETY: any size is allowed.
    counted(&SQLITE, unsafe { libc::malloc(size) })
}

unsafe extern "C" fn sqlite_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if let Some(errno) = strike(Kind::Malloc) {
        return failed(errno, ptr::null_mut());
    }
    // SAFETY: the call as SQLite made it.
    let moved = unsafe { libc::realloc(block, size) };
    if block.is_null() {
        counted(&SQLITE, moved)
    } else {
        moved
    }
}

unsafe extern "C" fn sqlite_free(block: *mut c_void) {
    // SAFETY: the call as SQLite made it.
    unsafe { libc::free(uncounted(&SQLITE, block)) };
}

unsafe extern "C" fn rust_malloc(size: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    counted(&RUST, unsafe { libc::malloc(size) })
}

unsafe extern "C" fn rust_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any sizes are allowed.
    counted(&RUST, unsafe { libc::calloc(count, size) })
}

unsafe extern "C" fn rust_memalign(place: *mut *mut c_void, align: usize, size: usize) -> i32 {
    // SAFETY: the call as Rust made it.
    let code = unsafe { libc::posix_memalign(place, align, size) };
    if code == 0 {
        // SAFETY: filled in.
        counted(&RUST, unsafe { *place });
    }
    code
}

unsafe extern "C" fn rust_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the call as Rust made it.
    let moved = unsafe { libc::realloc(block, size) };
    if block.is_null() {
        counted(&RUST, moved)
    } else {
        moved
    }
}

unsafe extern "C" fn rust_free(block: *mut c_void) {
    // SAFETY: the call as Rust made it.
    unsafe { libc::free(uncounted(&RUST, block)) };
}
