"""What a worker does with the file: claims tasks, writes what has become of them, sees to the rest.

Whatever is due at one time is one transaction: outcomes, tasks whose time has come, those of a
worker that has ended, and new claims. Who does it is the desk's affair.

Invariants:
- One thread at a time uses it; another one may have it leave.
- Nothing is polled. It looks when a commit of somebody's is heard, when an instant has come that
  stands in the file, when a worker's end is heard, or after what it has written itself.
- No more is claimed than is asked for.
- An outcome that could not be written is kept, and written later.
"""

import json
import logging
import os
import select
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from oxlite import Database, sqlite3
from oxlite._native import Announcement, Hearing
from oxlite.own_tables import rows_of
from oxlite.sqlite3 import Connection
from oxlite.tasks import store
from oxlite.tasks.claim import Claim, Outcome, described
from oxlite.tasks.errors import TimeLimitExceeded, WorkerLost
from oxlite.tasks.roster import Member, Roster
from oxlite.tasks.schedule import Timetable
from oxlite.tasks.time_limit import OVERTIME_SECONDS

__all__ = ["Clerk"]

_log = logging.getLogger("oxlite.tasks")

_OTHERS_WAIT_SECONDS: Final = 5.0
"""So much longer than a worker's own process the others wait before they end it."""

_DEATHS_AT_MOST: Final = 2
"""After so many deaths of its process one more is a task's last."""

_SLEEP_AT_MOST_SECONDS: Final = 60.0
"""Where an instant is waited for: so much later it is met if the clock is set meanwhile."""

_TRY_AGAIN_AFTER_SECONDS: Final = 0.2
_SAY_AGAIN_AFTER_SECONDS: Final = 60.0
_RINGS_AT_ONCE: Final = 1 << 16


class Clerk:
    """See the module.

    Args:
        database: Where the tasks are.
        queues: Whose tasks it claims.
        timetable: What is enqueued from time to time.
    """

    def __init__(self, database: Database, queues: Iterable[str], timetable: Timetable) -> None:
        self._database = database
        self._queues = json.dumps(list(queues))
        self._timetable = timetable
        self._announcement = Announcement.of_rows(database.path, store.TOPIC_PREFIX)
        self._bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._bell[0], select.POLLIN)
        self._roster = Roster(database.path, self._poll, self.ring)
        self._hearing: Hearing | None = None
        self._me: Member | None = None
        self._pending: list[Outcome] = []
        # The signal up to which all was looked at; ``None``: it is to be looked at in any case.
        self._seen: int | None = None
        self._due_at: float | None = None
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
        self._hearing = self._database._hear([store.TOPIC_PREFIX + store.TASKS_NAME])
        self._poll.register(self._hearing.fileno(), select.POLLIN)
        me = self._roster.joined()
        with self._database.write() as connection:
            now = time.time()
            keeps_time = not self._timetable.is_empty
            parameters = (*me, self._queues, now, keeps_time)
            self._announce(connection, self._write(connection, store.REGISTER, parameters))
            self._timetable.begin(connection, now)
        self._me = me

    def leave(self, running: Iterable[Claim] = ()) -> None:
        """End: what is not done is handed back, and the worker stands in the file no more."""
        with self._writing:
            self._leave(running)

    def _leave(self, running: Iterable[Claim]) -> None:
        with suppress(sqlite3.Error), self._database.write() as connection:
            names = self._written(connection)
            for claim in running:
                names |= self._write(connection, store.HAND_BACK, (claim.id, claim.attempt))
            names |= self._write(connection, store.LEAVE, (self.name,))
            self._announce(connection, names)
            self._pending.clear()
        self._roster.leave()
        if self._hearing is not None:
            self._poll.unregister(self._hearing.fileno())
            self._hearing.close()
            self._hearing = None

    def close(self) -> None:
        """Close the bell. Nobody rings it any more."""
        for descriptor in self._bell:
            os.close(descriptor)

    def ring(self) -> None:
        """Have it look. Takes no lock; from any thread, and from a signal handler."""
        with suppress(BlockingIOError, OSError):
            os.write(self._bell[1], b"\0")

    # What is done.

    def round(self, outcomes: list[Outcome], free: int) -> list[Claim]:
        """Write outcomes and do what is due; claim so many tasks at most.

        A failure of the file's is said in the log, and all of it tried again later.
        """
        self._pending += outcomes
        if time.monotonic() < self._try_again_at:
            return []
        try:
            with self._writing:
                return [] if self._hearing is None else self._round(free)
        except (sqlite3.Error, OSError) as error:
            self._try_again_at = time.monotonic() + _TRY_AGAIN_AFTER_SECONDS
            self._seen = None
            if time.monotonic() - self._said >= _SAY_AGAIN_AFTER_SECONDS:
                self._said = time.monotonic()
                _log.warning(
                    "%s cannot be used for now, and is tried again; what was done is written"
                    " then: %s",
                    self._database.path,
                    error,
                )
            return []

    def wait(self) -> None:
        """Wait until there is something to do."""
        timeout = self._timeout()
        ready = self._poll.poll(None if timeout is None else max(0.0, timeout) * 1000)
        descriptors = [descriptor for descriptor, _ in ready]
        if self._bell[0] in descriptors:
            with suppress(BlockingIOError):
                os.read(self._bell[0], _RINGS_AT_ONCE)
        self._roster.note(descriptors)

    def _timeout(self) -> float | None:
        if (left := self._try_again_at - time.monotonic()) > 0:
            return left
        if self._pending or self._has_news():
            return 0.0
        if self._due_at is None:
            return None
        return min(self._due_at - time.time(), _SLEEP_AT_MOST_SECONDS)

    def _has_news(self) -> bool:
        assert self._hearing is not None
        return self._seen is None or self._hearing.has_newer(self._seen)

    def _round(self, free: int) -> list[Claim]:
        assert self._hearing is not None
        now = time.time()
        ended = self._roster.ended()
        is_due = bool(ended) or (self._due_at is not None and self._due_at <= now)
        if not self._pending:
            if not (is_due or self._has_news()):
                return []
            seen = self._hearing.seen()
            is_ready = self._look()
            is_due = is_due or (self._due_at is not None and self._due_at <= now)
            if not (is_due or (is_ready and free)):
                # Where none is free it is looked at again by whoever becomes free.
                self._seen = None if is_ready else seen
                return []
            self._seen = seen
        overdue: list[tuple[str, int, int]] = []
        with self._database.write() as connection:
            names = self._written(connection)
            for name in ended:
                names |= self._lost(connection, name, now)
            is_all_due = True
            if is_due:
                is_all_due = self._do_due(connection, now, names, overdue)
            claims = self._claimed(connection, now, free) if free else []
            self._announce(connection, names)
        self._pending.clear()
        if is_due:
            self._due_at = 0.0 if not is_all_due else None
        if is_due or len(claims) >= free:
            self._seen = None  # there may be more
        self._end_overdue(overdue, now)
        return claims

    def _look(self) -> bool:
        """Whether a task is ready; notes when something is due, and who works."""
        [(is_ready, *instants, workers, timekeeper)] = store.TABLES.query(
            self._database, store.LOOK, (self._queues,)
        )
        if not self._timetable.is_empty:
            self._timetable.note(self._database.query(store.DUE))
            instants.append(self._timetable.due_at(timekeeper == self.name))
        due = [at for at in instants if at is not None]
        names = set(json.loads(workers)) - {self.name}
        if names != self._roster.names:
            rows = self._database.query(store.WORKERS)
            self._roster.watch([Member(*row) for row in rows if row[0] != self.name])
        if (look_at := self._roster.look_at) is not None:
            due.append(look_at)
        self._due_at = min(due, default=None)
        return bool(is_ready)

    def _written(self, connection: Connection) -> set[str]:
        """Write all outcomes; what is to be signalled."""
        names: set[str] = set()
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
            names |= found
            key = outcome.claim.limit_key
            if key is not None and rows_of(connection, store.UNBLOCKED, (key,)):
                names.add(store.TASKS_NAME)
        return names

    def _lost(self, connection: Connection, name: str, now: float) -> set[str]:
        """Give others what a worker had that has ended."""
        parameters = (
            described(WorkerLost("the process of its worker has ended"), None, now),
            now,
            _DEATHS_AT_MOST,
            name,
        )
        lost = rows_of(connection, store.LOSE, parameters)
        for _, number, task, status, crashes in lost:
            _log.warning(
                "task %d (%s) is %s: its worker %s has ended in the midst of it, the %d. time",
                number,
                task,
                status,
                name,
                crashes,
            )
        rows_of(connection, store.LEAVE, (name,))
        return {store.TASKS_NAME, *(f"{store.RESULTS_NAME}{row[1]}" for row in lost)}

    def _do_due(
        self,
        connection: Connection,
        now: float,
        names: set[str],
        overdue: list[tuple[str, int, int]],
    ) -> bool:
        """Do what is due by the clock; whether that was all of it."""
        is_all = True
        for statement in (store.EXPIRE, store.PROMOTE):
            rows = rows_of(connection, statement, (now,))
            names |= {row[0] for row in rows}
            is_all = is_all and len(rows) < store.SLICE
        overdue += rows_of(connection, store.OVERDUE, (now, store.SLICE))
        if self._timetable.enqueue(connection, now):
            names.add(store.TASKS_NAME)
        return is_all

    def _claimed(self, connection: Connection, now: float, free: int) -> list[Claim]:
        parameters = (self.name, now, self._queues, free, OVERTIME_SECONDS + _OTHERS_WAIT_SECONDS)
        rows = rows_of(connection, store.CLAIM, parameters)
        claims = [Claim(*row) for row in rows]
        claims.sort(key=lambda claim: (-claim.priority, claim.id))
        return claims

    def _end_overdue(self, overdue: list[tuple[str, int, int]], now: float) -> None:
        """Kill those who do not end what has had its time; or take it from them, if need be."""
        unreachable = []
        for worker, number, attempt in overdue:
            if worker != self.name and self._roster.kill(worker):
                _log.warning("worker %s was killed: task %d does not end", worker, number)
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
                    _log.warning(
                        "task %d does not end, and its process cannot be killed from here: it is"
                        " run again, and what it does beside the database may be done twice",
                        number,
                    )
            self._announce(connection, names)

    def _write(self, connection: Connection, sql: str, parameters: tuple[Any, ...]) -> set[str]:
        return {row[0] for row in rows_of(connection, sql, parameters)}

    def _announce(self, connection: Connection, names: set[str]) -> None:
        if names:
            self._announcement.follow(connection, sorted(names))
