"""Adapters and converters of the standard library's module: taken over, or said to be missing."""

import math
import sqlite3 as stdlib
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from oxlite import sqlite3

# An argument that is wrong on purpose.
Untyped = Any

MODULES = [stdlib, sqlite3]


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    kept = [
        (registry, dict(registry))
        for module in MODULES
        for registry in (module.adapters, module.converters)
    ]
    yield
    for registry, entries in kept:
        registry.clear()
        registry.update(entries)


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


class Protocol:
    """Another protocol than that of values for SQLite."""


def test_adapters_and_converters_are_taken_over() -> None:
    stdlib.register_adapter(Decimal, str)
    stdlib.register_converter("decimal", lambda stored: Decimal(stored.decode()))
    connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
    connection.execute("CREATE TABLE t (amount DECIMAL)")
    with pytest.raises(sqlite3.Error, match="Decimal"):
        connection.execute("INSERT INTO t VALUES (?)", (Decimal("1.10"),))
    sqlite3.register_all_from(stdlib)
    connection.execute("INSERT INTO t VALUES (?)", (Decimal("1.10"),))
    ((amount,),) = connection.execute("SELECT amount FROM t").fetchall()
    assert type(amount) is Decimal
    connection.close()


def test_the_protocol_is_translated_and_others_are_kept() -> None:
    stdlib.register_adapter(Point, lambda point: f"{point.x}")
    stdlib.adapters[(Point, Protocol)] = lambda point: -point.x
    sqlite3.register_all_from(stdlib)
    assert sqlite3.adapt(Point(3)) == "3"
    assert sqlite3.adapt(Point(3), sqlite3.PrepareProtocol) == "3"
    other: Untyped = Protocol
    assert sqlite3.adapt(Point(3), other) == -3
    with pytest.raises(sqlite3.ProgrammingError):
        sqlite3.adapt(Point(3), stdlib.PrepareProtocol)


def test_an_adapter_of_a_base_type_is_asked() -> None:
    stdlib.register_adapter(float, lambda number: str(number))
    sqlite3.register_all_from(stdlib)
    connection = sqlite3.connect(":memory:")
    assert connection.execute("SELECT ?", (math.inf,)).fetchone() == ("inf",)
    connection.close()


def test_what_is_registered_there_counts_and_its_defaults_do_not() -> None:
    def own(stored: bytes) -> str:
        return "own"

    sqlite3.register_converter("date", own)
    sqlite3.register_converter("point", own)
    stdlib.register_converter("point", lambda stored: "theirs")
    before = dict(sqlite3.adapters)
    sqlite3.register_all_from(stdlib)
    assert sqlite3.converters["DATE"] is own
    assert sqlite3.converters["POINT"](b"") == "theirs"
    assert sqlite3.adapters == before


@pytest.mark.parametrize("module", [math, None, "sqlite3"])
def test_another_module_is_refused(module: Untyped) -> None:
    before = dict(sqlite3.adapters), dict(sqlite3.converters)
    with pytest.raises(TypeError, match="adapters, converters and PrepareProtocol"):
        sqlite3.register_all_from(module)
    assert (sqlite3.adapters, sqlite3.converters) == before


MISSING = """
import logging, sqlite3 as stdlib
from decimal import Decimal
logging.basicConfig(format="%(name)s %(levelname)s: %(message)s")
import oxlite
from oxlite import sqlite3
BY_TYPE = sqlite3.PARSE_DECLTYPES
"""


def run(script: str) -> list[str]:
    """What a script logs, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", MISSING + script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_converters_that_are_missing_here_are_told_once() -> None:
    (line,) = run(
        """
stdlib.register_converter("decimal", Decimal)
stdlib.register_converter("point", Decimal)
oxlite.connect(":memory:").close()  # looks for none
sqlite3.connect(":memory:").close()
oxlite.connect(":memory:", detect_types=BY_TYPE).close()
sqlite3.connect(":memory:", detect_types=BY_TYPE).close()
"""
    )
    assert line.startswith("oxlite WARNING: ")
    assert "DECIMAL, POINT." in line
    assert "oxlite.sqlite3.register_all_from(sqlite3)" in line


def test_each_set_of_missing_converters_is_told() -> None:
    first, second = run(
        """
for name in ("decimal", "point"):
    stdlib.register_converter(name, Decimal)
    sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_COLNAMES).close()
"""
    )
    assert "not: DECIMAL." in first
    assert "not: DECIMAL, POINT." in second


@pytest.mark.parametrize(
    "script",
    [
        "",
        "stdlib.register_converter('x', Decimal); sqlite3.register_converter('X', Decimal)",
        "stdlib.register_converter('x', Decimal); sqlite3.register_all_from(stdlib)",
        "import sys; sys.modules['sqlite3'] = sqlite3; sqlite3.register_converter('x', Decimal)",
        "import sys; sys.modules['sqlite3'] = None",
    ],
)
def test_nothing_is_told_where_none_is_missing(script: str) -> None:
    assert run(f"{script}\nsqlite3.connect(':memory:', detect_types=BY_TYPE).close()") == []
