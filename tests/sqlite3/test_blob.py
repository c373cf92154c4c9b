"""Incremental access to one value: ``Connection.blobopen`` and ``Blob``."""

import gc
import os
from collections.abc import Callable

import pytest

from oxlite import sqlite3

CONTENT = bytes(range(50))


@pytest.fixture
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t(b BLOB)")
    connection.execute("INSERT INTO t VALUES (?)", (CONTENT,))
    connection.commit()
    return connection


def test_reading_moves_on(table: sqlite3.Connection) -> None:
    with table.blobopen("t", "b", 1) as blob:
        assert len(blob) == 50
        assert blob.read(10) == CONTENT[:10]
        assert blob.tell() == 10
        assert blob.read() == CONTENT[10:]
        assert blob.read() == b""


def test_writing_in_place(table: sqlite3.Connection) -> None:
    with table.blobopen("t", "b", 1) as blob:
        blob.seek(-5, os.SEEK_END)
        blob.write(b"abc")
        blob.seek(-1, os.SEEK_CUR)
        blob.write(bytearray(b"d"))
        blob[0] = 255
        blob[1:9:2] = memoryview(b"wxyz")
    expected = bytearray(CONTENT)
    expected[45:48] = b"abd"
    expected[0] = 255
    expected[1:9:2] = b"wxyz"
    assert table.execute("SELECT b FROM t").fetchone() == (bytes(expected),)


@pytest.mark.parametrize(
    "key",
    [slice(None), slice(3, 7), slice(None, None, 3), slice(40, None, -7), slice(-3, None),
     slice(10, 5), slice(5, 500), slice(None, None, -1)],
)  # fmt: skip
def test_slices_are_those_of_bytes(table: sqlite3.Connection, key: slice) -> None:
    with table.blobopen("t", "b", 1, readonly=True) as blob:
        assert blob[key] == CONTENT[key]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda blob: blob.write(b"x" * 51), ValueError, "data longer than blob length"),
        (lambda blob: blob.seek(51), ValueError, "offset out of blob range"),
        (lambda blob: blob.seek(-1), ValueError, "offset out of blob range"),
        (lambda blob: blob.seek(0, 3), ValueError, "'origin' should be"),
        (lambda blob: blob[50], IndexError, "out of range"),
        (lambda blob: blob[2**70], IndexError, "cannot fit"),
        (lambda blob: blob.seek(2**31 - 1, 2), OverflowError, "overflow"),
        (lambda blob: blob["a"], TypeError, "must be integers"),
        (lambda blob: blob.__setitem__(0, 256), ValueError, "byte must be in range"),
        (lambda blob: blob.__setitem__(0, b"a"), TypeError, "cannot be interpreted"),
        (lambda blob: blob.__setitem__(slice(0, 2), b"abc"), IndexError, "wrong size"),
        (lambda blob: blob.__delitem__(0), TypeError, "deletion"),
        (lambda blob: blob.write("text"), TypeError, "bytes-like"),
        (iter, TypeError, "not iterable"),
        (lambda blob: 1 in blob, TypeError, "not iterable"),
    ],
)
def test_what_a_blob_cannot_do(
    table: sqlite3.Connection,
    act: Callable[[sqlite3.Blob], object],
    error: type[Exception],
    message: str,
) -> None:
    with table.blobopen("t", "b", 1) as blob:
        with pytest.raises(error, match=message):
            act(blob)
        assert blob[:] == CONTENT


def test_a_read_only_blob(table: sqlite3.Connection) -> None:
    with (
        table.blobopen("t", "b", 1, readonly=True) as blob,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        blob.write(b"x")


@pytest.mark.parametrize("arguments", [("no", "b", 1), ("t", "no", 1), ("t", "b", 2)])
def test_what_is_not_there(table: sqlite3.Connection, arguments: tuple[str, str, int]) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such"):
        table.blobopen(*arguments)


def test_a_row_that_has_changed(table: sqlite3.Connection) -> None:
    with table.blobopen("t", "b", 1) as blob:
        table.execute("UPDATE t SET b = 'other'")
        with pytest.raises(sqlite3.OperationalError, match="modified blob"):
            blob.read()


def test_a_closed_blob(table: sqlite3.Connection) -> None:
    blob = table.blobopen("t", "b", 1)
    blob.close()
    blob.close()
    for act in (blob.read, blob.tell, lambda: blob[0], lambda: len(blob), blob.__enter__):
        with pytest.raises(sqlite3.ProgrammingError, match="closed blob"):
            act()


def test_closing_the_connection_closes_its_blobs(table: sqlite3.Connection) -> None:
    blob = table.blobopen("t", "b", 1)
    table.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        blob.read()
    del blob
    gc.collect()


def test_a_blob_keeps_its_connection(table: sqlite3.Connection) -> None:
    blob = table.blobopen("t", "b", 1)
    del table
    gc.collect()
    assert blob.read(3) == CONTENT[:3]


def test_it_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        sqlite3.Blob()
