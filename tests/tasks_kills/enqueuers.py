"""Processes that enqueue tasks until they are told to end, and say what was acknowledged.

Four kinds: each task a transaction of its own, many in one, as a part of the application's own
transaction, which is committed or rolled back, and another program, which inserts with the standard
library's SQLite.

Invariant: what stands in the file of a life was acknowledged, or rolled back, before it was
written there; it is written at once, and outlives the process.
"""

import mmap
import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.tasks_kills.application import (
    BULK,
    EXACT,
    EXACT_UNKEPT,
    FLAKY,
    HOPELESS,
    LATER,
    LIMIT,
    LIMITED,
    PATIENT,
    PLAIN,
    POISON,
    RETRIES,
    UNIQUE,
    WITHDRAWN,
    Application,
    limit_key,
    path_of,
)

import oxlite
from oxlite.sqlite3 import OperationalError
from oxlite.tasks import TaskOptions

__all__ = ["CANCELLED", "ENQUEUED", "MODES", "REFUSED", "ROLLED_BACK", "SAID", "Orders", "enqueue"]

SAID: Final = "said"
"""The folder of what each life says."""

ENQUEUED: Final = "enqueued"
"""A tag, the task's number, and whether it is new."""
ROLLED_BACK: Final = "rolled-back"
"""A tag."""
REFUSED: Final = "refused"
"""A tag that could not be enqueued: somebody who is stopped has the lock."""

CANCELLED: Final = "cancelled"
"""A tag, the task's number, and what the answer was: the task's status, or ``None``."""

OWN: Final = "own"
MANY: Final = "many"
WITHIN: Final = "within"
FOREIGN: Final = "foreign"
MODES: Final = (OWN, MANY, WITHIN, FOREIGN)

_WAITS_SECONDS: Final = 0.002
_FOREIGN_TIMEOUT_SECONDS: Final = 5.0
_SOON_SECONDS: Final = 0.05
_KINDS: Final = {
    PLAIN: 300,
    EXACT: 250,
    EXACT_UNKEPT: 50,
    FLAKY: 30,
    HOPELESS: 10,
    LIMITED: 120,
    UNIQUE: 60,
    LATER: 100,
    PATIENT: 60,
    WITHDRAWN: 150,
    POISON: 1,
}
_INSERT: Final = """INSERT INTO oxlite_task (name, arguments, priority, run_after, limit_key,
  limit_count, retries, keep_seconds)
VALUES (?, json_array(json_array(?), json_object()), ?, ?, ?, ?, ?, ?)"""


class Orders:
    """What the campaign asks of all who enqueue, in memory that they share.

    Attributes:
        words: Whether to end; how many tasks there are to be; how many each slot has enqueued.
    """

    def __init__(self, slots: int) -> None:
        self.words = memoryview(mmap.mmap(-1, 8 * (2 + slots))).cast("Q")

    @property
    def is_over(self) -> bool:
        """Whether those who enqueue are to end."""
        return bool(self.words[0])

    @is_over.setter
    def is_over(self, value: bool) -> None:
        self.words[0] = int(value)

    @property
    def allowed(self) -> int:
        """How many tasks there are to be in all."""
        return self.words[1]

    @allowed.setter
    def allowed(self, value: int) -> None:
        self.words[1] = value

    @property
    def enqueued(self) -> int:
        """How many there are, as those say who have enqueued them."""
        return sum(self.words[2:])

    def note(self, slot: int, count: int) -> None:
        """Count some; a slot is one process's."""
        self.words[2 + slot] += count


class _Enqueuer:
    def __init__(self, folder: Path, life: int, mode: str) -> None:
        self._folder = folder
        self._life = life
        self._random = random.Random(f"enqueuer {life}")
        self._number = 0
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
        self._said = os.open(folder / SAID / f"{life}", flags)
        self._is_foreign = mode == FOREIGN

    def tag(self) -> str:
        self._number += 1
        return f"{self._life}.{self._number}"

    def say(self, what: str, *words: object) -> None:
        self.say_all([(what, *words)])

    def say_all(self, lines: list[tuple[object, ...]]) -> None:
        text = "".join(" ".join(map(str, line)) + "\n" for line in lines)
        os.write(self._said, text.encode())

    def kind(self) -> str:
        return self._random.choices([*_KINDS], [*_KINDS.values()])[0]

    def options(self, kind: str) -> TaskOptions:
        found: TaskOptions = {"priority": self._random.choice((0, 0, 0, 5))}
        if kind == LATER:
            found["run_after"] = self._random.uniform(0, _SOON_SECONDS)
        return found

    def own(self, application: Application) -> int:
        """A transaction for each."""
        kind, tag = self.kind(), self.tag()
        task = application.task(kind).using(**self.options(kind))
        try:
            result = task.enqueue(tag)
        except OperationalError:
            self.say(REFUSED, tag)
            return 0
        self.say(ENQUEUED, tag, result.id, int(result.is_new))
        if kind == WITHDRAWN:
            self.withdraw(application, tag, result.id)
        return 1

    def withdraw(self, application: Application, tag: str, number: int) -> None:
        """Cancel a task, at once or a little later."""
        time.sleep(self._random.choice((0.0, self._random.uniform(0, _SOON_SECONDS))))
        try:
            answer = application.queue.cancel(number)
        except OperationalError:
            return
        self.say(CANCELLED, tag, number, answer)

    def many(self, application: Application) -> int:
        """Many in one."""
        kind = self._random.choice((BULK, BULK, BULK, EXACT_UNKEPT, PLAIN, LIMITED))
        tags = [self.tag() for _ in range(self._random.choice((1, 10, 100, 300)))]
        try:
            results = application.queue.enqueue_many(
                application.task(kind), [(tag,) for tag in tags]
            )
        except OperationalError:
            self.say_all([(REFUSED, tag) for tag in tags])
            return 0
        self.say_all(
            [
                (ENQUEUED, tag, result.id, int(result.is_new))
                for tag, result in zip(tags, results, strict=True)
            ]
        )
        return len(tags)

    def within(self, application: Application, connection: oxlite.sqlite3.Connection) -> int:
        """As a part of the application's own transaction."""
        tags = [self.tag() for _ in range(self._random.choice((1, 1, 1, 4)))]
        commits = self._random.random() < 0.7
        lines: list[tuple[object, ...]] = []
        try:
            connection.execute(self._random.choice(("BEGIN", "BEGIN IMMEDIATE")))
            for tag in tags:
                kind = self.kind()
                if kind == UNIQUE:
                    kind = PLAIN
                connection.execute("INSERT INTO purchase VALUES (?)", (tag,))
                task = application.task(kind).using(
                    connection=connection,
                    **self.options(kind),
                )
                result = task.enqueue(tag)
                lines.append((ENQUEUED, tag, result.id, int(result.is_new)))
            connection.execute("COMMIT" if commits else "ROLLBACK")
        except OperationalError:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self.say_all([(REFUSED, tag) for tag in tags])
            return 0
        self.say_all(lines if commits else [(ROLLED_BACK, tag) for tag in tags])
        return len(tags)

    def foreign(self, connection: sqlite3.Connection) -> int:
        """Another program's."""
        kind = self._random.choice((PLAIN, PLAIN, EXACT, LIMITED, LATER))
        tags = [self.tag() for _ in range(self._random.choice((1, 1, 1, 5)))]
        lines: list[tuple[object, ...]] = []
        commits = self._random.random() < 0.9
        try:
            connection.execute("BEGIN IMMEDIATE")
            for tag in tags:
                later = time.time() + self._random.uniform(0, _SOON_SECONDS)
                limit = (limit_key(tag), LIMIT) if kind == LIMITED else (None, None)
                options = self.options(PLAIN)["priority"], later if kind == LATER else None
                row = (kind, tag, *options, *limit, RETRIES, 1000.0)
                number = connection.execute(_INSERT, row).lastrowid
                connection.execute("INSERT INTO purchase VALUES (?)", (tag,))
                lines.append((ENQUEUED, tag, number, 1))
            connection.execute("COMMIT" if commits else "ROLLBACK")
        except sqlite3.OperationalError:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self.say_all([(REFUSED, tag) for tag in tags])
            time.sleep(_WAITS_SECONDS)  # the tables are not there yet, perhaps
            return 0
        self.say_all(lines if commits else [(ROLLED_BACK, tag) for tag in tags])
        return len(tags)


def enqueue(folder: Path, life: int, mode: str, slot: int, orders: Orders) -> None:
    """Enqueue until it is over.

    Args:
        folder: That of the application.
        life: The number of the process; never given twice.
        mode: One of ``MODES``.
        slot: Its place in the orders.
        orders: Those of the campaign.
    """
    enqueuer = _Enqueuer(folder, life, mode)
    if mode == FOREIGN:
        timeout = _FOREIGN_TIMEOUT_SECONDS
        with closing(
            sqlite3.connect(path_of(folder), timeout=timeout, isolation_level=None)
        ) as foreign:
            _go_on(lambda: enqueuer.foreign(foreign), slot, orders)
        return
    application = Application(folder)
    if mode == WITHIN:
        with closing(oxlite.connect(path_of(folder), isolation_level=None)) as connection:
            _go_on(lambda: enqueuer.within(application, connection), slot, orders)
    elif mode == OWN:
        _go_on(lambda: enqueuer.own(application), slot, orders)
    else:
        _go_on(lambda: enqueuer.many(application), slot, orders)
    application.queue.close()


def _go_on(step: Callable[[], int], slot: int, orders: Orders) -> None:
    while not orders.is_over:
        if orders.enqueued >= orders.allowed:
            time.sleep(_WAITS_SECONDS)
        else:
            orders.note(slot, step())
