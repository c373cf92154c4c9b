"""Adapters and converters: objects of other types as parameters and in rows.

Invariant: where a function of Python's has to be called it is the same for all
drivers and small, so that what is measured is the way to it.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from oxlite.bench.workloads.driver.bodies import fetches, rolled_back
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import ApswPeer, Handle, Library, Peer

CONVERSIONS = Operations()

FETCHED = 1_000
TYPE = "oxlite_bench_number"
DIGITS = [(f"{n}",) for n in range(FETCHED)]
NUMBERS = [(n,) for n in range(FETCHED)]
BEGINNING = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)


@dataclass(slots=True)
class Point:
    """An object for a registered adapter."""

    x: int
    y: int


class Itself(Point):
    """An object that adapts itself: by ``__conform__``, and as apsw's convention has it."""

    __slots__ = ()

    def __conform__(self, _protocol: object) -> str:
        """What to bind."""
        return adapted(self)

    def to_sqlite_value(self) -> str:
        """What to bind."""
        return adapted(self)


def adapted(point: Point) -> str:
    """A point as text."""
    return f"{point.x};{point.y}"


def _apsw_types() -> Handle:
    """The way of apsw, which is written in Python."""
    from apsw import ext

    ext.SQLiteTypeAdapter.register(Itself)
    return ext.TypesConverterCursorFactory()


def _in(connection: Handle, values: list[Any], texts: list[str]) -> Batch:
    """Inserting ``values``, which are stored as ``texts``."""
    rows = [(value,) for value in values]
    return rolled_back(
        connection,
        lambda: connection.executemany("INSERT INTO t VALUES(?)", rows),
        (len(texts), min(texts), max(texts)),
        "SELECT count(*), min(a), max(a) FROM t",
    )


def _points(kind: type[Point], connection: Handle, count: int) -> Batch:
    points = [kind(n, n + 1) for n in range(count)]
    return _in(connection, points, [adapted(point) for point in points])


@CONVERSIONS.operation("adapter of a registered class, a row", 12_000)
def registered(peer: Peer, count: int) -> Batch:
    """``register_adapter``; apsw's ``convert_binding``."""
    connection = peer.table("a TEXT", ())
    if isinstance(peer, ApswPeer):
        connection.convert_binding = lambda _cursor, _number, point: adapted(point)
    else:
        peer.standard("adapters", "register_adapter").register_adapter(Point, adapted)
    return _points(Point, connection, count)


@CONVERSIONS.operation("__conform__, a row", 8_000)
def conform(peer: Peer, count: int) -> Batch:
    """For apsw, ``to_sqlite_value``."""
    connection = peer.table("a TEXT", ())
    if isinstance(peer, ApswPeer):
        connection.cursor_factory = _apsw_types()
    else:
        peer.standard("adapters", "PrepareProtocol")
    return _points(Itself, connection, count)


def _converted(peer: Peer, mode: str, definition: str) -> Handle:
    """Digits, which a connection that detects types in that mode makes numbers of."""
    library = peer.standard(mode, mode, "register_converter")
    connection = peer.table(definition, DIGITS, detect_types=getattr(library, mode))
    library.register_converter(TYPE, int)
    return connection


@CONVERSIONS.operation("converter by PARSE_DECLTYPES, 1,000 rows", 30)
def declared(peer: Peer, count: int) -> Batch:
    """A text of digits to ``int``; apsw's ``TypesConverterCursorFactory``."""
    if isinstance(peer, ApswPeer):
        connection, factory = peer.table(f"a {TYPE}", DIGITS), _apsw_types()
        factory.register_converter(TYPE, int)
        connection.cursor_factory = factory
    else:
        connection = _converted(peer, "PARSE_DECLTYPES", f"a {TYPE}")
    return Batch(fetches(connection, "SELECT a FROM t", count), NUMBERS)


@CONVERSIONS.operation("converter by PARSE_COLNAMES, 1,000 rows", 30)
def named(peer: Peer, count: int) -> Batch:
    """The type in the column's name."""
    connection = _converted(peer, "PARSE_COLNAMES", "a TEXT")
    return Batch(fetches(connection, f'SELECT a AS "a [{TYPE}]" FROM t', count), NUMBERS)


def _defaults(peer: Peer) -> Library:
    names = ("register_adapter", "register_converter", "PARSE_DECLTYPES")
    return peer.standard("default adapters and converters", *names)


def _day(number: int) -> datetime.date:
    return BEGINNING.date() + datetime.timedelta(days=number)


def _moment(number: int) -> datetime.datetime:
    return BEGINNING + datetime.timedelta(minutes=number)


def _default_in(value: Callable[[int], Any], peer: Peer, count: int) -> Batch:
    _defaults(peer)
    values = [value(n) for n in range(count)]
    return _in(peer.table("a TEXT", ()), values, [f"{each}" for each in values])


def _default_out(kind: str, value: Callable[[int], Any], peer: Peer, count: int) -> Batch:
    library = _defaults(peer)
    values = [value(n) for n in range(FETCHED)]
    rows = [(f"{each}",) for each in values]
    connection = peer.table(f"a {kind}", rows, detect_types=library.PARSE_DECLTYPES)
    return Batch(fetches(connection, "SELECT a FROM t", count), [(each,) for each in values])


CONVERSIONS.operation("date in (default adapter), a row", 8_000)(partial(_default_in, _day))
CONVERSIONS.operation("datetime in (default adapter), a row", 8_000)(partial(_default_in, _moment))
CONVERSIONS.operation("date out (default converter), 1,000 rows", 10)(
    partial(_default_out, "date", _day)
)
CONVERSIONS.operation("datetime out (default converter), 1,000 rows", 8)(
    partial(_default_out, "timestamp", _moment)
)
