"""``connect`` and ``Connection``: the standard library's arguments, by position and by name."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oxlite import sqlite3

BY_POSITION = pytest.mark.skipif(
    sys.version_info >= (3, 15), reason="only the database comes by position since Python 3.15"
)


class Mine(sqlite3.Connection):
    """A connection class of one's own."""


@BY_POSITION
@pytest.mark.parametrize("open_", [sqlite3.connect, sqlite3.Connection, Mine])
def test_every_argument_by_position(path: Path, open_: Callable[..., sqlite3.Connection]) -> None:
    connection = open_(f"file:{path}", 2.5, 0, "EXCLUSIVE", False, sqlite3.Connection, 7, True)
    assert connection.isolation_level == "EXCLUSIVE"
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (2500,)
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    assert path.exists()


@pytest.mark.parametrize("open_", [sqlite3.connect, sqlite3.Connection, Mine])
def test_every_argument_by_name(path: Path, open_: Callable[..., sqlite3.Connection]) -> None:
    connection = open_(
        uri=True,
        cached_statements=7,
        factory=sqlite3.Connection,
        check_same_thread=False,
        isolation_level=None,
        detect_types=0,
        timeout=2,
        database=f"file:{path}",
    )
    assert connection.isolation_level is None
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (2000,)
    connection.close()


def test_the_defaults_are_those_of_the_standard_library() -> None:
    connection = sqlite3.connect(":memory:")
    assert connection.isolation_level == ""
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (5000,)
    assert (connection.row_factory, connection.text_factory) == (None, str)
    assert not connection.in_transaction
    assert connection.total_changes == 0
    connection.close()


@pytest.mark.parametrize("yes", [1, 7, True])
@pytest.mark.parametrize("no", [0, False])
def test_truth_may_be_given_as_a_number(
    path: Path, in_thread: Callable[..., object], yes: int, no: int
) -> None:
    """Much code says ``check_same_thread=0``, and the standard library takes it."""
    shared = sqlite3.connect(f"file:{path}", check_same_thread=no, uri=yes)
    in_thread(shared.execute, "CREATE TABLE t(a)")
    shared.close()
    assert path.exists()
    own = sqlite3.connect(":memory:", check_same_thread=yes, uri=no)
    with pytest.raises(sqlite3.ProgrammingError, match="same thread"):
        in_thread(own.execute, "SELECT 1")
    own.close()


@pytest.mark.parametrize("name", ["factory", pytest.param("by position", marks=BY_POSITION)])
def test_a_factory_is_called_with_everything(name: str) -> None:
    calls = []

    def factory(*arguments: object, **options: object) -> object:
        calls.append((arguments, options))
        return "made"

    if name == "factory":
        assert sqlite3.connect("x", timeout=1, factory=factory, extra=2) == "made"
        assert calls == [(("x",), {"timeout": 1, "factory": factory, "extra": 2})]
    else:
        assert sqlite3.connect("x", 1, 0, None, True, factory) == "made"
        assert calls == [(("x", 1, 0, None, True, factory), {})]


def test_a_factory_class() -> None:
    connection = sqlite3.connect(":memory:", factory=Mine)
    assert type(connection) is Mine
    assert type(connection.cursor()) is sqlite3.Cursor
    connection.close()


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((), {}),
        ((":memory:",), {"timeout": "5"}),
        ((":memory:",), {"timeout": None}),
        ((":memory:",), {"cached_statements": 1.5}),
        ((":memory:",), {"cached_statements": "1"}),
        ((":memory:",), {"detect_types": "0"}),
        ((":memory:",), {"no_such_argument": 1}),
        ((":memory:", 5.0), {"timeout": 5.0}),
        ((":memory:", 5.0, 0, "", True, Mine, 128, False, None), {}),
        ((":memory:",), {"factory": 5}),
    ],
)
def test_arguments_of_the_wrong_type_or_number(
    arguments: tuple[object, ...], options: dict[str, object]
) -> None:
    with pytest.raises(TypeError):
        sqlite3.connect(*arguments, **options)


def test_two_connections_to_memory_are_two_databases() -> None:
    one, two = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    one.execute("CREATE TABLE t(a)")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        two.execute("SELECT * FROM t")
    one.close()
    two.close()


def test_text_stored_as_utf16(path: Path) -> None:
    text = "é𐍈\0x"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute('CREATE TABLE t("ñ𐍈")')
    connection.execute("INSERT INTO t VALUES (?)", (text,))
    connection.commit()
    cursor = connection.execute("SELECT * FROM t")
    assert cursor.fetchall() == [(text,)]
    assert cursor.description[0][0] == "ñ𐍈"
    connection.close()
    assert text.encode("utf-16le") in path.read_bytes()
