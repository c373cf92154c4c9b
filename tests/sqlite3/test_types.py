"""What becomes of an object of any type: what the standard library makes of it.

Each is bound by position, by name and by ``executemany``, and returned by a function, an aggregate
and a window function. ``tests/test_single_values.py`` is about the doors that differ on purpose.
"""

import array
import ctypes
import datetime
import decimal
import enum
import fractions
import mmap
import pathlib
import sqlite3 as standard_library
import uuid
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy
import pandas
import pytest

from oxlite import sqlite3

BASES: dict[type, object] = {int: 5, float: 1.5, str: "x", bytes: b"b", bytearray: b"ba"}

OFFERS: dict[str, Callable[..., object]] = {
    "__buffer__": lambda self, flags: memoryview(b"buffer"),
    "__index__": lambda self: 7,
    "__int__": lambda self: 8,
    "__float__": lambda self: 7.5,
    "__str__": lambda self: "text",
    "__bytes__": lambda self: b"bytes",
    "__bool__": lambda self: False,
    "__conform__": lambda self, protocol: "conformed",
}


def derived(base: type, **offers: object) -> object:
    """An object of a class derived from ``base`` that offers more."""
    made = type("Derived", (base,), offers)
    return made(BASES[base]) if base in BASES else made()


def failing_buffer(self: object, flags: int) -> memoryview:
    """A buffer that cannot be had."""
    raise KeyError("buffer")


def of_any_type() -> dict[str, object]:
    """Objects of every kind that might be bound, by a name."""
    zoo: dict[str, object] = {
        f"{base.__name__} with {name}": derived(base, **{name: offer})
        for base in [*BASES, object]
        for name, offer in OFFERS.items()
    }
    for base in [*BASES, object]:
        zoo[f"{base.__name__} derived"] = derived(base)
        zoo[f"{base.__name__} with a failing buffer"] = derived(base, __buffer__=failing_buffer)
    released = memoryview(b"released")
    released.release()
    closed = mmap.mmap(-1, 16)
    closed.close()
    zoo |= {
        "array of int": array.array("i", [1, 2]),
        "array of double": array.array("d", [1.5]),
        "memoryview": memoryview(b"abcdef"),
        "memoryview, empty": memoryview(b""),
        "memoryview, every other": memoryview(b"abcdef")[::2],
        "memoryview, backwards": memoryview(b"abcdef")[::-1],
        "memoryview, two dimensions": memoryview(b"abcdef").cast("B", [2, 3]),
        "memoryview, no dimension": memoryview(b"a").cast("B", []),
        "memoryview, released": released,
        "mmap": mmap.mmap(-1, 16),
        "mmap, closed": closed,
        "ctypes array": (ctypes.c_int * 2)(1, 2),
        "ctypes scalar": ctypes.c_int(1),
        "Decimal": decimal.Decimal("1.5"),
        "Fraction": fractions.Fraction(1, 2),
        "UUID": uuid.UUID(int=1),
        "path": pathlib.PurePosixPath("/a"),
        "date": datetime.date(2020, 1, 1),
        "datetime": datetime.datetime(2020, 1, 1),
        "time": datetime.time(1),
        "timedelta": datetime.timedelta(1),
        "Enum": enum.Enum("Plain", ["A"]).A,
        "StrEnum": enum.StrEnum("Text", ["A"]).A,
        "str and Enum": enum.Enum("Mixed", {"A": "a"}, type=str).A,
        "IntEnum": enum.IntEnum("Number", ["A"]).A,
        "IntFlag": enum.IntFlag("Flags", ["A", "B"]).B,
        "float and Enum": enum.Enum("Real", {"A": 2.5}, type=float).A,
        "bytes and Enum": enum.Enum("Raw", {"A": b"a"}, type=bytes).A,
        "None": None,
        "True": True,
        "Ellipsis": ...,
        "NotImplemented": NotImplemented,
        "complex": 1j,
        "range": range(3),
        "list": [1],
        "class": int,
        "too large": 2**63,
        "too large, derived": type("Large", (int,), {})(2**70),
        "smallest": -(2**63),
        "infinite": float("inf"),
        "not a number": float("nan"),
        "a lone surrogate": "\ud800",
        "a null character": "a\0b",
    }
    for name in [
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "longdouble", "complex64", "complex128",
    ]:  # fmt: skip
        zoo[f"numpy.{name}"] = getattr(numpy, name)(1)
    return zoo | {
        "numpy.str_": numpy.str_("é"),
        "numpy.bytes_": numpy.bytes_(b"a"),
        "numpy.void": numpy.void(b"ab"),
        "numpy.datetime64": numpy.datetime64("2020-01-01"),
        "numpy.timedelta64": numpy.timedelta64(1, "D"),
        "numpy.object_": numpy.array([object()]),
        "numpy array": numpy.arange(3),
        "numpy array, transposed": numpy.arange(6).reshape(2, 3).T,
        "numpy array, no dimension": numpy.array(1.5),
        "numpy record": numpy.zeros(1, dtype="i4,f8")[0],
        "pandas.NA": pandas.NA,
        "pandas.NaT": pandas.NaT,
        "pandas.Timestamp": pandas.Timestamp("2020-01-01"),
        "pandas.Timedelta": pandas.Timedelta(1),
        "pandas.Interval": pandas.Interval(1, 2),
        "pandas.Series": pandas.Series([1, 2]),
    }


ZOO = of_any_type()


def by_position(connection: sqlite3.Connection, value: object) -> object:
    return connection.execute("SELECT ?, typeof(?1)", (value,)).fetchone()


def by_name(connection: sqlite3.Connection, value: object) -> object:
    return connection.execute("SELECT :a, typeof(:a)", {"a": value}).fetchone()


def in_many_sets(connection: sqlite3.Connection, value: object) -> object:
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(value,), (value,)])
    return connection.execute("SELECT a, typeof(a) FROM t").fetchall()


def from_a_function(connection: sqlite3.Connection, value: object) -> object:
    connection.create_function("f", 0, lambda: value)
    return connection.execute("SELECT f(), typeof(f())").fetchone()


class Answering:
    """An aggregate whose result is always the same."""

    result: object = None

    def step(self, value: object) -> None:
        """Take a value."""

    inverse = step

    def value(self) -> object:
        """What it is so far."""
        return self.result

    finalize = value


def from_an_aggregate(connection: sqlite3.Connection, value: object) -> object:
    connection.create_aggregate("f", 1, type("Always", (Answering,), {"result": value}))
    return connection.execute("SELECT f(1), typeof(f(1))").fetchone()


def from_a_window_function(connection: sqlite3.Connection, value: object) -> object:
    connection.create_window_function("f", 1, type("Always", (Answering,), {"result": value}))
    sql = "WITH t(x) AS (VALUES (1), (2)) SELECT f(x) OVER (ORDER BY x) FROM t"
    return connection.execute(sql).fetchall()


WAYS = [
    by_position,
    by_name,
    in_many_sets,
    from_a_function,
    from_an_aggregate,
    from_a_window_function,
]


def outcome(module: ModuleType, way: Callable[[Any, object], object], value: object) -> str:
    """What comes of it, or the error with its class and text."""
    connection = module.connect(":memory:")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return repr(way(connection, value))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()


@pytest.mark.parametrize("name", ZOO)
def test_it_is_what_the_standard_library_makes_of_it(name: str) -> None:
    value = ZOO[name]
    for way in WAYS:
        expected = outcome(standard_library, way, value)
        assert outcome(sqlite3, way, value) == expected, way.__name__


def test_a_number_and_a_text_of_numpy_are_stored_as_such() -> None:
    assert outcome(sqlite3, by_position, numpy.float64(1.5)) == "(1.5, 'real')"
    assert outcome(sqlite3, by_position, numpy.str_("é")) == "('é', 'text')"
