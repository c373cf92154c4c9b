"""Work that gives way to others who want the processor.

A thread of its own does it, so what called it can be interrupted meanwhile. On Linux the nice value
is that of a thread, and nobody may take his own back without rights
(https://man7.org/linux/man-pages/man7/sched.7.html).
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

__all__ = ["NICE", "ended_with_its_work", "nicely"]

_T = TypeVar("_T")

NICE: Final = 10
"""Beside two writers on two processors a backup takes a tenth of one with it."""

_MOST: Final = 19
_HELD_BACK: Final = (signal.SIGINT, signal.SIGTERM)
_AGAIN_SECONDS: Final = 0.05

_ends_of: Final[dict[int, list[Callable[[], None]]]] = {}
"""By thread, what ends that it waits for outside of Python."""


@contextmanager
def ended_with_its_work(end: Callable[[], None]) -> Iterator[None]:
    """A block that waits outside of Python, as for a statement: what interrupts the work ends that.

    Args:
        end: Called in another thread, maybe several times; such as ``Connection.interrupt``.
    """
    ends = _ends_of.setdefault(threading.get_ident(), [])
    ends.append(end)
    try:
        yield
    finally:
        ends.remove(end)
        if not ends:
            del _ends_of[threading.get_ident()]


def nicely(work: Callable[[], _T], nice: int) -> _T:
    """Do it, by so much less urgently than this thread; return what it returns, raise what it does.

    What interrupts the wait, such as Ctrl-C, interrupts the work; it is raised when that has ended.

    Raises:
        ValueError: ``nice`` is not from 0 to 19.
    """
    if not 0 <= nice <= _MOST:
        raise ValueError(f"nice is a number from 0 to {_MOST}, not {nice!r}")
    done: list[_T] = []
    raised: list[BaseException] = []
    # A join that was interrupted takes the thread for one that has ended, in Python 3.11 and 3.12.
    has_ended = threading.Event()

    def run() -> None:
        try:
            if nice and sys.platform == "linux":
                own = threading.get_native_id()
                now = os.getpriority(os.PRIO_PROCESS, own)
                with suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, own, now + nice)
            done.append(work())
        except BaseException as error:
            raised.append(error)
        finally:
            has_ended.set()

    thread = threading.Thread(target=run, name="oxlite: work that gives way")
    try:
        # What comes before this waits in the block below comes then; and never to the thread.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
        try:
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        has_ended.wait()
    except BaseException:
        if thread.ident is None:  # it has not begun
            raise
        import ctypes  # here, since a Python may be built without it

        # https://docs.python.org/3/c-api/threads.html#c.PyThreadState_SetAsyncExc
        ident = thread.ident
        raised_there = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), raised_there)
        # It is raised in Python alone. Once may be before a statement has begun.
        while not has_ended.wait(_AGAIN_SECONDS):
            for end in list(_ends_of.get(ident, ())):
                with suppress(Exception):  # it has been closed
                    end()
        raise
    if raised:
        raise raised[0]
    return done[0]
