"""Processes that are begun, signalled and waited for: the application and Litestream.

Invariants:
- Each is in a process group of its own, so that a terminal's Ctrl-C comes to this process, which
  passes it on once.
- Whoever ends is waited for, also one that became this process's child (as process 1 of a
  container).
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

__all__ = ["Child", "end_with_parent", "exit_code", "reap"]

_PR_SET_PDEATHSIG: Final = 1


class Child:
    """A process that was begun.

    Args:
        command: Its program and arguments.
        env: Its environment; by default this process's.
        descriptors: Which it is to have open as well.
        captures: Whether what it says on standard error comes here.
        ends_with_us: The signal that it is sent when this process dies (Linux).

    Raises:
        OSError: It cannot be begun.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        captures: bool = False,
        ends_with_us: int | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if captures else None,
            stdout=subprocess.DEVNULL if captures else None,
            stderr=subprocess.PIPE if captures else None,
            env=env,
            pass_fds=tuple(descriptors),
            process_group=0,
            preexec_fn=None if ends_with_us is None else end_with_parent(ends_with_us),
        )

    @property
    def process_id(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def said(self) -> IO[bytes] | None:
        """Its standard error, if that is captured."""
        return self._process.stderr

    @property
    def status(self) -> int | None:
        """How it ended, as ``subprocess`` has it; ``None`` while it runs."""
        return self._process.returncode

    def note_end(self, status: int) -> None:
        """It has been waited for, and ended so."""
        self._process.returncode = os.waitstatus_to_exitcode(status)

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # it has been waited for, and that is not noted yet
                os.kill(self._process.pid, number)


def reap(children: Sequence[Child]) -> None:
    """Wait for all who have ended, ours and others."""
    known = {child.process_id: child for child in children}
    while True:
        try:
            process_id, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if process_id == 0:
            return
        if process_id in known:
            known[process_id].note_end(status)


def exit_code(status: int) -> int:
    """What a shell says of a process that has ended so."""
    return status if status >= 0 else 128 - status


def end_with_parent(number: int = signal.SIGTERM) -> Callable[[], None] | None:
    """What a child does first that is sent a signal when this process dies; Linux knows how."""
    if sys.platform != "linux":
        return None
    import ctypes  # here, since a Python may be built without it

    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def do() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has died meanwhile
            os._exit(1)

    return do
