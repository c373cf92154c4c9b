"""Statistics for SQLite's query planner, kept fresh at idle moments: ``PRAGMA optimize``.

It analyses those tables that have grown or shrunk much since they were last analysed, and looks at
a limited number of rows of each (https://sqlite.org/lang_analyze.html#req).

Invariants:
- It happens after a write, at the end of a connection or after an hour, and otherwise not.
- It takes no longer than its time limit, and its failures are ignored.
"""

import time
from contextlib import suppress

from oxlite.sqlite3 import Connection

__all__ = ["PlannerStatistics"]

# Analyse (2), with a limited number of rows (0x10), and look at all tables (0x10000): the queries
# have run on other connections, so this one cannot know which tables they used.
_OPTIMIZE = "PRAGMA main.optimize = 0x10012"

_EVERY_SECONDS = 3600.0
_AT_MOST_SECONDS = 0.5

# The clock is looked at after so many writes.
_LOOK_EVERY = 256


class PlannerStatistics:
    """Keeps them fresh by the connection that writes to it."""

    def __init__(self) -> None:
        self._changes = 0
        self._latest = time.monotonic()
        self._until_look = _LOOK_EVERY

    def is_due(self) -> bool:
        """Whether it is time, for a process that runs for long: asked after each write."""
        self._until_look -= 1
        # Threads may take it below nought.
        if self._until_look > 0:
            return False
        self._until_look = _LOOK_EVERY
        return time.monotonic() - self._latest >= _EVERY_SECONDS

    def optimize(self, connection: Connection) -> None:
        """Have the statistics looked at, if the connection has written since the last time."""
        with suppress(Exception):
            self._latest = time.monotonic()
            if connection.in_transaction or connection.total_changes == self._changes:
                return
            self._changes = connection.total_changes
            before = connection.statement_timeout
            connection.statement_timeout = _AT_MOST_SECONDS
            try:
                connection.execute(_OPTIMIZE).close()
            finally:
                connection.statement_timeout = before
