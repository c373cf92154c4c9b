"""The preupdate hook: rows before they change, with their values."""

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from oxlite import sqlite3

INSERT, UPDATE, DELETE = sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE


@pytest.fixture
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)")
    return connection


@pytest.fixture
def told(table: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """What the hook of ``table`` is called with."""
    told: list[tuple[Any, ...]] = []
    table.set_preupdate_hook(lambda *change: told.append(change))
    return told


def test_rows_before_and_after(table: sqlite3.Connection, told: list[object]) -> None:
    table.execute("INSERT INTO t VALUES (1, 'one', 1.5), (2, x'00ff', NULL)")
    table.execute("UPDATE t SET a = 'uno' WHERE id = 1")
    table.execute("UPDATE t SET id = 7 WHERE id = 1")
    table.execute("DELETE FROM t WHERE id = 2")
    assert told == [
        (INSERT, "main", "t", None, 1, None, (1, "one", 1.5)),
        (INSERT, "main", "t", None, 2, None, (2, b"\0\xff", None)),
        (UPDATE, "main", "t", 1, 1, (1, "one", 1.5), (1, "uno", 1.5)),
        (UPDATE, "main", "t", 1, 7, (1, "uno", 1.5), (7, "uno", 1.5)),
        (DELETE, "main", "t", 2, None, (2, b"\0\xff", None), None),
    ]


def test_it_is_called_before_the_change_and_until_it_is_removed(table: sqlite3.Connection) -> None:
    calls: list[str] = []
    table.set_update_hook(lambda *change: calls.append("after"))
    table.set_preupdate_hook(lambda *change: calls.append("before"))
    table.execute("INSERT INTO t VALUES (1, 1, 1)")
    table.set_preupdate_hook(None)
    table.execute("INSERT INTO t VALUES (2, 2, 2)")
    assert calls == ["before", "after", "after"]


def test_statements_compiled_before_it_was_set(table: sqlite3.Connection) -> None:
    """``DELETE`` of all rows does not look at rows without a hook; it must once there is one."""
    table.execute("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    table.execute("SAVEPOINT s")
    table.execute("DELETE FROM t")
    table.execute("ROLLBACK TO s")
    deleted: list[object] = []
    table.set_preupdate_hook(lambda *change: deleted.append(change[5]))
    table.execute("DELETE FROM t")
    assert deleted == [(1, 1, 1), (2, 2, 2)]


def test_triggers_foreign_keys_tables_without_rowid_other_schemas(
    table: sqlite3.Connection, told: list[tuple[Any, ...]]
) -> None:
    table.executescript(
        """
        PRAGMA foreign_keys = ON;
        CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES t ON DELETE CASCADE);
        CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID;
        CREATE TEMP TABLE temporary(a);
        CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO w VALUES (new.id, 'by trigger'); END;
        INSERT INTO t VALUES (1, 1, 1);
        INSERT INTO child VALUES (5, 1);
        """
    )
    told.clear()
    table.execute("INSERT INTO t VALUES (2, 2, 2)")
    table.execute("DELETE FROM t WHERE id = 1")
    table.execute("INSERT INTO temporary VALUES ('x')")
    seen = [(change[0], change[1], change[2], change[5], change[6]) for change in told]
    assert seen == [
        (INSERT, "main", "t", None, (2, 2, 2)),
        (INSERT, "main", "w", None, (2, "by trigger")),
        (DELETE, "main", "t", (1, 1, 1), None),
        (DELETE, "main", "child", (5, 1), None),
        (INSERT, "temp", "temporary", None, ("x",)),
    ]


def test_text_that_is_not_utf8_is_told_without_loss(
    table: sqlite3.Connection, told: list[tuple[Any, ...]]
) -> None:
    table.execute("INSERT INTO t VALUES (1, CAST(x'ff41' AS TEXT), 'naïve \U0001f980')")
    table.execute("DELETE FROM t")
    for row in (told[0][6], told[1][5]):
        assert row == (1, "\udcffA", "naïve \U0001f980")
        assert row[1].encode(errors="surrogateescape") == b"\xffA"


def test_a_write_through_a_blob_is_an_update_to_what_is_not_known(
    table: sqlite3.Connection, told: list[object]
) -> None:
    table.execute("INSERT INTO t VALUES (1, x'0000', 0)")
    told.clear()
    with table.blobopen("t", "a", 1) as blob:
        blob.write(b"ab")
    assert told == [(UPDATE, "main", "t", 1, 1, (1, b"\0\0", 0), None)]


def test_an_exception_changes_nothing_and_is_shown_if_asked_for(
    table: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda given: shown.append(given.exc_type))
    table.set_preupdate_hook(lambda *change: 1 / 0)
    table.execute("INSERT INTO t VALUES (1, 1, 1)")
    assert shown == []
    sqlite3.enable_callback_tracebacks(True)
    try:
        table.execute("INSERT INTO t VALUES (2, 2, 2)")
        table.set_preupdate_hook(lambda: None)  # takes too few arguments
        table.execute("INSERT INTO t VALUES (3, 3, 3)")
    finally:
        sqlite3.enable_callback_tracebacks(False)
    assert shown == [ZeroDivisionError, TypeError]
    assert table.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_it_cannot_use_its_connection_but_another(table: sqlite3.Connection) -> None:
    other = sqlite3.connect(":memory:", isolation_level=None)
    other.execute("CREATE TABLE audit(old, new)")
    errors: list[str] = []

    def hook(*change: object) -> None:
        for act in (
            lambda: table.execute("SELECT 1"),
            table.close,
            table.create_session,
            lambda: table.set_preupdate_hook(None),
        ):
            try:
                act()
            except sqlite3.ProgrammingError as error:
                errors.append(str(error))
        other.execute("INSERT INTO audit VALUES (?, ?)", (str(change[5]), str(change[6])))

    table.set_preupdate_hook(hook)
    table.execute("INSERT INTO t VALUES (1, 'a', 'b')")
    assert errors == ["A callback of this kind cannot use the connection that calls it."] * 4
    assert other.execute("SELECT * FROM audit").fetchall() == [("None", "(1, 'a', 'b')")]


def test_a_hook_and_a_session_exclude_each_other(table: sqlite3.Connection) -> None:
    table.set_preupdate_hook(lambda *change: None)
    with pytest.raises(sqlite3.InterfaceError, match="remove the hook first"):
        table.create_session()
    table.set_preupdate_hook(None)
    first, second = table.create_session(), table.create_session()
    first.close()
    with pytest.raises(sqlite3.InterfaceError, match="drop the sessions first"):
        table.set_preupdate_hook(lambda *change: None)
    table.set_preupdate_hook(None)  # there is none: no harm to the session
    table.execute("INSERT INTO t VALUES (1, 1, 1)")
    assert not second.is_empty
    del second
    table.set_preupdate_hook(lambda *change: None)


@pytest.mark.parametrize("how", ["replaced", "removed", "closed", "dropped"])
def test_the_callable_goes_when_it_is_no_longer_needed(table: sqlite3.Connection, how: str) -> None:
    class Hook:
        def __call__(self, *change: object) -> None: ...

    hook = Hook()
    reference = weakref.ref(hook)
    connection = sqlite3.connect(":memory:")
    connection.set_preupdate_hook(hook)
    del hook
    assert reference() is not None
    if how == "replaced":
        connection.set_preupdate_hook(print)
    elif how == "removed":
        connection.set_preupdate_hook(None)
    else:
        connection.close()
    del connection
    gc.collect()
    assert reference() is None


def test_a_cycle_through_it_is_collected() -> None:
    class Holder(sqlite3.Connection):
        pass

    def make() -> weakref.ref[Holder]:
        connection = Holder(":memory:")
        connection.set_preupdate_hook(lambda *change: connection)
        return weakref.ref(connection)

    reference = make()
    gc.collect()
    assert reference() is None


def test_only_the_connections_own_thread_sets_it(
    table: sqlite3.Connection, in_thread: Callable[..., Any]
) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="same thread"):
        in_thread(table.set_preupdate_hook, None)
    table.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        table.set_preupdate_hook(None)
