"""The live view: a table that redraws in place, until it is ended.

It is drawn on the terminal's other screen, so that what was there before comes back, whichever way
it ends: by Ctrl-C, by a count, by an error, by SIGTERM or SIGHUP. While it is stopped (Ctrl-Z) the
terminal is as it was.

Invariant: no signal ends or stops it while the terminal changes from one screen to the other. A
signal is noted, and heeded when it waits next; a second one ends it at once.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.live import Live

from oxlite.operations.top.tables import View
from oxlite.operations.top.watch import Watch, check_interval

__all__ = ["show"]

_PAUSE_SECONDS = 0.1


def show(
    path: Path | str,
    *,
    interval_seconds: float = 2.0,
    count: int | None = None,
    console: Console | None = None,
) -> None:
    """Show a database on a terminal, until Ctrl-C, or so many times.

    Args:
        path: An existing file. It may be in use.
        interval_seconds: From 0.1 to 3600.
        count: How many looks; None is without end.
        console: Where; by default standard output.

    Raises:
        OperationsError: There is no such file, it may not be read, it is no database, or it was
            deleted while it was watched; or the interval is none.
        KeyboardInterrupt: SIGINT; or SIGTERM or SIGHUP: its ``signal_number`` says which.
    """
    check_interval(interval_seconds)
    with (
        _signals() as noted,
        Watch(path) as watch,
        Live(console=console or Console(), screen=True, auto_refresh=False) as live,
    ):
        while True:
            live.update(View(watch.look()), refresh=True)
            if count is not None:
                count -= 1
                if count <= 0:
                    # It would be gone before it was read.
                    _wait(watch, interval_seconds, live, noted)
                    return
            _wait(watch, interval_seconds, live, noted)


def _wait(watch: Watch, seconds: float, live: Live, noted: list[int]) -> None:
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        watch.wait(min(left, _PAUSE_SECONDS))
        _heed(live, noted)


def _heed(live: Live, noted: list[int]) -> None:
    """Stop, or end, as was asked for."""
    while noted:
        number = noted[0]
        if number != signal.SIGTSTP:
            raise _interrupt(number)
        live.stop()
        os.kill(os.getpid(), signal.SIGSTOP)
        live.start(refresh=True)
        noted.remove(number)


def _interrupt(number: int) -> KeyboardInterrupt:
    interrupt = KeyboardInterrupt()
    if number != signal.SIGINT:  # which it is when nothing else is said
        interrupt.signal_number = number  # type: ignore[attr-defined]
    return interrupt


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Note the signals that end or stop a process."""
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGTSTP and any(other != signal.SIGTSTP for other in noted):
            raise _interrupt(number)
        noted.append(number)

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            # What was ignored stays ignored: nohup, a shell without job control.
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, note)
        yield noted
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
