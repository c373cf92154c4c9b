//! What a statement is for, so far as one must know without parsing it.

use oxlite_sqlite::{begins_with_one_of, first_statement, without_leading_space};

/// Whether there is nothing to execute: only space, comments and semicolons.
///
/// Decided by reading, never by preparing: SQLite carries some pragmas out while it prepares them.
pub(crate) fn is_blank(sql: &str) -> bool {
    let mut rest = without_leading_space(sql.as_bytes());
    while let [b';', tail @ ..] = rest {
        rest = without_leading_space(tail);
    }
    rest.is_empty()
}

/// What a statement is for, by its first keyword; that of ATTACH is found also behind semicolons, where the
/// standard library's `sqlite3` finds none.
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
        let is_one_of = |keywords: &[&str]| begins_with_one_of(sql.as_bytes(), keywords);
        if is_one_of(&["SELECT", "VALUES", "EXPLAIN", "WITH"]) {
            Self::Query
        } else if is_one_of(&["INSERT", "UPDATE", "DELETE", "REPLACE"]) {
            Self::DataModification
        } else if begins_with_one_of(first_statement(sql.as_bytes()), &["ATTACH"]) {
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
    fn the_kind_is_the_first_keywords() {
        let modification = StatementKind::DataModification;
        assert_eq!(StatementKind::of("RePlAcE INTO t VALUES(1)"), modification);
        let with = "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x";
        assert_eq!(StatementKind::of(with), StatementKind::Query);
        assert_eq!(StatementKind::of("inserted"), StatementKind::Other);
        assert_eq!(
            StatementKind::of("/**/Attach ? AS a"),
            StatementKind::Attach
        );
        assert_eq!(StatementKind::of("; ATTACH ? AS a"), StatementKind::Attach);
        assert_eq!(StatementKind::of(";INSERT"), StatementKind::Other);
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
