"""Signals that end a run, turned into one exception at safe moments.

SIGINT, SIGTERM and SIGHUP raise :class:`~oxlite.bench.errors.Interrupted` in
the main thread, so that the same ``finally`` blocks clean up after each of
them. Between starting a process and having noted it, and while cleaning up, a
signal is *held*: it is noted and raised when that section ends, so that no
process is started that nobody knows of. Once one has been raised, later ones
are ignored: a second Ctrl-C must not cut the cleaning short, which takes no
time worth interrupting (killing and deleting).

Outside the main thread Python lets nobody set handlers; there nothing is set.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from oxlite.bench.errors import Interrupted

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

_depth = 0
_pending: int | None = None
_raised = False


def _handle(number: int, _frame: FrameType | None) -> None:
    global _pending, _raised
    if _raised:
        return
    if _depth:
        _pending = number
        return
    _raised = True
    raise Interrupted(number)


@contextmanager
def handled() -> Iterator[None]:
    """Within, the signals raise ``Interrupted``; afterwards the old handlers stand again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _pending, _raised
    _pending, _raised = None, False
    before = {number: signal.signal(number, _handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Within, a signal waits; it is raised at the end of the outermost section."""
    global _depth, _pending, _raised
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
    if not _depth and _pending is not None:
        number, _pending, _raised = _pending, None, True
        raise Interrupted(number)
