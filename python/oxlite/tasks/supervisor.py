"""Processes of workers: begun, begun again where one has ended, ended where one is stuck.

The supervisor runs no tasks and opens no file. Its processes are forked before the application is
imported, so that nothing of that is shared.

Invariants:
- Nothing is polled: it sleeps until a process changes, a signal comes, or a time limit is over.
- It ends when all its processes have. A process whose supervisor has ended finishes what it runs.
- What a process is to do at the end it is told by a pipe: a signal that comes to the whole group is
  the first for all of them.
- A process that was stopped (SIGSTOP) for too long is killed, so that others can run its tasks.
"""

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final, NoReturn

from oxlite.tasks.time_board import TimeBoard
from oxlite.tasks.worker import Worker

__all__ = ["Supervisor"]

_log = logging.getLogger("oxlite.tasks")

_END, _END_AT_ONCE = b"e", b"n"

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)
_ONE_SIGNAL_SECONDS: Final = 0.2
"""Signals within so many seconds are one: some send it to a process and to its group."""

_STOPPED_AT_MOST_SECONDS: Final = 10.0
_SHORT_LIFE_SECONDS: Final = 1.0
_BEGIN_AGAIN_SECONDS: Final = 0.01
_BEGIN_AGAIN_AT_MOST_SECONDS: Final = 10.0
"""Processes that end one after the other, each soon, are begun more and more rarely."""

_NO_PROCESS_SECONDS: Final = 1.0
"""After so long one tries again to begin a process where the system had none to give."""

_KILL_AFTER_SECONDS: Final = 5.0
"""So long after the time that what runs is given, a process that does not end is killed."""

_SLEEP_AT_MOST_SECONDS: Final = 3600.0


class _Process:
    """A process of the supervisor's, as that sees it."""

    def __init__(self, pid: int, board: TimeBoard, orders: int) -> None:
        self.pid = pid
        self.board = board
        self.begun_at = time.monotonic()
        self.stopped_at: float | None = None
        self.deadlines: list[tuple[float, int]] = []
        self.look_at = float("inf")
        self._orders = orders

    def tell(self, order: bytes) -> None:
        """Tell it what to do."""
        with suppress(OSError):  # it has ended
            os.write(self._orders, order)

    def kill(self) -> None:
        """Kill it. Nobody has waited for it yet, so the number is its own."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """It has ended."""
        os.close(self._orders)
        self.board.close()

    @property
    def kill_at(self) -> float | None:
        """When it is to be killed."""
        at = [deadline for deadline, _ in self.deadlines[:1]]
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
        self._is_any_ready = False
        self._failures = 0
        self._signals = 0
        self._signalled_at = float("-inf")
        self._told = 0
        self._exit_code = 0
        self._end_at: float | None = None
        self._pid = os.getpid()

    def run(self) -> int:
        """Work until SIGTERM or SIGINT. A second one hands back what runs at once.

        Returns:
            The exit code: 1 if no process could begin.
        """
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._poll.register(reading, select.POLLIN)
        for number in _ENDS:
            signal.signal(number, self._note_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._begin_at = [0.0] * self._count
        while self._begin_at or self._processes:
            self._begin_due()
            self._poll.poll(self._timeout())
            with suppress(BlockingIOError):
                os.read(reading, 65536)
            self._look()
        return self._exit_code

    def _note_signal(self, _number: int, _frame: object) -> None:
        now = time.monotonic()
        if now - self._signalled_at >= _ONE_SIGNAL_SECONDS:
            self._signals += 1
            self._signalled_at = now

    def _timeout(self) -> float | None:
        """For how many milliseconds there is nothing to do."""
        if self._signals > self._told:
            return 0.0
        at = [*self._begin_at]
        now = time.monotonic()
        for process in self._processes.values():
            at += [one for one in (process.kill_at,) if one is not None]
            at += [one for one in (process.look_at,) if one > now]
        if self._end_at is not None:
            at.append(self._end_at)
        left = min(at, default=float("inf")) - now
        return None if left == float("inf") else min(max(0.0, left), _SLEEP_AT_MOST_SECONDS) * 1000

    def _look(self) -> None:
        now = time.monotonic()
        for process in list(self._processes.values()):
            process.look_at, process.deadlines = process.board.read()
            self._is_any_ready = self._is_any_ready or bool(process.deadlines)
            self._look_after(process)
        for process in self._processes.values():
            if process.kill_at is not None and process.kill_at <= now:
                _log.error(
                    "process %d is killed: %s",
                    process.pid,
                    f"it was stopped for {_STOPPED_AT_MOST_SECONDS:g} s"
                    if process.stopped_at is not None
                    else f"task {process.deadlines[0][1]} does not end",
                )
                process.kill()
                process.stopped_at, process.deadlines = None, []
        if self._signals > self._told:
            self._end(now)
        if self._end_at is not None and self._end_at <= now:
            self._end_at = None
            for process in self._processes.values():
                _log.error("process %d is killed: it does not end", process.pid)
                process.kill()

    def _end(self, now: float) -> None:
        """Tell all to end; the second time, at once."""
        self._begin_at.clear()
        is_first = self._told == 0 and self._signals == 1
        self._end_at = now + (self._grace if is_first else 0.0) + _KILL_AFTER_SECONDS
        for process in self._processes.values():
            process.tell(_END if is_first else _END_AT_ONCE)
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
        del self._processes[process.pid]
        self._poll.unregister(process.board.changed)
        process.close()
        if self._signals:
            return
        code = os.waitstatus_to_exitcode(status)
        why = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        _log.error("process %d has ended %s", process.pid, why)
        now = time.monotonic()
        if not self._is_any_ready and code >= 0:
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
            try:
                self._begin()
            except OSError as error:  # no process, memory or descriptor is to be had
                _log.error("no process can be begun, and it is tried again: %s", error)
                self._begin_at.append(now + _NO_PROCESS_SECONDS)

    def _begin(self) -> None:
        with ExitStack() as on_error:
            board = TimeBoard()
            on_error.callback(board.close)
            on_error.callback(board.forked)
            reading, writing = os.pipe2(os.O_CLOEXEC)
            on_error.callback(os.close, reading)
            on_error.callback(os.close, writing)
            pid = self._forked(board, reading, writing)
            on_error.pop_all()
        board.forked()
        os.close(reading)
        process = self._processes[pid] = _Process(pid, board, writing)
        self._poll.register(board.changed, select.POLLIN)
        if self._signals:
            process.tell(_END)

    def _forked(self, board: TimeBoard, reading: int, writing: int) -> int:
        """Fork; the process that works."""
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that comes before the process has its own handlers is heard after that.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        try:
            pid = os.fork()
        finally:
            # In the process it is done there: not before it has handlers.
            if os.getpid() == self._pid:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        if pid == 0:
            os.close(writing)
            self._work(board, reading)
        return pid

    # In a process.

    def _work(self, board: TimeBoard, orders: int) -> NoReturn:
        code = 1
        try:
            pid = os.getpid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # They come to all; the supervisor says what is to be done.
            for number in _ENDS:
                signal.signal(number, lambda _number, _frame: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
            os.register_at_fork(after_in_child=_forget_handlers)
            for process in self._processes.values():
                process.close()

            def told(number: int, deadline: float | None) -> None:
                if os.getpid() == pid:  # and not a child that a task has forked
                    board.write(number, deadline)

            worker = self._make(told)
            told(_READY, _FAR)
            ending = _Ending(worker, self._grace)
            threading.Thread(
                target=ending.follow, args=(orders,), name="oxlite tasks: orders", daemon=True
            ).start()
            try:
                worker.run()
            finally:
                code = 0 if worker.stop(ending.left) and ending.has_begun else 1
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


_READY: Final = -1
_FAR: Final = float("inf")


def _forget_handlers() -> None:
    """In a child that a task has forked: signals mean there what they mean in any process."""
    for number in (*_ENDS, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.0)


class _Ending:
    """How a process ends: it begins nothing more, and what runs has some time."""

    def __init__(self, worker: Worker, grace: float) -> None:
        self._worker = worker
        self._grace = grace
        self._ends_at: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it was told to end."""
        return self._ends_at is not None

    @property
    def left(self) -> float:
        """How many seconds what runs has left."""
        ends = self._ends_at
        return self._grace if ends is None else max(0.0, ends - time.monotonic())

    def follow(self, orders: int) -> None:
        """Do what one is told, in a thread; where nobody can tell any more, end."""
        # Two signals that the supervisor has heard together are one order.
        is_at_once = os.read(orders, 1) == _END_AT_ONCE
        self._ends_at = time.monotonic() + (0.0 if is_at_once else self._grace)
        self._worker.close()
        poll = select.poll()
        poll.register(orders, select.POLLIN)
        ends = self._ends_at
        while (left := ends - time.monotonic()) > 0:
            if poll.poll(min(left, _SLEEP_AT_MOST_SECONDS) * 1000):
                if os.read(orders, 1):
                    break
                time.sleep(max(0.0, min(left, _SLEEP_AT_MOST_SECONDS)))  # the supervisor has ended
        self._worker.stop(0.0)
        os._exit(0)
