"""What a worker does with the file: claims tasks, writes what has become of them, sees to the rest.

Whatever is due at one time is one transaction: outcomes, tasks whose time has come, those of a
worker that has ended, and new claims. Who does it is the desk's affair.

Invariants:
- One thread at a time uses it; another one may have it leave.
- Nothing is polled. It looks when a commit of somebody's is heard, when an instant has come that
  stands in the file, when a worker's end is heard, or after what it has written itself.
- No more is claimed than is asked for.
- An outcome that could not be written is kept, and written later.
- What stands in the file as its own is what it has given out: after an error, of which nobody can
  tell whether claims were committed before, the others are handed back.
- After it has left, no task in the file is its own.
"""

import json
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from oxlite import Database, sqlite3
from oxlite._native import Announcement, Hearing
from oxlite.bell import Bell
from oxlite.own_tables import rows_of
from oxlite.sqlite3 import Connection, ProgrammingError
from oxlite.tasks import store
from oxlite.tasks.claim import Claim, Outcome, described
from oxlite.tasks.errors import TimeLimitExceeded, WorkerLost
from oxlite.tasks.roster import Member, Roster
from oxlite.tasks.schedule import Timetable

__all__ = ["Clerk", "FileReplaced"]

_log = logging.getLogger("oxlite.tasks")

_OTHERS_WAIT_SECONDS: Final = 5.0
"""So much longer than a worker's own process the others wait before they end it."""

_DEATHS_AT_MOST: Final = 2
"""After so many deaths of its process one more is a task's last."""

_LOOK_SECONDS: Final = 0.1
"""So often who always has something to write looks for what else there is to do."""

_SLEEP_AT_MOST_SECONDS: Final = 60.0
"""Where an instant is waited for: so much later it is met if the clock is set meanwhile."""

_CHECK_SECONDS: Final = 1.0
"""So often, where there is something to do, one looks whether all are still where they were."""

_TRY_AGAIN_AFTER_SECONDS: Final = 0.2
_SAY_AGAIN_AFTER_SECONDS: Final = 60.0
_LEAVES_WITHIN_SECONDS: Final = 30.0


class FileReplaced(Exception):  # noqa: N818
    """The name of the database leads to another file."""


class Clerk:
    """See the module.

    Args:
        database: Where the tasks are.
        queues: Whose tasks it claims.
        timetable: What is enqueued from time to time.
        may_be_killed: Whether the process is there for this alone.
        overtime: For how many seconds a task may go on after its time limit.
    """

    def __init__(
        self,
        database: Database,
        queues: Iterable[str],
        timetable: Timetable,
        may_be_killed: bool,
        overtime: float,
    ) -> None:
        self._database = database
        self._queues = json.dumps(list(queues))
        self._timetable = timetable
        self._may_be_killed = may_be_killed
        self._overtime = overtime + _OTHERS_WAIT_SECONDS
        self._announcement = Announcement.of_rows(database.path, store.TOPIC_PREFIX)
        self._poll = select.poll()
        self._bell = Bell(self._poll)
        self._roster = Roster(database.path, self._poll, self._bell.ring)
        self._hearing: Hearing | None = None
        self._me: Member | None = None
        self._pid = os.getpid()
        self._pending: list[Outcome] = []
        self._then: list[Callable[[], None]] = []
        self._is_unsure = False
        # The signal up to which all was looked at; ``None``: it is to be looked at in any case.
        self._seen: int | None = None
        self._due_at: float | None = None
        self._look_at = self._check_at = self._overdue_at = 0.0
        self._try_again_at = 0.0
        self._said = -_SAY_AGAIN_AFTER_SECONDS
        # Who gives up does so while another thread may be writing.
        self._writing = threading.Lock()

    @property
    def name(self) -> str:
        """Of the worker, as it stands in the file; empty before it has joined."""
        return "" if self._me is None else self._me.name

    def join(self) -> None:
        """Begin: hear of what is committed, and stand in the file as a worker.

        Raises:
            OSError, oxlite.sqlite3.Error: The file cannot be used.
        """
        with self._database.write() as connection:
            store.TABLES.prepare(connection)
        hearing = self._database._hear([store.TOPIC_PREFIX + store.TASKS_NAME])
        self._poll.register(hearing.fileno(), select.POLLIN)
        self._me = self._roster.joined(self._may_be_killed)
        with self._database.write() as connection:
            self._register(connection)
            self._timetable.begin(connection, time.time())
        self._hearing = hearing
        self._due_at = 0.0  # what was left by others

    def _register(self, connection: Connection) -> None:
        assert self._me is not None
        keeps_time = not self._timetable.is_empty
        parameters = (*self._me, self._queues, time.time(), keeps_time)
        self._announce(connection, self._write(connection, store.REGISTER, parameters))

    def leave(self, outcomes: list[Outcome], seconds: float) -> bool:
        """End: what is not done is handed back, and the worker stands in the file no more.

        Args:
            outcomes: What is to be written before.
            seconds: For how long that is tried.

        Returns:
            Whether it could be written. If not, others give back what is there when this process
            ends.
        """
        ends = time.monotonic() + min(seconds, _LEAVES_WITHIN_SECONDS)
        with self._writing:
            self._pending += outcomes
            if self._hearing is None or os.getpid() != self._pid:
                return True
            while True:
                try:
                    with self._database.write() as connection:
                        names = self._written(connection)
                        left = (self.name, "[]", time.time())
                        names |= self._write(connection, store.LEAVE_RUNNING, left)
                        names |= self._write(connection, store.LEAVE, (self.name,))
                        self._announce(connection, names)
                    break
                except (sqlite3.Error, OSError) as error:
                    if time.monotonic() >= ends or isinstance(error, ProgrammingError):
                        _log.critical(
                            "%s cannot be written: what was done is lost, and run again after the"
                            " end of this process: %s",
                            self._database.path,
                            error,
                        )
                        return False
                time.sleep(_TRY_AGAIN_AFTER_SECONDS)
            self._note_written()
            self._roster.leave()
            self._poll.unregister(self._hearing.fileno())
            self._hearing.close()
            self._hearing = None
        return True

    def ring(self) -> None:
        """Have it look. Takes no lock; from any thread, and from a signal handler."""
        self._bell.ring()

    # What is done.

    def round(
        self, outcomes: list[Outcome], free: int, given: Callable[[], list[int]]
    ) -> list[Claim]:
        """Write outcomes and do what is due; claim so many tasks at most.

        A failure of the file's is said in the log, and all of it tried again later.

        Args:
            outcomes: What has become of tasks.
            free: How many are claimed at most.
            given: Says which tasks were given out and have not come to what was handed in here.

        Raises:
            oxlite.sqlite3.ProgrammingError: The database is closed.
            FileReplaced: Its name leads to another file.
        """
        with self._writing:
            self._pending += outcomes
            if self._hearing is None or time.monotonic() < self._try_again_at:
                return []
            try:
                return self._round(self._hearing, free, given)
            except (ProgrammingError, FileReplaced):
                raise
            except Exception as error:
                self._try_again_at = time.monotonic() + _TRY_AGAIN_AFTER_SECONDS
                self._seen = None
                self._is_unsure = True
                if time.monotonic() - self._said >= _SAY_AGAIN_AFTER_SECONDS:
                    self._said = time.monotonic()
                    is_known = isinstance(error, sqlite3.Error | OSError)
                    _log.warning(
                        "%s cannot be used for now, and is tried again; what was done is written"
                        " then: %s",
                        self._database.path,
                        error,
                        exc_info=None if is_known else error,
                    )
                return []

    def wait(self) -> None:
        """Wait until there is something to do."""
        self._note_ends(self._timeout())

    def _note_ends(self, timeout: float | None) -> None:
        """Wait for so many seconds at most, and note whose process has ended."""
        ready = self._poll.poll(None if timeout is None else max(0.0, timeout) * 1000)
        self._bell.quiet()
        self._roster.note([descriptor for descriptor, _ in ready])

    def _timeout(self) -> float | None:
        hearing = self._hearing
        if hearing is None:
            return 0.0  # it has left
        if (left := self._try_again_at - time.monotonic()) > 0:
            return left
        if self._pending or self._has_news(hearing):
            return 0.0
        due = [at for at in (self._due_at, self._roster.look_at) if at is not None]
        return min(min(due) - time.time(), _SLEEP_AT_MOST_SECONDS) if due else None

    def _has_news(self, hearing: Hearing) -> bool:
        return self._seen is None or hearing.has_newer(self._seen)

    def _round(self, hearing: Hearing, free: int, given: Callable[[], list[int]]) -> list[Claim]:
        now = time.time()
        is_time = time.monotonic() >= self._look_at
        if is_time:
            self._note_ends(0.0)
        elif not (self._pending or self._is_due(now) or self._has_news(hearing)):
            return []
        is_ready = True
        if is_time or not self._pending:
            seen = hearing.seen()
            is_ready = self._look(hearing, now)
            # Where none is free it is looked at again by whoever becomes free.
            self._seen = None if is_ready and not free else seen
        is_due = self._is_due(now)
        if not (self._pending or is_due or (is_ready and free) or self._is_unsure):
            return []
        overdue: list[tuple[str, int, int]] = []
        with self._database.write() as connection:
            names = self._written(connection)
            if self._is_unsure:
                known = (self.name, json.dumps(given()), now)
                names |= self._write(connection, store.LEAVE_RUNNING, known)
            if is_due:
                names |= self._do_due(connection, now, overdue)
            claims = self._claimed(connection, now, free) if free else []
            self._announce(connection, names)
        self._is_unsure = False
        self._note_written()
        if is_due or len(claims) >= free:
            self._seen = None  # there may be more
        if is_due:
            self._due_at = None
        if overdue:
            self._end_overdue(overdue, now)
        return claims

    def _is_due(self, now: float) -> bool:
        return any(at is not None and at <= now for at in (self._due_at, self._roster.look_at))

    def _look(self, hearing: Hearing, now: float) -> bool:
        """Whether a task is ready; notes when something is due, and who works."""
        self._look_at = time.monotonic() + _LOOK_SECONDS
        [(is_ready, run_after, expires_at, overdue_at, workers, timekeeper)] = store.TABLES.query(
            self._database, store.LOOK, (self._queues,)
        )
        due = [run_after, expires_at]
        if overdue_at is not None:
            # Those who were killed for it have not ended yet.
            due.append(max(overdue_at, self._overdue_at))
        if not self._timetable.is_empty:
            self._timetable.note(self._database.query(store.DUE), now)
            due.append(self._timetable.due_at(timekeeper == self.name))
        names = set(json.loads(workers))
        if self.name not in names:
            self._come_back()
        if names - {self.name} != self._roster.names:
            rows = self._database.query(store.WORKERS)
            self._roster.watch([Member(*row) for row in rows if row[0] != self.name])
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + _CHECK_SECONDS
            if hearing.is_replaced():
                raise FileReplaced(f"{self._database.path} is another file now, or is not there")
            self._roster.check()
        self._due_at = min((at for at in due if at is not None), default=None)
        return bool(is_ready)

    def _come_back(self) -> None:
        """Stand in the file again: somebody has deleted the row."""
        _log.warning("this worker was taken for dead, or its row was deleted: it goes on")
        with self._database.write() as connection:
            self._register(connection)

    def _written(self, connection: Connection) -> set[str]:
        """Write all outcomes; what is to be signalled."""
        names: set[str] = set()
        self._then.clear()
        for outcome in self._pending:
            found = self._write(connection, outcome.sql, outcome.parameters)
            if not found:
                _log.warning(
                    "task %d (%s), attempt %d: what it came to counts no more, since it was taken"
                    " over or discarded",
                    outcome.claim.id,
                    outcome.claim.name,
                    outcome.claim.attempt,
                )
            elif outcome.then is not None:
                self._then.append(outcome.then)
            names |= found
            if outcome.claim.is_limited:
                names.add(store.TASKS_NAME)  # the next one of that key may be ready
        return names

    def _note_written(self) -> None:
        """All outcomes are committed."""
        self._pending.clear()
        for then in self._then:
            then()
        self._then.clear()

    def _do_due(
        self, connection: Connection, now: float, overdue: list[tuple[str, int, int]]
    ) -> set[str]:
        """Do what is due by the clock, or by a worker's end; what is to be signalled."""
        names: set[str] = set()
        for name in self._roster.ended():
            names |= self._lost(connection, name, now)
        names |= self._lost(connection, None, now)
        for statement in (store.EXPIRE, store.PROMOTE):
            if found := self._write(connection, statement, (now,)):
                # What has expired makes room for others of its kind.
                names |= found | {store.TASKS_NAME}
        overdue += rows_of(connection, store.OVERDUE, (now, store.SLICE))
        if self._timetable.enqueue(connection, now):
            names.add(store.TASKS_NAME)
        return names

    def _lost(self, connection: Connection, name: str | None, now: float) -> set[str]:
        """Give others what a worker had that has ended; or those who stand in the file no more."""
        error = described(WorkerLost("the process of its worker has ended"), None, now)
        parameters: tuple[Any, ...] = (error, now, _DEATHS_AT_MOST)
        if name is None:
            lost = rows_of(connection, store.LOSE_STRAYS, parameters)
        else:
            lost = rows_of(connection, store.LOSE, (*parameters, name))
            rows_of(connection, store.LEAVE, (name,))
        for _, number, task, status, crashes, worker in lost:
            _log.warning(
                "task %d (%s) is %s: its worker %s has ended in the midst of it, the %d. time",
                number,
                task.decode(errors="replace"),
                status,
                worker,
                crashes,
            )
        return {row[0] for row in lost} | {f"{store.RESULTS_NAME}{row[1]}" for row in lost}

    def _claimed(self, connection: Connection, now: float, free: int) -> list[Claim]:
        parameters = (self.name, now, self._queues, free, self._overtime)
        claims = [Claim.of(row) for row in rows_of(connection, store.CLAIM, parameters)]
        claims.sort(key=lambda claim: (-claim.priority, claim.id))
        return claims

    def _end_overdue(self, overdue: list[tuple[str, int, int]], now: float) -> None:
        """Kill those who do not end what has had its time; or take it from them, if need be."""
        self._overdue_at = now + _CHECK_SECONDS
        unreachable = []
        for worker, number, attempt in overdue:
            if self._roster.kill(worker):
                _log.error("worker %s was killed: task %d does not end", worker, number)
            else:
                unreachable.append((number, attempt))
        if not unreachable:
            return
        error = described(TimeLimitExceeded("it does not end"), None, now)
        with self._database.write() as connection:
            names: set[str] = set()
            for number, attempt in unreachable:
                parameters = (error, now, _DEATHS_AT_MOST, number, attempt)
                if rows_of(connection, store.TAKE_OVER, parameters):
                    names |= {store.TASKS_NAME, f"{store.RESULTS_NAME}{number}"}
                    _log.error(
                        "task %d does not end, and its process is not one that may be killed: it is"
                        " run again, and what it does beside the database may be done twice",
                        number,
                    )
            self._announce(connection, names)

    def _write(self, connection: Connection, sql: str, parameters: tuple[Any, ...]) -> set[str]:
        return {row[0] for row in rows_of(connection, sql, parameters)}

    def _announce(self, connection: Connection, names: set[str]) -> None:
        if names:
            self._announcement.follow(connection, sorted(names))
