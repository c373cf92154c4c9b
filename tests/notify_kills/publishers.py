"""What those do who notify, until they are killed: some are Oxlite, the others insert.

A publisher has up to three writers, each with a number of its own. What a writer was told of, how
many of its transactions are committed, stands in memory that it shares with the campaign.

Invariants:
- a transaction is counted when its commit has returned, and before the next one begins;
- what is rolled back, as a whole or to a savepoint, says so in its payload;
- who is asked to pause stands outside of any transaction when it says that it does.
"""

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.notify_kills.history import CHANNELS, NEVER, payload

import oxlite
import oxlite.aio

WRITERS_AT_MOST = 3
TIMEOUT_SECONDS = 30.0
INSERT = "INSERT INTO oxlite_notification (channel, payload) VALUES (?, ?)"
ITEM = "INSERT INTO item (channel, payload) VALUES (?, ?)"
SCHEMA = """
    CREATE TABLE item (id INTEGER PRIMARY KEY, channel TEXT, payload TEXT);
    CREATE TRIGGER item_tells AFTER INSERT ON item BEGIN
        INSERT INTO oxlite_notification (channel, payload) VALUES (new.channel, new.payload);
        DELETE FROM item WHERE id < new.id - 1000;
    END;
"""
_PAUSE_SECONDS = 0.0005
_ROLLED_BACK = 0.15
_FILLED = 0.05
_PACES_SECONDS = (0.0, 0.0002, 0.001, 0.004, 0.02)


@dataclass(frozen=True)
class Told:
    """What a publisher and the campaign tell each other, in words that they share.

    Attributes:
        orders: An odd number, another each time, while all are to pause; or that all are to end.
        is_paused: The number by which each writer has paused last.
        is_writing: Whether it is in the midst of a transaction.
        acknowledged: How many of its transactions were committed.
    """

    orders: memoryview
    is_paused: memoryview
    is_writing: memoryview
    acknowledged: memoryview


END = 1 << 32


class Writer:
    """One writer: what it writes next, and when."""

    def __init__(self, told: Told, place: int, number: int, pace: random.Random) -> None:
        self._told = told
        self._place = place
        self._number = number
        self._transaction = 0
        self._source = pace
        self._pause_seconds = pace.choice(_PACES_SECONDS)

    def channel(self) -> str:
        """Some channel."""
        return self._source.choice(CHANNELS)

    def is_rolled_back(self) -> bool:
        """Whether something that is rolled back comes next."""
        return self._source.random() < _ROLLED_BACK

    def never(self) -> Iterator[tuple[str, str]]:
        """Channels and payloads of what is rolled back."""
        for _ in range(self._source.randint(1, 3)):
            yield self.channel(), f"{NEVER}.{self._number}"

    def transaction(self, size_at_most: int = 5) -> Iterator[tuple[str, str]]:
        """Channels and payloads of the next transaction."""
        size = self._source.randint(1, size_at_most)
        for place in range(1, size + 1):
            filler = "x" * 300 if self._source.random() < _FILLED else ""
            text = payload(self._number, self._transaction + 1, place, size, filler)
            yield self.channel(), text

    def begins(self) -> None:
        """It may be in the midst of a transaction from here on."""
        self._told.is_writing[self._place] = 1

    def committed(self) -> None:
        """It has been told that the transaction is committed."""
        self._transaction += 1
        self._told.acknowledged[self._place] = self._transaction
        self._told.is_writing[self._place] = 0

    def pauses(self) -> Iterator[float]:
        """How long to sleep before the next transaction, and again as long as it is to pause.

        Ends after the last one; each round of it is one transaction.
        """
        told = self._told
        if self._pause_seconds:
            yield self._source.random() * 2 * self._pause_seconds
        while (order := told.orders[0]) % 2:
            told.is_paused[self._place] = order
            yield _PAUSE_SECONDS

    def goes_on(self) -> bool:
        """Whether there is another transaction to come, which is waited for in this thread."""
        for seconds in self.pauses():
            time.sleep(seconds)
        return self._told.orders[0] != END

    async def goes_on_in_a_loop(self) -> bool:
        """The same for a task."""
        for seconds in self.pauses():
            await asyncio.sleep(seconds)
        return self._told.orders[0] != END


def _database(path: Path, **options: object) -> oxlite.Database:
    return oxlite.Database(path, timeout=TIMEOUT_SECONDS, **options)  # type: ignore[arg-type]


def _notifies(db: oxlite.Database, writer: Writer) -> None:
    while writer.goes_on():
        for channel, text in writer.transaction(1):
            writer.begins()
            db.notify(channel, text)
            writer.committed()


def notify(path: Path, writers: list[Writer]) -> None:
    """Each a transaction of its own."""
    with _database(path) as db:
        _notifies(db, writers[0])


def crowd(path: Path, writers: list[Writer]) -> None:
    """The same from several threads, whose commits are shared."""
    with _database(path) as db:
        threads = [threading.Thread(target=_notifies, args=(db, writer)) for writer in writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def shared(path: Path, writers: list[Writer]) -> None:
    """The same, announced after a sync that processes share.

    It ends where one of these was killed in a sync, and nobody is left who was there before: who
    shares syncs is refused then, as he should be, until all of them are gone.
    """
    with suppress(oxlite.SyncFailedError), _database(path, durable_commit="shared") as db:
        _notifies(db, writers[0])


class _RollBackError(Exception):
    pass


def write(path: Path, writers: list[Writer]) -> None:
    """Several to a transaction of the ``Database``'s writer."""
    writer = writers[0]
    with _database(path) as db:
        while writer.goes_on():
            if writer.is_rolled_back():
                with suppress(_RollBackError), db.write() as connection:
                    for channel, text in writer.never():
                        db.notify(channel, text, connection=connection)
                    raise _RollBackError
            writer.begins()
            with db.write() as connection:
                for channel, text in writer.transaction():
                    db.notify(channel, text, connection=connection)
            writer.committed()


def connection(path: Path, writers: list[Writer]) -> None:
    """Several to a transaction of a connection of one's own, with savepoints."""
    writer = writers[0]
    own = oxlite.connect(path, isolation_level=None, timeout=TIMEOUT_SECONDS)
    with _database(path) as db, closing(own):
        while writer.goes_on():
            _transactions(own.execute, lambda *note: db.notify(*note, connection=own), writer)


def _transactions(
    execute: Callable[[str], object], tell: Callable[[str, str], object], writer: Writer
) -> None:
    """One that is rolled back, perhaps, and one that is committed, perhaps but for a savepoint."""
    if writer.is_rolled_back():
        execute("BEGIN IMMEDIATE")
        for note in writer.never():
            tell(*note)
        execute("ROLLBACK")
    writer.begins()
    execute("BEGIN IMMEDIATE")
    for note in writer.transaction():
        if writer.is_rolled_back():
            execute("SAVEPOINT inner")
            for other in writer.never():
                tell(*other)
            execute("ROLLBACK TO inner")
            execute("RELEASE inner")
        tell(*note)
    execute("COMMIT")
    writer.committed()


def trigger(path: Path, writers: list[Writer]) -> None:
    """A trigger inserts, which nobody announces."""
    writer = writers[0]
    with _database(path) as db:
        while writer.goes_on():
            for note in writer.transaction(1):
                writer.begins()
                db.execute(ITEM, note)
                writer.committed()


def tasks(path: Path, writers: list[Writer]) -> None:
    """Tasks of an event loop, each by itself or in transactions."""

    async def each(db: oxlite.aio.Database, writer: Writer) -> None:
        while await writer.goes_on_in_a_loop():
            if writer.is_rolled_back():
                with suppress(_RollBackError):
                    async with db.write() as connection:
                        for channel, text in writer.never():
                            await db.notify(channel, text, connection=connection)
                        raise _RollBackError
                writer.begins()
                async with db.write() as connection:
                    for channel, text in writer.transaction():
                        await db.notify(channel, text, connection=connection)
                writer.committed()
            else:
                for channel, text in writer.transaction(1):
                    writer.begins()
                    await db.notify(channel, text)
                    writer.committed()

    async def main() -> None:
        async with oxlite.aio.Database(path, timeout=TIMEOUT_SECONDS) as db:
            await asyncio.gather(*(each(db, writer) for writer in writers))

    asyncio.run(main())


def _outsider(path: Path) -> sqlite3.Connection:
    """Another program's connection, which need not be safe from a power cut."""
    other = sqlite3.connect(path, isolation_level=None, timeout=TIMEOUT_SECONDS)
    other.execute("PRAGMA synchronous = OFF")
    return other


def insert(path: Path, writers: list[Writer]) -> None:
    """Another program: each a transaction of its own."""
    _inserts(path, writers[0], INSERT)


def other_trigger(path: Path, writers: list[Writer]) -> None:
    """Another program, whose trigger inserts."""
    _inserts(path, writers[0], ITEM)


def _inserts(path: Path, writer: Writer, sql: str) -> None:
    with closing(_outsider(path)) as other:
        while writer.goes_on():
            for note in writer.transaction(1):
                writer.begins()
                other.execute(sql, note)
                writer.committed()


def inserts(path: Path, writers: list[Writer]) -> None:
    """Another program: several to a transaction, with savepoints."""
    with closing(_outsider(path)) as other:
        while writers[0].goes_on():
            _transactions(other.execute, lambda *note: other.execute(INSERT, note), writers[0])


def comes_and_goes(path: Path, writers: list[Writer]) -> None:
    """Another program that opens the database for each of its transactions."""
    while writers[0].goes_on():
        with closing(_outsider(path)) as other:
            _transactions(other.execute, lambda *note: other.execute(INSERT, note), writers[0])


Publish = Callable[[Path, list[Writer]], None]

OURS: tuple[Publish, ...] = (notify, crowd, shared, write, connection, trigger, tasks)
OTHERS: tuple[Publish, ...] = (insert, inserts, other_trigger, comes_and_goes)


def may_end(publish: Publish) -> bool:
    """Whether it may end by itself."""
    return publish is shared


def writers_of(publish: Publish) -> int:
    """How many writers a publisher has."""
    return WRITERS_AT_MOST if publish in (crowd, tasks) else 1
