"""How a ``Database`` opens its connections: readers, which cannot write, and the writer."""

import os
from collections.abc import Callable
from os import PathLike
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from oxlite import sqlite3
from oxlite.connection import ConnectOptions, connect, driver_connection, only_read
from oxlite.sqlite3 import Connection

__all__ = ["ConnectionFactory"]

_BATCH_LIMITS = {"group": 256, "each": 1, "shared": 256}


class _Made(NamedTuple):
    """What a connection was after its set-up."""

    row_factory: Any
    text_factory: Any
    isolation_level: Any


class ConnectionFactory:
    """Opens connections to one file that are all alike; any thread may use them.

    Attributes:
        path: The file.
        batch_limit: How many writes may be committed together.
        profile: The name of the connections' profile.
    """

    def __init__(
        self,
        path: str | bytes | PathLike[str] | PathLike[bytes],
        options: ConnectOptions,
        *,
        setup: Callable[[Connection], object] | None,
        row_factory: Callable[[sqlite3.Cursor, tuple[Any, ...]], object] | None,
        durable_commit: Literal["group", "each", "shared"],
    ) -> None:
        """Check what can be checked without opening.

        Args:
            path: As for ``Database``.
            options: Of ``oxlite.connect``, with a profile.
            setup: As for ``Database``.
            row_factory: See there.
            durable_commit: See there.

        Raises:
            ValueError: A database that is not in a file, or a choice that there is not.
        """
        name = os.fsdecode(path)
        if name in {"", ":memory:"}:
            raise ValueError(
                "a Database needs a file: a database in memory belongs to one connection"
                " (oxlite.connect(':memory:'))"
            )
        if durable_commit not in _BATCH_LIMITS:
            *most, last = map(repr, _BATCH_LIMITS)
            known = f"{', '.join(most)} or {last}"
            raise ValueError(f"durable_commit must be {known}, not {durable_commit!r}")
        # Wherever the process goes later; pathlib takes longer to import than all of oxlite.
        self.path = os.path.abspath(name)  # noqa: PTH100
        self._setup = setup
        self._row_factory = row_factory
        self._options: ConnectOptions = {
            **options,
            "durable_commit": "shared" if durable_commit == "shared" else "each",
            "isolation_level": None,
            "check_same_thread": False,
        }
        self._made: WeakKeyDictionary[Connection, _Made] = WeakKeyDictionary()
        self.batch_limit = _BATCH_LIMITS[durable_commit]
        self.profile = options["profile"]

    def writer(self) -> Connection:
        """Open a connection that writes. Raises as ``oxlite.connect`` and the set-up do."""
        return self._open(reads_only=False)

    def reader(self) -> Connection:
        """Open a connection that refuses to write. Raises likewise."""
        return self._open(reads_only=True)

    def restore(self, connection: Connection) -> None:
        """Make a connection again what it was after its set-up; it has no transaction.

        A borrower may have changed how rows and texts are made and how transactions begin. What is
        changed by SQL stays; a reader does not obey what would have it write, or keep a lock.
        """
        made = self._made[connection]
        if connection.row_factory is not made.row_factory:
            connection.row_factory = made.row_factory
        if connection.text_factory is not made.text_factory:
            connection.text_factory = made.text_factory
        if connection.isolation_level != made.isolation_level:
            connection.isolation_level = made.isolation_level

    def _open(self, reads_only: bool) -> Connection:
        connection = driver_connection(connect(self.path, **self._options))
        if self._row_factory is not None:
            connection.row_factory = self._row_factory
        self._set_up(connection)
        if reads_only:
            only_read(connection)
        self._made[connection] = _Made(
            connection.row_factory,
            connection.text_factory,
            connection.isolation_level,
        )
        return connection

    def _set_up(self, connection: Connection) -> None:
        if self._setup is None:
            return
        try:
            self._setup(connection)
            if connection.autocommit != sqlite3.LEGACY_TRANSACTION_CONTROL:
                raise sqlite3.ProgrammingError(
                    "setup has changed autocommit: a Database begins and ends its transactions"
                    " itself; take a connection of your own where you want to"
                )
            if connection.in_transaction:
                connection.commit()
        except BaseException:
            connection.close()
            raise
