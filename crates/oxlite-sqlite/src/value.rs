//! The five storage classes of SQLite, borrowed: what is bound to a parameter and what is read from
//! a column. Text is bytes here, since a database file may hold text that is not UTF-8.

/// One value in SQLite's own storage classes (<https://sqlite.org/datatype3.html>).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// An IEEE 754 double.
    Real(f64),
    /// Text as stored, nominally UTF-8; SQLite does not check it.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl From<i64> for ValueRef<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}
