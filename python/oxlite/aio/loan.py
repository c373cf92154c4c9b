"""A connection that is lent to a task, from the wish for it on.

Invariant: it is given back once, at the latest when nobody knows the loan any more.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable

from oxlite import sqlite3
from oxlite._native import Connections, Job
from oxlite.aio.connection import Connection
from oxlite.aio.loops import SerialExecutor

__all__ = ["Loan"]


class Loan:
    """See the module.

    Attributes:
        loop: The loop of the task that it was lent to.
    """

    def __init__(
        self,
        connections: Connections,
        job: Job,
        future: "Future[sqlite3.Connection]",
        keeps: Callable[[Connections], bool],
        take_back: Callable[[Connections, sqlite3.Connection], None],
    ) -> None:
        """Wait for a connection.

        Args:
            connections: Where it comes from.
            job: The wish for it.
            future: What it comes by.
            keeps: Whether those are still the lender's own: after a fork they are the parent's.
            take_back: Takes the connection back, in its own last turn.
        """
        self.loop = future.get_loop()
        self._connections = connections
        self._job = job
        # Until it is over.
        self._future: Future[sqlite3.Connection] | None = future
        self._keeps = keeps
        self._take_back = take_back
        self._connection: Connection | None = None

    def begin(self, driver: sqlite3.Connection) -> Connection:
        """The connection has come."""
        self._connection = connection = Connection._lent(driver)
        return connection

    def leave(self) -> None:
        """Give it back when what it still does is done: nobody waits, and no loop need run."""
        if way := self._over():
            executor, give_back, connections, driver = way
            executor.call_unheard(give_back, connections, driver)

    async def end(self) -> None:
        """Give it back, whoever waits for that."""
        if way := self._over():
            executor, give_back, connections, driver = way
            await asyncio.shield(executor.call_anyway(give_back, connections, driver))

    def _over(
        self,
    ) -> tuple[SerialExecutor, Callable[..., None], Connections, sqlite3.Connection] | None:
        """How it is given back, the first time; nothing can be done with the connection then."""
        future, self._future = self._future, None
        if future is None:
            return None
        connections, connection = self._connections, self._connection
        if not self._keeps(connections):
            return None  # forked meanwhile: it is the parent's
        if connection is None:
            self._job.cancel()
            if not future.done() or future.cancelled() or future.exception() is not None:
                return None
            return SerialExecutor(), self._take_back, connections, future.result()
        connection._end(
            "This connection was given back at the end of the block in which it was borrowed:"
            " borrow one again, with db.read() or db.write()."
        )
        return connection._executor, self._take_back, connections, future.result()

    def __del__(self) -> None:
        """For a block that was not left: its loop is no more, or its generator was dropped."""
        self.leave()
