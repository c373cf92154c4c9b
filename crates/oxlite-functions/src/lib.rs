//! SQL functions as pure functions of texts and numbers: what web frameworks write in Python for
//! SQLite. It knows no framework, no SQLite and no Python.
//!
//! Invariant: a function answers only where its answer is certainly that of the Python original.
//! Elsewhere it answers nothing ([`Option::None`]), and its caller asks the original: for texts in
//! any but the one form that is written into databases, for names it does not know, for what is an
//! error.

#![forbid(unsafe_code)]

pub mod calendar;
pub mod copy;
pub mod dates;
pub mod differences;
pub mod numbers;
pub mod pattern;
pub mod statistics;
pub mod strings;
pub mod text;
pub mod zone;

/// An argument, as SQLite has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// No value.
    Null,
    /// A number without fraction.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text, nominally UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// No value.
    Null,
    /// A number without fraction.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(text::Short),
}
