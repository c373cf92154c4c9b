"""The application: its tables, and tasks of every kind, each attempt of which leaves a row.

Invariants:
- ``effect`` is only appended to: who has run how often is counted there, whatever tasks say.
- Who may not run beside another takes a lock of the kernel's, which ends with its process, however
  that ends. Where none is free somebody runs who may not.
"""

import fcntl
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from oxlite.tasks import Queue, Task, TaskContext, TaskOptions

__all__ = [
    "BULK",
    "EXACT",
    "EXACT_UNKEPT",
    "FLAKY",
    "FLAKY_FAILURES",
    "HOPELESS",
    "HOPELESS_RETRIES",
    "LATER",
    "LIMIT",
    "LIMITED",
    "OVERLAPS",
    "PATIENT",
    "PLAIN",
    "POISON",
    "POISONED",
    "RETRIES",
    "SCHEMA",
    "TICK",
    "UNIQUE",
    "WITHDRAWN",
    "Application",
    "limit_key",
    "path_of",
    "unique_key",
]

PLAIN: Final = "plain"
"""Leaves its row by a transaction of its own: after a kill it may have two."""
EXACT: Final = "exact"
"""Leaves its row by the transaction that ends it: there is one, whatever happens."""
EXACT_UNKEPT: Final = "exact unkept"
"""The same, and its own row is gone with its end."""
BULK: Final = "bulk"
"""As plain ones, enqueued by many; its own row is gone with its end."""
FLAKY: Final = "flaky"
"""Fails some times, and then does not."""
HOPELESS: Final = "hopeless"
"""Fails always."""
LIMITED: Final = "limited"
"""Runs beside a few others of its key at the most."""
UNIQUE: Final = "unique"
"""Waits or runs once for each key."""
LATER: Final = "later"
"""Is enqueued for a moment to come."""
POISON: Final = "poison"
"""Kills the process that runs it."""
TICK: Final = "tick"
"""Recurs each second."""
PATIENT: Final = "patient"
"""Takes long enough to be met in its midst."""

WITHDRAWN: Final = "withdrawn"
"""Is cancelled by who has enqueued it: before it runs, in its midst, or too late."""

LIMIT: Final = 2
RETRIES: Final = 30
"""A file that is locked for too long, by somebody who is stopped, is no task's fault."""
FLAKY_FAILURES: Final = 2
HOPELESS_RETRIES: Final = 2

OVERLAPS: Final = "overlaps"
"""The file in which it stands who ran beside more than he may."""
POISONED: Final = "poisoned"
"""The file in which it stands who was killed by a task, and when."""

SCHEMA: Final = """
CREATE TABLE effect (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  kind TEXT NOT NULL,
  tag TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  at REAL NOT NULL,
  pid INTEGER NOT NULL
);
CREATE INDEX effect_by_task ON effect (task);
CREATE TABLE purchase (tag TEXT PRIMARY KEY) WITHOUT ROWID;
"""

_LIMIT_KEYS: Final = 5
_UNIQUE_KEYS: Final = 7
_LONGEST_SECONDS: Final = 0.002
_PATIENT_SECONDS: Final = 0.03
_HELD_SECONDS: Final = 0.02

_INSERT: Final = "INSERT INTO effect (task, kind, tag, attempt, at, pid) VALUES (?, ?, ?, ?, ?, ?)"


def path_of(folder: Path) -> Path:
    """The database."""
    return folder / "tasks.db"


def limit_key(tag: str) -> str:
    """That of a limited task."""
    return f"limit-{int(tag.split('.')[1]) % _LIMIT_KEYS}"


def unique_key(tag: str) -> str:
    """That of a unique task."""
    return f"unique-{int(tag.split('.')[1]) % _UNIQUE_KEYS}"


class Application:
    """See the module. A process makes it for itself, after it was forked.

    Args:
        folder: Where its files are.

    Attributes:
        queue: That of all tasks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._random = random.Random(os.getpid())
        self.queue = queue = Queue(path_of(folder))
        kept = {
            PLAIN: self._plain,
            LATER: self._plain,
            EXACT: self._exact,
            FLAKY: self._flaky,
            POISON: self._poison,
            PATIENT: self._patient,
            WITHDRAWN: self._patient,
        }
        for name, function in kept.items():
            queue.task(name=name, takes_context=True, **_retried)(function)
        queue.task(name=BULK, takes_context=True, keep=0, **_retried)(self._plain)
        queue.task(name=EXACT_UNKEPT, takes_context=True, keep=0, **_retried)(self._exact)
        queue.task(name=HOPELESS, takes_context=True, retries=HOPELESS_RETRIES, retry_delay=0.005)(
            self._hopeless
        )
        queue.task(name=LIMITED, takes_context=True, limit=LIMIT, limit_key=limit_key, **_retried)(
            self._limited
        )
        queue.task(name=UNIQUE, takes_context=True, unique_key=unique_key, **_retried)(self._unique)
        queue.task(name=TICK, takes_context=True, cron="* * * * * *", **_retried)(self._tick)

    def task(self, kind: str) -> Task[..., object]:
        """The task of that kind."""
        return self.queue.tasks[kind]

    def _effect(self, context: TaskContext, tag: str) -> None:
        row = (context.id, context.name, tag, context.attempt, time.time(), os.getpid())
        self._pause()
        self.queue.database.execute(_INSERT, row)
        self._pause()

    def _pause(self) -> None:
        if self._random.random() < 0.3:
            time.sleep(self._random.uniform(0, _LONGEST_SECONDS))

    def _plain(self, context: TaskContext, tag: str) -> None:
        self._effect(context, tag)

    def _patient(self, context: TaskContext, tag: str) -> None:
        self._effect(context, tag)
        time.sleep(self._random.uniform(0, _PATIENT_SECONDS))

    def _exact(self, context: TaskContext, tag: str) -> None:
        row = (context.id, context.name, tag, context.attempt, time.time(), os.getpid())
        self._pause()
        with context.finish() as connection:
            connection.execute(_INSERT, row)
        self._pause()

    def _flaky(self, context: TaskContext, tag: str) -> None:
        if context.attempt <= FLAKY_FAILURES:
            raise ValueError(tag)
        self._effect(context, tag)

    def _hopeless(self, context: TaskContext, tag: str) -> None:
        raise ValueError(tag)

    def _poison(self, context: TaskContext, tag: str) -> None:
        _append(self._folder / POISONED, f"{os.getpid()} {time.time()}\n")
        os.kill(os.getpid(), signal.SIGKILL)

    def _limited(self, context: TaskContext, tag: str) -> None:
        with self._place(limit_key(tag), LIMIT, context):
            self._effect(context, tag)

    def _unique(self, context: TaskContext, tag: str) -> None:
        with self._place(unique_key(tag), 1, context):
            self._effect(context, tag)

    def _tick(self, context: TaskContext) -> None:
        self._effect(context, "")

    @contextmanager
    def _place(self, key: str, count: int, context: TaskContext) -> Iterator[None]:
        """Be one of so many."""
        for number in range(count):
            # Not a file that is open already: its lock is this process's, not this thread's.
            lock = os.open(self._folder / f"{key}.{number}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            try:
                # Others that run beside it are to meet it.
                if self._random.random() < 0.3:
                    time.sleep(self._random.uniform(0, _HELD_SECONDS))
                yield
            finally:
                os.close(lock)
            return
        what = f"task {context.id}, attempt {context.attempt}, runs beside {count} of {key}\n"
        _append(self._folder / OVERLAPS, what)
        yield


_retried: Final[TaskOptions] = {
    "retries": RETRIES,
    "retry_delay": 0.01,
    "retry_delay_at_most": 0.2,
}


def _append(path: Path, text: str) -> None:
    """At once, and whatever becomes of this process."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.write(descriptor, text.encode())
    os.close(descriptor)
