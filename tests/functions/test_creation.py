"""What a connection of Django's has: all that Django creates, each once."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

from django.db.backends.sqlite3 import _functions as stock

import oxlite
from oxlite import sqlite3
from oxlite.django.sqlite3 import functions


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = oxlite.connect(":memory:")
    yield connection
    connection.close()


def created(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    """The functions that SQLite does not have by itself, with all that it says of them."""
    return {*connection.execute("SELECT * FROM pragma_function_list WHERE NOT builtin")}


def test_nothing_is_missing(connection: sqlite3.Connection) -> None:
    functions.register_functions(connection)
    theirs = oxlite.connect(":memory:")
    stock.register(theirs)
    assert created(connection) == created(theirs)
    theirs.close()


def test_nothing_is_created_twice() -> None:
    names = [arguments[0] for _, arguments, _ in functions.other_creations()]
    native = {"regexp", *functions.ORIGINALS, *functions.SMALL, *functions.STATISTICS}
    assert native.isdisjoint(names)
    assert {"COT", "MD5", "RAND", "SHA512"} <= {*names}
    assert len({*names}) == len(names)


def test_an_unknown_version_keeps_its_own(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "COMPARED", frozenset())
    monkeypatch.setattr(functions, "other_creations", None)
    functions.register_functions(connection)
    assert connection.execute("SELECT REVERSE('ab'), MD5('')").fetchone() == (
        "ba",
        "d41d8cd98f00b204e9800998ecf8427e",
    )


def test_what_somebody_has_put_there_is_called(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the connection, on which it may do anything."""
    register = stock.register

    def register_more(connection: sqlite3.Connection) -> None:
        register(connection)
        connection.create_function("more", 0, lambda: 7)
        connection.execute("CREATE TEMP TABLE t AS SELECT more() AS a")

    monkeypatch.setattr(stock, "register", register_more)
    functions.register_functions(connection)
    query = "SELECT a, REVERSE('ab'), MD5('') IS NOT NULL FROM t"
    assert connection.execute(query).fetchone() == (7, "ba", 1)
