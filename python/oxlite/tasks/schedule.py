"""Recurring tasks: when they are due, and that each time is enqueued once.

A time that has come is written down by the transaction that enqueues its task, and only by one.
So it does not matter how many workers know of it: the one that has been there for longest does it,
and the others a second later if it has not.

Invariants:
- No time is enqueued twice, unless the clock is set back by more than a day: what stands there is
  taken for none then, or nothing would be enqueued for as long.
- Of the times that nobody was there for, the latest is enqueued, and none of the others.
"""

import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from oxlite.own_tables import rows_of
from oxlite.sqlite3 import Connection
from oxlite.tasks import store

__all__ = ["Recurring", "Timetable", "recurring"]

_log = logging.getLogger("oxlite.tasks")

_OTHERS_WAIT_SECONDS: Final = 1.0

_SET_BACK_SECONDS: Final = 86_400.0
"""A time that has been is not so far ahead, unless the clock was."""

_MISSED_SECONDS: Final = (60.0, 3600.0, 86400.0, 32 * 86400.0, 367 * 86400.0)
"""The latest time that was missed is looked for in the last minute, then in the last hour, …"""


class Recurring(NamedTuple):
    """A task that is enqueued from time to time.

    Attributes:
        name: Of its row.
        following: The next of its times after an instant, in seconds since 1970.
        parameters: Those of ``store.ENQUEUE``, at an instant.
    """

    name: str
    following: Callable[[float], float]
    parameters: Callable[[float], tuple[Any, ...]]


def recurring(
    name: str,
    cron: str,
    time_zone: str | tzinfo,
    parameters: Callable[[float], tuple[Any, ...]],
) -> Recurring:
    """A task that is enqueued by a cron line.

    What is to be in the hour that is left out in spring is at its end. What is to be at an hour and
    minute that come twice in autumn is at the first of the two; ``*`` and ``*/30`` as the hour or
    minute mean both (as Debian's cron has it, which cronsim follows).

    Args:
        name: Of its row.
        cron: Minute, hour, day of the month, month and day of the week; of six fields the first is
            the second.
        time_zone: In which the line is read: a name such as ``Europe/Berlin``, or a ``tzinfo``.
        parameters: See ``Recurring``.

    Raises:
        ValueError: It is no cron line, or has no time to come.
        zoneinfo.ZoneInfoNotFoundError: There is no such time zone.
        ModuleNotFoundError: ``cronsim`` is not there: it comes with the extra ``tasks``.
    """
    try:
        from cronsim import CronSim, CronSimError
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "recurring tasks need cronsim: pip install 'oxlite[tasks]'"
        ) from None
    zone = ZoneInfo(time_zone) if isinstance(time_zone, str) else time_zone

    def following(after: float) -> float:
        # In the hour that comes twice it may return what has been.
        for found in CronSim(cron, datetime.fromtimestamp(after, zone)):
            if (at := found.timestamp()) > after:
                return float(at)
        raise StopIteration

    try:
        following(datetime.now(UTC).timestamp())
    except CronSimError as error:
        raise ValueError(f"{cron!r} is no cron line, such as '30 4 * * *': {error}") from None
    except StopIteration:
        raise ValueError(f"{cron!r} is a time that never comes") from None
    return Recurring(name, following, parameters)


class Timetable:
    """What is enqueued from time to time. One thread at a time uses it."""

    def __init__(self, tasks: Iterable[Recurring] = ()) -> None:
        self._tasks = {each.name: each for each in tasks}
        self._next: dict[str, float] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing recurs."""
        return not self._tasks

    def begin(self, connection: Connection, now: float) -> None:
        """Note from when on those count that nobody has known before."""
        if self._tasks:
            names = json.dumps([[name, now] for name in self._tasks])
            rows_of(connection, store.SCHEDULES, (names,))

    def note(self, rows: Iterable[tuple[str, float]], now: float) -> None:
        """Note up to when they have been enqueued, by whomever: name and instant."""
        for name, due_at in rows:
            if (task := self._tasks.get(name)) is not None:
                if due_at > now + _SET_BACK_SECONDS:
                    if self._next.get(name, due_at) >= due_at:
                        _log.warning(
                            "the clock was set back since %s was enqueued last: it goes on", name
                        )
                        self._next[name] = task.following(now)
                    continue
                self._next[name] = task.following(max(due_at, now - _MISSED_SECONDS[-1]))

    def due_at(self, is_first: bool) -> float | None:
        """When the next one is due, for who is the first to see to it, or another one."""
        earliest = min(self._next.values(), default=None)
        if earliest is None or is_first:
            return earliest
        return earliest + _OTHERS_WAIT_SECONDS

    def enqueue(self, connection: Connection, now: float) -> bool:
        """Enqueue what is due, as part of the transaction that is open; whether anything was."""
        is_any = False
        for name, task in self._tasks.items():
            due_at = self._next.get(name)
            if due_at is None or due_at > now:
                continue
            due_at = _latest(task, due_at, now)
            if rows_of(connection, store.SCHEDULE, (name, due_at, now + _SET_BACK_SECONDS)):
                rows_of(connection, store.ENQUEUE, task.parameters(now))
                is_any = True
            self._next[name] = task.following(max(due_at, now))
        return is_any


def _latest(task: Recurring, due_at: float, now: float) -> float:
    """The latest time of a task's until now, of which one is known."""
    for seconds in _MISSED_SECONDS:
        found, at = due_at, task.following(max(due_at, now - seconds))
        while at <= now:
            found, at = at, task.following(at)
        if found > due_at:
            return found
    return due_at
