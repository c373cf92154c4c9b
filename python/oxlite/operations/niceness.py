"""Work that gives way to others who want the processor.

A thread of its own does it: on Linux the nice value is that of a thread, and nobody may take his
own back without rights (https://man7.org/linux/man-pages/man7/sched.7.html).
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

__all__ = ["NICE", "nicely"]

_T = TypeVar("_T")

NICE: Final = 10
"""Beside two writers on two processors a backup takes a tenth of one with it."""

_MOST: Final = 19


def nicely(work: Callable[[], _T], nice: int) -> _T:
    """Do it, by so much less urgently than this thread; return what it returns, raise what it does.

    What interrupts the wait, such as Ctrl-C, interrupts the work; it is raised when that has ended.

    Raises:
        ValueError: ``nice`` is not from 0 to 19.
    """
    if not 0 <= nice <= _MOST:
        raise ValueError(f"nice is a number from 0 to {_MOST}, not {nice!r}")
    if nice == 0 or sys.platform != "linux":
        return work()
    done: list[_T] = []
    raised: list[BaseException] = []
    # A join that was interrupted takes the thread for one that has ended, in Python 3.11 and 3.12.
    has_ended = threading.Event()

    def run() -> None:
        try:
            own = threading.get_native_id()
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + nice)
            done.append(work())
        except BaseException as error:
            raised.append(error)
        finally:
            has_ended.set()

    thread = threading.Thread(target=run, name="oxlite: work that gives way")
    thread.start()
    try:
        has_ended.wait()
    except BaseException:
        # https://docs.python.org/3/c-api/threads.html#c.PyThreadState_SetAsyncExc
        raised_there = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), raised_there)
        has_ended.wait()
        raise
    if raised:
        raise raised[0]
    return done[0]
