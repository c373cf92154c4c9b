"""Where the drivers differ: one way to ask each for what every operation needs.

The standard library's ``sqlite3`` and ``oxlite.sqlite3`` are one interface, so
one class serves both and neither is favoured; apsw's has other names.

Invariants: what a driver lacks is an :class:`UnavailableError` that says so,
raised while an operation is prepared; nothing here stands between the timed
code and the driver, which is given the driver's own objects.
"""

import importlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from oxlite.bench.errors import UsageError

Handle = Any
"""A connection or blob of a driver."""

Library = Any
"""The module of a driver."""

Call = Any
"""Something of a driver's that is called: timed code calls it without a layer between."""

STANDARD_LIBRARIES = {"stdlib": "sqlite3", "oxlite": "oxlite.sqlite3"}
TRACE_STATEMENTS = 1  # SQLITE_TRACE_STMT


class UnavailableError(Exception):
    """The driver has no equivalent of an operation; the message says what is missing."""


class Peer(ABC):
    """One driver, with the connections that its operations opened.

    Attributes:
        path: the database file, which is open on ``file``.
        file: the connection with the scenario's settings.
        library: the driver's module.
    """

    def __init__(self, library: Library, path: Path, file: Handle, seed: int) -> None:
        self.library = library
        self.path = path
        self.file = file
        self._seed = seed
        self._stack = ExitStack()

    def numbers(self, purpose: str, count: int, below: int) -> list[int]:
        """``count`` random numbers, the same for every driver."""
        source = random.Random(f"{self._seed}:driver:{purpose}")
        return [int(source.random() * below) for _ in range(count)]

    def close(self) -> None:
        """Close what :meth:`keep` keeps, the last first."""
        self._stack.close()

    def keep(self, handle: Handle) -> Handle:
        """Close ``handle`` at the end."""
        self._stack.callback(handle.close)
        return handle

    def memory(self, *setup: str, **options: object) -> Handle:
        """A database in memory, in autocommit mode, after the statements ``setup``."""
        connection = self.keep(self.connect(":memory:", **options))
        for statement in setup:
            connection.execute(statement)
        return connection

    def table(self, definition: str, rows: Iterable[Sequence[object]], **options: object) -> Handle:
        """A database in memory with the table ``t`` of these columns and rows."""
        connection = self.memory(f"CREATE TABLE t({definition})", **options)
        marks = ",".join("?" for _ in definition.split(","))
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO t VALUES({marks})", rows)
        connection.execute("COMMIT")
        return connection

    @property
    @abstractmethod
    def connector(self) -> Call:
        """What a program calls to connect."""

    @abstractmethod
    def connect(self, name: str, **options: object) -> Handle:
        """A new connection in autocommit mode; ``options`` are the standard library's."""

    @abstractmethod
    def committer(self, connection: Handle) -> Call:
        """What commits."""

    @abstractmethod
    def create_function(
        self, connection: Handle, name: str, arguments: int, function: Callable[..., object]
    ) -> None:
        """Register a scalar function."""

    @abstractmethod
    def create_aggregate(
        self, connection: Handle, name: str, arguments: int, aggregate: type
    ) -> None:
        """Register an aggregate function."""

    @abstractmethod
    def create_window_function(
        self, connection: Handle, name: str, arguments: int, aggregate: type
    ) -> None:
        """Register a window function."""

    @abstractmethod
    def set_trace_callback(self, connection: Handle, callback: Callable[[Any], object]) -> None:
        """Have every statement reported."""

    @abstractmethod
    def set_row_factory(
        self, connection: Handle, factory: Callable[[Any, tuple[Any, ...]], object]
    ) -> None:
        """Have rows made by a Python function of cursor and tuple."""

    @abstractmethod
    def blob(self, connection: Handle, table: str, column: str, row: int) -> Handle:
        """An open blob that can be written to."""

    @abstractmethod
    def backup(self, source: Handle, target: Handle) -> Call:
        """What copies all of ``source`` into ``target`` in one step."""

    @abstractmethod
    def deserializer(self, connection: Handle) -> Call:
        """What replaces the database by the one in the bytes."""

    @abstractmethod
    def serializer(self, connection: Handle) -> Call:
        """What gives the database as bytes."""

    @abstractmethod
    def script(self, connection: Handle) -> Call:
        """What runs a script."""

    @abstractmethod
    def standard(self, feature: str, *names: str) -> Library:
        """The module, where it has ``names``, which only the standard library defines.

        Raises:
            UnavailableError: it has not.
        """


class StandardPeer(Peer):
    """The standard library's interface: its own, and Oxlite's drop-in."""

    @property
    def connector(self) -> Call:
        """See the base class."""
        return self.library.connect

    def connect(self, name: str, **options: object) -> Handle:
        """See the base class."""
        try:
            return self.library.connect(name, **{"isolation_level": None, **options})
        except self.library.NotSupportedError as error:
            raise UnavailableError(f"{error}") from None

    def committer(self, connection: Handle) -> Call:
        """See the base class."""
        return connection.commit

    def create_function(
        self, connection: Handle, name: str, arguments: int, function: Callable[..., object]
    ) -> None:
        """See the base class."""
        connection.create_function(name, arguments, function)

    def create_aggregate(
        self, connection: Handle, name: str, arguments: int, aggregate: type
    ) -> None:
        """See the base class."""
        connection.create_aggregate(name, arguments, aggregate)

    def create_window_function(
        self, connection: Handle, name: str, arguments: int, aggregate: type
    ) -> None:
        """See the base class."""
        connection.create_window_function(name, arguments, aggregate)

    def set_trace_callback(self, connection: Handle, callback: Callable[[Any], object]) -> None:
        """See the base class."""
        connection.set_trace_callback(callback)

    def set_row_factory(
        self, connection: Handle, factory: Callable[[Any, tuple[Any, ...]], object]
    ) -> None:
        """See the base class."""
        connection.row_factory = factory

    def blob(self, connection: Handle, table: str, column: str, row: int) -> Handle:
        """See the base class."""
        return connection.blobopen(table, column, row)

    def backup(self, source: Handle, target: Handle) -> Call:
        """See the base class."""
        return partial(source.backup, target)

    def deserializer(self, connection: Handle) -> Call:
        """See the base class."""
        return connection.deserialize

    def serializer(self, connection: Handle) -> Call:
        """See the base class."""
        return connection.serialize

    def script(self, connection: Handle) -> Call:
        """See the base class."""
        return connection.executescript

    def standard(self, feature: str, *names: str) -> Library:
        """See the base class."""
        holders = (self.library, self.library.Connection, self.library.Cursor)
        lacking = [name for name in names if not any(hasattr(held, name) for held in holders)]
        if lacking:
            raise UnavailableError(f"{self.library.__name__} has no {', '.join(lacking)}")
        return self.library


class ApswPeer(Peer):
    """apsw, where it has an equivalent."""

    @property
    def connector(self) -> Call:
        """See the base class."""
        return self.library.Connection

    def connect(self, name: str, **options: object) -> Handle:
        """See the base class."""
        if options:
            raise UnavailableError(f"apsw has no {', '.join(options)}")
        return self.library.Connection(name)

    def committer(self, connection: Handle) -> Call:
        """See the base class."""
        return partial(connection.execute, "COMMIT")

    def create_function(
        self, connection: Handle, name: str, arguments: int, function: Callable[..., object]
    ) -> None:
        """See the base class."""
        connection.create_scalar_function(name, function, arguments)

    def create_aggregate(
        self, connection: Handle, name: str, arguments: int, aggregate: type
    ) -> None:
        """See the base class."""
        connection.create_aggregate_function(name, aggregate, arguments)

    def create_window_function(
        self, connection: Handle, name: str, arguments: int, aggregate: type
    ) -> None:
        """See the base class."""
        connection.create_window_function(name, aggregate, arguments)

    def set_trace_callback(self, connection: Handle, callback: Callable[[Any], object]) -> None:
        """See the base class."""
        connection.trace_v2(TRACE_STATEMENTS, callback)

    def set_row_factory(
        self, connection: Handle, factory: Callable[[Any, tuple[Any, ...]], object]
    ) -> None:
        """See the base class."""
        connection.row_trace = factory

    def blob(self, connection: Handle, table: str, column: str, row: int) -> Handle:
        """See the base class."""
        return connection.blob_open("main", table, column, row, True)

    def backup(self, source: Handle, target: Handle) -> Call:
        """See the base class."""

        def backup() -> None:
            with target.backup("main", source, "main") as copying:
                copying.step(-1)

        return backup

    def deserializer(self, connection: Handle) -> Call:
        """See the base class."""
        return partial(connection.deserialize, "main")

    def serializer(self, connection: Handle) -> Call:
        """See the base class."""
        return partial(connection.serialize, "main")

    def script(self, connection: Handle) -> Call:
        """See the base class."""
        return connection.execute

    def standard(self, feature: str, *names: str) -> Library:
        """See the base class."""
        raise UnavailableError(f"apsw has no {feature}")


def peer(driver: str, path: Path, file: Handle, seed: int) -> Peer:
    """The peer of a registered driver.

    Raises:
        UsageError: nobody has said yet how its operations are done.
    """
    if driver == "apsw":
        return ApswPeer(importlib.import_module("apsw"), path, file, seed)
    if driver not in STANDARD_LIBRARIES:
        raise UsageError(f"the workload driver does not know the driver {driver!r}")
    return StandardPeer(importlib.import_module(STANDARD_LIBRARIES[driver]), path, file, seed)
