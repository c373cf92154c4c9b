"""A moment without writers and without readers of the WAL, in which it can be begun anew.

Whoever begins to read while all of the WAL is in the database reads nothing of it; but Litestream
writes at once after its checkpoint, and finds those in the WAL who have begun to read before it.
Where readers overlap without a gap, it always does. So for a moment the write lock is ours between
its checkpoint and its write: they end, and who comes then reads the database alone.
"""

import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from oxlite import Connection, sqlite3

__all__ = ["LULL_SECONDS", "Lull"]

LULL_SECONDS: Final = 0.05
"""Readers that overlap without a gap keep the WAL if they read for longer (docs/wal.md)."""

_LOOK_SECONDS: Final = 0.001


class Lull:
    """For the length of a block, in which Litestream makes a checkpoint.

    Args:
        writer: A connection that does not wait for locks (``busy="none"``).
        observer: Another one.
    """

    def __init__(self, writer: Connection, observer: Connection) -> None:
        self._writer = writer
        self._observer = observer
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="oxlite-lull", daemon=True)

    def __enter__(self) -> Self:
        """Begin to wait for that moment."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                continue  # Litestream has it: who is quicker gets it next
            except sqlite3.Error:
                return
            try:
                if is_copied := self._is_copied():
                    self._is_over.wait(LULL_SECONDS)
            finally:
                with suppress(sqlite3.Error):
                    self._writer.rollback()
            if is_copied:
                return
            self._is_over.wait(_LOOK_SECONDS)

    def _is_copied(self) -> bool:
        """Whether all of the WAL is in the database."""
        with suppress(sqlite3.Error):
            _is_busy, frames, copied = self._observer.checkpoint("passive")
            return frames == copied > 0
        return False
