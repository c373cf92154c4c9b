//! Changesets as bytes: what is read is what SQLite reads, and no bytes do any harm.

use std::ffi::{CStr, c_int};
use std::ptr::{self, NonNull};
use std::slice;

use libsqlite3_sys as ffi;
use oxlite_sqlite::{
    Conflict, ConflictAction, Connection, Locked, OpenFlags, ValueRef, codes, concat_changesets,
    invert_changeset, read_changeset, read_changeset_from,
};

const SCHEMA: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE);
    CREATE TABLE w(x TEXT, y, z, PRIMARY KEY(z, x)) WITHOUT ROWID;
    CREATE TABLE \"odd name\"(k PRIMARY KEY, v NOT NULL);";
const BEFORE: &str = "INSERT INTO t VALUES(1, 'one', 10), (2, x'0002', 20), (3, 3.5, 30);
    INSERT INTO w VALUES('a', NULL, 1), ('b', 'text', 2);
    INSERT INTO \"odd name\" VALUES('k', 'v');";
const CHANGES: &str = "INSERT INTO t VALUES(4, 'a text of some length', 40), (5, NULL, 50);
    UPDATE t SET a = 'changed', b = b + 1 WHERE id = 1; DELETE FROM t WHERE id = 2;
    UPDATE w SET y = x'00ff' WHERE x = 'a'; DELETE FROM w WHERE x = 'b';
    INSERT INTO w VALUES('', 1e300, -1); UPDATE \"odd name\" SET v = '';";

fn open(script: &str) -> Connection {
    let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
    let locked = connection.lock().expect("open");
    locked.execute_batch(SCHEMA).expect("runs");
    locked.execute_batch(script).expect("runs");
    drop(locked);
    connection
}

/// A changeset and a patchset with every operation and every type.
fn real() -> (Vec<u8>, Vec<u8>) {
    let connection = open(BEFORE);
    let locked = connection.lock().expect("open");
    let session = locked.create_session(c"main").expect("creates");
    session.attach(&locked, None).expect("attaches");
    locked.execute_batch(CHANGES).expect("runs");
    (
        session.changeset(&locked).expect("a changeset"),
        session.patchset(&locked).expect("a patchset"),
    )
}

fn show(old: &[Option<ValueRef<'_>>], new: &[Option<ValueRef<'_>>]) -> String {
    format!("{old:?} {new:?}")
}

/// What our reader makes of it; `None` where it finds fault.
fn ours(changeset: &[u8]) -> Option<Vec<String>> {
    read_changeset(changeset)
        .map(|change| {
            let change = change.ok()?;
            Some(format!(
                "{:?} {} {} {:?} {}",
                change.table,
                change.operation,
                change.is_indirect,
                change.primary_key,
                show(&change.old, &change.new)
            ))
        })
        .collect()
}

/// What SQLite's iterator makes of it.
fn sqlites(changeset: &[u8]) -> Option<Vec<String>> {
    let mut iterator = ptr::null_mut();
    // SAFETY: the bytes outlive the iterator, and are only read.
    let code = unsafe {
        ffi::sqlite3changeset_start(
            &raw mut iterator,
            changeset.len() as c_int,
            changeset.as_ptr().cast_mut().cast(),
        )
    };
    assert_eq!(code, codes::SQLITE_OK);
    let mut changes = Vec::new();
    // SAFETY: the iterator is open; what it points to is read before it goes on.
    unsafe {
        while ffi::sqlite3changeset_next(iterator) == 100 {
            let (mut table, mut columns, mut operation, mut indirect) = (ptr::null(), 0, 0, 0);
            let mut key = ptr::null_mut();
            ffi::sqlite3changeset_op(
                iterator,
                &raw mut table,
                &raw mut columns,
                &raw mut operation,
                &raw mut indirect,
            );
            ffi::sqlite3changeset_pk(iterator, &raw mut key, ptr::null_mut());
            let value = |new: bool, column: c_int| {
                let mut value = ptr::null_mut();
                let read = if new {
                    ffi::sqlite3changeset_new
                } else {
                    ffi::sqlite3changeset_old
                };
                read(iterator, column, &raw mut value);
                NonNull::new(value).map(|value| {
                    let raw = value.as_ptr();
                    let bytes = |pointer: *const u8| match ffi::sqlite3_value_bytes(raw) {
                        0 => &[][..],
                        length => slice::from_raw_parts(pointer, length as usize),
                    };
                    match ffi::sqlite3_value_type(raw) {
                        1 => ValueRef::Integer(ffi::sqlite3_value_int64(raw)),
                        2 => ValueRef::Real(ffi::sqlite3_value_double(raw)),
                        3 => ValueRef::Text(bytes(ffi::sqlite3_value_text(raw))),
                        4 => ValueRef::Blob(bytes(ffi::sqlite3_value_blob(raw).cast())),
                        _ => ValueRef::Null,
                    }
                })
            };
            let record = |new| {
                (0..columns)
                    .map(|column| value(new, column))
                    .collect::<Vec<_>>()
            };
            changes.push(format!(
                "{:?} {operation} {} {:?} {}",
                CStr::from_ptr(table),
                indirect != 0,
                slice::from_raw_parts(key, columns as usize),
                show(&record(false), &record(true))
            ));
        }
        (ffi::sqlite3changeset_finalize(iterator) == codes::SQLITE_OK).then_some(changes)
    }
}

/// A small generator of numbers (xorshift), so that failures can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// Does everything that can be done with bytes; the target is as before afterwards.
fn use_all(locked: &Locked<'_>, bytes: &[u8], other: &[u8]) {
    let read = ours(bytes);
    if let Some(read) = &read {
        assert_eq!(Some(read), sqlites(bytes).as_ref(), "{bytes:?}");
    }
    let is_read = read.is_some();
    for result in [
        invert_changeset(bytes),
        concat_changesets(bytes, other),
        concat_changesets(other, bytes),
        concat_changesets(bytes, bytes),
    ] {
        match result {
            Ok(result) => {
                assert!(is_read, "{bytes:?}");
                assert!(ours(&result).is_some(), "{bytes:?}");
            }
            Err(error) => assert!(is_read || error.code() == codes::SQLITE_CORRUPT, "{error}"),
        }
    }
    for action in [ConflictAction::Omit, ConflictAction::Replace] {
        locked.execute_batch("SAVEPOINT fuzz").expect("begins");
        let mut handler = |conflict: &Conflict<'_>| match conflict {
            Conflict::Data { .. } | Conflict::Conflict { .. } => action,
            _ => ConflictAction::Omit,
        };
        let result = locked.apply_changeset(bytes, None, &mut handler);
        assert!(is_read || result.is_err(), "{bytes:?}");
        locked
            .execute_batch("ROLLBACK TO fuzz; RELEASE fuzz")
            .expect("ends");
    }
}

#[test]
fn every_operation_and_type_is_read_as_sqlite_reads_it() {
    let (changeset, patchset) = real();
    for bytes in [&changeset, &patchset] {
        let read = ours(bytes).expect("is well-formed");
        assert_eq!(read.len(), 8);
        assert_eq!(Some(read), sqlites(bytes));
    }
    assert_eq!(ours(&[]), Some(Vec::new()));
}

#[test]
fn an_inverse_of_an_inverse_is_the_same_and_both_cancel_out() {
    let (changeset, _) = real();
    let inverse = invert_changeset(&changeset).expect("inverts");
    assert_ne!(inverse, changeset);
    assert_eq!(invert_changeset(&inverse), Ok(changeset.clone()));
    assert_eq!(concat_changesets(&changeset, &inverse), Ok(Vec::new()));
}

#[test]
fn what_is_malformed_is_told() {
    let (changeset, patchset) = real();
    let header = b"T\x02\x01\x00t\0";
    let with_header = |change: &[u8]| [&header[..], change].concat();
    for (bytes, message) in [
        (b"x".to_vec(), "does not begin with a table"),
        (b"T".to_vec(), "ends in the middle"),
        (
            changeset[..changeset.len() - 1].to_vec(),
            "ends in the middle",
        ),
        (b"T\x00t\0".to_vec(), "a table without columns"),
        (b"T\x84\x80\x01t\0".to_vec(), "with too many"),
        (
            b"T\xff\xff\xff\xff\xff\xff\xff\xff\xfft\0".to_vec(),
            "too large",
        ),
        (b"T\x01\x00t\0".to_vec(), "without a primary key"),
        (b"T\x01\x01t".to_vec(), "ends in the middle"),
        (
            with_header(b"\x13\x00\x05\x05"),
            "operation that does not exist",
        ),
        (with_header(b"\x12\x00\x05\x06"), "type that does not exist"),
        (with_header(b"\x12\x00\x05\x00"), "lacks a value"),
        (with_header(b"\x17\x00\x00\x05\x05\x05"), "lacks a value"),
        (
            with_header(b"\x12\x00\x05\x03\x05abc"),
            "ends in the middle",
        ),
        (
            [&changeset[..], &patchset[..]].concat(),
            "mixes a changeset and a patchset",
        ),
    ] {
        let error = read_changeset(&bytes)
            .find_map(Result::err)
            .unwrap_or_else(|| panic!("{bytes:?} is read"));
        assert_eq!(error.code(), codes::SQLITE_CORRUPT);
        assert!(error.message().contains(message), "{error}: {bytes:?}");
        assert_eq!(invert_changeset(&bytes), Err(error.clone()));
        assert_eq!(concat_changesets(&[], &bytes), Err(error.clone()));
        let connection = open("");
        let locked = connection.lock().expect("open");
        let applied = locked.apply_changeset(&bytes, None, &mut |_| ConflictAction::Omit);
        assert_eq!(applied, Err(error));
    }
}

#[test]
fn after_an_error_there_are_no_more_changes() {
    let (changeset, _) = real();
    let mut changes = read_changeset(&changeset[..changeset.len() - 1]);
    assert!(changes.by_ref().any(|change| change.is_err()));
    assert!(changes.next().is_none());
}

/// Changes put aside because of a constraint are tried again at the end of their table. SQLite then
/// reads them in the format of the header it has met last, which must not be another one.
#[test]
fn changes_put_aside_are_not_read_in_another_format() {
    let connection = open("INSERT INTO t VALUES(7, 7, 'taken')");
    let locked = connection.lock().expect("open");
    let header = b"\x03\x01\x00\x00t\0";
    let refused = b"\x12\x00\x01\0\0\0\0\0\0\0\x08\x05\x03\x05taken";
    let apply = |bytes: &[u8]| {
        let mut asked = 0;
        let result = locked.apply_changeset(bytes, None, &mut |_| {
            asked += 1;
            ConflictAction::Omit
        });
        (result.map_err(|error| error.code()), asked)
    };
    let one = [b"T", &header[..], refused].concat();
    assert_eq!(apply(&one), (Ok(()), 1));
    let mixed = [&one[..], b"P", header].concat();
    assert_eq!(apply(&mixed), (Err(codes::SQLITE_CORRUPT), 0));
}

#[test]
fn flipped_bits_and_cut_ends_do_no_harm() {
    let connection = open(BEFORE);
    let locked = connection.lock().expect("open");
    let (changeset, patchset) = real();
    for bytes in [&changeset, &patchset] {
        for position in 0..bytes.len() {
            use_all(&locked, &bytes[..position], bytes);
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[position] ^= 1 << bit;
                use_all(&locked, &flipped, bytes);
            }
        }
    }
}

#[test]
fn random_bytes_and_random_pieces_do_no_harm() {
    let connection = open(BEFORE);
    let locked = connection.lock().expect("open");
    let (changeset, patchset) = real();
    let mut random = Random(0x6f78_6c69_7465);
    for _ in 0..2_000 {
        let length = random.below(64);
        let noise: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        use_all(&locked, &noise, &changeset);

        // Well-formed headers and bytes that occur, in any order.
        let mut pieces = b"T\x03\x01\x00\x00t\0".to_vec();
        for _ in 0..random.below(12) {
            let source = if random.below(8) == 0 {
                &patchset
            } else {
                &changeset
            };
            let start = random.below(source.len());
            let end = start + random.below((source.len() - start).min(24) + 1);
            pieces.extend_from_slice(&source[start..end]);
        }
        use_all(&locked, &pieces, &changeset);

        let mut mutated = if random.below(2) == 0 {
            changeset.clone()
        } else {
            patchset.clone()
        };
        for _ in 0..=random.below(4) {
            let position = random.below(mutated.len());
            mutated[position] = b"\0\x01\x02\x03\x04\x05\x09\x12\x17TP\xff"[random.below(12)];
        }
        use_all(&locked, &mutated, &changeset);
    }
}

#[test]
fn reading_can_be_interrupted_after_each_change() {
    let (changeset, patchset) = real();
    for bytes in [&changeset[..], &patchset, &changeset[..changeset.len() - 1]] {
        let mut position = read_changeset(bytes).position();
        let mut piecemeal = Vec::new();
        loop {
            let mut changes = read_changeset_from(bytes, position);
            let Some(change) = changes.next() else { break };
            piecemeal.push(change);
            position = changes.position();
        }
        assert_eq!(piecemeal, read_changeset(bytes).collect::<Vec<_>>());
        assert!(piecemeal.len() > 6);
        // A position of other bytes may be nonsense, but does no harm.
        for end in 0..bytes.len() {
            read_changeset_from(&bytes[..end], position).for_each(drop);
            read_changeset_from(&bytes[bytes.len() - end..], position).for_each(drop);
        }
    }
    // Also a mixture is still noticed.
    let mixed = [&changeset[..], &patchset].concat();
    let mut changes = read_changeset(&mixed);
    let first = changes.by_ref().count();
    let mut position = read_changeset(&mixed).position();
    let mut second = 0;
    loop {
        let mut changes = read_changeset_from(&mixed, position);
        if changes.next().is_none() {
            break;
        }
        position = changes.position();
        second += 1;
    }
    assert_eq!(first, second);
}
