//! The names of SQLite's result codes, primary and extended.
//!
//! The library offers no function for them (`sqlite3_errstr` gives prose), so the table stands here;
//! a test holds it against the header of the SQLite that is linked.

/// Calls the given macro with every result code as `NAME = value`.
macro_rules! result_codes {
    ($($name:ident = $value:expr,)*) => {
        /// Every result code by name.
        pub static RESULT_CODES: &[(&str, i32)] = &[$((stringify!($name), $value),)*];

        /// The name of a primary or extended result code, for example `SQLITE_BUSY_SNAPSHOT`.
        ///
        /// An extended code this version of SQLite does not define falls back to the name of its
        /// primary code, and a wholly unknown one to `SQLITE_UNKNOWN`.
        pub fn code_name(code: i32) -> &'static str {
            match code {
                $(_ if code == $value => stringify!($name),)*
                _ if code > 0xff => code_name(code & 0xff),
                _ => "SQLITE_UNKNOWN",
            }
        }
    };
}

result_codes! {
    SQLITE_OK = 0,
    SQLITE_ERROR = 1,
    SQLITE_INTERNAL = 2,
    SQLITE_PERM = 3,
    SQLITE_ABORT = 4,
    SQLITE_BUSY = 5,
    SQLITE_LOCKED = 6,
    SQLITE_NOMEM = 7,
    SQLITE_READONLY = 8,
    SQLITE_INTERRUPT = 9,
    SQLITE_IOERR = 10,
    SQLITE_CORRUPT = 11,
    SQLITE_NOTFOUND = 12,
    SQLITE_FULL = 13,
    SQLITE_CANTOPEN = 14,
    SQLITE_PROTOCOL = 15,
    SQLITE_EMPTY = 16,
    SQLITE_SCHEMA = 17,
    SQLITE_TOOBIG = 18,
    SQLITE_CONSTRAINT = 19,
    SQLITE_MISMATCH = 20,
    SQLITE_MISUSE = 21,
    SQLITE_NOLFS = 22,
    SQLITE_AUTH = 23,
    SQLITE_FORMAT = 24,
    SQLITE_RANGE = 25,
    SQLITE_NOTADB = 26,
    SQLITE_NOTICE = 27,
    SQLITE_WARNING = 28,
    SQLITE_ROW = 100,
    SQLITE_DONE = 101,
    SQLITE_ERROR_MISSING_COLLSEQ = 1 | (1 << 8),
    SQLITE_ERROR_RETRY = 1 | (2 << 8),
    SQLITE_ERROR_SNAPSHOT = 1 | (3 << 8),
    SQLITE_ERROR_RESERVESIZE = 1 | (4 << 8),
    SQLITE_ERROR_KEY = 1 | (5 << 8),
    SQLITE_ERROR_UNABLE = 1 | (6 << 8),
    SQLITE_IOERR_READ = 10 | (1 << 8),
    SQLITE_IOERR_SHORT_READ = 10 | (2 << 8),
    SQLITE_IOERR_WRITE = 10 | (3 << 8),
    SQLITE_IOERR_FSYNC = 10 | (4 << 8),
    SQLITE_IOERR_DIR_FSYNC = 10 | (5 << 8),
    SQLITE_IOERR_TRUNCATE = 10 | (6 << 8),
    SQLITE_IOERR_FSTAT = 10 | (7 << 8),
    SQLITE_IOERR_UNLOCK = 10 | (8 << 8),
    SQLITE_IOERR_RDLOCK = 10 | (9 << 8),
    SQLITE_IOERR_DELETE = 10 | (10 << 8),
    SQLITE_IOERR_BLOCKED = 10 | (11 << 8),
    SQLITE_IOERR_NOMEM = 10 | (12 << 8),
    SQLITE_IOERR_ACCESS = 10 | (13 << 8),
    SQLITE_IOERR_CHECKRESERVEDLOCK = 10 | (14 << 8),
    SQLITE_IOERR_LOCK = 10 | (15 << 8),
    SQLITE_IOERR_CLOSE = 10 | (16 << 8),
    SQLITE_IOERR_DIR_CLOSE = 10 | (17 << 8),
    SQLITE_IOERR_SHMOPEN = 10 | (18 << 8),
    SQLITE_IOERR_SHMSIZE = 10 | (19 << 8),
    SQLITE_IOERR_SHMLOCK = 10 | (20 << 8),
    SQLITE_IOERR_SHMMAP = 10 | (21 << 8),
    SQLITE_IOERR_SEEK = 10 | (22 << 8),
    SQLITE_IOERR_DELETE_NOENT = 10 | (23 << 8),
    SQLITE_IOERR_MMAP = 10 | (24 << 8),
    SQLITE_IOERR_GETTEMPPATH = 10 | (25 << 8),
    SQLITE_IOERR_CONVPATH = 10 | (26 << 8),
    SQLITE_IOERR_VNODE = 10 | (27 << 8),
    SQLITE_IOERR_AUTH = 10 | (28 << 8),
    SQLITE_IOERR_BEGIN_ATOMIC = 10 | (29 << 8),
    SQLITE_IOERR_COMMIT_ATOMIC = 10 | (30 << 8),
    SQLITE_IOERR_ROLLBACK_ATOMIC = 10 | (31 << 8),
    SQLITE_IOERR_DATA = 10 | (32 << 8),
    SQLITE_IOERR_CORRUPTFS = 10 | (33 << 8),
    SQLITE_IOERR_IN_PAGE = 10 | (34 << 8),
    SQLITE_IOERR_BADKEY = 10 | (35 << 8),
    SQLITE_IOERR_CODEC = 10 | (36 << 8),
    SQLITE_LOCKED_SHAREDCACHE = 6 | (1 << 8),
    SQLITE_LOCKED_VTAB = 6 | (2 << 8),
    SQLITE_BUSY_RECOVERY = 5 | (1 << 8),
    SQLITE_BUSY_SNAPSHOT = 5 | (2 << 8),
    SQLITE_BUSY_TIMEOUT = 5 | (3 << 8),
    SQLITE_CANTOPEN_NOTEMPDIR = 14 | (1 << 8),
    SQLITE_CANTOPEN_ISDIR = 14 | (2 << 8),
    SQLITE_CANTOPEN_FULLPATH = 14 | (3 << 8),
    SQLITE_CANTOPEN_CONVPATH = 14 | (4 << 8),
    SQLITE_CANTOPEN_DIRTYWAL = 14 | (5 << 8),
    SQLITE_CANTOPEN_SYMLINK = 14 | (6 << 8),
    SQLITE_CORRUPT_VTAB = 11 | (1 << 8),
    SQLITE_CORRUPT_SEQUENCE = 11 | (2 << 8),
    SQLITE_CORRUPT_INDEX = 11 | (3 << 8),
    SQLITE_READONLY_RECOVERY = 8 | (1 << 8),
    SQLITE_READONLY_CANTLOCK = 8 | (2 << 8),
    SQLITE_READONLY_ROLLBACK = 8 | (3 << 8),
    SQLITE_READONLY_DBMOVED = 8 | (4 << 8),
    SQLITE_READONLY_CANTINIT = 8 | (5 << 8),
    SQLITE_READONLY_DIRECTORY = 8 | (6 << 8),
    SQLITE_ABORT_ROLLBACK = 4 | (2 << 8),
    SQLITE_CONSTRAINT_CHECK = 19 | (1 << 8),
    SQLITE_CONSTRAINT_COMMITHOOK = 19 | (2 << 8),
    SQLITE_CONSTRAINT_FOREIGNKEY = 19 | (3 << 8),
    SQLITE_CONSTRAINT_FUNCTION = 19 | (4 << 8),
    SQLITE_CONSTRAINT_NOTNULL = 19 | (5 << 8),
    SQLITE_CONSTRAINT_PRIMARYKEY = 19 | (6 << 8),
    SQLITE_CONSTRAINT_TRIGGER = 19 | (7 << 8),
    SQLITE_CONSTRAINT_UNIQUE = 19 | (8 << 8),
    SQLITE_CONSTRAINT_VTAB = 19 | (9 << 8),
    SQLITE_CONSTRAINT_ROWID = 19 | (10 << 8),
    SQLITE_CONSTRAINT_PINNED = 19 | (11 << 8),
    SQLITE_CONSTRAINT_DATATYPE = 19 | (12 << 8),
    SQLITE_NOTICE_RECOVER_WAL = 27 | (1 << 8),
    SQLITE_NOTICE_RECOVER_ROLLBACK = 27 | (2 << 8),
    SQLITE_NOTICE_RBU = 27 | (3 << 8),
    SQLITE_WARNING_AUTOINDEX = 28 | (1 << 8),
    SQLITE_AUTH_USER = 23 | (1 << 8),
    SQLITE_OK_LOAD_PERMANENTLY = 1 << 8,
    SQLITE_OK_SYMLINK = 2 << 8,
}

#[cfg(test)]
mod tests {
    use super::code_name;

    /// Parses `#define SQLITE_X 5` between the markers and every `#define SQLITE_X_Y (SQLITE_X | (2<<8))`.
    fn codes_of_the_header() -> Vec<(String, i32)> {
        let path = concat!(env!("OXLITE_SQLITE_INCLUDE"), "/sqlite3.h");
        let header = std::fs::read_to_string(path).expect("the bundled header can be read");
        let mut codes: Vec<(String, i32)> = Vec::new();
        let mut in_primary_codes = false;
        for line in header.lines() {
            in_primary_codes |= line.starts_with("#define SQLITE_OK ");
            in_primary_codes &= !line.contains("end-of-error-codes");
            let mut words = line.split_whitespace();
            if words.next() != Some("#define") {
                continue;
            }
            let (Some(name), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            if in_primary_codes && let Ok(value) = value.parse() {
                codes.push((name.to_owned(), value));
            } else if let Some(parent) = value.strip_prefix('(')
                && let Some((_, parent)) = codes.iter().find(|(known, _)| known == parent)
                && let Some(shifted) = words.nth(1)
                && let Some((bits, "8))")) = shifted.trim_start_matches('(').split_once("<<")
            {
                codes.push((
                    name.to_owned(),
                    parent | (bits.parse::<i32>().expect("a number") << 8),
                ));
            }
        }
        codes
    }

    #[test]
    fn every_code_of_the_header_has_its_name() {
        let codes = codes_of_the_header();
        assert!(codes.len() > 100, "only {} codes were parsed", codes.len());
        for (name, code) in codes {
            assert_eq!(code_name(code), name, "code {code}");
        }
    }

    #[test]
    fn unknown_codes_have_a_name_too() {
        assert_eq!(code_name(5 | (99 << 8)), "SQLITE_BUSY");
        assert_eq!(code_name(77), "SQLITE_UNKNOWN");
    }
}
