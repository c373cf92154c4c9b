"""What must be in the file when all has come to rest, whoever was killed.

It runs in a process of its own, which opens the file as any program does, with the standard
library's SQLite, and wakes nobody.

Invariant: what was acknowledged, what was rolled back and who was killed is known from elsewhere
than the file.
"""

import json
import os
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.kill_campaigns import WrongError
from tests.tasks_kills.application import (
    BULK,
    EXACT,
    EXACT_UNKEPT,
    HOPELESS,
    HOPELESS_RETRIES,
    OVERLAPS,
    POISON,
    POISONED,
    TICK,
    WITHDRAWN,
    path_of,
)
from tests.tasks_kills.enqueuers import CANCELLED, ENQUEUED, REFUSED, ROLLED_BACK, SAID
from tests.tasks_kills.timeline import Recovery, Timeline

__all__ = ["DEATHS_AT_MOST", "Findings", "judge"]

DEATHS_AT_MOST: Final = 3
"""After so many deaths of its process a task is set aside."""

_STUCK_AFTER_SECONDS: Final = 12.0
"""Nothing has changed for so long, and something waits or runs."""

_LOOK_SECONDS: Final = 0.05
_SHOWN: Final = 5
_TICK_IS_RECENT_SECONDS: Final = 3.0
_UNFINISHED: Final = "('ready', 'running', 'scheduled', 'blocked')"


@dataclass
class Findings:
    """What was found, in numbers.

    Attributes:
        tasks: How many there have been.
        acknowledged: Of how many those who have enqueued them had heard.
        rolled_back: How many were not to be there, and were not.
        refused: How many could not be enqueued.
        unheard: How many are there that nobody was told of.
        doubled: Plain ones that left more than one row.
        exact: How many left theirs by the transaction that ended them.
        poisoned: How often a task killed its process.
        set_aside: How many are failed, and may be.
        innocent: Of these, how many by the deaths that others had caused.
        cancelled: How many are, and had not begun or did not run again.
        ticks: How many times of the recurring one there were.
        recoveries: Of tasks that a killed process had.
    """

    tasks: int = 0
    acknowledged: int = 0
    rolled_back: int = 0
    refused: int = 0
    unheard: int = 0
    doubled: int = 0
    exact: int = 0
    poisoned: int = 0
    set_aside: int = 0
    innocent: int = 0
    cancelled: int = 0
    ticks: int = 0
    recoveries: list[Recovery] = field(default_factory=list)


class _Effect(NamedTuple):
    task: int
    kind: str
    tag: str
    attempt: int
    at: float
    pid: int


class _Task(NamedTuple):
    id: int
    kind: str
    tag: str
    status: str
    attempt: int
    failures: int
    crashes: int
    enqueued_at: float
    attempted_at: float | None
    errors: str | None


def judge(folder: Path, timeline: Timeline, since: float, report: Path) -> None:
    """Wait until all has come to rest, and look at it.

    Args:
        folder: That of the application.
        timeline: What was done to its processes.
        since: Recoveries are counted from there on.
        report: Where the findings are written.

    Raises:
        WrongError: Something is not as it should be.
    """
    path = path_of(folder)
    with closing(sqlite3.connect(path, timeout=20.0, isolation_level=None)) as connection:
        _wait_for_rest(connection)
        _see_workers(connection)
        found = _Look(connection, folder, timeline, since)
    wrong = list(found.wrong())
    if wrong:
        shown = "\n".join(wrong[:_SHOWN])
        raise WrongError(f"{len(wrong)} things are wrong:\n{shown}")
    report.write_text(json.dumps(asdict(found.findings())))


def _wait_for_rest(connection: sqlite3.Connection) -> None:
    """Until nothing waits or runs."""
    sql = f"SELECT id, name, status, attempt, worker, run_after FROM oxlite_task WHERE status IN {_UNFINISHED} LIMIT 1000"  # noqa: E501
    before: list[tuple[object, ...]] = []
    changed = time.monotonic()
    while True:
        try:
            rows = connection.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return
        # There is always a next time of what recurs.
        rows = [row for row in rows if row[1] != TICK or row[2] != "ready"]
        if not rows:
            return
        if rows != before:
            before, changed = rows, time.monotonic()
        elif time.monotonic() - changed > _STUCK_AFTER_SECONDS:
            workers = connection.execute("SELECT * FROM oxlite_task_worker").fetchall()
            raise WrongError(
                f"{len(rows)} tasks are stuck at {time.time():.3f}: {rows[:_SHOWN]}; there are"
                f" {[(worker, _lives(worker[2])) for worker in workers]}"
            )
        time.sleep(_LOOK_SECONDS)


def _see_workers(connection: sqlite3.Connection) -> None:
    """Nobody stands in the file who does not live."""
    ends = time.monotonic() + _STUCK_AFTER_SECONDS
    while True:
        try:
            rows = connection.execute("SELECT name, pid FROM oxlite_task_worker").fetchall()
        except sqlite3.OperationalError:
            return
        dead = [name for name, pid in rows if not _lives(pid)]
        if not dead:
            return
        if time.monotonic() > ends:
            raise WrongError(f"these are dead, and stand in the file: {dead}, of {rows}")
        time.sleep(_LOOK_SECONDS)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class _Look:
    """All that is in the file, and beside it."""

    def __init__(
        self, connection: sqlite3.Connection, folder: Path, timeline: Timeline, since: float
    ) -> None:
        self._timeline = timeline
        self._since = since
        self._recoveries: list[Recovery] = []
        # What is said is acknowledged before this.
        self._said = [
            line.split()
            for life in sorted((folder / SAID).iterdir())
            for line in life.read_text().splitlines()
        ]
        self._overlaps = _lines(folder / OVERLAPS)
        self._crash_log = [line for line in _lines(folder / "log") if "Exception in thread" in line]
        connection.execute("BEGIN")
        now = time.time()
        has_tasks = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'oxlite_task'"
        ).fetchone()[0]
        rows = (
            connection.execute(
                """SELECT id, name, coalesce(arguments ->> '$[0][0]', ''), status, attempt,
                  failures, crashes, enqueued_at, attempted_at, errors FROM oxlite_task"""
            )
            if has_tasks
            else []
        )
        self._tasks = {row[0]: _Task(*row) for row in rows}
        self._effects: dict[int, list[_Effect]] = defaultdict(list)
        for row in connection.execute(
            "SELECT task, kind, tag, attempt, at, pid FROM effect ORDER BY id"
        ):
            self._effects[row[0]].append(_Effect(*row))
        self._purchases = {tag for (tag,) in connection.execute("SELECT tag FROM purchase")}
        self._checked = connection.execute("PRAGMA integrity_check").fetchall()
        connection.execute("COMMIT")
        # After the rows: whoever is in them was killed before that.
        self._killed = dict(timeline.kills)
        self._poisoned = _lines(folder / POISONED)
        for line in self._poisoned:
            pid, at = line.split()
            self._killed[int(pid)] = float(at)
        timeline.kills.update(self._killed)
        self._recent = now - _TICK_IS_RECENT_SECONDS
        self._tags: dict[str, set[int]] = defaultdict(set)
        for task in self._tasks.values():
            if task.kind != TICK:
                self._tags[task.tag].add(task.id)
        for effects in self._effects.values():
            for effect in effects:
                if effect.kind != TICK:
                    self._tags[effect.tag].add(effect.task)

    def wrong(self) -> Iterator[str]:
        """What is not as it should be."""
        if self._checked != [("ok",)]:
            yield f"corrupt: {self._checked}"
        yield from self._overlaps
        yield from self._crash_log
        yield from self._wrongly_said()
        for number, effects in self._effects.items():
            yield from self._wrong_effects(number, effects)
        for task in self._tasks.values():
            yield from self._wrong_task(task)
        yield from self._wrong_ticks()

    def findings(self) -> Findings:
        """In numbers. After ``wrong``."""
        said = Counter(words[0] for words in self._said)
        heard = {words[1] for words in self._said if words[0] == ENQUEUED}
        failed = [task for task in self._tasks.values() if task.status == "failed"]
        effects = [each for some in self._effects.values() for each in some]
        return Findings(
            tasks=len(self._tasks.keys() | self._effects.keys()),
            acknowledged=said[ENQUEUED],
            rolled_back=said[ROLLED_BACK],
            refused=said[REFUSED],
            unheard=len(self._tags.keys() - heard),
            doubled=sum(len(some) > 1 for some in self._effects.values()),
            exact=sum(each.kind in (EXACT, EXACT_UNKEPT) for each in effects),
            poisoned=len(self._poisoned),
            set_aside=len(failed),
            cancelled=sum(task.status == "cancelled" for task in self._tasks.values()),
            innocent=sum(task.kind not in (POISON, HOPELESS) for task in failed),
            ticks=sum(task.kind == TICK for task in self._tasks.values()),
            recoveries=self._recoveries,
        )

    def _wrongly_said(self) -> Iterator[str]:
        """What was acknowledged is there, once; what was rolled back is not."""
        for what, tag, *rest in self._said:
            if what == CANCELLED:
                yield from self._wrongly_cancelled(int(rest[0]), rest[1])
            elif what == ENQUEUED:
                number, is_new = int(rest[0]), rest[1] == "1"
                if number not in self._tasks and number not in self._effects:
                    yield f"lost: {tag}, which is task {number}"
                if is_new and self._tags.get(tag) != {number}:
                    yield f"{tag} is task {number}, and is {self._tags.get(tag)}"
            elif tag in self._tags or tag in self._purchases:
                yield f"{what}, and there: {tag}, as {self._tags.get(tag)}"
        for tag in self._purchases:
            if tag not in self._tags:
                yield f"committed without its task: {tag}"
        for tag, tasks in self._tags.items():
            if len(tasks) > 1:
                yield f"{tag} is there as {tasks}"

    def _wrongly_cancelled(self, number: int, answer: str) -> Iterator[str]:
        """What was cancelled before it ran has not run since; what had begun has ended."""
        task = self._tasks.get(number)
        possible = {
            "cancelled": ("cancelled",),
            "running": ("cancelled", "successful"),
            "None": ("successful",),
        }[answer]
        if task is not None and task.status not in possible and task.crashes < DEATHS_AT_MOST:
            yield f"was cancelled, and was {answer} then: {task}"

    def _wrong_effects(self, task: int, effects: list[_Effect]) -> Iterator[str]:
        """Each attempt has one at most; all but the last are of processes that were killed."""
        attempts = [effect.attempt for effect in effects]
        if len(set(attempts)) < len(attempts) or attempts != sorted(attempts):
            yield f"task {task} has run as attempts {attempts}: {effects}"
        if len(effects) > 1 and effects[0].kind in (EXACT, EXACT_UNKEPT):
            yield f"task {task} was finished {len(effects)} times: {effects}"
        for effect in effects[:-1]:
            if effect.pid not in self._killed:
                yield (
                    f"task {task} has run again, and nobody was killed: {effects};"
                    f" {self._timeline.story(effect.pid)}"
                )
        if task not in self._tasks and effects[0].kind not in (BULK, EXACT_UNKEPT):
            yield f"task {task} is gone: {effects}"

    def _wrong_task(self, task: _Task) -> Iterator[str]:
        effects = self._effects.get(task.id, [])
        last = effects[-1].attempt if effects else 0
        if last > task.attempt:
            yield f"has run after its end: {task}, {effects}"
        if task.status == "successful":
            if task.kind in (BULK, EXACT_UNKEPT):
                yield f"is to be gone: {task}"
            if last != task.attempt:
                yield f"has not done what it is successful for: {task}, {effects}"
            if task.attempt != 1 + task.failures + task.crashes:
                yield f"was begun for no reason: {task}"
        elif task.status == "failed":
            yield from self._wrong_failure(task)
        elif task.status == "cancelled":
            if task.kind != WITHDRAWN or task.attempt != task.failures + task.crashes:
                yield f"is cancelled, and was not to be, or was begun after that: {task}"
        elif task.kind != TICK or task.enqueued_at < self._recent:
            yield f"is left: {task}"
        elif task.status not in ("ready", "running"):
            yield f"is strange: {task}"
        yield from self._wrong_deaths(task, effects)

    def _wrong_failure(self, task: _Task) -> Iterator[str]:
        if task.attempt != task.failures + task.crashes:
            yield f"was begun for no reason: {task}"
        is_hopeless = task.kind == HOPELESS and task.failures == HOPELESS_RETRIES + 1
        if task.crashes != DEATHS_AT_MOST and not is_hopeless:
            yield f"has failed: {task}"
        if task.kind == POISON and task.failures:
            yield f"has failed otherwise: {task}"

    def _wrong_deaths(self, task: _Task, effects: list[_Effect]) -> Iterator[str]:
        """Each crash is the death of a process that was killed."""
        errors = json.loads(task.errors or "[]")
        deaths = [error for error in errors if error["class"].endswith(".WorkerLost")]
        if len(deaths) != task.crashes:
            yield f"has {len(deaths)} deaths: {task}"
        begun = {effect.attempt: effect.at for effect in effects}
        if task.attempted_at is not None:
            begun.setdefault(task.attempt, task.attempted_at)
        for death in deaths:
            pid = int(death["worker"].split(".")[-2])
            if pid not in self._killed:
                yield (
                    f"has lost a worker that was not killed, {death['worker']}: {task};"
                    f" {self._timeline.story(pid)}"
                )
            elif (began := begun.get(death["attempt"] + 1)) and self._killed[pid] > self._since:
                self._recoveries.append(self._timeline.recovery(pid, began))

    def _wrong_ticks(self) -> Iterator[str]:
        """Each second once: whoever enqueues one does so for the latest second."""
        seconds = Counter(
            int(task.enqueued_at) for task in self._tasks.values() if task.kind == TICK
        )
        for second, count in seconds.items():
            if count > 1:
                yield f"{count} times at {second}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
