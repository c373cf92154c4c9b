//! Changesets and patchsets as bytes: reading, inverting and concatenating them.
//!
//! Invariants:
//! - **SQLite is given no changeset that has not been read here from end to end.** Its own functions
//!   check lengths, but not that changesets and patchsets are unmixed or that values have a type
//!   which exists. With those, applying a changeset can write past a buffer: the changes put aside
//!   for a second attempt are then read in the other format than they were written in.
//! - Reading is safe code; it borrows everything from the bytes.

use std::ffi::{CStr, c_int};
use std::ptr;

use libsqlite3_sys as ffi;

use crate::error::{Error, Result};
use crate::session::take_bytes;
use crate::value::ValueRef;

/// The most columns that SQLite itself reads in a changeset.
const MAXIMUM_COLUMNS: usize = 65_536;
/// The longest text or blob of SQLite as it is compiled (<https://sqlite.org/limits.html>).
const MAXIMUM_LENGTH: usize = 1_000_000_000;

/// One row inserted, updated or deleted. Its values are those of the changeset's columns, from left
/// to right; the table may have more.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// The table, without its schema.
    pub table: &'a CStr,
    /// `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`.
    pub operation: i32,
    /// Whether a trigger or a foreign key action made it.
    pub is_indirect: bool,
    /// For each column whether it belongs to the primary key: not 0.
    pub primary_key: &'a [u8],
    /// The row before: none of it for an insert; for an update the primary key and what changes. A
    /// patchset has the primary key only.
    pub old: Vec<Option<ValueRef<'a>>>,
    /// The row after: none of it for a delete; for an update what changes.
    pub new: Vec<Option<ValueRef<'a>>>,
}

/// Reads the changes of a changeset or patchset, one after the other. After an error there are none.
pub fn read_changeset(changeset: &[u8]) -> Changes<'_> {
    Changes {
        whole: changeset,
        rest: changeset,
        header: None,
        kind: None,
        table: None,
    }
}

/// Where the reading of a changeset has got to: see [`Changes::position`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangesetPosition {
    /// Where the table begins that the next change belongs to.
    header: Option<usize>,
    /// Where the next change begins.
    next: usize,
}

/// Goes on reading where another reader of the same bytes has got to, for whoever cannot borrow them
/// all the while.
pub fn read_changeset_from(changeset: &[u8], position: ChangesetPosition) -> Changes<'_> {
    let mut changes = read_changeset(changeset);
    if let Some(header) = position.header {
        changes.rest = changeset.get(header..).unwrap_or_default();
        // Read before without an error, if these are the same bytes.
        let _ = changes.any_header();
    }
    changes.rest = changeset.get(position.next..).unwrap_or_default();
    changes
}

/// The changes of a changeset: see [`read_changeset`].
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
    /// Where the latest table begins.
    header: Option<usize>,
    kind: Option<Kind>,
    table: Option<Table<'a>>,
}

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Changeset,
    Patchset,
}

/// The table of the changes that follow.
#[derive(Clone, Copy, Debug)]
struct Table<'a> {
    name: &'a CStr,
    primary_key: &'a [u8],
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let change = self.change().transpose();
        if matches!(change, Some(Err(_))) {
            self.rest = &[];
        }
        change
    }
}

impl<'a> Changes<'a> {
    /// Whether this is a patchset; `None` before the first change.
    pub fn is_patchset(&self) -> Option<bool> {
        self.kind.map(|kind| kind == Kind::Patchset)
    }

    /// Where the next change is looked for, to go on by [`read_changeset_from`].
    pub fn position(&self) -> ChangesetPosition {
        ChangesetPosition {
            header: self.header,
            next: self.whole.len() - self.rest.len(),
        }
    }

    fn change(&mut self) -> Result<Option<Change<'a>>> {
        while self.any_header()? {}
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (Some(table), Some(kind)) = (self.table, self.kind) else {
            return Err(corrupt("it does not begin with a table"));
        };
        let operation = i32::from(self.byte()?);
        let is_indirect = self.byte()? != 0;
        let every = |_: usize| true;
        let in_key = |column: usize| table.primary_key[column] != 0;
        let columns = table.primary_key.len();
        let nothing = || vec![None; columns];
        let (old, new) = match (operation, kind) {
            (ffi::SQLITE_INSERT, _) => (nothing(), self.record(columns, every, every)?),
            (ffi::SQLITE_DELETE, Kind::Changeset) => {
                (self.record(columns, every, every)?, nothing())
            }
            (ffi::SQLITE_DELETE, Kind::Patchset) => {
                (self.record(columns, in_key, in_key)?, nothing())
            }
            (ffi::SQLITE_UPDATE, Kind::Changeset) => {
                let mut old = self.record(columns, every, in_key)?;
                let new = self.record(columns, every, |_| false)?;
                // SQLite's rebaser used to leave such values behind; it passes over them as well.
                for column in (0..columns).filter(|column| !in_key(*column)) {
                    if new[column].is_none() {
                        old[column] = None;
                    }
                }
                (old, new)
            }
            (ffi::SQLITE_UPDATE, Kind::Patchset) => {
                let mut new = self.record(columns, every, in_key)?;
                let mut old = nothing();
                for column in (0..columns).filter(|column| in_key(*column)) {
                    old[column] = new[column].take();
                }
                (old, new)
            }
            _ => return Err(corrupt("it has an operation that does not exist")),
        };
        Ok(Some(Change {
            table: table.name,
            operation,
            is_indirect,
            primary_key: table.primary_key,
            old,
            new,
        }))
    }

    /// A table, if that is what comes next.
    fn any_header(&mut self) -> Result<bool> {
        let header = self.whole.len() - self.rest.len();
        match self.rest.first() {
            Some(b'T') => self.header(Kind::Changeset)?,
            Some(b'P') => self.header(Kind::Patchset)?,
            _ => return Ok(false),
        }
        self.header = Some(header);
        Ok(true)
    }

    /// The letter `T` or `P`, the number of columns, which are in the primary key, the name.
    fn header(&mut self, kind: Kind) -> Result<()> {
        self.byte()?;
        if self.kind.is_some_and(|known| known != kind) {
            return Err(corrupt("it mixes a changeset and a patchset"));
        }
        self.kind = Some(kind);
        let columns = self.number()?;
        if columns == 0 || columns > MAXIMUM_COLUMNS {
            return Err(corrupt("it has a table without columns or with too many"));
        }
        let primary_key = self.bytes(columns)?;
        if primary_key.iter().all(|flag| *flag == 0) {
            return Err(corrupt("it has a table without a primary key"));
        }
        let Ok(name) = CStr::from_bytes_until_nul(self.rest) else {
            return Err(corrupt("it ends in the middle"));
        };
        check_length(name.count_bytes())?;
        self.rest = &self.rest[name.count_bytes() + 1..];
        self.table = Some(Table { name, primary_key });
        Ok(())
    }

    /// One value for each column that `is_present`; where `is_required` it must have one.
    fn record(
        &mut self,
        columns: usize,
        is_present: impl Fn(usize) -> bool,
        is_required: impl Fn(usize) -> bool,
    ) -> Result<Vec<Option<ValueRef<'a>>>> {
        // Each value takes at least a byte, so a short changeset cannot claim much memory.
        if (0..columns).filter(|column| is_present(*column)).count() > self.rest.len() {
            return Err(corrupt("it ends in the middle"));
        }
        let mut record = vec![None; columns];
        for (column, value) in record.iter_mut().enumerate() {
            if is_present(column) {
                *value = self.value()?;
                if value.is_none() && is_required(column) {
                    return Err(corrupt("it lacks a value"));
                }
            }
        }
        Ok(record)
    }

    fn value(&mut self) -> Result<Option<ValueRef<'a>>> {
        let kind = i32::from(self.byte()?);
        Ok(Some(match kind {
            0 => return Ok(None),
            ffi::SQLITE_INTEGER => ValueRef::Integer(i64::from_be_bytes(self.eight()?)),
            ffi::SQLITE_FLOAT => match f64::from_be_bytes(self.eight()?) {
                // SQLite has no NaN.
                real if real.is_nan() => ValueRef::Null,
                real => ValueRef::Real(real),
            },
            ffi::SQLITE_TEXT => ValueRef::Text(self.sized()?),
            ffi::SQLITE_BLOB => ValueRef::Blob(self.sized()?),
            ffi::SQLITE_NULL => ValueRef::Null,
            _ => return Err(corrupt("it has a value of a type that does not exist")),
        }))
    }

    fn sized(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        let bytes = self.bytes(length)?;
        check_length(bytes.len())?;
        Ok(bytes)
    }

    fn eight(&mut self) -> Result<[u8; 8]> {
        let bytes = self.bytes(8)?;
        bytes
            .try_into()
            .map_err(|_| corrupt("it ends in the middle"))
    }

    /// A variable-length integer as in the database file (<https://sqlite.org/fileformat2.html#varint>).
    fn number(&mut self) -> Result<usize> {
        let mut number: u64 = 0;
        for place in 1..=9 {
            let byte = self.byte()?;
            if place == 9 {
                number = number << 8 | u64::from(byte);
                break;
            }
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                break;
            }
        }
        // SQLite drops the bits beyond an int.
        match c_int::try_from(number) {
            Ok(number) => Ok(number as usize),
            Err(_) => Err(corrupt("it has a length that is too large")),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            return Err(corrupt("it ends in the middle"));
        };
        self.rest = rest;
        Ok(bytes)
    }
}

fn corrupt(what: &str) -> Error {
    Error::new(
        ffi::SQLITE_CORRUPT,
        format!("the changeset is malformed: {what}"),
    )
}

fn check_length(length: usize) -> Result<()> {
    if length > MAXIMUM_LENGTH {
        return Err(Error::from_code(ffi::SQLITE_TOOBIG));
    }
    Ok(())
}

/// A changeset that has been read to its end, and so may be given to SQLite.
pub(crate) struct Checked<'a> {
    bytes: &'a [u8],
    length: c_int,
    /// The tables that have changes; a table may come again.
    pub(crate) tables: Vec<&'a CStr>,
    is_patchset: Option<bool>,
}

impl<'a> Checked<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let Ok(length) = c_int::try_from(bytes.len()) else {
            return Err(Error::from_code(ffi::SQLITE_TOOBIG));
        };
        let mut changes = read_changeset(bytes);
        let mut tables = Vec::new();
        for change in changes.by_ref() {
            let table = change?.table;
            if tables.last() != Some(&table) {
                tables.push(table);
            }
        }
        Ok(Self {
            bytes,
            length,
            tables,
            is_patchset: changes.is_patchset(),
        })
    }

    /// The bytes as SQLite takes them. It does not write there, although its functions do not say
    /// `const`.
    pub(crate) fn parts(&self) -> (c_int, *mut std::ffi::c_void) {
        (self.length, self.bytes.as_ptr().cast_mut().cast())
    }
}

/// The changeset that undoes `changeset` (<https://sqlite.org/session/sqlite3changeset_invert.html>).
pub fn invert_changeset(changeset: &[u8]) -> Result<Vec<u8>> {
    let checked = Checked::new(changeset)?;
    if checked.is_patchset == Some(true) {
        return Err(Error::new(
            ffi::SQLITE_MISUSE,
            "a patchset cannot be inverted, since it lacks the old values: take a changeset",
        ));
    }
    let (length, bytes) = checked.parts();
    let (mut result_length, mut result) = (0, ptr::null_mut());
    // SAFETY: a well-formed changeset of that length, with places for the result.
    let code = unsafe {
        ffi::sqlite3changeset_invert(length, bytes, &raw mut result_length, &raw mut result)
    };
    // SAFETY: what the call has just left there for us.
    let result = unsafe { take_bytes(result, result_length) };
    match code {
        ffi::SQLITE_OK => Ok(result),
        _ => Err(Error::from_code(code)),
    }
}

/// The changeset that does what `first` and then `second` do, or the patchset, if both are
/// (<https://sqlite.org/session/sqlite3changeset_concat.html>).
pub fn concat_changesets(first: &[u8], second: &[u8]) -> Result<Vec<u8>> {
    let (first, second) = (Checked::new(first)?, Checked::new(second)?);
    if let (Some(one), Some(other)) = (first.is_patchset, second.is_patchset)
        && one != other
    {
        return Err(Error::new(
            ffi::SQLITE_MISUSE,
            "a changeset and a patchset cannot be concatenated: take two of a kind",
        ));
    }
    let (first_length, first) = first.parts();
    let (second_length, second) = second.parts();
    let (mut result_length, mut result) = (0, ptr::null_mut());
    // SAFETY: two well-formed changesets of those lengths, with places for the result.
    let code = unsafe {
        ffi::sqlite3changeset_concat(
            first_length,
            first,
            second_length,
            second,
            &raw mut result_length,
            &raw mut result,
        )
    };
    // SAFETY: what the call has just left there for us.
    let result = unsafe { take_bytes(result, result_length) };
    match code {
        ffi::SQLITE_OK => Ok(result),
        ffi::SQLITE_SCHEMA => Err(Error::new(
            code,
            "a table has other columns or another primary key in one changeset than in the other",
        )),
        _ => Err(Error::from_code(code)),
    }
}
