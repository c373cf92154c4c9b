"""Pools that say who has their connections.

``QueuePool`` and ``AsyncQueuePool`` are SQLAlchemy's, and remember for each connection that is lent
who has it and since when: a pool that is exhausted names them, and ``status()`` shows them. In a
forked child they begin empty: what they held belongs to the parent.

``OneThreadPool`` holds a database in memory, which is one connection.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from sqlalchemy import exc
from sqlalchemy import pool as stock
from sqlalchemy.pool import ConnectionPoolEntry

__all__ = ["AsyncQueuePool", "Holder", "OneThreadPool", "QueuePool"]


class Holder(NamedTuple):
    """Who has a connection.

    Attributes:
        name: The name of its thread, or of its asyncio task.
        kind: ``"thread"`` or ``"task"``.
        since: When it got it, in seconds of ``time.monotonic()``.
    """

    name: str
    kind: str
    since: float

    def __str__(self) -> str:
        """As messages have it: ``thread 'MainThread' for 1.2 s``."""
        return f"{self.kind} {self.name!r} for {time.monotonic() - self.since:.1f} s"


if TYPE_CHECKING:
    _Base = stock.QueuePool
else:
    _Base = object

_pools: "WeakSet[_NamesHolders]" = WeakSet()


class _NamesHolders(_Base):
    """What both forms of the pool add to SQLAlchemy's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Who has which connection, since when; names are looked up when they are asked for.
        self._lent: dict[ConnectionPoolEntry, tuple[threading.Thread | asyncio.Task[Any], float]]
        self._lent = {}
        self._waiting = 0
        self._waits = 0
        self._longest_wait = 0.0
        _pools.add(self)

    def holders(self) -> list[Holder]:
        """Who has connections now, the longest first."""
        holders = [
            Holder(
                who.name if isinstance(who, threading.Thread) else who.get_name(),
                "thread" if isinstance(who, threading.Thread) else "task",
                since,
            )
            for who, since in self._lent.copy().values()
        ]
        return sorted(holders, key=lambda holder: holder.since)

    def status(self) -> str:
        """The sizes of the pool, who waits and has waited, and who has its connections."""
        holders = ", ".join(map(str, self.holders())) or "nobody"
        return (
            f"{super().status()} Waiting: {self._waiting} Waits: {self._waits}"
            f" Longest wait: {self._longest_wait:.3f} s Held by: {holders}"
        )

    def _do_get(self) -> ConnectionPoolEntry:
        since = time.monotonic()
        # Whether one has to wait, as far as can be told without a lock.
        waits = self._overflow >= self._max_overflow > -1 and self.checkedin() == 0
        if waits:
            self._waiting += 1
        try:
            entry = super()._do_get()
        except exc.TimeoutError as error:
            holders = ", ".join(map(str, self.holders())) or "nobody any more"
            raise exc.TimeoutError(f"{error.args[0]}; held by {holders}", code="3o7r") from None
        finally:
            if waits:
                since = self._waited(since)
        self._lent[entry] = self._caller(), since
        return entry

    def _waited(self, since: float) -> float:
        """Count a wait that is over; returns now."""
        now = time.monotonic()
        self._waiting -= 1
        self._waits += 1
        self._longest_wait = max(self._longest_wait, now - since)
        return now

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        # One that is lent out across a fork is not taken back: it is the parent's.
        if self._lent.pop(record, None) is not None:
            super()._do_return_conn(record)

    _caller: "Callable[[], threading.Thread | asyncio.Task[Any]]"
    """Who asks for a connection."""

    def _begin_anew(self) -> None:
        """Forget everything that was inherited, without touching it."""
        self.__dict__.update(self.recreate().__dict__)


class QueuePool(_NamesHolders, stock.QueuePool):
    """SQLAlchemy's ``QueuePool``, with the names of those who have its connections.

    Source: https://docs.sqlalchemy.org/en/20/core/pooling.html#sqlalchemy.pool.QueuePool
    """

    _caller = staticmethod(threading.current_thread)


class AsyncQueuePool(_NamesHolders, stock.AsyncAdaptedQueuePool):
    """SQLAlchemy's ``AsyncAdaptedQueuePool``, with the tasks that have its connections.

    Source:
        https://docs.sqlalchemy.org/en/20/core/pooling.html#sqlalchemy.pool.AsyncAdaptedQueuePool
    """

    @staticmethod
    def _caller() -> "threading.Thread | asyncio.Task[Any]":
        try:
            return asyncio.current_task() or threading.current_thread()
        except RuntimeError:  # no loop runs in this thread
            return threading.current_thread()


class OneThreadPool(stock.SingletonThreadPool):
    """A database in memory: one connection, for the thread that was first to ask.

    SQLAlchemy's ``SingletonThreadPool`` would open another, empty database for every other thread.

    Source: https://docs.sqlalchemy.org/en/20/dialects/sqlite.html#threading-pooling-behavior
    """

    _owner: threading.Thread | None = None

    def _do_get(self) -> ConnectionPoolEntry:
        current = threading.current_thread()
        if self._owner is None:
            self._owner = current
        elif self._owner is not current:
            raise exc.InvalidRequestError(
                f"This database in memory belongs to thread {self._owner.name!r}, which was first"
                f" to connect; thread {current.name!r} would get an empty one of its own,"
                " or with cache=shared be refused while the other writes. Use a file, or one"
                " connection for all threads: create_engine(…, poolclass=StaticPool,"
                ' connect_args={"check_same_thread": False}).'
            )
        return super()._do_get()


def _begin_anew() -> None:
    for pool in list(_pools):
        pool._begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
