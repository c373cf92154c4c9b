//! What is gathered, written to real files.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process;

use super::*;

const PAGE: [u8; 1024] = [7; 1024];
const FRAME_BYTES: i64 = (HEADER_BYTES + PAGE.len()) as i64;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn of(test: &str) -> Self {
        let path = env::temp_dir().join(format!("oxlite-gathered-{}-{test}", process::id()));
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn header(size_after_commit: u8) -> [u8; HEADER_BYTES] {
    let mut header = [1; HEADER_BYTES];
    header[SIZE_AFTER_COMMIT].copy_from_slice(&[0, 0, 0, size_after_commit]);
    header
}

/// Writes to a real file, with SQLite's codes.
fn to(file: &File) -> impl Fn(&[u8], i64) -> c_int {
    |bytes, offset| match file.write_all_at(bytes, offset.unsigned_abs()) {
        Ok(()) => ffi::SQLITE_OK,
        Err(_) => ffi::SQLITE_IOERR_WRITE,
    }
}

#[test]
fn bytes_are_written_in_the_order_in_which_they_came() {
    let folder = Folder::of("order");
    let path = folder.0.join("log");
    let file = File::create(&path).expect("a file");
    let mut frames = GatheredFrames::default();
    frames.begin();
    assert_eq!(frames.write(&header(0), 0, to(&file)), ffi::SQLITE_OK);
    assert_eq!(frames.write(&PAGE, 24, to(&file)), ffi::SQLITE_OK);
    assert_eq!(fs::read(&path).expect("the file is there"), []);
    // The page of that frame once more, then a frame that does not follow.
    assert_eq!(frames.write(&[8; 1024], 24, to(&file)), ffi::SQLITE_OK);
    assert_eq!(
        frames.write(&header(0), FRAME_BYTES, to(&file)),
        ffi::SQLITE_OK
    );
    assert_eq!(
        frames.write(&PAGE, FRAME_BYTES + 24, to(&file)),
        ffi::SQLITE_OK
    );
    let last = 3 * FRAME_BYTES;
    assert_eq!(frames.write(&header(2), last, to(&file)), ffi::SQLITE_OK);
    assert_eq!(frames.write(&PAGE, last + 24, to(&file)), ffi::SQLITE_OK);
    let found = fs::read(&path).expect("the file is there");
    let part = |from: i64, length: usize| &found[from as usize..][..length];
    assert_eq!(part(0, 24), header(0));
    assert_eq!(part(24, 1024), [8; 1024]);
    assert_eq!(part(FRAME_BYTES + 24, 1024), PAGE);
    assert_eq!(part(2 * FRAME_BYTES, 1024), [0; 1024]);
    assert_eq!(part(last, 24), header(2));
    assert_eq!(part(last + 24, 1024), PAGE);
}

#[test]
fn nothing_is_held_back_after_the_last_frame_wherever_that_goes() {
    let folder = Folder::of("last");
    let path = folder.0.join("log");
    let file = File::create(&path).expect("a file");
    let mut frames = GatheredFrames::default();
    frames.begin();
    assert_eq!(frames.write(&header(0), 0, to(&file)), ffi::SQLITE_OK);
    assert_eq!(frames.write(&PAGE, 24, to(&file)), ffi::SQLITE_OK);
    // It does not follow what is held back.
    let last = 2 * FRAME_BYTES;
    assert_eq!(frames.write(&header(9), last, to(&file)), ffi::SQLITE_OK);
    assert_eq!(frames.write(&PAGE, last + 24, to(&file)), ffi::SQLITE_OK);
    // A checksum that is computed anew.
    assert_eq!(frames.write(&header(3), 0, to(&file)), ffi::SQLITE_OK);
    let found = fs::read(&path).expect("the file is there");
    assert_eq!(found[..HEADER_BYTES], header(3));
    assert!(frames.is_idle());
}

#[test]
fn after_a_write_that_has_failed_nothing_more_is_written_or_read() {
    let folder = Folder::of("failed");
    let path = folder.0.join("log");
    let file = File::create(&path).expect("a file");
    let closed = File::open(&path).expect("a file");
    let mut frames = GatheredFrames::default();
    frames.begin();
    assert_eq!(frames.write(&header(0), 48, to(&closed)), ffi::SQLITE_OK);
    assert_eq!(frames.write(&PAGE, 72, to(&closed)), ffi::SQLITE_OK);
    assert_eq!(frames.flush_before(48, to(&closed)), ffi::SQLITE_OK);
    assert_eq!(
        frames.flush_before(49, to(&closed)),
        ffi::SQLITE_IOERR_WRITE
    );
    // The disk has room again, but of this transaction something is missing.
    assert_eq!(
        frames.write(&header(0), 2000, to(&file)),
        ffi::SQLITE_IOERR_WRITE
    );
    assert_eq!(frames.write(&PAGE, 0, to(&file)), ffi::SQLITE_IOERR_WRITE);
    assert_eq!(frames.flush_before(49, to(&file)), ffi::SQLITE_IOERR_WRITE);
    assert_eq!(fs::read(&path).expect("the file is there"), []);
    frames.forget();
    assert_eq!(frames.flush_before(49, to(&file)), ffi::SQLITE_OK);
    assert_eq!(frames.write(&PAGE, 0, to(&file)), ffi::SQLITE_OK);
    assert_eq!(fs::read(&path).expect("the file is there"), PAGE);
}

#[test]
fn little_memory_is_kept() {
    let folder = Folder::of("memory");
    let file = File::create(folder.0.join("log")).expect("a file");
    let mut frames = GatheredFrames::default();
    frames.begin();
    for number in 0..200 {
        let offset = number * FRAME_BYTES;
        let size = if number == 199 { 9 } else { 0 };
        assert_eq!(
            frames.write(&header(size), offset, to(&file)),
            ffi::SQLITE_OK
        );
        assert_eq!(frames.write(&PAGE, offset + 24, to(&file)), ffi::SQLITE_OK);
        assert!(frames.bytes.len() <= MOST_BYTES);
    }
    assert!(frames.is_idle());
    assert!(frames.bytes.capacity() <= KEPT_BYTES);
}
