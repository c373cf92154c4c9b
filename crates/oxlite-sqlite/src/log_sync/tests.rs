//! What is held back of a commit, in the log of a real connection.

use std::env;
use std::ffi::{CString, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process;

use super::*;
use crate::{Connection, OpenFlags};

const HEADER: [u8; 24] = [0; 24];
const PAGE: [u8; 1024] = [7; 1024];
const FRAME_BYTES: i64 = (HEADER.len() + PAGE.len()) as i64;

/// A file of a connection, by SQLite's operation that tells it.
fn file_of(locked: &Locked<'_>, operation: c_int) -> *mut ffi::sqlite3_file {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: open and locked; the operation takes a place for a pointer.
    let code = unsafe {
        ffi::sqlite3_file_control(
            locked.database(),
            c"main".as_ptr(),
            operation,
            (&raw mut file).cast(),
        )
    };
    assert_eq!(code, ffi::SQLITE_OK);
    file
}

/// Begins a commit on a log, as the hook does, and appends a frame that is not the last.
fn held_back(locked: &Locked<'_>, offset: i64) -> *mut ffi::sqlite3_file {
    let log = file_of(locked, ffi::SQLITE_FCNTL_JOURNAL_POINTER);
    let database = file_of(locked, ffi::SQLITE_FCNTL_FILE_POINTER);
    // SAFETY: the files of a connection that is open and locked; the bytes are as many as is said.
    unsafe {
        let control = (*(*database).pMethods)
            .xFileControl
            .expect("a method of every file");
        assert_eq!(
            control(database, vfs::COMMIT_BEGINS, log.cast()),
            ffi::SQLITE_OK
        );
        let write = (*(*log).pMethods).xWrite.expect("a method of every file");
        assert_eq!(
            write(log, HEADER.as_ptr().cast(), 24, offset),
            ffi::SQLITE_OK
        );
        assert_eq!(
            write(log, PAGE.as_ptr().cast(), 1024, offset + 24),
            ffi::SQLITE_OK
        );
    }
    log
}

#[test]
fn what_is_held_back_is_written_before_it_is_needed_and_goes_with_the_lock() {
    let folder = env::temp_dir().join(format!("oxlite-held-back-{}", process::id()));
    fs::create_dir(&folder).expect("a new folder");
    let path = folder.join("app.db");
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
    let connection = Connection::open(&name, OpenFlags::default()).expect("it opens");
    let locked = connection.lock().expect("it is free");
    locked
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")
        .expect("it runs");
    let size = || {
        fs::metadata(folder.join("app.db-wal"))
            .expect("the file is there")
            .len() as i64
    };

    let before = size();
    held_back(&locked, before);
    assert_eq!(size(), before + FRAME_BYTES, "nobody has the write lock");

    locked.execute_batch("BEGIN IMMEDIATE").expect("it runs");
    let mut end = size();
    for operation in ["sync", "truncate", "read"] {
        let log = held_back(&locked, end);
        assert_eq!(size(), end, "held back");
        end += FRAME_BYTES;
        let mut byte = [0_u8];
        // SAFETY: as in `held_back`; there is room for one byte.
        let code = unsafe {
            let methods = &*(*log).pMethods;
            match operation {
                "sync" => {
                    methods.xSync.expect("a method of every file")(log, ffi::SQLITE_SYNC_NORMAL)
                }
                "truncate" => methods.xTruncate.expect("a method of every file")(log, end),
                _ => methods.xRead.expect("a method of every file")(
                    log,
                    byte.as_mut_ptr().cast(),
                    1,
                    end - 1,
                ),
            }
        };
        assert_eq!((code, size()), (ffi::SQLITE_OK, end), "{operation}");
        assert_eq!(byte[0], if operation == "read" { 7 } else { 0 });
    }

    held_back(&locked, end);
    locked
        .execute_batch("ROLLBACK; BEGIN IMMEDIATE")
        .expect("it runs");
    assert_eq!(size(), end, "forgotten");
    locked
        .execute_batch("INSERT INTO t VALUES (1); COMMIT")
        .expect("it runs");
    assert_eq!(
        size(),
        end,
        "the frames that were committed stand before those that were not"
    );
    drop(locked);
    drop(connection);
    fs::remove_dir_all(&folder).expect("the folder is the test's");
}
