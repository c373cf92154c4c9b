"""Processes that are forked, killed, stopped, and judged by how they end.

The process that forks has no connection and no thread, so its children may have theirs.

Invariants: no child outlives this process; whoever ends otherwise than he may is an error, with
what he has complained of.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from tests.kill_campaigns import WrongError

from oxlite.bench.harness.bootstrap import die_with_parent


class Family:
    """The children of a process.

    Attributes:
        running: Those that run, and whether they may end by themselves.
    """

    def __init__(self, folder: Path) -> None:
        self.running: dict[int, bool] = {}
        self._folder = folder
        self._stopped: dict[int, float] = {}

    def fork(self, work: Callable[[], object], *, may_end: bool = False) -> int:
        """Have a child do some work, and end."""
        parent = os.getpid()
        sys.stdout.flush()
        # Whoever is asked to end before he can hear it hears it then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        pid = os.fork()
        if not pid:
            self._live(parent, work)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self.running[pid] = may_end
        return pid

    def _live(self, parent: int, work: Callable[[], object]) -> NoReturn:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, _leave)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            die_with_parent()
            if os.getppid() == parent:
                work()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            self._complaint(os.getpid()).write_text(traceback.format_exc())
        finally:
            os._exit(code)

    def _complaint(self, pid: int) -> Path:
        return self._folder / f"{pid}.complaint"

    def stop(self, pid: int, seconds: float) -> bool:
        """Stop a child for a while, if it is not stopped already; whether it was."""
        if pid in self._stopped:
            return False
        os.kill(pid, signal.SIGSTOP)
        self._stopped[pid] = time.monotonic() + seconds
        return True

    def let_go_on(self, *, everybody: bool = False) -> None:
        """Those go on whose time is up, or everybody."""
        now = time.monotonic()
        for pid, ends in tuple(self._stopped.items()):
            if everybody or ends <= now:
                self._go_on(pid)

    def _go_on(self, pid: int) -> None:
        if self._stopped.pop(pid, None) is not None:
            os.kill(pid, signal.SIGCONT)

    def kill(self, pid: int) -> None:
        """Kill a child, whatever it does."""
        os.kill(pid, signal.SIGKILL)
        self._stopped.pop(pid, None)
        may_end = self.running.pop(pid)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != -signal.SIGKILL and not (may_end and code == 0):
            raise self._wrong(pid, code)

    def end(self, pid: int) -> None:
        """Ask a child to end, which it may from now on."""
        self._go_on(pid)
        self.running[pid] = True
        os.kill(pid, signal.SIGTERM)

    def look(self) -> list[int]:
        """Those that have ended since, as they may.

        Raises:
            WrongError: Somebody has ended otherwise.
        """
        ended = []
        for pid, may_end in tuple(self.running.items()):
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                del self.running[pid]
                self._stopped.pop(pid, None)
                code = os.waitstatus_to_exitcode(status)
                if code != 0 or not may_end:
                    raise self._wrong(pid, code)
                ended.append(pid)
        return ended

    def _wrong(self, pid: int, code: int) -> WrongError:
        complaint = self._complaint(pid)
        why = complaint.read_text() if complaint.exists() else "for no reason given"
        return WrongError(f"process {pid} ended with {code}: {why}")

    def end_all(self) -> None:
        """Kill all that are left."""
        for pid in tuple(self.running):
            with suppress(WrongError):
                self.kill(pid)


def _leave(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)
