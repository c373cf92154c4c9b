"""Incremental access to one value: ``Connection.blobopen`` and ``Blob``."""

import gc
import os
import random
import sqlite3 as stdlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

CONTENT = bytes(range(50))


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t(b BLOB)")
    connection.execute("INSERT INTO t VALUES (?)", (CONTENT,))
    connection.commit()
    yield connection
    connection.close()


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


def goes_backwards(key: slice) -> bool:
    """Whether this is a slice of something that Python refuses, which it does since 3.14."""
    is_backwards = key.step is not None and key.step < 0
    return sys.version_info >= (3, 14) and is_backwards and len(CONTENT[key]) > 0


@pytest.mark.parametrize(
    "key",
    [slice(None), slice(3, 7), slice(None, None, 3), slice(40, None, -7), slice(-3, None),
     slice(10, 5), slice(5, 500), slice(None, None, -1)],
)  # fmt: skip
def test_slices_are_those_of_bytes(table: sqlite3.Connection, key: slice) -> None:
    with table.blobopen("t", "b", 1, readonly=True) as blob:
        if goes_backwards(key):
            with pytest.raises(ValueError, match="negative step"):
                blob[key]
        else:
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
        with pytest.raises(sqlite3.OperationalError, match="query aborted") as caught:
            blob.read()
        assert caught.value.sqlite_errorname == "SQLITE_ABORT"


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


@pytest.fixture
def both() -> Iterator[list[Any]]:
    """The same blob of ``CONTENT`` by both modules."""
    connections, blobs = [], []
    for module in (stdlib, sqlite3):
        connection: Any = module.connect(":memory:")
        connection.execute("CREATE TABLE t(b BLOB)")
        connection.execute("INSERT INTO t VALUES (?)", (CONTENT,))
        connections.append(connection)
        blobs.append(connection.blobopen("t", "b", 1))
    yield blobs
    for blob, connection in zip(blobs, connections, strict=True):
        blob.close()
        connection.close()


def outcome(act: Callable[[Any], object], blob: Untyped) -> object:
    try:
        return act(blob)
    except Exception as error:
        return type(error).__name__


class Index:
    """An integer by its behaviour alone."""

    def __init__(self, value: Untyped) -> None:
        self.value = value

    def __index__(self) -> int:
        """Answer, or raise what was asked for."""
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """The same in each process that collects tests."""
        return f"Index({self.value!r})"


class Number(int):
    pass


KEYS = [
    0, -1, 49, -50, 50, -51, True, False, Number(3), Number(-3), Index(5), Index(-5), Index(50),
    2**31, -(2**31), 2**63, -(2**63), 2**100, 1.0, "a", b"a", None, (), ...,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_any_index_as_the_standard_library(both: list[Any], key: Untyped) -> None:
    for act in (
        lambda blob: blob[key],
        lambda blob: blob.__setitem__(key, 7),
        lambda blob: blob.__delitem__(key),
    ):
        assert outcome(act, both[1]) == outcome(act, both[0])
    assert both[1][:] == both[0][:]


@pytest.mark.parametrize("error", [ValueError("v"), KeyboardInterrupt(), MemoryError()])
def test_an_index_that_raises(both: list[Any], error: BaseException) -> None:
    for blob in both:
        with pytest.raises(type(error)):
            blob[Index(error)]
        with pytest.raises(type(error)):
            blob[Index(error)] = 1


ENDS = [None, 0, 1, 7, 49, 50, 51, -1, -7, -50, -51, 2**40, -(2**40)]


@pytest.mark.parametrize("step", [None, 1, 2, 7, 50, 51, 2**40, -1, -2, -7, -50, -51, -(2**40)])
def test_every_slice_is_that_of_bytes(table: sqlite3.Connection, step: int | None) -> None:
    with table.blobopen("t", "b", 1, readonly=True) as blob:
        for start in ENDS:
            for stop in ENDS:
                key = slice(start, stop, step)
                if goes_backwards(key):
                    with pytest.raises(ValueError, match="negative step"):
                        blob[key]
                else:
                    assert blob[key] == CONTENT[key], key


def test_every_slice_is_assigned_as_that_of_a_bytearray(table: sqlite3.Connection) -> None:
    """Including backwards before Python 3.14, where the standard library fails at that."""
    choose = random.Random(5)
    expected = bytearray(CONTENT)
    with table.blobopen("t", "b", 1) as blob:
        for _ in range(500):
            step = choose.choice([None, 1, 2, 3, 7, -1, -2, -7, 60, -60])
            key = slice(choose.choice(ENDS), choose.choice(ENDS), step)
            data = choose.randbytes(len(CONTENT[key]))
            if goes_backwards(key):
                with pytest.raises(ValueError, match="negative step"):
                    blob[key] = data
                continue
            blob[key] = choose.choice([bytes, bytearray, memoryview])(data)
            expected[key] = data
            assert blob[:] == expected, key
    assert table.execute("SELECT b FROM t").fetchone() == (bytes(expected),)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (slice(0, 3), b"ab"), (slice(0, 3), b"abcd"), (slice(0, 0), b""),
        (slice(5, 1), b""), (slice(0, 3), "abc"), (slice(0, 3), [1, 2, 3]), (slice(0, 3), 5),
        (slice(0, 3), None), (slice(0, 9, 3), b"abc"), (slice(0, 9, 3), b"ab"),
        (slice(None, None, 0), b""), (slice("a", None), b""), (slice(0, 3, 1.0), b"abc"),
        (slice(Index(1), Index(4)), b"xyz"), (slice(True, 3), b"xy"),
        (0, 256), (0, -1), (0, 255), (0, True), (0, 2**100), (0, -(2**100)), (0, 1.0), (0, "a"),
        (0, b"a"), (0, None), (0, Index(7)), (0, Number(7)), (50, 1), ("a", 1),
    ],
    ids=repr,
)  # fmt: skip
def test_any_assignment_as_the_standard_library(
    both: list[Any], key: Untyped, value: Untyped
) -> None:
    theirs, ours = (outcome(lambda blob: blob.__setitem__(key, value), blob) for blob in both)
    assert ours == theirs
    assert both[1][:] == both[0][:]


def test_moves_as_the_standard_library(both: list[Any]) -> None:
    choose = random.Random(7)
    sizes = [-(2**31), -51, -50, -3, -1, 0, 1, 3, 49, 50, 51, 2**31 - 1]
    acts: list[Callable[[int, int], Callable[[Any], object]]] = [
        lambda size, origin: lambda blob: blob.read(size),
        lambda size, origin: lambda blob: blob.read(),
        lambda size, origin: lambda blob: blob.seek(size),
        lambda size, origin: lambda blob: blob.seek(size, origin),
        lambda size, origin: lambda blob: blob.write(b"z" * (size % 7)),
        lambda size, origin: lambda blob: blob.write(b"z" * 51),
        lambda size, origin: lambda blob: len(blob),
    ]
    for _ in range(2000):
        act = choose.choice(acts)(choose.choice(sizes), choose.choice([0, 1, 2, 3, -1]))
        theirs, ours = (outcome(act, blob) for blob in both)
        assert ours == theirs
        assert both[1].tell() == both[0].tell()
    assert both[1][:] == both[0][:]


@pytest.mark.parametrize("size", [0, 1, 2, 255, 4096, 5_000_000])
def test_blobs_of_any_size(connection: sqlite3.Connection, size: int) -> None:
    content = random.Random(size).randbytes(size)
    connection.execute("CREATE TABLE t(b)")
    connection.execute("INSERT INTO t VALUES (?)", (content,))
    with connection.blobopen("t", "b", 1) as blob:
        assert (len(blob), blob.read(), blob[:]) == (size, content, content)
        assert (blob[::2], blob[1::3]) == (content[::2], content[1::3])
        if not goes_backwards(slice(None, None, -1)):
            assert blob[::-1] == content[::-1]
        blob[:] = content[::-1]
        assert blob[:] == content[::-1]
        assert blob[size:] == b""


def test_single_bytes_are_not_shared(table: sqlite3.Connection) -> None:
    """Python keeps one ``bytes`` of each single byte for everybody: it must not be written to."""
    with table.blobopen("t", "b", 1) as blob:
        for value in range(256):
            blob[0] = value
            blob.seek(0)
            assert (blob[0], blob[0:1], blob.read(1)) == (value, bytes([value]), bytes([value]))
        assert blob[0:0] == b""
    assert [bytes([value])[0] for value in range(256)] == list(range(256))


@pytest.mark.parametrize(
    "act",
    [
        lambda blob, index: blob[index],
        lambda blob, index: blob[index:],
        lambda blob, index: blob.__setitem__(index, 1),
        lambda blob, index: blob.__setitem__(slice(index, 1), b"a"),
    ],
)
def test_an_index_that_closes_the_blob(
    table: sqlite3.Connection, act: Callable[[sqlite3.Blob, object], object]
) -> None:
    class Closing:
        def __index__(self) -> int:
            """Close."""
            blob.close()
            return 0

    blob = table.blobopen("t", "b", 1)
    with pytest.raises(sqlite3.ProgrammingError, match="closed blob"):
        act(blob, Closing())
    assert table.execute("SELECT b FROM t").fetchone() == (CONTENT,)


def test_a_write_that_cannot_be_committed_is_told(tmp_path: Path) -> None:
    """Closing commits; the standard library says nothing when a lock is in the way."""
    path = tmp_path / "blob.db"
    writer, reader = sqlite3.connect(path, timeout=0), sqlite3.connect(path, timeout=0)
    writer.executescript("CREATE TABLE t(b); INSERT INTO t VALUES (zeroblob(9)), (1)")
    rows = reader.execute("SELECT b FROM t")
    rows.fetchone()
    blob = writer.blobopen("t", "b", 1)
    blob.write(b"lost")
    with pytest.raises(sqlite3.OperationalError, match="locked") as raised:
        blob.close()
    assert raised.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
    blob.close()
    rows.fetchall()
    with writer.blobopen("t", "b", 1) as blob:
        blob.write(b"kept")
    assert reader.execute("SELECT b FROM t").fetchone() == (b"kept" + bytes(5),)
    writer.close()
    reader.close()
