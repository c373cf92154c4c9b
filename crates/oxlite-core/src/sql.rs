//! The little of SQL that one must know without parsing it: the first keyword of a statement.

/// The text after leading space and comments.
fn without_leading_space(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find('\n').map_or("", |end| &comment[end + 1..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.find("*/").map_or("", |end| &comment[end + 2..]);
        } else {
            return rest;
        }
    }
}

/// The first keyword, after space and comments; empty if there is none.
fn first_keyword(sql: &str) -> &str {
    let rest = without_leading_space(sql);
    let end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    &rest[..end]
}

/// Whether there is nothing to execute: only space, comments and semicolons.
///
/// Decided by reading, never by preparing: SQLite carries some pragmas out while it prepares them.
pub(crate) fn is_blank(sql: &str) -> bool {
    let mut rest = without_leading_space(sql);
    while let Some(tail) = rest.strip_prefix(';') {
        rest = without_leading_space(tail);
    }
    rest.is_empty()
}

/// What a statement is for, by its first keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// SELECT, VALUES, EXPLAIN, or WITH, which may be a data modification all the same.
    Query,
    /// INSERT, UPDATE, DELETE or REPLACE: the ones before which the standard library's `sqlite3`
    /// opens a transaction, and for which it reports a row count.
    DataModification,
    /// ATTACH.
    Attach,
    /// Anything else.
    Other,
}

impl StatementKind {
    pub(crate) fn of(sql: &str) -> Self {
        let keyword = first_keyword(sql);
        let is_one_of = |all: &[&str]| all.iter().any(|known| keyword.eq_ignore_ascii_case(known));
        if is_one_of(&["SELECT", "VALUES", "EXPLAIN", "WITH"]) {
            Self::Query
        } else if is_one_of(&["INSERT", "UPDATE", "DELETE", "REPLACE"]) {
            Self::DataModification
        } else if is_one_of(&["ATTACH"]) {
            Self::Attach
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keyword_is_found_behind_comments() {
        assert_eq!(first_keyword("  -- a\n/* b */ insert into t"), "insert");
        assert_eq!(first_keyword("/* never closed"), "");
        assert_eq!(first_keyword("-- only"), "");
        assert_eq!(first_keyword(""), "");
        let modification = StatementKind::DataModification;
        assert_eq!(StatementKind::of("RePlAcE INTO t VALUES(1)"), modification);
        let with = "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x";
        assert_eq!(StatementKind::of(with), StatementKind::Query);
        assert_eq!(StatementKind::of("inserted"), StatementKind::Other);
        assert_eq!(
            StatementKind::of("/**/Attach ? AS a"),
            StatementKind::Attach
        );
    }

    #[test]
    fn blank_is_what_executes_nothing() {
        for blank in ["", " ; ;\n", "-- a\n;/* b */ ; -- c", "/* open", "\x0c"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for something in ["x", "; -- a\n PRAGMA b", "/* a */ SELECT", "-", "/"] {
            assert!(!is_blank(something), "{something:?}");
        }
    }
}
