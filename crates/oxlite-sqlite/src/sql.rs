//! The little of SQL that one must know without parsing it: where a statement begins, and its first
//! keyword.

/// The text after leading space and comments.
pub fn without_leading_space(sql: &[u8]) -> &[u8] {
    let mut rest = sql;
    loop {
        rest = match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | b'\x0c', tail @ ..] => tail,
            [b'-', b'-', comment @ ..] => after(comment, b"\n"),
            [b'/', b'*', comment @ ..] => after(comment, b"*/"),
            _ => return rest,
        };
    }
}

/// The text from where SQLite reads the first statement: it passes over semicolons as well, over byte order marks,
/// and over vertical tabs among other space.
pub fn first_statement(sql: &[u8]) -> &[u8] {
    let mut rest = without_leading_space(sql);
    while let [b';' | b'\x0b', tail @ ..] | [0xef, 0xbb, 0xbf, tail @ ..] = rest {
        rest = without_leading_space(tail);
    }
    rest
}

/// The text after the end of a comment; nothing if it is not closed.
fn after<'s>(comment: &'s [u8], end: &[u8]) -> &'s [u8] {
    let found = comment.windows(end.len()).position(|part| part == end);
    found.map_or(&[], |at| &comment[at + end.len()..])
}

/// The first keyword, after space and comments; empty if there is none.
fn first_keyword(sql: &[u8]) -> &[u8] {
    let rest = without_leading_space(sql);
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    &rest[..end]
}

/// Whether the first keyword is one of these, in any case.
pub fn begins_with_one_of(sql: &[u8], keywords: &[&str]) -> bool {
    let first = first_keyword(sql);
    let mut keywords = keywords.iter();
    keywords.any(|keyword| first.eq_ignore_ascii_case(keyword.as_bytes()))
}

/// Whether a statement of which SQLite says that it is not read-only takes the write lock. It says so of
/// attaching, of what is only explained, and of pragmas, few of which do; the others must not wait.
pub(crate) fn takes_write_lock(sql: &[u8]) -> bool {
    !begins_with_one_of(sql, &["PRAGMA", "ATTACH", "DETACH", "EXPLAIN"])
}

/// Whether it may end a transaction, though SQLite calls it read-only.
pub(crate) fn may_commit(sql: &[u8]) -> bool {
    begins_with_one_of(sql, &["COMMIT", "END", "RELEASE"])
}

/// Whether it may end a transaction and does nothing else.
pub(crate) fn ends_transaction(sql: &[u8]) -> bool {
    may_commit(sql) || begins_with_one_of(sql, &["ROLLBACK"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keyword_is_found_behind_comments() {
        assert_eq!(first_keyword(b"  -- a\n/* b */ insert into t"), b"insert");
        assert_eq!(first_keyword(b"/* never closed"), b"");
        assert_eq!(first_keyword(b"-- only"), b"");
        assert_eq!(first_keyword(b""), b"");
    }

    #[test]
    fn the_first_statement_is_found_behind_what_sqlite_passes_over() {
        for text in [
            "COMMIT",
            " ;COMMIT",
            ";; -- a;\n;/* ; */COMMIT",
            "\u{feff}COMMIT",
            " \x0b\u{feff} ;\u{feff}COMMIT",
        ] {
            assert_eq!(first_statement(text.as_bytes()), b"COMMIT", "{text:?}");
        }
        for text in ["", ";", "-- ;COMMIT", "/* ;COMMIT"] {
            assert_eq!(first_statement(text.as_bytes()), b"", "{text:?}");
        }
    }

    #[test]
    fn what_ends_a_transaction_may_commit() {
        assert!(may_commit(b"commit"));
        assert!(may_commit(b"-- done\nEND TRANSACTION"));
        assert!(may_commit(b"RELEASE a"));
        assert!(!may_commit(b"ROLLBACK"));
        assert!(ends_transaction(b"Rollback"));
        assert!(ends_transaction(b"COMMIT"));
        assert!(!ends_transaction(b"BEGIN"));
        assert!(!may_commit(b"SELECT 1"));
    }

    #[test]
    fn pragmas_do_not_take_the_write_lock() {
        assert!(takes_write_lock(b"VACUUM"));
        assert!(takes_write_lock(b"begin immediate"));
        assert!(!takes_write_lock(b" /* */ pragma synchronous = 1"));
        assert!(!takes_write_lock(b"DETACH a"));
    }
}
