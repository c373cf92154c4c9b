"""What those do who listen, until they are killed: each logs what it is told, then asks for more.

A process has one listener or two, in threads or in an event loop, of one ``Database`` or of two.

Invariants:
- a line of a log is one write to a file, so that it is there although its process is killed;
- whoever is told that something is lost goes on from where he is told to.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tests.notify_kills.chain import FRESH, LOST, NOTE, SINCE
from tests.notify_kills.publishers import TIMEOUT_SECONDS

import oxlite
import oxlite.aio
from oxlite import sqlite3

_PAUSE_SECONDS = 0.001
_AGAIN_AT_MOST = 40
_LATEST = "SELECT max(id) FROM oxlite_notification"


@dataclass(frozen=True)
class Life:
    """One life of a listener.

    Attributes:
        patterns: What it listens to.
        log: Where it says what it is told.
        position: From where it goes on.
        is_fresh: Whether it begins without a position, with what is committed from then on.
        is_lazy: Whether it takes nothing until it is told to.
        again_after: After how many it listens anew, from where it stands, some times in its life; 0
            for never.
        timeout: After how many seconds it is told that nothing has come, and asks again.
    """

    patterns: tuple[str, ...]
    log: Path
    position: str
    is_fresh: bool = False
    is_lazy: bool = False
    again_after: int = 0
    timeout: float | None = None


class Log:
    """The log of one life."""

    def __init__(self, life: Life) -> None:
        self._file = os.open(life.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._life = life
        self._taken = self._times = 0
        self.position = life.position

    @property
    def is_to_end(self) -> bool:
        """Whether it is to listen anew."""
        is_enough = 0 < self._life.again_after <= self._taken
        return is_enough and self._times < _AGAIN_AT_MOST

    def begins(self, before: int | None, after: int | None) -> None:
        """It listens from its position on, or from somewhere between those two."""
        self._times += 1
        self._taken = 0
        self._write(SINCE, self.position) if before is None else self._write(FRESH, before, after)

    def takes(self, note: oxlite.Notification) -> None:
        """It has been given one."""
        self._write(NOTE, note.position, note.channel, note.payload)
        self.position = note.position
        self._taken += 1

    def has_lost(self, error: oxlite.NotificationsLost) -> None:
        """It was told that some are not kept any more."""
        self.position = error.resume_from
        self._write(LOST, self.position)

    def _write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def in_threads(path: Path, lives: list[Life], is_apart: bool, release: memoryview) -> None:
    """Each listener in a thread; a single one in the main thread."""
    with ExitStack() as stack:
        dbs = [_open(path) for _ in (lives if is_apart else lives[:1])]
        for db in dbs:
            stack.enter_context(db)
        if len(lives) == 1:
            _listen(dbs[0], lives[0], release)
        failed = threading.Event()

        def listen(db: oxlite.Database, life: Life) -> None:
            try:
                _listen(db, life, release)
            except sqlite3.ProgrammingError as error:
                if "closed" not in str(error):
                    failed.set()
                    raise

        for number, life in enumerate(lives):
            arguments = (dbs[number % len(dbs)], life)
            threading.Thread(target=listen, args=arguments, daemon=True).start()
        while not failed.wait(0.2):
            pass
        raise RuntimeError("a listener has failed, as is printed above")


def _open(path: Path) -> oxlite.Database:
    return oxlite.Database(path, timeout=TIMEOUT_SECONDS)


def _listen(db: oxlite.Database, life: Life, release: memoryview) -> NoReturn:
    log = Log(life)
    is_fresh = life.is_fresh
    while True:
        before = after = None
        try:
            if is_fresh:
                before = db.query_one(_LATEST)[0]
                listener = db.listen(*life.patterns, timeout=life.timeout)
                after = db.query_one(_LATEST)[0]
                is_fresh = False
            else:
                listener = db.listen(*life.patterns, since=log.position, timeout=life.timeout)
            log.begins(before, after)
            while life.is_lazy and not release[0]:
                time.sleep(_PAUSE_SECONDS)
            with listener:
                while not log.is_to_end:
                    for note in listener:  # once more after a timeout
                        log.takes(note)
                        if log.is_to_end:
                            break
        except oxlite.NotificationsLost as error:
            log.has_lost(error)


def in_a_loop(path: Path, lives: list[Life], is_apart: bool, release: memoryview) -> None:
    """Each listener in a task."""

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with suppress(asyncio.CancelledError):
            async with oxlite.aio.Database(path, timeout=TIMEOUT_SECONDS) as db:
                if not is_apart:
                    await asyncio.gather(*(_listens(db, life, release) for life in lives))
                async with oxlite.aio.Database(path, timeout=TIMEOUT_SECONDS) as other:
                    both = zip((db, other), lives, strict=False)
                    await asyncio.gather(*(_listens(one, life, release) for one, life in both))

    asyncio.run(main())


async def _listens(db: oxlite.aio.Database, life: Life, release: memoryview) -> None:
    log = Log(life)
    is_fresh = life.is_fresh
    while True:
        before = after = None
        try:
            if is_fresh:
                before = (await db.query_one(_LATEST))[0]
                listener = db.listen(*life.patterns, timeout=life.timeout)
                after = (await db.query_one(_LATEST))[0]
                is_fresh = False
            else:
                listener = db.listen(*life.patterns, since=log.position, timeout=life.timeout)
            log.begins(before, after)
            while life.is_lazy and not release[0]:
                await asyncio.sleep(_PAUSE_SECONDS)
            async with listener:
                while not log.is_to_end:
                    async for note in listener:
                        log.takes(note)
                        if log.is_to_end:
                            break
        except oxlite.NotificationsLost as error:
            log.has_lost(error)


Listen = Callable[[Path, list[Life], bool, memoryview], None]
FACES: tuple[Listen, ...] = (in_threads, in_a_loop)
