"""Update, commit, rollback and WAL hooks."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oxlite import sqlite3

Opened = Callable[..., sqlite3.Connection]

INSERT, UPDATE, DELETE = sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE
HOOKS = ["set_update_hook", "set_commit_hook", "set_rollback_hook", "set_wal_hook"]


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    """A connection to memory with the table ``t(a)``; it commits by itself."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t(a)")
    yield connection
    connection.close()


@pytest.fixture
def wal(path: Path, opened: Opened) -> sqlite3.Connection:
    """A connection to a file in WAL mode with the table ``t(a)``; it commits by itself."""
    connection = opened(path, isolation_level=None)
    connection.execute("CREATE TABLE t(a)")
    return connection


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The classes of the exceptions that callbacks raise."""
    shown: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: shown.append(args.exc_type))
    sqlite3.enable_callback_tracebacks(True)
    yield shown
    sqlite3.enable_callback_tracebacks(False)


def test_an_update_hook_is_told_of_rows(table: sqlite3.Connection) -> None:
    told: list[tuple[object, ...]] = []
    table.set_update_hook(lambda *change: told.append(change))
    table.execute("INSERT INTO t VALUES (1), (2)")
    table.execute("INSERT INTO t(rowid, a) VALUES (?, 3)", (-(2**63),))
    table.execute("UPDATE t SET a = 9 WHERE rowid > 1")
    table.execute("DELETE FROM t WHERE rowid < 0")
    table.executescript(
        'ATTACH \':memory:\' AS "ä"; CREATE TABLE "ä"."ö b"(a); INSERT INTO "ö b" VALUES (1)'
    )
    assert told == [
        (INSERT, "main", "t", 1),
        (INSERT, "main", "t", 2),
        (INSERT, "main", "t", -(2**63)),
        (UPDATE, "main", "t", 2),
        (DELETE, "main", "t", -(2**63)),
        (INSERT, "ä", "ö b", 1),
    ]


def test_an_update_hook_is_told_of_every_way_to_write(table: sqlite3.Connection) -> None:
    told: list[tuple[object, ...]] = []
    table.execute("CREATE TRIGGER copy AFTER INSERT ON t BEGIN DELETE FROM t WHERE a = 0; END")
    table.execute("INSERT INTO t VALUES (0)")
    table.set_update_hook(lambda *change: told.append((change[0], change[3])))
    table.executemany("INSERT INTO t VALUES (?)", [(1,), (0,)])
    table.execute("INSERT INTO t VALUES (3) RETURNING a").fetchall()
    table.executescript("UPDATE t SET a = 4")
    told_so_far = len(told)
    with contextlib.suppress(sqlite3.OperationalError):
        table.execute("INSERT INTO t SELECT abs(-9223372036854775808)")
    assert (DELETE, 2) in told
    assert told_so_far == len([INSERT, INSERT, DELETE, INSERT, UPDATE, UPDATE])


def test_an_update_hook_that_raises_changes_nothing(
    table: sqlite3.Connection, shown: list[Any]
) -> None:
    table.set_update_hook(lambda *change: 1 / 0)
    table.execute("INSERT INTO t VALUES (1)")
    assert table.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert shown == [ZeroDivisionError]


@pytest.mark.parametrize(
    ("answer", "commits"),
    [(None, True), (False, True), (0, True), ("", True), (True, False), (1, False), ("x", False)],
)
def test_a_commit_hook_may_refuse(table: sqlite3.Connection, answer: object, commits: bool) -> None:
    table.set_commit_hook(lambda: answer)
    table.execute("BEGIN")
    table.execute("INSERT INTO t VALUES (1)")
    if commits:
        table.execute("COMMIT")
    else:
        with pytest.raises(sqlite3.IntegrityError) as caught:
            table.execute("COMMIT")
        assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_COMMITHOOK"
    assert not table.in_transaction
    assert table.execute("SELECT count(*) FROM t").fetchone() == (int(commits),)


@pytest.mark.parametrize("act", ["commit", "block", "execute", "executemany", "executescript"])
def test_a_commit_hook_is_asked_by_every_way_to_commit(table: sqlite3.Connection, act: str) -> None:
    asked: list[None] = []
    table.set_commit_hook(lambda: asked.append(None))
    if act in ("commit", "block"):
        table.isolation_level = ""
        table.execute("INSERT INTO t VALUES (1)")
        assert not asked
    if act == "commit":
        table.commit()
    elif act == "block":
        with table:
            pass
    elif act == "executemany":
        table.executemany("INSERT INTO t VALUES (?)", [(1,)])
    else:
        getattr(table, act)("INSERT INTO t VALUES (1)")
    assert asked == [None]


def test_a_commit_hook_that_raises_refuses(table: sqlite3.Connection, shown: list[Any]) -> None:
    table.set_commit_hook(lambda: 1 / 0)
    with pytest.raises(sqlite3.IntegrityError):
        table.execute("INSERT INTO t VALUES (1)")
    assert table.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert shown == [ZeroDivisionError]


def test_a_rollback_hook(table: sqlite3.Connection) -> None:
    called: list[str] = []
    table.set_rollback_hook(lambda: called.append("rolled back"))
    table.execute("BEGIN")
    table.execute("INSERT INTO t VALUES (1)")
    table.execute("COMMIT")
    assert called == []
    for end in (table.rollback, lambda: table.execute("ROLLBACK")):
        table.execute("BEGIN")
        table.execute("INSERT INTO t VALUES (1)")
        end()
    assert called == ["rolled back"] * 2
    table.set_commit_hook(lambda: True)
    with pytest.raises(sqlite3.IntegrityError):
        table.execute("INSERT INTO t VALUES (1)")
    assert called == ["rolled back"] * 3


def test_a_rollback_hook_when_the_connection_is_closed(table: sqlite3.Connection) -> None:
    called: list[str] = []

    def hook() -> None:
        with pytest.raises(sqlite3.ProgrammingError):
            table.execute("SELECT 1")
        called.append("rolled back")

    table.set_rollback_hook(hook)
    table.execute("BEGIN")
    table.execute("INSERT INTO t VALUES (1)")
    table.close()
    assert called == ["rolled back"]


def test_a_rollback_hook_that_raises(table: sqlite3.Connection, shown: list[Any]) -> None:
    table.set_rollback_hook(lambda: 1 / 0)
    table.execute("BEGIN")
    table.execute("INSERT INTO t VALUES (1)")
    table.rollback()
    assert shown == [ZeroDivisionError]
    assert not table.in_transaction


def test_a_wal_hook_is_told_of_pages(wal: sqlite3.Connection) -> None:
    told: list[tuple[str, int]] = []
    wal.set_wal_hook(lambda schema, pages: told.append((schema, pages)))
    for _ in range(3):
        wal.execute("INSERT INTO t VALUES (zeroblob(9000))")
    assert [schema for schema, _ in told] == ["main"] * 3
    pages = [pages for _, pages in told]
    assert pages == sorted(set(pages))


def test_a_wal_hook_may_run_a_checkpoint(wal: sqlite3.Connection, path: Path) -> None:
    checkpoints: list[object] = []

    def hook(schema: str, pages: int) -> None:
        if pages > 20:
            checkpoint = wal.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            checkpoints.append(checkpoint)

    wal.set_wal_hook(hook)
    for _ in range(30):
        wal.execute("INSERT INTO t VALUES (zeroblob(9000))")
    assert checkpoints
    assert set(checkpoints) == {(0, 0, 0)}
    assert path.with_name("test.db-wal").stat().st_size < 30 * 4096


def test_a_wal_hook_takes_the_place_of_checkpoints(wal: sqlite3.Connection, path: Path) -> None:
    log = path.with_name("test.db-wal")
    wal.set_wal_hook(lambda schema, pages: None)
    wal.executemany("INSERT INTO t VALUES (zeroblob(40000))", [()] * 130)
    grown = log.stat().st_size
    assert grown > 1000 * 4096
    wal.set_wal_hook(None)
    wal.executemany("INSERT INTO t VALUES (zeroblob(40000))", [()] * 130)
    # Checkpoints are automatic again, so the log is written from its beginning.
    assert log.stat().st_size < 2 * grown


def test_a_wal_hook_that_raises_changes_nothing(wal: sqlite3.Connection, shown: list[Any]) -> None:
    wal.set_wal_hook(lambda schema, pages: 1 / 0)
    wal.execute("INSERT INTO t VALUES (1)")
    assert wal.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert shown == [ZeroDivisionError]


def test_a_wal_hook_may_remove_itself(wal: sqlite3.Connection) -> None:
    calls: list[int] = []

    def hook(schema: str, pages: int) -> None:
        calls.append(pages)
        wal.set_wal_hook(None)

    wal.set_wal_hook(hook)
    wal.execute("INSERT INTO t VALUES (1)")
    wal.execute("INSERT INTO t VALUES (1)")
    assert len(calls) == 1


@pytest.mark.parametrize("name", HOOKS[:3])
def test_a_hook_cannot_use_the_connection(table: sqlite3.Connection, name: str) -> None:
    errors: list[str] = []

    def hook(*_: object) -> None:
        for act in (lambda: table.execute("SELECT 1"), table.rollback, table.close,
                    lambda: getattr(table, name)(None)):  # fmt: skip
            try:
                act()
            except sqlite3.ProgrammingError as error:
                errors.append(str(error))

    getattr(table, name)(hook)
    table.execute("BEGIN")
    table.execute("INSERT INTO t VALUES (1)")
    table.execute("ROLLBACK" if "rollback" in name else "COMMIT")
    assert len(errors) == 4
    assert set(errors) == {"A callback of this kind cannot use the connection that calls it."}


@pytest.mark.parametrize("name", HOOKS)
def test_replacing_and_removing(wal: sqlite3.Connection, name: str) -> None:
    called: list[str] = []

    def write() -> list[str]:
        called.clear()
        wal.execute("BEGIN")
        wal.execute("INSERT INTO t VALUES (1)")
        wal.execute("ROLLBACK" if "rollback" in name else "COMMIT")
        return list(called)

    set_hook = getattr(wal, name)
    set_hook(lambda *_: called.append("one"))
    assert write() == ["one"]
    set_hook(lambda *_: called.append("two"))
    assert write() == ["two"]
    set_hook(None)
    assert write() == []
    set_hook(None)


@pytest.mark.parametrize("name", HOOKS)
def test_arguments(table: sqlite3.Connection, name: str, in_thread: Callable[..., Any]) -> None:
    set_hook = getattr(table, name)
    with pytest.raises(TypeError):
        set_hook()
    with pytest.raises(TypeError):
        set_hook(None, None)
    with pytest.raises(sqlite3.ProgrammingError, match="created in a thread"):
        in_thread(set_hook, None)
    table.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        set_hook(None)


def test_hooks_in_another_thread_than_the_one_that_set_them(in_thread: Callable[..., Any]) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE t(a)")
    told: list[object] = []
    connection.set_update_hook(lambda *change: told.append(change))
    connection.set_commit_hook(lambda: told.append("commit"))
    in_thread(connection.execute, "INSERT INTO t VALUES (1)")
    connection.close()
    assert told == [(INSERT, "main", "t", 1), "commit"]


def test_a_hook_while_rows_are_read(table: sqlite3.Connection) -> None:
    """Reading goes on with what SQLite promises, whatever Python does in between."""
    table.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(10)])
    told: list[int] = []
    table.set_update_hook(lambda operation, schema, name, rowid: told.append(rowid))
    for (value,) in table.execute("SELECT a FROM t ORDER BY rowid"):
        table.execute("UPDATE t SET a = a + 100 WHERE a = ?", (value,))
    assert told == list(range(1, 11))
