"""The readers of a ``Database`` for threads: connections to lend, opened when first needed."""

import time
from collections.abc import Callable
from contextlib import suppress

from oxlite import sqlite3
from oxlite._native import Loan, Pool, wait_at_most
from oxlite.sqlite3 import Connection

__all__ = ["Readers"]


class Readers:
    """See the module."""

    def __init__(self, count: int, open_one: Callable[[], Connection]) -> None:
        self._open_one = open_one
        self._pool = Pool(count)

    def take(self, loan: Loan, timeout: float) -> Connection | None:
        """Borrow a connection; ``None`` if none came back in time."""
        waited = self._pool.take(loan, timeout)
        if waited is None:
            return None
        connection = loan.connection
        if connection is None:
            began = time.monotonic()
            loan.connection = connection = self._open_one()
            waited += time.monotonic() - began
        if waited:
            # What is left of the call's time.
            wait_at_most(connection, timeout - waited)
        return connection

    def lends_all_to_this_thread(self) -> bool:
        """Whether this thread has borrowed all of them."""
        return self._pool.lends_all_to_this_thread()

    def holders(self) -> list[tuple[int, float]]:
        """The threads that have one, and for how many seconds."""
        return self._pool.holders()

    def refuse(self) -> None:
        """Close those that are idle; who waits, and who comes from now on, is refused."""
        for connection in self._pool.close():
            connection.close()

    def wait_for_all(self, timeout: float) -> bool:
        """Wait for those still lent, interrupting them when time is up; tell whether all came."""
        if self._pool.wait_for_all(timeout):
            return True
        for connection in self._pool.lent():
            with suppress(sqlite3.Error):
                connection.interrupt()
        # An interrupted statement ends at once; a thread that only holds its connection does not.
        return self._pool.wait_for_all(1.0)

    def statistics(self) -> tuple[int, int, int]:
        """How many are idle and lent, and how many threads wait."""
        return self._pool.statistics()
