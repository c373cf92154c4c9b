//! The VFS of Oxlite's connections: SQLite's own for the platform, except that a thread about to
//! wait says so first.
//!
//! SQLite waits in two places: it sleeps (`xSleep`, between two tries for a lock, also where no busy
//! handler is asked) and it waits for the disk (`xSync`). The layer above may hold a lock of its own
//! around a statement, such as Python's GIL, and lets it go when told.
//!
//! Invariants:
//! - It is made from the default VFS, once, before the first connection is opened, and made the default;
//!   it and its method tables are never freed.
//! - A file's own structure stays SQLite's. Only its method table is exchanged, for a copy in which
//!   `xSync` differs and behind which the original is found again.

use std::ffi::c_int;
use std::ptr;
use std::sync::{Once, OnceLock};

use libsqlite3_sys as ffi;
use parking_lot::Mutex;

/// Called by a thread that is about to wait.
static BEFORE_WAITING: OnceLock<fn()> = OnceLock::new();

/// Has `hook` called, in the middle of a call into SQLite, by each thread that is about to wait: for a
/// lock, or for the disk. The first hook stays.
pub fn call_before_waiting(hook: fn()) {
    // A second caller means a second layer above, which there is not.
    let _ = BEFORE_WAITING.set(hook);
}

/// Tells the layer above that this thread is about to wait.
#[inline]
pub fn about_to_wait() {
    if let Some(hook) = BEFORE_WAITING.get() {
        hook();
    }
}

/// The platform's VFS, that of which ours is a copy.
struct Original(*mut ffi::sqlite3_vfs);

// SAFETY: written once, before ours is registered; SQLite's VFS objects are used by any thread.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

/// A method table of SQLite's with our `xSync`, and the one it is a copy of.
#[repr(C)]
struct Methods {
    ours: ffi::sqlite3_io_methods,
    original: *const ffi::sqlite3_io_methods,
}

// SAFETY: never changed once made; the original is a constant of SQLite's.
unsafe impl Send for Methods {}
// SAFETY: as above.
unsafe impl Sync for Methods {}

/// The few tables there are: one for database files, one for files without locks.
static METHODS: Mutex<Vec<&'static Methods>> = Mutex::new(Vec::new());

/// Makes ours the default VFS.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: initialises SQLite; NULL asks for the default.
        let original = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        if original.is_null() {
            return; // a build without a VFS: opening says so
        }
        if ORIGINAL.set(Original(original)).is_err() {
            return;
        }
        // SAFETY: a registered VFS, which stays; the copy is leaked, and linked in by SQLite, which
        // alone changes it from then on.
        unsafe {
            let ours = Box::leak(Box::new(ptr::read(original)));
            ours.pNext = ptr::null_mut();
            ours.zName = c"oxlite".as_ptr();
            ours.xOpen = Some(open);
            ours.xSleep = Some(sleep);
            ffi::sqlite3_vfs_register(ours, 1);
        }
    });
}

/// The original VFS; it is there, since ours, which calls this, is made from it.
fn original() -> Option<(*mut ffi::sqlite3_vfs, &'static ffi::sqlite3_vfs)> {
    let original = ORIGINAL.get()?.0;
    // SAFETY: a registered VFS, which is never freed and not changed.
    Some((original, unsafe { &*original }))
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let Some((
        vfs,
        ffi::sqlite3_vfs {
            xOpen: Some(open), ..
        },
    )) = original()
    else {
        return ffi::SQLITE_CANTOPEN;
    };
    // SAFETY: the call as SQLite made it, for the VFS that ours is a copy of.
    let code = unsafe { open(vfs, name, file, flags, flags_out) };
    if code == ffi::SQLITE_OK {
        // SAFETY: opened, so it begins with a pointer to its method table.
        unsafe {
            if !(*file).pMethods.is_null() {
                (*file).pMethods = ptr::from_ref(methods_for((*file).pMethods)).cast();
            }
        }
    }
    code
}

/// Our table for one of SQLite's.
///
/// # Safety
///
/// `original` is a constant of SQLite's.
unsafe fn methods_for(original: *const ffi::sqlite3_io_methods) -> &'static Methods {
    let mut known = METHODS.lock();
    if let Some(methods) = known.iter().find(|methods| methods.original == original) {
        return methods;
    }
    // SAFETY: see this function's contract.
    let mut ours = unsafe { ptr::read(original) };
    ours.xSync = Some(sync);
    let methods = Box::leak(Box::new(Methods { ours, original }));
    known.push(methods);
    methods
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: called through our table, which the file got from `open`.
    let original = unsafe { &*(*(*file).pMethods.cast::<Methods>()).original };
    let Some(sync) = original.xSync else {
        return ffi::SQLITE_IOERR_FSYNC;
    };
    about_to_wait();
    // SAFETY: the call as SQLite made it.
    unsafe { sync(file, flags) }
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    let Some((
        vfs,
        ffi::sqlite3_vfs {
            xSleep: Some(sleep),
            ..
        },
    )) = original()
    else {
        return 0;
    };
    about_to_wait();
    // SAFETY: the call as SQLite made it, for the VFS that ours is a copy of.
    unsafe { sleep(vfs, microseconds) }
}
