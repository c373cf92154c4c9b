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
    /// A PRAGMA that may set something of the connection.
    Setting,
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
        } else if begins_with_one_of(first_statement(sql.as_bytes()), &["PRAGMA"]) && may_set(sql) {
            Self::Setting
        } else {
            Self::Other
        }
    }
}

/// The pragmas with a value that set nothing of the connection, and `query_only`, which is known.
const SET_NOTHING: [&str; 14] = [
    "application_id",
    "data_version",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "query_only",
    "quick_check",
    "table_info",
    "table_xinfo",
    "user_version",
];

/// Whether preparing it may set something: SQLite carries some pragmas out then, also where they are only explained.
pub(crate) fn may_set_when_prepared(sql: &str) -> bool {
    let text = first_statement(sql.as_bytes());
    let is_explained = begins_with_one_of(text, &["EXPLAIN"]);
    let pragma = b"PRAGMA";
    StatementKind::of(sql) == StatementKind::Setting
        || is_explained
            && text
                .windows(pragma.len())
                .any(|part| part.eq_ignore_ascii_case(pragma))
}

/// Whether a pragma may set something: one without a value asks.
fn may_set(pragma: &str) -> bool {
    if pragma.contains("--") || pragma.contains("/*") {
        return true; // a comment may look like a name
    }
    let Some(end) = pragma.find(['=', '(']) else {
        return false;
    };
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let before = pragma[..end].trim_end();
    let name = before
        .rsplit(|letter| !is_of_name(letter))
        .next()
        .unwrap_or_default();
    !SET_NOTHING
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
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
    fn pragmas_that_set_something_are_known() {
        for sets in [
            "PRAGMA foreign_keys = 0",
            "pragma main.cache_size(-3)",
            ";PRAGMA case_sensitive_like=1",
            "PRAGMA foreign_keys -- query_only\n = 0",
            "PRAGMA foreign_keys /* query_only */ = 0",
        ] {
            assert_eq!(StatementKind::of(sets), StatementKind::Setting, "{sets}");
            assert!(may_set_when_prepared(sets), "{sets}");
        }
        for asks in [
            "PRAGMA foreign_keys",
            "PRAGMA table_info(t)",
            "PRAGMA main . query_only = 1",
            "PRAGMA user_version=3",
        ] {
            assert_eq!(StatementKind::of(asks), StatementKind::Other, "{asks}");
            assert!(!may_set_when_prepared(asks), "{asks}");
        }
        assert!(may_set_when_prepared("EXPLAIN PRAGMA cache_size = 3"));
        assert!(!may_set_when_prepared("EXPLAIN QUERY PLAN SELECT f(a) = 1"));
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
