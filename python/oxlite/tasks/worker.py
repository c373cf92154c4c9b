"""A worker: threads of this process that run tasks.

Invariants:
- What is claimed is begun at once: there are no more claims than threads.
- Whatever ends it, what it has claimed is written: as done, or handed back to others.
- An idle worker makes no query and does not wake.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from oxlite import Database
from oxlite.tasks.claim import Claim, Outcome, again, described, handed_back
from oxlite.tasks.clerk import Clerk
from oxlite.tasks.desk import Desk, Seat
from oxlite.tasks.execution import Execution, Registry
from oxlite.tasks.schedule import Recurring, Timetable
from oxlite.tasks.task import check_seconds
from oxlite.tasks.time_limit import OVERTIME_SECONDS

__all__ = ["Worker"]

_log = logging.getLogger("oxlite.tasks")

_AROUND_SECONDS: Final = 1.0
"""After so long a task is tried again of which not even an error could be noted."""

_DRAIN_SECONDS: Final = 10.0
"""For so long one waits, at the end, for those who are told of what was written."""


class Worker:
    """See the module. A context manager: it works until the end of the block.

    Args:
        database: Where the tasks are.
        registry: Who knows them.
        queues: The names of the queues whose tasks it runs.
        threads: So many tasks run at the same time.
        recurring: What is enqueued from time to time.
        told: If the process is there for this worker: called with a task's number and when it is to
            have ended, as ``time.monotonic`` counts, and with ``None`` when it has. Whoever is told
            ends the process if it does not. Time limits are kept by signals then.
        overtime: For how many seconds a task may go on after its time limit. Then its process is
            killed, if that is there for this worker, or the task is taken from it.
    """

    def __init__(
        self,
        database: Database,
        registry: Registry,
        queues: Iterable[str],
        *,
        threads: int = 4,
        recurring: Iterable[Recurring] = (),
        told: Callable[[int, float | None], None] | None = None,
        overtime: float = OVERTIME_SECONDS,
    ) -> None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads is a whole number of 1 or more, not {threads!r}")
        check_seconds("overtime", overtime, is_zero_allowed=True)
        names = list(queues)
        if not all(names):
            raise ValueError(f"the names of queues have a character at least: {names!r}")
        self._about = f"{', '.join(names)} in {database.path}, {threads} at the same time"
        timetable = Timetable(recurring)
        self._clerk = Clerk(database, names, timetable, told is not None, overtime)
        self._desk = Desk(self._clerk)
        self._execution = Execution(registry, told, overtime)
        self._count = threads
        self._threads: list[threading.Thread] = []
        self._at_work: set[int] = set()
        self._has_begun = False
        self._pid = os.getpid()

    def __str__(self) -> str:
        """Its queues, its file and its threads."""
        return self._about

    @property
    def name(self) -> str:
        """As it stands in ``oxlite_task_worker``."""
        return self._clerk.name

    @property
    def running(self) -> list[Claim]:
        """The tasks that run now."""
        return self._desk.running

    def start(self) -> None:
        """Begin to work, in threads.

        Raises:
            RuntimeError: It has begun before.
            OSError, oxlite.sqlite3.Error: The file cannot be used.
        """
        self._begin()
        self._start(self._count)

    def run(self) -> None:
        """Work in this thread, and others if there are several, until ``close``. Raises as it."""
        self._begin()
        self._start(self._count - 1)
        self._work()

    def close(self) -> None:
        """Begin no more tasks. From any thread, and from a signal handler; wait with ``join``."""
        self._desk.close()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all that runs has ended, and leave.

        Args:
            timeout: For so many seconds; then what runs is handed back to others, and what it comes
                to counts no more. ``None``: for ever.

        Returns:
            Whether all has ended, and could be written. In a child that was forked, it has.

        Raises:
            RuntimeError: It is called by one of its own tasks.
        """
        if not self._has_begun or os.getpid() != self._pid:
            return True
        if threading.get_ident() in self._at_work:
            raise RuntimeError("a task cannot wait for its own end: close() its worker instead")
        ends = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if ends is None else max(0.0, ends - time.monotonic()))
        outcomes = self._desk.leave_all()
        for claim in self.running:
            _log.warning("task %d (%s) is handed back in the midst of it", claim.id, claim.name)
        left = float("inf") if ends is None else max(0.0, ends - time.monotonic())
        is_written = self._clerk.leave(outcomes, left)
        self._execution.drain(_DRAIN_SECONDS if ends is None else max(0.0, ends - time.monotonic()))
        return is_written and not any(thread.is_alive() for thread in self._threads)

    def stop(self, timeout: float | None = None) -> bool:
        """``close`` and ``join``."""
        self.close()
        return self.join(timeout)

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End what runs, and leave."""
        self.stop()

    def _begin(self) -> None:
        if self._has_begun:
            raise RuntimeError("a worker begins once: make another one")
        self._has_begun = True
        self._pid = os.getpid()
        self._clerk.join()

    def _start(self, count: int) -> None:
        for number in range(count):
            thread = threading.Thread(
                target=self._work, name=f"oxlite tasks {number + 1}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        seat = Seat()
        claim: Claim | None = None
        outcome: Outcome | None = None
        while (claim := self._desk.next(seat, claim, outcome)) is not None:
            self._at_work.add(threading.get_ident())
            try:
                outcome = self._execution.outcome(claim)
            except KeyboardInterrupt:  # of this thread, which is the main one
                self._desk.leave(claim, handed_back(claim))
                raise
            except BaseException as error:
                # Not the task's, of which everything is caught; the thread is needed still.
                _log.critical("around task %d (%s)", claim.id, claim.name, exc_info=True)
                now = time.time()
                outcome = again(claim, described(error, claim, now), now, _AROUND_SECONDS)
            finally:
                self._at_work.discard(threading.get_ident())
