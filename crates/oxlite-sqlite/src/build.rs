//! What the linked SQLite says of itself: version, source and compile-time options.

use std::ffi::CStr;
use std::ptr;

use libsqlite3_sys as ffi;

/// The version as text, for example `3.54.1`.
pub fn version() -> &'static str {
    // SAFETY: sqlite3_libversion returns a NUL-terminated string constant of the library.
    unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) }
        .to_str()
        .unwrap_or_default()
}

/// The version as a number: 3.54.1 is 3054001.
pub fn version_number() -> i32 {
    // SAFETY: takes no argument, reads a constant.
    unsafe { ffi::sqlite3_libversion_number() }
}

/// The identity of the source check-in from which the library was built.
pub fn source_id() -> &'static str {
    // SAFETY: sqlite3_sourceid returns a NUL-terminated string constant of the library.
    unsafe { CStr::from_ptr(ffi::sqlite3_sourceid()) }
        .to_str()
        .unwrap_or_default()
}

/// The threading mode it was compiled with: 0 single-thread, 1 serialized, 2 multi-thread
/// (<https://sqlite.org/threadsafe.html>).
pub fn threadsafe() -> i32 {
    // SAFETY: takes no argument, reads a constant.
    unsafe { ffi::sqlite3_threadsafe() }
}

/// Every compile-time option, as `PRAGMA compile_options` lists them (without `SQLITE_`).
pub fn compile_options() -> Vec<&'static str> {
    (0..)
        .map_while(|index| {
            // SAFETY: any index is allowed; past the end it returns NULL.
            let option = unsafe { ffi::sqlite3_compileoption_get(index) };
            if option.is_null() {
                return None;
            }
            // SAFETY: not NULL, so a NUL-terminated string constant of the library.
            unsafe { CStr::from_ptr(option) }.to_str().ok()
        })
        .collect()
}

/// Every word that means something in SQL, in the library's order (<https://sqlite.org/c3ref/keyword_check.html>).
pub fn keywords() -> Vec<&'static str> {
    // SAFETY: takes no argument, reads a constant.
    let count = unsafe { ffi::sqlite3_keyword_count() };
    (0..count)
        .filter_map(|index| {
            let (mut name, mut length) = (ptr::null(), 0);
            // SAFETY: any index is allowed; the two places are ours.
            let code = unsafe { ffi::sqlite3_keyword_name(index, &raw mut name, &raw mut length) };
            if code != ffi::SQLITE_OK {
                return None;
            }
            // SAFETY: on success that many bytes of a string constant of the library, which no NUL ends.
            let bytes =
                unsafe { std::slice::from_raw_parts(name.cast(), usize::try_from(length).ok()?) };
            std::str::from_utf8(bytes).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of `.cargo/config.toml`, seen from the built library: a build that lost them must
    /// not pass.
    #[test]
    fn the_project_flags_reached_the_library() {
        let options = compile_options();
        for wanted in [
            "THREADSAFE=2",
            "DEFAULT_MEMSTATUS=0",
            "USE_ALLOCA",
            "ENABLE_FTS5",
            "ENABLE_FTS4",
            "ENABLE_RTREE",
            "ENABLE_GEOPOLY",
            "ENABLE_MATH_FUNCTIONS",
            "ENABLE_DBSTAT_VTAB",
            "ENABLE_STAT4",
            "ENABLE_SESSION",
            "ENABLE_PREUPDATE_HOOK",
            "ENABLE_COLUMN_METADATA",
            "MAX_VARIABLE_NUMBER=500000",
        ] {
            assert!(
                options.contains(&wanted),
                "{wanted} is missing: {options:?}"
            );
        }
        for unwanted in [
            "DEFAULT_FOREIGN_KEYS",
            "ENABLE_API_ARMOR",
            "USE_URI",
            "ENABLE_LOAD_EXTENSION",
            "OMIT_SHARED_CACHE",
            "LIKE_DOESNT_MATCH_BLOBS",
            "DQS=0",
            "MAX_EXPR_DEPTH=0",
        ] {
            assert!(
                !options.iter().any(|option| option.starts_with(unwanted)),
                "{unwanted} is set: {options:?}"
            );
        }
        assert_eq!(threadsafe(), 2);
        assert!(version_number() >= 3_054_000, "{}", version());
    }
}
