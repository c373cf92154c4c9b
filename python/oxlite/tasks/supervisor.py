"""Processes of workers: begun, begun again where one has ended, ended where one is stuck.

The supervisor runs no tasks and opens no file. Its processes are forked before the application is
imported, so that nothing of that is shared.

Invariants:
- Nothing is polled: it sleeps until a process changes, a signal comes, or a time limit is over.
- It ends when all its processes have. A process whose supervisor has ended finishes what it runs.
- A process that was stopped (SIGSTOP) for too long is killed, so that others can run its tasks.
"""

import logging
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from oxlite.tasks.worker import Worker

__all__ = ["Supervisor"]

_log = logging.getLogger("oxlite.tasks")

_MESSAGE: Final = struct.Struct("=qd")
"""A task's number, and when it is to have ended as ``time.monotonic`` counts; 0 when it has."""

_READY: Final = -1
_STOPPED_AT_MOST_SECONDS: Final = 10.0
_SHORT_LIFE_SECONDS: Final = 1.0
_BEGIN_AGAIN_SECONDS: Final = 0.01
_BEGIN_AGAIN_AT_MOST_SECONDS: Final = 10.0
"""Processes that end one after the other, each soon, are begun more and more rarely."""

_KILL_AFTER_SECONDS: Final = 5.0
"""So long after the time that what runs is given, a process that does not end is killed."""


class _Process:
    """A process of the supervisor's, as that sees it."""

    def __init__(self, pid: int, messages: int) -> None:
        self.pid = pid
        self.messages = messages
        self.begun_at = time.monotonic()
        self.is_ready = False
        self.stopped_at: float | None = None
        # By number of the task: when it is to have ended.
        self.deadlines: dict[int, float] = {}

    def read(self) -> None:
        """Read what it says; what was said before its end too."""
        with suppress(BlockingIOError):
            while data := os.read(self.messages, 64 * _MESSAGE.size):
                for number, deadline in _MESSAGE.iter_unpack(data):
                    if number == _READY:
                        self.is_ready = True
                    elif deadline:
                        self.deadlines[number] = deadline
                    else:
                        self.deadlines.pop(number, None)

    @property
    def kill_at(self) -> float | None:
        """When it is to be killed."""
        at = list(self.deadlines.values())
        if self.stopped_at is not None:
            at.append(self.stopped_at + _STOPPED_AT_MOST_SECONDS)
        return min(at, default=None)


class Supervisor:
    """See the module.

    Args:
        make: Makes the worker, in each process; imports the application.
        processes: How many processes there are.
        grace: For how many seconds what runs may go on after SIGTERM; then it is handed back.
    """

    def __init__(
        self,
        make: Callable[[Callable[[int, float | None], None]], Worker],
        processes: int,
        grace: float,
    ) -> None:
        self._make = make
        self._count = processes
        self._grace = grace
        self._processes: dict[int, _Process] = {}
        self._poll = select.poll()
        self._begin_at: list[float] = []
        self._failures = 0
        self._signals = 0
        self._told = 0
        self._exit_code = 0
        self._end_at: float | None = None
        # Whose other end only this process has: it is closed when this process ends.
        self._alive = os.pipe2(os.O_CLOEXEC)

    def run(self) -> int:
        """Work until SIGTERM or SIGINT. A second one hands back what runs at once.

        Returns:
            The exit code: 1 if no process could begin.
        """
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._poll.register(reading, select.POLLIN)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._begin_at = [0.0] * self._count
        while self._begin_at or self._processes:
            self._begin_due()
            timeout = self._timeout()
            for descriptor, _ in self._poll.poll(timeout):
                if descriptor == reading:
                    with suppress(BlockingIOError):
                        os.read(reading, 65536)
            self._look()
        return self._exit_code

    def _note_signal(self, _number: int, _frame: object) -> None:
        self._signals += 1

    def _timeout(self) -> float | None:
        at = [*self._begin_at]
        at += [each.kill_at for each in self._processes.values() if each.kill_at is not None]
        if self._end_at is not None:
            at.append(self._end_at)
        if self._signals > self._told:
            return 0.0
        return max(0.0, min(at) - time.monotonic()) * 1000 if at else None

    def _look(self) -> None:
        now = time.monotonic()
        for process in list(self._processes.values()):
            process.read()
            self._look_after(process)
        for process in self._processes.values():
            if process.kill_at is not None and process.kill_at <= now:
                _log.error(
                    "process %d is killed: %s",
                    process.pid,
                    "it was stopped for too long"
                    if process.stopped_at is not None
                    else f"task {min(process.deadlines)} does not end",
                )
                self._send(process.pid, signal.SIGKILL)
                process.deadlines.clear()
                process.stopped_at = None
        if self._signals > self._told:
            self._end(now)
        if self._end_at is not None and self._end_at <= now:
            self._end_at = None
            for pid in self._processes:
                _log.error("process %d is killed: it does not end", pid)
                self._send(pid, signal.SIGKILL)

    def _end(self, now: float) -> None:
        """Tell all to end; the second time, at once."""
        self._begin_at.clear()
        grace = self._grace if self._told == 0 and self._signals == 1 else 0.0
        self._end_at = now + grace + _KILL_AFTER_SECONDS
        for _ in range(min(self._signals, 2) - min(self._told, 2)):
            for pid in self._processes:
                self._send(pid, signal.SIGTERM)
        self._told = self._signals

    def _look_after(self, process: _Process) -> None:
        flags = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
        while True:
            pid, status = os.waitpid(process.pid, flags)
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                process.stopped_at = time.monotonic()
            elif os.WIFCONTINUED(status):
                process.stopped_at = None
            else:
                self._note_end(process, status)
                return

    def _note_end(self, process: _Process, status: int) -> None:
        process.read()
        del self._processes[process.pid]
        self._poll.unregister(process.messages)
        os.close(process.messages)
        if self._signals:
            return
        code = os.waitstatus_to_exitcode(status)
        why = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        _log.error("process %d has ended %s", process.pid, why)
        now = time.monotonic()
        if not process.is_ready and not any(one.is_ready for one in self._processes.values()):
            # As it is now it will not begin the next time either.
            self._exit_code = 1
            self._signals += 1
            return
        is_short = now - process.begun_at < _SHORT_LIFE_SECONDS
        self._failures = self._failures + 1 if is_short else 0
        delay = 0.0
        if self._failures > 2 * self._count:
            doublings = min(self._failures - 2 * self._count, 30)
            delay = min(_BEGIN_AGAIN_SECONDS * 2**doublings, _BEGIN_AGAIN_AT_MOST_SECONDS)
        self._begin_at.append(now + delay)

    def _begin_due(self) -> None:
        now = time.monotonic()
        for at in [at for at in self._begin_at if at <= now]:
            self._begin_at.remove(at)
            self._begin()

    def _begin(self) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._work(writing)
        os.close(writing)
        self._processes[pid] = _Process(pid, reading)
        self._poll.register(reading, select.POLLIN)

    def _send(self, pid: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    # In a process.

    def _work(self, messages: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # Ctrl-C comes to all; the supervisor tells its processes.
            signal.signal(signal.SIGINT, lambda _number, _frame: None)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.close(self._alive[1])

            def told(number: int, deadline: float | None) -> None:
                with suppress(OSError):
                    os.write(messages, _MESSAGE.pack(number, deadline or 0.0))

            worker = self._make(told)
            ending = _Ending(worker, self._grace)
            signal.signal(signal.SIGTERM, ending.note_signal)
            threading.Thread(
                target=self._wait_for_supervisor, args=(ending,), name="supervisor", daemon=True
            ).start()
            told(_READY, None)
            worker.run()
            code = 0 if worker.join(ending.left) else 1
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            _log.critical("process %d cannot work", os.getpid(), exc_info=True)
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
                logging.shutdown()
            os._exit(code)

    def _wait_for_supervisor(self, ending: "_Ending") -> None:
        os.read(self._alive[0], 1)
        ending.note_signal()


class _Ending:
    """How a process ends: it begins nothing more, and what runs has some time."""

    def __init__(self, worker: Worker, grace: float) -> None:
        self._worker = worker
        self._grace = grace
        self._ends_at: float | None = None

    @property
    def left(self) -> float:
        """How many seconds what runs has left."""
        ends = self._ends_at
        return self._grace if ends is None else max(0.0, ends - time.monotonic())

    def note_signal(self, *_signal: object) -> None:
        """End; the second time, at once."""
        seconds = self._grace if self._ends_at is None else 0.0
        self._ends_at = time.monotonic() + seconds
        self._worker.close()
        give_up = threading.Timer(seconds, self._give_up)
        give_up.daemon = True
        give_up.start()

    def _give_up(self) -> None:
        self._worker.join(0.0)
        os._exit(0)
