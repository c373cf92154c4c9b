"""Copying databases: the online backup, and databases as bytes."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite import sqlite3

ROWS = 20_000


def fill(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(ROWS)])
    connection.commit()
    return connection


@pytest.fixture
def source() -> sqlite3.Connection:
    return fill(sqlite3.connect(":memory:"))


def count(connection: sqlite3.Connection) -> int:
    (rows,) = connection.execute("SELECT count(*) FROM t").fetchone()
    return rows


def test_a_backup_in_one_step(source: sqlite3.Connection, tmp_path: Path) -> None:
    target = sqlite3.connect(tmp_path / "copy.db")
    source.backup(target)
    assert count(target) == ROWS
    target.close()
    assert count(sqlite3.connect(tmp_path / "copy.db")) == ROWS


def test_a_backup_in_steps_tells_its_progress(source: sqlite3.Connection) -> None:
    steps: list[tuple[int, int, int]] = []
    target = sqlite3.connect(":memory:")
    source.backup(target, pages=10, progress=lambda *step: steps.append(step))
    pages = steps[0][2]
    assert [step[1] for step in steps] == [*range(pages - 10, 0, -10), 0]
    assert {step[0] for step in steps[:-1]} == {0}
    assert steps[-1] == (101, 0, pages)
    assert count(target) == ROWS


def test_the_source_may_be_used_between_the_steps(source: sqlite3.Connection) -> None:
    def progress(code: int, remaining: int, total: int) -> None:
        seen.append(count(source))

    seen: list[int] = []
    source.backup(sqlite3.connect(":memory:"), pages=20, progress=progress)
    assert set(seen) == {ROWS}


def test_a_progress_that_raises_ends_the_backup(source: sqlite3.Connection) -> None:
    target = sqlite3.connect(":memory:")
    with pytest.raises(ZeroDivisionError):
        source.backup(target, pages=1, progress=lambda *step: 1 / 0)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        count(target)
    source.close()
    target.close()


def test_a_connection_cannot_be_closed_in_its_backup(source: sqlite3.Connection) -> None:
    target = sqlite3.connect(":memory:")

    def progress(code: int, remaining: int, total: int) -> None:
        for connection in (source, target):
            with pytest.raises(sqlite3.OperationalError, match=r"unfinished backups|of a backup"):
                connection.close()

    source.backup(target, progress=progress)
    assert count(target) == ROWS


def test_two_backups_in_opposite_directions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    one, two = (
        fill(sqlite3.connect(tmp_path / name, check_same_thread=False)) for name in ("1", "2")
    )

    def copy_thrice(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
        copied = 0
        while copied < 3:
            with contextlib.suppress(sqlite3.OperationalError):  # the other one is going on
                source.backup(target, pages=5, sleep=0)
                copied += 1

    copies = [
        threading.Thread(target=copy_thrice, args=(one, two)),
        threading.Thread(target=copy_thrice, args=(two, one)),
    ]
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.join(60)
        assert not copy.is_alive()
    assert count(one) == count(two) == ROWS


def test_arguments_that_cannot_be_meant(source: sqlite3.Connection) -> None:
    target = sqlite3.connect(":memory:")
    with pytest.raises(ValueError, match="same connection"):
        source.backup(source)
    with pytest.raises(TypeError):
        source.backup("copy.db")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a callable"):
        source.backup(target, progress=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sleep"):
        source.backup(target, sleep=float("inf"))
    with pytest.raises(sqlite3.OperationalError, match="unknown database"):
        source.backup(target, name="none")
    target.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        source.backup(target)


def test_the_target_may_be_of_another_thread(
    source: sqlite3.Connection, tmp_path: Path, in_thread: Callable[..., Any]
) -> None:
    """As in the standard library, which looks at the source's thread alone."""
    target = in_thread(sqlite3.connect, tmp_path / "target.db")
    source.backup(target)
    assert in_thread(count, target) == ROWS
    with pytest.raises(sqlite3.ProgrammingError, match="created in a thread"):
        in_thread(source.backup, target)
    in_thread(target.close)


def test_bytes_make_the_round_trip(source: sqlite3.Connection) -> None:
    content = source.serialize()
    assert content.startswith(b"SQLite format 3\0")
    target = sqlite3.connect(":memory:")
    target.deserialize(memoryview(content))
    assert count(target) == ROWS
    target.execute("INSERT INTO t VALUES (1)")
    assert count(target) == ROWS + 1


def test_bytes_that_are_no_database(source: sqlite3.Connection) -> None:
    source.deserialize(b"\0" * 4096)
    with pytest.raises(sqlite3.DatabaseError):
        count(source)


def test_a_database_that_is_not_there(source: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match=r"^unable to serialize 'none'$"):
        source.serialize(name="none")
    with pytest.raises(TypeError, match="bytes-like"):
        source.deserialize(5)  # type: ignore[arg-type]


def test_a_database_whose_pages_must_not_be_counted(source: sqlite3.Connection) -> None:
    source.set_authorizer(lambda *_: sqlite3.SQLITE_IGNORE)
    with pytest.raises(sqlite3.OperationalError, match=r"^unable to serialize 'main'$"):
        source.serialize()
    source.set_authorizer(None)
    assert source.serialize()


@pytest.mark.parametrize(
    "sql", ["EXPLAIN INSERT INTO t VALUES (1)", "SELECT * FROM t", "EXPLAIN QUERY PLAN SELECT 1"]
)
def test_a_database_in_use_is_not_replaced(source: sqlite3.Connection, sql: str) -> None:
    """SQLite lets EXPLAIN go on with a schema that is gone, and crashes."""
    content = source.serialize()
    rows = source.execute(sql)
    for replacement in (content, b""):
        with pytest.raises(sqlite3.OperationalError, match=r"cannot be replaced|locked"):
            source.deserialize(replacement)
    assert rows.fetchall()
    source.deserialize(content)
    assert source.serialize() == content


def test_a_page_of_zeros_is_content(tmp_path: Path) -> None:
    """It is read twice, since SQLite would leave one that cannot be read so."""
    path = tmp_path / "zeros.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("CREATE TABLE t(b)")
    connection.execute("INSERT INTO t VALUES (randomblob(30000))")
    connection.commit()
    connection.execute("DELETE FROM t")
    connection.commit()
    content = path.read_bytes()
    assert bytes(4096) in [content[at : at + 4096] for at in range(0, len(content), 4096)]
    assert connection.serialize() == content
    connection.close()


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_database_in_a_backup_is_not_replaced(source: sqlite3.Connection, which: str) -> None:
    """SQLite lets the target be, and the backup goes on writing to what has been freed."""
    content = source.serialize()
    target = sqlite3.connect(":memory:")
    connection = source if which == "source" else target
    reason = {"source": "backup is in progress", "target": "target of a backup"}[which]
    refused = 0

    def replace(*_: object) -> None:
        nonlocal refused
        with pytest.raises(sqlite3.OperationalError, match=reason):
            connection.deserialize(content)
        refused += 1

    source.backup(target, pages=20, progress=replace, sleep=0)
    assert refused > 1
    assert count(target) == ROWS
    target.close()
