"""Where the drivers differ: one way to ask each for what every operation needs.

The standard library's ``sqlite3`` and ``oxlite.sqlite3`` are one interface, so one class serves
both and neither is favoured; :class:`ApswPeer` says what has another name or shape in apsw.

Invariants: what a driver lacks is an :class:`UnavailableError` that says so, raised while an
operation is prepared; nothing here stands between the timed code and the driver, which is given
the driver's own objects.
"""

import importlib
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import oxlite
from oxlite import sqlite3
from oxlite.bench.errors import UsageError, VerificationError

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


class Peer:
    """One driver and the connections that its operations opened; the standard library's interface.

    Attributes:
        row_factory: the attribute of a connection that makes rows, given cursor and tuple.
        path: the database file, which is open on ``file``.
        file: the connection with the scenario's settings.
        library: the driver's module.
    """

    row_factory: ClassVar[str] = "row_factory"

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
        connection = self.memory(f"CREATE TABLE t({definition})", "BEGIN", **options)
        marks = ",".join("?" for _ in definition.split(","))
        connection.executemany(f"INSERT INTO t VALUES({marks})", rows)
        connection.execute("COMMIT")
        return connection

    @property
    def connector(self) -> Call:
        """What a program calls to connect."""
        return self.library.connect

    @property
    def production_connector(self) -> Call:
        """What a program calls to connect with the settings of ``oxlite.connect``, all read back.

        A driver without profiles sets each pragma by a statement, and reads it by another.
        """
        if self.library is sqlite3:
            return oxlite.connect
        with closing(oxlite.connect(self.path)) as reference:
            settings = [
                (
                    f"PRAGMA {name} = {value}",
                    f"PRAGMA {name}",
                    reference.execute(f"PRAGMA {name}").fetchone()[0],
                )
                for name, value in oxlite.profiles()["web"].items()
            ]
        connect = self.connector

        def connect_and_set(name: str) -> Handle:
            connection = connect(name)
            execute = connection.execute
            for command, query, expected in settings:
                execute(command).fetchall()
                if execute(query).fetchone()[0] != expected:
                    raise VerificationError(f"{command} did not take effect")
            return connection

        return connect_and_set

    def connect(self, name: str, **options: object) -> Handle:
        """A new connection in autocommit mode; ``options`` are the standard library's.

        Raises:
            UnavailableError: the driver has no such option.
        """
        try:
            return self.library.connect(name, **{"isolation_level": None, **options})
        except self.library.NotSupportedError as error:
            raise UnavailableError(f"{error}") from None

    def method(self, connection: Handle, name: str) -> Call:
        """What takes the arguments of the method ``name`` of the standard library's connections."""
        return getattr(connection, name)

    def blob(self, connection: Handle, table: str, column: str, row: int) -> Handle:
        """An open blob that can be written to."""
        return connection.blobopen(table, column, row)

    def backup(self, source: Handle, target: Handle) -> Call:
        """What copies all of ``source`` into ``target`` in one step."""
        return partial(source.backup, target)

    def standard(self, feature: str, *names: str) -> Library:
        """The module, where it has ``names``, which only the standard library defines.

        Raises:
            UnavailableError: it has not; ``feature`` says what that is.
        """
        holders = (self.library, self.library.Connection, self.library.Cursor)
        lacking = [name for name in names if not any(hasattr(held, name) for held in holders)]
        if lacking:
            raise UnavailableError(f"{self.library.__name__} has no {', '.join(lacking)}")
        return self.library


class ApswPeer(Peer):
    """apsw, where it has an equivalent."""

    row_factory = "row_trace"

    @property
    def connector(self) -> Call:
        """Its connections are made by their class."""
        return self.library.Connection

    def connect(self, name: str, **options: object) -> Handle:
        """Always in autocommit mode."""
        if options:
            raise UnavailableError(f"apsw has no {', '.join(options)}")
        return self.library.Connection(name)

    def method(self, connection: Handle, name: str) -> Call:
        """Functions come before their number of arguments, and a schema is always named."""

        def registering(own: str) -> Callable[[str, int, Call], object]:
            register = getattr(connection, own)
            return lambda name, arguments, function: register(name, function, arguments)

        match name:
            case "commit":
                return partial(connection.execute, "COMMIT")
            case "executescript":
                return connection.execute
            case "serialize" | "deserialize":
                return partial(getattr(connection, name), "main")
            case "set_trace_callback":
                return partial(connection.trace_v2, TRACE_STATEMENTS)
            case "create_function":
                return registering("create_scalar_function")
            case "create_aggregate":
                return registering("create_aggregate_function")
        return registering(name)

    def blob(self, connection: Handle, table: str, column: str, row: int) -> Handle:
        """In the schema ``main``."""
        return connection.blob_open("main", table, column, row, True)

    def backup(self, source: Handle, target: Handle) -> Call:
        """An object that is stepped."""

        def backup() -> None:
            with target.backup("main", source, "main") as copying:
                copying.step(-1)

        return backup

    def standard(self, feature: str, *names: str) -> Library:
        """It has none of the names."""
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
    return Peer(importlib.import_module(STANDARD_LIBRARIES[driver]), path, file, seed)
