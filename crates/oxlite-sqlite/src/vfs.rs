//! The VFS of Oxlite's connections: SQLite's own for the platform, except that a thread about to
//! wait says so first, and that the files of a parent process are refused in a forked child.
//!
//! SQLite waits in two places: it sleeps (`xSleep`, between two tries for a lock, also where no busy
//! handler is asked) and it waits for the disk (`xSync`). The layer above may hold a lock of its own
//! around a statement, such as Python's GIL, and lets it go when told.
//!
//! A connection that was inherited cannot be locked (see `fork.rs`). Yet a callback may fork, and the
//! child return from it into the middle of a statement, which then must neither write to the parent's
//! database nor read from descriptors that are no more, nor wait for a lock's mutex that nobody lets go.
//!
//! Invariants:
//! - It is made from the default VFS, before the first connection is opened, and made the default; it
//!   and its method tables are never freed. In a forked child that opens a connection it is made once
//!   more, since SQLite shares the caches of connections that have the same VFS.
//! - A file's own structure stays SQLite's. Only its method table is exchanged, for a copy in which a
//!   few methods differ and behind which the original is found again. Behind the structure stands the
//!   name and kind under which the file was opened, so that a sync that fails can be told of by the
//!   database it concerns; and what is held back of a log (`gathered_frames.rs`).
//! - What stands there is used as SQLite uses the file: by one thread at a time.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libsqlite3_sys as ffi;

use crate::error::{Error, Result};
use crate::file_locks;
use crate::fork::{self, ForkMutex};
use crate::gathered_frames::{GatheredFrames, Writing};
use crate::index_locks::{IndexLocks, LOCK, UNLOCK, WRITE_LOCK};

/// Called by a thread that is about to wait.
static BEFORE_WAITING: OnceLock<fn()> = OnceLock::new();

/// Has `hook` called, in the middle of a call into SQLite, by each thread that is about to wait: for a
/// lock, or for the disk. The first hook stays.
pub fn call_before_waiting(hook: fn()) {
    // A second caller means a second layer above, which there is not.
    let _ = BEFORE_WAITING.set(hook);
}

/// Tells the layer above that this thread is about to wait. Kept read marks are let go before.
#[inline]
pub fn about_to_wait() {
    file_locks::let_all_go();
    if let Some(hook) = BEFORE_WAITING.get() {
        hook();
    }
}

/// Called when a sync has failed, with the database whose file it was.
static AFTER_FAILED_SYNC: OnceLock<fn(&Path)> = OnceLock::new();

/// Has `hook` called, in the middle of a call into SQLite, whenever a sync of a database, of its log or of
/// its journal fails in this process: also where SQLite keeps it to itself, as in its automatic checkpoints
/// and in those of closing. The first hook stays.
pub fn call_after_failed_sync(hook: fn(&Path)) {
    let _ = AFTER_FAILED_SYNC.set(hook);
}

/// The platform's VFS, that of which ours is a copy.
struct Original(*mut ffi::sqlite3_vfs);

// SAFETY: written once, before ours is registered; SQLite's VFS objects are used by any thread.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

/// A method table of SQLite's with some methods of ours, and the one it is a copy of.
#[repr(C)]
struct Methods {
    ours: ffi::sqlite3_io_methods,
    original: *const ffi::sqlite3_io_methods,
    /// That of the process that opened the file.
    generation: u32,
}

/// What we know of an open file, behind SQLite's own structure.
#[repr(C)]
struct Tail {
    /// As SQLite has given it, which keeps it as long as the file is open; or NULL.
    name: ffi::sqlite3_filename,
    /// As which kind it was opened.
    flags: c_int,
    /// Of a database: what its connection has of its log's index.
    index: IndexLocks,
    /// Of a log: what is held back of it.
    frames: GatheredFrames,
    /// Of a database: what its connection does to the log.
    writing: Writing,
}

/// Whether any connection of this process may have shared its cache. Such connections share their files, so that
/// one's commit hook would meet another's log: from then on no commit is gathered. SQLite does not tell a VFS
/// which files these are.
static IS_CACHE_SHARED: AtomicBool = AtomicBool::new(false);

/// A connection is about to be opened that shares its cache.
pub(crate) fn cache_is_shared() {
    IS_CACHE_SHARED.store(true, Ordering::Relaxed);
}

/// An operation for `xFileControl` of a database: a commit begins that is written to the log that is given;
/// or, with NULL, whether one may be gathered. Numbers from 100 on are none of SQLite's own.
pub(crate) const COMMIT_BEGINS: c_int = 0x6f78_6c69;

// SAFETY: never changed once made; the original is a constant of SQLite's.
unsafe impl Send for Methods {}
// SAFETY: as above.
unsafe impl Sync for Methods {}

/// The few tables there are: one for database files, one for files without locks.
static METHODS: ForkMutex<Vec<&'static Methods>> = ForkMutex::new(Vec::new());

/// The generation of the process for which ours is the default VFS.
static INSTALLED: ForkMutex<Option<u32>> = ForkMutex::new(None);

/// Makes ours the default VFS; the first time in a process, `at_first` is run once SQLite is initialised.
///
/// On failure nothing is installed, and the next connection tries again. No connection must be opened
/// then: it would have neither our locks nor our measures for `fork`.
pub(crate) fn install(at_first: fn()) -> Result<()> {
    let mut installed = INSTALLED.lock();
    if *installed == Some(fork::generation()) {
        return Ok(());
    }
    if ORIGINAL.get().is_none() {
        // SAFETY: no argument; looking for the VFS would initialise SQLite too, and not say why it
        // fails.
        check(unsafe { ffi::sqlite3_initialize() })?;
        // SAFETY: initialised; NULL asks for the default.
        let original = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        if original.is_null() {
            return Ok(()); // a build without a VFS: opening says so
        }
        // SAFETY: a registered VFS, and no connection is open yet.
        unsafe { file_locks::install(original) }?;
        // Nobody else can be the first: the mutex is held.
        let _ = ORIGINAL.set(Original(original));
        at_first();
    }
    let Some((original, _)) = self::original() else {
        return Ok(());
    };
    // SAFETY: a registered VFS, which stays; the copy is leaked, and linked in by SQLite, which
    // alone changes it from then on.
    let code = unsafe {
        let ours = Box::leak(Box::new(ptr::read(original)));
        ours.pNext = ptr::null_mut();
        ours.zName = c"oxlite".as_ptr();
        ours.szOsFile = tail_offset(&*original) as c_int + size_of::<Tail>() as c_int;
        ours.xOpen = Some(open);
        ours.xSleep = Some(sleep);
        ffi::sqlite3_vfs_register(ours, 1)
    };
    check(code)?;
    *installed = Some(fork::generation());
    Ok(())
}

fn check(code: c_int) -> Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::from_code(code)),
    }
}

/// Takes the mutex under which SQLite's are taken.
#[cfg(unix)]
pub(crate) fn before_fork_outer() {
    INSTALLED.before_fork();
}

#[cfg(unix)]
pub(crate) fn after_fork_outer() {
    INSTALLED.after_fork(|_| ());
}

/// Takes the mutex that is taken under SQLite's.
#[cfg(unix)]
pub(crate) fn before_fork_inner() {
    METHODS.before_fork();
}

#[cfg(unix)]
pub(crate) fn after_fork_inner() {
    METHODS.after_fork(|_| ());
}

/// The original VFS; it is there, since ours, which calls this, is made from it.
fn original() -> Option<(*mut ffi::sqlite3_vfs, &'static ffi::sqlite3_vfs)> {
    let original = ORIGINAL.get()?.0;
    // SAFETY: a registered VFS, which is never freed and not changed.
    Some((original, unsafe { &*original }))
}

/// Where what we know of a file stands, behind the structure of the VFS that ours is a copy of.
fn tail_offset(original: &ffi::sqlite3_vfs) -> usize {
    (original.szOsFile.unsigned_abs() as usize).next_multiple_of(align_of::<Tail>())
}

/// # Safety
///
/// The file's structure was allocated for our VFS.
unsafe fn tail_of(file: *mut ffi::sqlite3_file) -> *mut Tail {
    let offset = original().map_or(0, |(_, original)| tail_offset(original));
    // SAFETY: this function's contract; SQLite aligns it for whatever it is.
    unsafe { file.cast::<u8>().add(offset).cast() }
}

/// The database that a file belongs to, by its kind.
///
/// # Safety
///
/// The file is open, and has one of our tables.
unsafe fn database_of<'a>(file: *mut ffi::sqlite3_file) -> Option<&'a CStr> {
    const KINDS: c_int =
        ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL;
    // SAFETY: opened by our VFS. The names of these three kinds are SQLite's, in which that of the
    // database can be found, and live as long as the file is open.
    unsafe {
        let tail = &*tail_of(file);
        if tail.flags & KINDS == 0 || tail.name.is_null() {
            return None;
        }
        let name = ffi::sqlite3_filename_database(tail.name);
        (!name.is_null()).then(|| CStr::from_ptr(name))
    }
}

/// Tells of a sync that has failed.
///
/// # Safety
///
/// As for [`database_of`].
#[cold]
unsafe fn sync_has_failed(file: *mut ffi::sqlite3_file) {
    // SAFETY: this function's contract.
    if let (Some(hook), Some(name)) = (AFTER_FAILED_SYNC.get(), unsafe { database_of(file) }) {
        #[cfg(unix)]
        let path = {
            let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
            Path::new(bytes)
        };
        #[cfg(not(unix))]
        let path = Path::new(name.to_str().unwrap_or_default());
        // No panic unwinds into C.
        let _ = std::panic::catch_unwind(|| hook(path));
    }
}

/// The methods of a file that is a write-ahead log, opened by our VFS in this process; nothing for any
/// other. They stay for as long as the process runs.
///
/// # Safety
///
/// NULL, or a file of a connection that is open and locked.
pub(crate) unsafe fn methods_of_log(
    file: *mut ffi::sqlite3_file,
) -> Option<&'static ffi::sqlite3_io_methods> {
    // SAFETY: this function's contract; a file that is not open has no methods.
    unsafe {
        if file.is_null() || (*file).pMethods.is_null() {
            return None;
        }
        let methods = (*file).pMethods;
        let is_ours = METHODS
            .lock()
            .iter()
            .any(|known| ptr::eq(ptr::from_ref(*known).cast(), methods));
        let is_log = is_ours && (*tail_of(file)).flags & ffi::SQLITE_OPEN_WAL != 0;
        is_log.then(|| &*methods)
    }
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
    // SAFETY: a database's name is SQLite's, behind which its URI's parameters stand; the key is NUL-terminated.
    let asks_for_a_cache = flags & ffi::SQLITE_OPEN_MAIN_DB != 0
        && !name.is_null()
        && unsafe { !ffi::sqlite3_uri_parameter(name, c"cache".as_ptr()).is_null() };
    if asks_for_a_cache {
        cache_is_shared();
    }
    // SAFETY: the structure is as large as ours asks for.
    unsafe {
        tail_of(file).write(Tail {
            name,
            flags,
            index: IndexLocks::NONE,
            frames: GatheredFrames::default(),
            writing: Writing::default(),
        });
    }
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
    let generation = fork::generation();
    let mut known = METHODS.lock();
    if let Some(methods) = known
        .iter()
        .find(|methods| methods.original == original && methods.generation == generation)
    {
        return methods;
    }
    // SAFETY: see this function's contract.
    let mut ours = unsafe { ptr::read(original) };
    ours.xClose = Some(close);
    ours.xFileControl = Some(file_control);
    ours.xRead = Some(read);
    ours.xWrite = Some(write);
    ours.xTruncate = Some(truncate);
    ours.xSync = Some(sync);
    ours.xFileSize = Some(file_size);
    ours.xLock = Some(lock);
    ours.xUnlock = Some(unlock);
    ours.xCheckReservedLock = Some(check_reserved_lock);
    // Files without locks have none of these.
    ours.xShmMap = ours.xShmMap.map(|_| shm_map as _);
    ours.xShmLock = ours.xShmLock.map(|_| shm_lock as _);
    ours.xShmUnmap = ours.xShmUnmap.map(|_| shm_unmap as _);
    let methods = Box::leak(Box::new(Methods {
        ours,
        original,
        generation,
    }));
    known.push(methods);
    methods
}

/// SQLite's own methods of a file, unless it was opened before a fork, in the parent.
///
/// # Safety
///
/// The file has one of our tables, which is so where one of our methods is called.
#[inline]
unsafe fn own_methods<'a>(file: *mut ffi::sqlite3_file) -> Option<&'a ffi::sqlite3_io_methods> {
    // SAFETY: see this function's contract; tables are never freed, originals are constants.
    unsafe {
        let methods = &*(*file).pMethods.cast::<Methods>();
        (methods.generation == fork::generation()).then(|| &*methods.original)
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: called through our table.
    let Some((own, read)) = unsafe { own_methods(file) }.and_then(|own| Some((own, own.xRead?)))
    else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: called through our table.
    match unsafe { flush_before(file, own, offset + i64::from(amount)) } {
        // SAFETY: the call as SQLite made it.
        ffi::SQLITE_OK => unsafe { read(file, buffer, amount, offset) },
        code => code,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: called through our table.
    let Some((own, write)) = unsafe { own_methods(file) }.and_then(|own| Some((own, own.xWrite?)))
    else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: opened by our VFS, and nobody else uses what stands behind the file.
    let frames = unsafe { &mut (*tail_of(file)).frames };
    if frames.is_idle() {
        // SAFETY: the call as SQLite made it.
        return unsafe { write(file, buffer, amount, offset) };
    }
    // SAFETY: what SQLite writes, which is never nothing.
    let bytes = unsafe { slice::from_raw_parts(buffer.cast(), amount.unsigned_abs() as usize) };
    // SAFETY: called through our table.
    frames.write(bytes, offset, unsafe { straight(file, own) })
}

/// Writes to a file by SQLite's own method, with its errors; no more than that can at once.
///
/// # Safety
///
/// The file is one of our VFS, of which these are the own methods, and stays open.
unsafe fn straight(
    file: *mut ffi::sqlite3_file,
    own: &ffi::sqlite3_io_methods,
) -> impl Fn(&[u8], i64) -> c_int {
    move |bytes, offset| match own.xWrite {
        // SAFETY: this function's contract.
        Some(write) => unsafe { write(file, bytes.as_ptr().cast(), bytes.len() as c_int, offset) },
        None => ffi::SQLITE_IOERR_WRITE,
    }
}

/// Has what is held back of a file written, if any of its first `end` bytes are among it.
///
/// # Safety
///
/// As for [`straight`].
#[inline]
unsafe fn flush_before(
    file: *mut ffi::sqlite3_file,
    own: &ffi::sqlite3_io_methods,
    end: i64,
) -> c_int {
    // SAFETY: opened by our VFS, and nobody else uses what stands behind the file.
    let frames = unsafe { &mut (*tail_of(file)).frames };
    // SAFETY: this function's contract.
    frames.flush_before(end, unsafe { straight(file, own) })
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: called through our table; tables are never freed, originals are constants.
    let close = unsafe { (*(*(*file).pMethods.cast::<Methods>()).original).xClose };
    // SAFETY: opened by our VFS. What is still held back is of no commit.
    unsafe { (*tail_of(file)).frames = GatheredFrames::default() };
    match close {
        // SAFETY: the call as SQLite made it.
        Some(close) => unsafe { close(file) },
        None => ffi::SQLITE_OK,
    }
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: called through our table.
    let Some(own) = (unsafe { own_methods(file) }) else {
        return ffi::SQLITE_NOTFOUND;
    };
    if operation == COMMIT_BEGINS && argument.is_null() {
        // SAFETY: opened by our VFS; SQLite has locked the file for this thread.
        return match unsafe { (*tail_of(file)).writing.may_gather() } {
            true => ffi::SQLITE_OK,
            false => ffi::SQLITE_NOTFOUND,
        };
    }
    if operation == COMMIT_BEGINS {
        // SAFETY: whoever asks for it has a log of this database, opened by our VFS; SQLite has locked both
        // files for this thread.
        unsafe {
            let frames = &raw mut (*tail_of(argument.cast())).frames;
            let writing = &mut (*tail_of(file)).writing;
            writing.commits(NonNull::new_unchecked(frames));
        }
        return ffi::SQLITE_OK;
    }
    match own.xFileControl {
        // SAFETY: the call as SQLite made it.
        Some(control) => unsafe { control(file, operation, argument) },
        None => ffi::SQLITE_NOTFOUND,
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: called through our table.
    let Some((own, truncate)) =
        unsafe { own_methods(file) }.and_then(|own| Some((own, own.xTruncate?)))
    else {
        return ffi::SQLITE_IOERR_TRUNCATE;
    };
    // SAFETY: called through our table.
    match unsafe { flush_before(file, own, i64::MAX) } {
        // SAFETY: the call as SQLite made it.
        ffi::SQLITE_OK => unsafe { truncate(file, size) },
        code => code,
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: called through our table.
    let Some((own, sync)) = unsafe { own_methods(file) }.and_then(|own| Some((own, own.xSync?)))
    else {
        return ffi::SQLITE_IOERR_FSYNC;
    };
    // SAFETY: called through our table.
    let code = unsafe { flush_before(file, own, i64::MAX) };
    if code != ffi::SQLITE_OK {
        return code;
    }
    about_to_wait();
    // SAFETY: the call as SQLite made it.
    let code = unsafe { sync(file, flags) };
    if code != ffi::SQLITE_OK {
        // SAFETY: called through our table.
        unsafe { sync_has_failed(file) };
    }
    code
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    size: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: called through our table.
    let Some(file_size) = unsafe { own_methods(file) }.and_then(|own| own.xFileSize) else {
        return ffi::SQLITE_IOERR_FSTAT;
    };
    // SAFETY: opened by our VFS, and nobody else uses what stands behind the file.
    let tail = unsafe { &mut *tail_of(file) };
    let found = tail.index.size(|| {
        // SAFETY: the call as SQLite made it, which fills in the size where it succeeds.
        unsafe {
            match file_size(file, size) {
                ffi::SQLITE_OK => Ok(*size),
                code => Err(code),
            }
        }
    });
    match found {
        Ok(bytes) => {
            // SAFETY: SQLite's place for it.
            unsafe { *size = bytes };
            ffi::SQLITE_OK
        }
        Err(code) => code,
    }
}

// The methods of locks wait for a mutex of the file, which another thread of the parent may have had at
// the fork. What a child gives back it does not have.

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: called through our table.
    match unsafe { own_methods(file) }.and_then(|own| own.xLock) {
        // SAFETY: the call as SQLite made it.
        Some(lock) => unsafe { lock(file, level) },
        None => ffi::SQLITE_IOERR_LOCK,
    }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: called through our table.
    match unsafe { own_methods(file) }.and_then(|own| own.xUnlock) {
        // SAFETY: the call as SQLite made it.
        Some(unlock) => unsafe { unlock(file, level) },
        None => ffi::SQLITE_OK,
    }
}

unsafe extern "C" fn check_reserved_lock(
    file: *mut ffi::sqlite3_file,
    is_reserved: *mut c_int,
) -> c_int {
    // SAFETY: called through our table.
    match unsafe { own_methods(file) }.and_then(|own| own.xCheckReservedLock) {
        // SAFETY: the call as SQLite made it.
        Some(check) => unsafe { check(file, is_reserved) },
        None => ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
    }
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    mapped: *mut *mut c_void,
) -> c_int {
    // SAFETY: called through our table.
    match unsafe { own_methods(file) }.and_then(|own| own.xShmMap) {
        // SAFETY: the call as SQLite made it, which tells where it is mapped if it succeeds.
        Some(map) => unsafe {
            let code = map(file, region, size, extend, mapped);
            if code == ffi::SQLITE_OK && region == 0 {
                (*tail_of(file)).index.header_is_at((*mapped).cast_const());
            }
            code
        },
        None => ffi::SQLITE_IOERR_SHMMAP,
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: called through our table.
    match unsafe { own_methods(file) }.and_then(|own| own.xShmUnmap) {
        // SAFETY: the call as SQLite made it.
        Some(unmap) => unsafe {
            let tail = &mut *tail_of(file);
            tail.index = IndexLocks::NONE;
            // The log is closed next, of a transaction that has not begun to commit.
            tail.writing.ends();
            unmap(file, delete)
        },
        None => ffi::SQLITE_OK,
    }
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: called through our table.
    let Some(lock) = unsafe { own_methods(file) }.and_then(|own| own.xShmLock) else {
        return match flags & ffi::SQLITE_SHM_UNLOCK {
            0 => ffi::SQLITE_IOERR_SHMLOCK,
            _ => ffi::SQLITE_OK,
        };
    };
    // SAFETY: opened by our VFS; one connection uses the file, and has its guard.
    let tail = unsafe { &mut *tail_of(file) };
    if (offset, flags) == (WRITE_LOCK, UNLOCK) {
        tail.writing.ends();
    }
    // SAFETY: the call as SQLite made it, who has the header mapped as long as it locks.
    let code = unsafe {
        tail.index
            .lock(offset, count, flags, || lock(file, offset, count, flags))
    };
    if (offset, flags, code) == (WRITE_LOCK, LOCK, ffi::SQLITE_OK)
        && !IS_CACHE_SHARED.load(Ordering::Relaxed)
    {
        tail.writing.begins();
    }
    code
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
