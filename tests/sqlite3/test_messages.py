"""What is said of a call that does not fit, where programs compare it: CPython's own words.

Of the others the class is the same, and the words are PyO3's.
"""

import importlib
import sqlite3 as standard_library
import sys
from collections.abc import Callable
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from oxlite import sqlite3

Call = Callable[[Any, Any], object]

CALLS: dict[str, Call] = {
    "bind Decimal": lambda module, connection: connection.execute("SELECT ?", (Decimal(1),)),
    "bind an object": lambda module, connection: connection.execute("SELECT ?", (object(),)),
    "backup to text": lambda module, connection: connection.backup("copy.db"),
    "backup to None": lambda module, connection: connection.backup(None),
    "execute 5": lambda module, connection: connection.execute(5),
    "execute None": lambda module, connection: connection.cursor().execute(None),
    "executemany bytes": lambda module, connection: connection.executemany(b"SELECT 1", []),
    "executescript 5": lambda module, connection: connection.executescript(5),
    "executescript bytes": lambda module, connection: connection.executescript(b"SELECT 1"),
    "executescript None": lambda module, connection: connection.cursor().executescript(None),
    "connect without a database": lambda module, connection: module.connect(),
    "connect with another name": lambda module, connection: module.connect(nope=1),
    "Connection with another name": lambda module, connection: module.Connection(nope=1),
}
if sys.version_info >= (3, 12):  # before, without autocommit, fewer were taken
    CALLS["connect with too much"] = lambda module, connection: module.connect(
        ":memory:", 5, 0, "", True, module.Connection, 128, False, 9
    )


def said(module: ModuleType, call: Call) -> tuple[str, str]:
    """The class and the text of what a call raises."""
    connection = module.connect(":memory:")
    try:
        with pytest.raises(Exception) as caught:
            call(module, connection)
    finally:
        connection.close()
    return type(caught.value).__name__, str(caught.value).replace("oxlite.", "")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CALLS)
def test_the_same_words(name: str) -> None:
    expected = said(standard_library, CALLS[name])
    assert said(sqlite3, CALLS[name]) == expected


def test_a_target_of_the_other_sqlite_is_told_how_to_open_it() -> None:
    source, target = sqlite3.connect(":memory:"), standard_library.connect(":memory:")
    text = (
        r"^backup\(\) argument 'target' must be oxlite\.sqlite3\.Connection \(open the target with "
        r"oxlite\.sqlite3\.connect\), not sqlite3\.Connection$"
    )
    with pytest.raises(TypeError, match=text):
        source.backup(target)  # type: ignore[arg-type]
    source.close()
    target.close()


class OtherRow(standard_library.Row):
    """A row of the other SQLite's."""


@pytest.mark.parametrize("factory", [standard_library.Row, OtherRow])
def test_a_row_of_the_other_sqlite_is_refused_when_it_is_set(factory: type) -> None:
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    for target in (connection, cursor):
        with pytest.raises(TypeError, match=r"set row_factory to oxlite\.sqlite3\.Row"):
            target.row_factory = factory
        assert target.row_factory is None
    connection.close()


def test_classes_go_by_the_name_under_which_they_are_found() -> None:
    """Also in a ``repr``: whoever reads ``<oxlite.sqlite3.Row …>`` knows whose row that is."""
    classes = {name: found for name, found in vars(sqlite3).items() if isinstance(found, type)}
    own = {
        name: found
        for name, found in classes.items()
        if found.__module__ not in {"builtins", "datetime"}
    }
    assert {"Connection", "Cursor", "Row", "Blob", "Error", "PrepareProtocol"} <= own.keys()
    for found in own.values():
        assert getattr(importlib.import_module(found.__module__), found.__name__) is found
        assert found.__module__.split(".")[0] == "oxlite"
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    row = connection.execute("SELECT 1").fetchone()
    assert repr(row).startswith("<oxlite.sqlite3.Row object at 0x")
    connection.close()
