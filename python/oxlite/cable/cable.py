"""Channels and groups in a file: messages between processes, without a server.

Invariants:
- A message is given to one who receives its channel, at most once; a message to a group to one for
  each of its members.
- What one sends to one channel arrives in that order.
- Who waits is woken by the commit; nothing is polled, and idle, nobody wakes.
- It may be used from several event loops. A forked child begins anew, with names of its own.
"""

import asyncio
import json
import logging
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from oxlite import aio, sqlite3
from oxlite._native import Announcement, Hearing
from oxlite.cable import store
from oxlite.cable.errors import QueueFull
from oxlite.cable.mailbox import Mailbox, Taken
from oxlite.cable.message import decoded, encoded
from oxlite.connection import ProfileName
from oxlite.notifications import joined

__all__ = ["Cable"]

_log = logging.getLogger("oxlite.cable")

_NORMAL_MAILBOXES_AT_MOST: Final = 64
"""So many queues that others read as well are remembered after they were read here."""

_OTHER_TABLES: Final = """SELECT 1 FROM sqlite_schema
WHERE type = 'table' AND name NOT GLOB 'oxlite_*' AND name NOT GLOB 'sqlite_*' LIMIT 1"""

_cables: "WeakSet[Cable]" = WeakSet()


def _begin_anew() -> None:
    for cable in list(_cables):
        cable._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class Cable:
    """Channels and groups in a database.

    Args:
        path: The file; made if it is not there. It holds messages for as long as they wait.
        profile: That of its connections. By default nothing is synced: what waits may be lost with
            the power, and with nothing else. Refused where the file has tables of others.
        expiry: For how many seconds a message waits for somebody who receives it.
        group_expiry: For how many seconds a channel is in a group, since it was added last.
        capacity: How many messages may wait in a queue.
        capacity_of: The capacity of a queue, where it depends on its name.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        profile: ProfileName = "cache",
        expiry: float = 60.0,
        group_expiry: float = 86400.0,
        capacity: int = 100,
        capacity_of: Callable[[str], int] | None = None,
    ) -> None:
        for name, value in (("expiry", expiry), ("group_expiry", group_expiry)):
            if not value > 0:
                raise ValueError(f"{name} is a number of seconds greater than 0, not {value!r}")
        if capacity < 1:
            raise ValueError(f"capacity is a number of messages greater than 0, not {capacity!r}")
        self._path = os.fspath(path)
        self._profile = profile
        self._expiry = expiry
        self._group_expiry = group_expiry
        self._capacity = capacity
        self._capacity_of = capacity_of
        self._begin()
        _cables.add(self)

    def _begin(self) -> None:
        """Begin with no connection and nobody who waits, in this process."""
        self._lock = threading.Lock()
        self._name = uuid.uuid4().hex
        self._database: aio.Database | None = None
        self._file: tuple[int, int] | None = None
        self._mailboxes: dict[str, Mailbox] = {}
        self._openings: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    async def send(
        self, channel: str, message: Mapping[str, Any], *, connection: object = None
    ) -> None:
        """Send a message to whoever receives that channel.

        Args:
            channel: Its name.
            message: The message.
            connection: A connection to the same file whose transaction the message is part of, as
                for ``oxlite.Database.notify``: it is sent when that commits.

        Raises:
            QueueFull: As many wait as may. The queue of a process is full for all of its channels.
            MessageTooLarge: It has more than four mebibytes.
            TypeError: It is no dict, or holds what cannot be sent.
            ValueError: A number has more than 64 bits, or it is nested too deeply.
            oxlite.sqlite3.Error: The file cannot be written.
        """
        queue = store.queue_of(channel)
        content = encoded(message)
        capacity = self._capacity_in(queue)
        parameters = (queue, channel, content, self._expiry, capacity)
        if not await self._sent(store.SEND, parameters, connection):
            raise QueueFull(
                f"{capacity} messages wait in {queue!r} already: whoever receives them is slow,"
                " or gone. Send later, or raise the capacity"
            )

    async def group_send(
        self, group: str, message: Mapping[str, Any], *, connection: object = None
    ) -> None:
        """Send a message to all channels that are in a group, except where the queue is full.

        Raises as ``send``, except ``QueueFull``.
        """
        content = encoded(message)
        capacities = "{}"
        if self._capacity_of is not None:
            queues = await self._read(store.GROUP_QUEUES, (group,))
            capacities = json.dumps({queue: self._capacity_in(queue) for (queue,) in queues})
        parameters = (group, content, self._expiry, self._capacity, capacities)
        sent = await self._sent(store.GROUP_SEND, parameters, connection)
        in_all = sent[0][1] if sent else len(await self._read(store.GROUP_QUEUES, (group,)))
        if len(sent) < in_all:
            full = in_all - len(sent)
            _log.info("%d of %d channels over capacity in group %s", full, in_all, group)

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message of a channel.

        If the name ends with ``!``, that of any channel of this process which begins so. Who is
        cancelled has taken nothing.

        Raises:
            ValueError: The channel is another process's, or was made before a fork.
        """
        queue = store.queue_of(channel)
        if queue.endswith("!") and not queue.endswith(f"{self._name}!"):
            raise ValueError(
                f"{channel!r} is a channel of another process, or of this one before a fork:"
                " whoever made it with new_channel() receives it"
            )
        while True:
            taken = await self._mailbox(queue).receive(channel)
            try:
                return decoded(taken.content)
            except Exception as error:
                # Only another program writes such a row: whoever receives is not to end by it.
                _log.warning("what was inserted for %r is no message: %s", channel, error)

    def new_channel(self, prefix: str = "specific") -> str:
        """The name of a channel that this process alone receives."""
        return f"{prefix}.{self._name}!{uuid.uuid4().hex}"

    async def group_add(self, group: str, channel: str) -> None:
        """Put a channel into a group, or let it stay there for longer."""
        parameters = (group, store.queue_of(channel), channel, self._group_expiry)
        await self._write(store.GROUP_ADD, parameters, False)

    async def group_discard(self, group: str, channel: str) -> None:
        """Take a channel out of a group, if it is there."""
        await self._write(store.GROUP_DISCARD, (group, store.queue_of(channel), channel), False)

    async def flush(self) -> None:
        """Delete all messages and groups."""
        for statement in store.FLUSH:
            await self._write(statement, (), False)
        for mailbox in self._known():
            mailbox.forget()

    async def close(self) -> None:
        """Close the file. Who waits is cancelled; it is opened anew when it is used again."""
        with self._lock:
            database, self._database = self._database, None
        for mailbox in self._known():
            mailbox.close()
        if database is not None:
            await database.close()

    # What a mailbox asks for.

    async def hear(self, queue: str) -> Hearing:
        """Hear of news in a queue."""
        return (await self._opened())._hear([store.TOPIC_PREFIX + queue])

    async def read(self, queue: str, after: int, at_most: int) -> list[Taken]:
        """Read messages of a queue that nobody else reads, after that number, in order."""
        return _taken(await self._read(store.READ, (queue, after, at_most)))

    async def delete_read(self, queue: str, last: int) -> None:
        """Delete what was read up to that number."""
        await self._write(store.DELETE_READ, (queue, last), False)

    async def take(self, queue: str, at_most: int) -> list[Taken]:
        """Take messages from a queue that others read as well, in order."""
        rows = await self._write(store.TAKE, (queue, at_most), False)
        rows.sort()  # the order of RETURNING is nobody's promise
        return _taken(rows)

    async def put_back(self, queue: str, channel: str, message: Taken) -> None:
        """Give back one that nobody has got."""
        number, _, content, sent_at, expires_at, _ = message
        await self._write(store.PUT_BACK, (number, queue, channel, content, sent_at, expires_at))

    # The file.

    def _capacity_in(self, queue: str) -> int:
        return self._capacity if self._capacity_of is None else self._capacity_of(queue)

    def _known(self) -> list[Mailbox]:
        with self._lock:
            return list(self._mailboxes.values())

    def _mailbox(self, queue: str) -> Mailbox:
        with self._lock:
            mailbox = self._mailboxes.get(queue)
            if mailbox is None:
                if len(self._mailboxes) >= _NORMAL_MAILBOXES_AT_MOST:
                    self._forget_idle()
                mailbox = Mailbox(self, queue, self._capacity_in(queue))
                self._mailboxes[queue] = mailbox
            return mailbox

    def _forget_idle(self) -> None:
        for queue, mailbox in list(self._mailboxes.items()):
            if mailbox.is_idle:
                del self._mailboxes[queue]
                mailbox.close()

    async def _sent(self, sql: str, parameters: Any, connection: object) -> list[Any]:  # noqa: ANN401
        if connection is None:
            return await self._write(sql, parameters)
        driver = joined(connection)
        announcement = Announcement.of_rows(self._path, store.TOPIC_PREFIX)
        announcement.check(driver)
        try:
            rows = driver.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if not store.is_missing(error):
                raise
            for statement in store.SCHEMA:
                driver.execute(statement)
            rows = driver.execute(sql, parameters).fetchall()
        announcement.follow(driver, [row[0] for row in rows])
        return rows

    async def _write(self, sql: str, parameters: Any, announces: bool = True) -> list[Any]:  # noqa: ANN401
        """Have a statement committed; the rows that it returns."""
        database = await self._opened()
        announcement = database._row_announcement(store.TOPIC_PREFIX) if announces else None
        try:
            result = await database._write(sql, parameters, False, announcement)
        except sqlite3.OperationalError as error:
            if not store.is_missing(error):
                raise
            await _prepare(database)  # somebody has dropped them
            result = await database._write(sql, parameters, False, announcement)
        if result is None:
            # A profile that commits each by itself: whoever watches the file signals it.
            result = await database.execute(sql, parameters)
        return result.rows

    async def _read(self, sql: str, parameters: Any) -> list[Any]:  # noqa: ANN401
        return await (await self._opened()).query(sql, parameters)

    async def _opened(self) -> aio.Database:
        """The database; another one where the file was deleted or replaced."""
        database = self._database
        if database is not None and _identity(self._path) == self._file:
            return database
        async with self._opening():
            database = self._database
            if database is not None:
                if _identity(self._path) == self._file:
                    return database
                _log.warning(
                    "%s was deleted or replaced: what waited there is lost, and its groups are"
                    " empty until channels are added anew",
                    self._path,
                )
            opened = aio.Database(self._path, profile=self._profile)
            try:
                if self._profile == "cache" and await opened.query_one(_OTHER_TABLES) is not None:
                    raise ValueError(
                        f"{self._path} holds other tables, and with profile='cache' a power cut"
                        " could damage them: give the cable a file of its own, or profile='web'"
                    )
                await _prepare(opened)
            except BaseException:
                await opened.close()
                raise
            with self._lock:
                self._database, self._file = opened, _identity(self._path)
        if database is not None:
            await database.close()
        return opened

    def _opening(self) -> asyncio.Lock:
        """One task of a loop opens it; where several loops do, the last one's is used."""
        loop = asyncio.get_running_loop()
        with self._lock:
            return self._openings.setdefault(loop, asyncio.Lock())


def _taken(rows: list[Any]) -> list[Taken]:
    return [
        Taken(
            number,
            json.loads(members) if channel is None else [channel],
            content,
            sent_at,
            expires_at,
            seconds_left,
        )
        for number, channel, content, sent_at, expires_at, seconds_left, members in rows
    ]


def _identity(path: str) -> tuple[int, int] | None:
    """Which file the name leads to."""
    try:
        status = os.stat(path)  # noqa: PTH116 - at each message, and half as fast by Path
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


async def _prepare(database: aio.Database) -> None:
    """Make the tables, if they are not there."""
    async with database.write() as connection:
        for statement in store.SCHEMA:
            await connection.execute(statement)
