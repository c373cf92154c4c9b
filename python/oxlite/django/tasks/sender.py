"""Tells receivers of Django's signals what was written, in a thread of its own.

Who writes what has become of tasks does so for all threads of a worker, and waits for no receiver.

Invariants:
- Receivers are told in the order in which it was written.
- When too many signals wait, who writes waits as well.
- Where nothing is to be told nothing wakes; before the first signal there is no thread.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from typing import Final

from django.db import close_old_connections

from oxlite.django.tasks.left_open import close_left_open

__all__ = ["Sender"]

_log = logging.getLogger("oxlite.tasks")

_WAITING_AT_MOST: Final = 1_000


class Sender:
    """See the module."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Queue[Callable[[], object]] = Queue(_WAITING_AT_MOST)
        self._thread: threading.Thread | None = None

    def send(self, tell: Callable[[], object]) -> None:
        """Have it called soon."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="oxlite tasks: signals", daemon=True
                )
                try:
                    self._thread.start()
                except RuntimeError:  # the program ends
                    self._thread = None
            is_there = self._thread is not None
        if is_there:
            self._waiting.put(tell)
        else:
            tell()

    def drain(self, seconds: float) -> None:
        """Wait until all is told that was to be told by now, for so long at the most."""
        if self._thread is None:
            return
        is_done = threading.Event()
        with suppress(Full):
            self._waiting.put(is_done.set, timeout=seconds)
            is_done.wait(seconds)

    def _run(self) -> None:
        while True:
            tell = self._waiting.get()
            try:
                close_old_connections()
                tell()
                close_left_open()
                close_old_connections()
            except BaseException:  # a receiver raises whatever it likes
                _log.exception("what a receiver of a signal has raised")
