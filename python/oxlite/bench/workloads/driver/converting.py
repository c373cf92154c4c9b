"""Adapters and converters: objects of other types as parameters and in rows.

Invariant: where a function of Python's has to be called it is the same for all
drivers and small, so that what is measured is the way to it.
"""

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import ApswPeer, Handle, Library, Peer
from oxlite.bench.workloads.driver.writing import undone

CONVERTING = Operations()

FETCHED = 1_000
TYPE = "oxlite_bench_number"
DEFAULTS = "default adapters and converters"
BEGINNING = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)


class Point:
    """An object for a registered adapter."""

    __slots__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


class Itself(Point):
    """An object that adapts itself: by ``__conform__``, and as apsw's convention has it."""

    __slots__ = ()

    def __conform__(self, _protocol: object) -> str:
        """What to bind."""
        return adapted(self)

    def to_sqlite_value(self) -> str:
        """What to bind."""
        return adapted(self)


class _Adapting(ABC):
    """What apsw looks for in objects that adapt themselves."""

    @abstractmethod
    def to_sqlite_value(self) -> str:
        """What to bind."""


_Adapting.register(Itself)


def adapted(point: Point) -> str:
    """A point as text."""
    return f"{point.x};{point.y}"


def _apsw_types(peer: Peer) -> Handle:
    """The way of apsw, which is written in Python."""
    from apsw import ext

    return ext.TypesConverterCursorFactory(_Adapting)


def _in(peer: Peer, connection: Handle, rows: list[tuple[Any, ...]], expected: object) -> Batch:
    marks = ",".join("?" for _ in rows[0])
    return Batch(
        lambda: connection.executemany(f"INSERT INTO t VALUES({marks})", rows),
        expected,
        lambda: connection.execute("BEGIN"),
        undone(connection, "SELECT count(*), min(a), max(a) FROM t"),
    )


def _out(connection: Handle, count: int, sql: str, expected: list[Any]) -> Batch:
    def run() -> list[Any]:
        fetched = []
        for _ in range(count):
            fetched = connection.execute(sql).fetchall()
        return fetched

    return Batch(run, expected)


def _points_in(peer: Peer, connection: Handle, count: int, kind: type[Point]) -> Batch:
    texts = [f"{n};{n + 1}" for n in range(count)]
    rows = [(kind(n, n + 1),) for n in range(count)]
    return _in(peer, connection, rows, (count, min(texts), max(texts)))


@CONVERTING.operation("adapter of a registered class, a row", 12_000)
def registered(peer: Peer, count: int) -> Batch:
    """``register_adapter``; apsw's ``convert_binding``."""
    connection = peer.table("a TEXT", ())
    if isinstance(peer, ApswPeer):
        connection.convert_binding = lambda _cursor, _number, point: adapted(point)
    else:
        peer.standard("adapters", "register_adapter").register_adapter(Point, adapted)
    return _points_in(peer, connection, count, Point)


@CONVERTING.operation("__conform__, a row", 8_000)
def conform(peer: Peer, count: int) -> Batch:
    """For apsw, ``to_sqlite_value``."""
    connection = peer.table("a TEXT", ())
    if isinstance(peer, ApswPeer):
        connection.cursor_factory = _apsw_types(peer)
    else:
        peer.standard("adapters", "PrepareProtocol")
    return _points_in(peer, connection, count, Itself)


def _converting(peer: Peer, mode: str, definition: str, rows: list[tuple[Any, ...]]) -> Handle:
    library = peer.standard(f"{mode}", mode, "register_converter")
    return peer.table(definition, rows, detect_types=getattr(library, mode))


@CONVERTING.operation("converter by PARSE_DECLTYPES, 1,000 rows", 30)
def declared(peer: Peer, count: int) -> Batch:
    """A text of digits to ``int``; apsw's ``TypesConverterCursorFactory``."""
    rows = [(f"{n}",) for n in range(FETCHED)]
    if isinstance(peer, ApswPeer):
        connection = peer.table(f"a {TYPE}", rows)
        factory = _apsw_types(peer)
        factory.register_converter(TYPE, int)
        connection.cursor_factory = factory
    else:
        connection = _converting(peer, "PARSE_DECLTYPES", f"a {TYPE}", rows)
        peer.library.register_converter(TYPE, int)
    return _out(connection, count, "SELECT a FROM t", [(n,) for n in range(FETCHED)])


@CONVERTING.operation("converter by PARSE_COLNAMES, 1,000 rows", 30)
def named(peer: Peer, count: int) -> Batch:
    """The type in the column's name."""
    connection = _converting(peer, "PARSE_COLNAMES", "a TEXT", [(f"{n}",) for n in range(FETCHED)])
    peer.library.register_converter(TYPE, int)
    sql = f'SELECT a AS "a [{TYPE}]" FROM t'
    return _out(connection, count, sql, [(n,) for n in range(FETCHED)])


def _times(count: int) -> list[datetime.datetime]:
    return [BEGINNING + datetime.timedelta(minutes=n) for n in range(count)]


def _defaults(peer: Peer) -> Library:
    return peer.standard(DEFAULTS, "register_adapter", "register_converter", "PARSE_DECLTYPES")


def _two(change: Callable[[Any], Any], values: list[Any]) -> tuple[Any, Any]:
    return change(min(values)), change(max(values))


@CONVERTING.operation("date in (default adapter), a row", 8_000)
def date_in(peer: Peer, count: int) -> Batch:
    """A date as text."""
    _defaults(peer)
    days = [BEGINNING.date() + datetime.timedelta(days=n) for n in range(count)]
    expected = (count, *_two(datetime.date.isoformat, days))
    return _in(peer, peer.table("a TEXT", ()), [(day,) for day in days], expected)


@CONVERTING.operation("datetime in (default adapter), a row", 8_000)
def datetime_in(peer: Peer, count: int) -> Batch:
    """A date and time as text."""
    _defaults(peer)
    times = _times(count)
    expected = (count, *_two(lambda moment: moment.isoformat(" "), times))
    return _in(peer, peer.table("a TEXT", ()), [(moment,) for moment in times], expected)


@CONVERTING.operation("date out (default converter), 1,000 rows", 10)
def date_out(peer: Peer, count: int) -> Batch:
    """A column declared ``date``."""
    library = _defaults(peer)
    days = [BEGINNING.date() + datetime.timedelta(days=n) for n in range(FETCHED)]
    rows = [(day.isoformat(),) for day in days]
    connection = peer.table("a date", rows, detect_types=library.PARSE_DECLTYPES)
    return _out(connection, count, "SELECT a FROM t", [(day,) for day in days])


@CONVERTING.operation("datetime out (default converter), 1,000 rows", 8)
def datetime_out(peer: Peer, count: int) -> Batch:
    """A column declared ``timestamp``."""
    library = _defaults(peer)
    times = _times(FETCHED)
    rows = [(moment.isoformat(" "),) for moment in times]
    connection = peer.table("a timestamp", rows, detect_types=library.PARSE_DECLTYPES)
    return _out(connection, count, "SELECT a FROM t", [(moment,) for moment in times])
