"""How each system publishes a message, and how its listeners hear of it.

A way gives a function that publishes, and as many iterators of payloads as there are listeners in
a process. When they are given they listen. They do so until their process ends, so nothing here
is closed; what the listeners of an application would share (a ``Database``) is shared by those of
a process, and what belongs to a listener (a connection to a server) is its own.
"""

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.postgresql import USER
from oxlite.bench.errors import WorkerError

Publish = Callable[[str], object]
Payloads = Iterator[str | bytes]

POLL_SECONDS = 0.001
PATIENCE_SECONDS = 10.0


class Way(ABC):
    """One way to publish and to listen."""

    @abstractmethod
    def publisher(self, path: Path, channel: str) -> Publish:
        """What publishes a payload, and returns when that is done."""

    def listening(self, path: Path, channel: str, count: int) -> Sequence[Payloads]:
        """Listeners for threads that wait."""
        raise NotImplementedError

    async def tasks(
        self, path: Path, channel: str, count: int
    ) -> Sequence[AsyncIterator[str | bytes]]:
        """Listeners for the tasks of an event loop."""
        raise NotImplementedError


class Threads(Way):
    """Oxlite's ``Database``."""

    def publisher(self, path: Path, channel: str) -> Publish:
        """See the base class."""
        from oxlite import Database

        database = Database(path)
        return lambda payload: database.notify(channel, payload)

    def listening(self, path: Path, channel: str, count: int) -> Sequence[Payloads]:
        """See the base class."""
        from oxlite import Database

        database = Database(path)
        return [_of_notes(database.listen(channel), database) for _ in range(count)]


class Tasks(Threads):
    """Oxlite's ``aio.Database``, told of by a ``Database``."""

    async def tasks(
        self, path: Path, channel: str, count: int
    ) -> Sequence[AsyncIterator[str | bytes]]:
        """See the base class."""
        from oxlite.aio import Database

        database = Database(path)
        # Entered for as long as the process lasts.
        await database.__aenter__()
        return [_of_tasks_notes(database.listen(channel), database) for _ in range(count)]


class Outsider(Threads):
    """Oxlite's ``Database``, told of by another program: the standard library's, by INSERT."""

    def publisher(self, path: Path, channel: str) -> Publish:
        """See the base class."""
        connection = opened(path)
        insert = "INSERT INTO oxlite_notification (channel, payload) VALUES (?, ?)"
        return lambda payload: connection.execute(insert, (channel, payload))


class Poll(Way):
    """The standard library's ``sqlite3``, with a look at the data version each millisecond."""

    def publisher(self, path: Path, channel: str) -> Publish:
        """See the base class."""
        connection = opened(path)
        insert = "INSERT INTO message (payload) VALUES (?)"
        return lambda payload: connection.execute(insert, (payload,))

    def listening(self, path: Path, channel: str, count: int) -> Sequence[Payloads]:
        """See the base class."""
        return [_looked_for(opened(path)) for _ in range(count)]


class PubSub(Way):
    """Redis' PUBLISH and SUBSCRIBE."""

    def publisher(self, path: Path, channel: str) -> Publish:
        """See the base class."""
        client = _redis(path)
        return lambda payload: client.publish(channel, payload)

    def listening(self, path: Path, channel: str, count: int) -> Sequence[Payloads]:
        """See the base class."""
        return [self._subscribed(path, channel) for _ in range(count)]

    def _subscribed(self, path: Path, channel: str) -> Payloads:
        subscription = _redis(path).pubsub()
        subscription.subscribe(channel)
        confirmed = subscription.get_message(timeout=PATIENCE_SECONDS)
        if confirmed is None or confirmed["type"] != "subscribe":
            raise WorkerError(f"Redis does not confirm a subscription: {confirmed}")
        return (message["data"] for message in subscription.listen())


class Notify(Way):
    """PostgreSQL's NOTIFY and LISTEN."""

    def publisher(self, path: Path, channel: str) -> Publish:
        """See the base class."""
        connection = _postgresql(path)
        return lambda payload: connection.execute("SELECT pg_notify(%s, %s)", (channel, payload))

    def listening(self, path: Path, channel: str, count: int) -> Sequence[Payloads]:
        """See the base class."""
        connections = [_postgresql(path) for _ in range(count)]
        for connection in connections:
            connection.execute(f'LISTEN "{channel}"')
        return [_of_notes(connection.notifies(), connection) for connection in connections]


class Honker(Way):
    """honker's ``notify`` and ``listen``."""

    def publisher(self, path: Path, channel: str) -> Publish:
        """See the base class."""
        database = _honker(path)

        def publish(payload: str) -> None:
            with database.transaction() as transaction:
                transaction.notify(channel, payload)

        return publish

    async def tasks(
        self, path: Path, channel: str, count: int
    ) -> Sequence[AsyncIterator[str | bytes]]:
        """See the base class."""
        database = _honker(path)
        return [_of_tasks_notes(database.listen(channel), database) for _ in range(count)]


WAYS: dict[tuple[str, str], Way] = {
    ("oxlite", "thread"): Threads(),
    ("oxlite", "task"): Tasks(),
    ("oxlite", "outsider"): Outsider(),
    ("redis", "thread"): PubSub(),
    ("postgresql", "thread"): Notify(),
    ("honker", "task"): Honker(),
    ("stdlib", "poll"): Poll(),
}
"""By the values of the axes ``driver`` and ``way``."""


def opened(path: Path) -> sqlite3.Connection:
    """A connection of the standard library's, which commits as Oxlite's profile ``web`` does."""
    connection = sqlite3.connect(
        path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _of_notes(notes: Any, owner: object) -> Payloads:  # noqa: ANN401 - of whichever library
    """The payloads; the owner lives as long."""
    for note in notes:
        yield note.payload


async def _of_tasks_notes(notes: Any, owner: object) -> AsyncIterator[str | bytes]:  # noqa: ANN401
    """The same for a task."""
    async for note in notes:
        yield note.payload


def _looked_for(connection: sqlite3.Connection) -> Payloads:
    """What comes into the table of messages from now on."""
    execute = connection.execute
    [last] = execute("SELECT coalesce(max(id), 0) FROM message").fetchone()

    def look() -> Payloads:
        nonlocal last
        seen = None
        while True:
            [version] = execute("PRAGMA data_version").fetchone()
            if version == seen:
                time.sleep(POLL_SECONDS)
                continue
            seen = version
            every = "SELECT id, payload FROM message WHERE id > ? ORDER BY id"
            for number, payload in execute(every, (last,)).fetchall():
                last = number
                yield payload

    return look()


def _redis(path: Path) -> Any:  # noqa: ANN401
    return import_module("redis").Redis(unix_socket_path=str(path))


def _postgresql(path: Path) -> Any:  # noqa: ANN401
    import psycopg

    return psycopg.connect(host=str(path.parent), user=USER, dbname=path.name, autocommit=True)


def _honker(path: Path) -> Any:  # noqa: ANN401
    return import_module("honker").open(str(path))
