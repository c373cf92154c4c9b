"""Where threads that run tasks hand in what came of one, and are given the next.

There is no thread that does this for them. Whoever comes first serves: he writes what all have
handed in and claims for all who are free, in one transaction; then he takes one of the tasks
himself, and another who is free serves, who waits for news if there is nothing to do. So a thread
alone goes from task to task without any other, and a task that comes to an idle worker is run by
the thread that has heard of it.

Invariants:
- One thread at a time serves, and there is always one who does while somebody is free.
- What was handed in is written by who serves, also when the desk is closed.
- Nothing is given out that was claimed, and handed back to others meanwhile.
"""

import logging
import threading
from collections import deque
from queue import SimpleQueue
from typing import Final

from oxlite.sqlite3 import ProgrammingError
from oxlite.tasks.claim import Claim, Outcome
from oxlite.tasks.clerk import Clerk, FileReplaced

__all__ = ["Desk", "Seat"]

_log = logging.getLogger("oxlite.tasks")

_SERVE: Final = object()
_END: Final = object()


class Seat:
    """A thread's place at the desk: by which it is told to go on."""

    def __init__(self) -> None:
        self.told: SimpleQueue[object] = SimpleQueue()


class Desk:
    """See the module."""

    def __init__(self, clerk: Clerk) -> None:
        self._clerk = clerk
        self._lock = threading.Lock()
        self._outcomes: list[Outcome] = []
        self._free: deque[Seat] = deque()
        self._running: dict[int, Claim] = {}
        self._is_served = self._is_waiting = self._is_closed = self._has_left = False

    @property
    def running(self) -> list[Claim]:
        """The tasks that were given to somebody, and have not come to anything yet."""
        with self._lock:
            return list(self._running.values())

    def next(self, seat: Seat, ended: Claim | None, outcome: Outcome | None) -> Claim | None:
        """Hand in what has come of a task, and wait for the next one.

        Args:
            seat: The thread's.
            ended: What it was given before.
            outcome: What has come of it; ``None`` if that is written already.

        Returns:
            The next task; ``None`` if there is none any more.
        """
        with self._lock:
            self._note(ended, outcome)
            self._free.append(seat)
            serves = not self._is_served
            self._is_served = True
            is_waiting = self._is_waiting and (outcome is not None or self._is_closed)
        if not serves:
            if is_waiting:
                self._clerk.ring()
            told = seat.told.get()
            if told is not _SERVE:
                return told if isinstance(told, Claim) else None
        return self._served(seat)

    def leave(self, ended: Claim, outcome: Outcome) -> None:
        """Hand in what has come of a task, and take no other one."""
        with self._lock:
            self._note(ended, outcome)
            serves = not self._is_served
            self._is_served = True
        if not serves:
            self._clerk.ring()
            return
        self._clerk.round(self._handed_in(), 0, self._given_out)
        with self._lock:
            self._pass_on()

    def close(self) -> None:
        """Give out no more tasks. From any thread, and from a signal handler."""
        self._is_closed = True
        self._clerk.ring()

    def leave_all(self) -> list[Outcome]:
        """Give out nothing more, although it was claimed: all of it is handed back now.

        Returns:
            What was handed in, and is not written.
        """
        self.close()
        with self._lock:
            self._has_left = True
        return self._handed_in()

    def _note(self, ended: Claim | None, outcome: Outcome | None) -> None:
        if ended is not None:
            self._running.pop(ended.id, None)
        if outcome is not None:
            self._outcomes.append(outcome)

    def _handed_in(self) -> list[Outcome]:
        with self._lock:
            outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def _given_out(self) -> list[int]:
        """The tasks that somebody has, or has handed in since the clerk was called."""
        with self._lock:
            return [*self._running, *(outcome.claim.id for outcome in self._outcomes)]

    def _served(self, seat: Seat) -> Claim | None:
        """Serve, until there is a task for oneself, or none any more."""
        try:
            return self._serve(seat)
        except BaseException:
            with self._lock:
                if seat in self._free:
                    self._free.remove(seat)
                self._is_waiting = False
                self._pass_on()
            raise

    def _serve(self, seat: Seat) -> Claim | None:
        while True:
            outcomes = self._handed_in()
            free = 0 if self._is_closed else len(self._free)
            try:
                claims = self._clerk.round(outcomes, free, self._given_out)
            except (ProgrammingError, FileReplaced) as error:
                # Nothing can be written any more, whatever one waits for.
                _log.critical("the worker ends: %s", error)
                self._is_closed, claims = True, []
            with self._lock:
                if claims or (self._is_closed and not self._outcomes):
                    return self._given(seat, claims)
                self._is_waiting = not self._outcomes
            if self._is_waiting:
                self._clerk.wait()
                self._is_waiting = False

    def _given(self, seat: Seat, claims: list[Claim]) -> Claim | None:
        """With the lock: give tasks to who is free, and the first to who serves."""
        self._free.remove(seat)
        if self._has_left:
            claims = []  # they were handed back
        mine = claims[0] if claims else None
        for claim in claims:
            self._running[claim.id] = claim
        for claim in claims[1:]:
            self._free.popleft().told.put(claim)
        self._pass_on()
        return mine

    def _pass_on(self) -> None:
        """With the lock: have another one serve, if there is one who is free and a reason to."""
        if self._free and (self._outcomes or not self._is_closed):
            self._free[0].told.put(_SERVE)
            return
        for other in self._free:
            other.told.put(_END)
        self._free.clear()
        self._is_served = False
