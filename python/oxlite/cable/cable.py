"""Channels and groups in a file: messages between processes, without a server.

Who sends does so in his own event loop; what is received is brought by the courier, a thread, which
puts the channels of this process into groups as well.

Invariants:
- A message is given to one who receives its channel, at most once; a message to a group to one for
  each of those who were its members when it was sent.
- What one sends to one channel arrives in that order.
- Who waits is woken by the commit; nothing is polled, and idle, nobody wakes.
- It may be used from several event loops. A forked child begins anew, with names of its own.
- What is part of a transaction uses its connection alone, so that nobody waits for himself.
"""

import asyncio
import json
import logging
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from os import PathLike
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

from oxlite import aio, sqlite3
from oxlite._native import Announcement
from oxlite.cable import arguments, store
from oxlite.cable.arguments import check_capacity, check_name, check_seconds, file_path
from oxlite.cable.courier import Courier
from oxlite.cable.errors import QueueFull
from oxlite.cable.file import CableFile, Identity
from oxlite.cable.message import decoded, encoded
from oxlite.connection import ProfileName
from oxlite.notifications import joined

__all__ = ["Cable"]

_log = logging.getLogger("oxlite.cable")

_ASK_AGAIN_AFTER_SECONDS = 0.05
"""How long a reader elsewhere has for deleting what it has given, before a sender is refused."""

_TRY_AGAIN_AFTER_SECONDS = 0.1
_TRIES_AFTER_REPLACEMENT = 10

_YIELD_EVERY = 64
"""After so many messages that were there already, other tasks have a turn."""

# By their names, of which the channels of a process have that of its cable.
_cables: "WeakValueDictionary[str, Cable]" = WeakValueDictionary()


def _all_cables() -> "list[Cable]":
    # Threads may make others meanwhile: none but this way of asking allows that.
    found = [reference() for reference in _cables.valuerefs()]
    return [cable for cable in found if cable is not None]


def _begin_anew() -> None:
    cables = _all_cables()
    _cables.clear()
    for cable in cables:
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

    Raises:
        TypeError: An argument of another type.
        ValueError: A number that is not greater than 0, or a path that is no file's.
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
        self._path = file_path(path)
        self._profile: ProfileName = profile
        self._expiry = check_seconds("expiry", expiry)
        self._group_expiry = check_seconds("group_expiry", group_expiry)
        self._capacity = check_capacity("capacity", capacity)
        if capacity_of is not None and not callable(capacity_of):
            raise TypeError(f"capacity_of is a function, not {type(capacity_of).__name__}")
        self._capacity_of = capacity_of
        self._end_courier: Any = None
        self._begin()

    def _begin(self) -> None:
        """Begin with no connection and nobody who waits, in this process."""
        self._lock = threading.Lock()
        self._name = uuid.uuid4().hex
        self._file = CableFile(self._path, self._profile)
        self._database: aio.Database | None = None
        self._identity: Identity = None
        self._openings: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )
        # The courier's thread outlives the cable otherwise: it knows nothing of it.
        capacity = partial(_capacity_in, self._capacity, self._capacity_of)
        self._courier = Courier(self._file, f"{self._name}!", capacity)
        if self._end_courier is not None:
            self._end_courier.detach()
        self._end_courier = finalize(self, self._courier.end)
        self._end_courier.atexit = False
        self._received = 0
        # When all of it is there: other threads look for it.
        _cables[self._name] = self

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
            TypeError: It is no dict, or holds what cannot be sent; or the name is no text.
            ValueError: A number has more than 64 bits, or it is nested too deeply; or the name is
                none.
            oxlite.sqlite3.Error: The file cannot be written.
        """
        check_name("channel", channel)
        queue = store.queue_of(channel)
        content = encoded(message)
        capacity = self._capacity_in(queue)

        async def is_sent() -> bool:
            given = _given_in(queue)
            parameters = (queue, channel, content, self._expiry, capacity, given)
            return bool(await self._execute(store.SEND, parameters, connection, announces=True))

        if await is_sent():
            return
        if connection is None and self._is_elsewhere(queue):
            # Its process deletes what it has given soon, and not at once.
            await asyncio.sleep(_ASK_AGAIN_AFTER_SECONDS)
            if await is_sent():
                return
        raise QueueFull(
            f"{capacity} messages wait in {queue!r} already: whoever receives them is slow, or"
            " gone. Send later, or raise the capacity"
        )

    async def group_send(
        self, group: str, message: Mapping[str, Any], *, connection: object = None
    ) -> None:
        """Send a message to all channels that are in a group, except where the queue is full.

        Raises as ``send``, except ``QueueFull``.
        """
        check_name("group", group)
        content = encoded(message)
        capacities = "{}"
        if self._capacity_of is not None:
            queues = await self._query(store.GROUP_QUEUES, (group,), connection)
            capacities = json.dumps({queue: self._capacity_in(queue) for (queue,) in queues})
        given = json.dumps(_all_given())
        parameters = (group, content, self._expiry, self._capacity, capacities, given)
        sent = await self._execute(store.GROUP_SEND, parameters, connection, announces=True)
        if sent and len(sent) == sent[0][1]:
            return
        channels = dict(await self._query(store.GROUP_CHANNELS, (group,), connection))
        in_all = sum(channels.values())
        full = in_all - sum(channels.get(queue, 0) for queue, _ in sent)
        if full > 0:
            _log.info("%d of %d channels over capacity in group %s", full, in_all, group)

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message of a channel.

        If the name ends with ``!``, that of any channel of this process which begins so. Who is
        cancelled has taken nothing.

        Raises:
            TypeError: The name is no text.
            ValueError: The name is none; or the channel is another process's, or was made before a
                fork; or the file holds other tables, which the profile could damage.
        """
        check_name("channel", channel)
        queue = store.queue_of(channel)
        if queue.endswith("!") and not self._is_own(queue):
            raise ValueError(
                f"{channel!r} is a channel of another process, or of this one before a fork:"
                " whoever made it with new_channel() receives it"
            )
        self._received += 1
        if self._received % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        while True:
            # From the moment at which it is taken nothing is awaited.
            message = await self._courier.receive(queue, channel)
            try:
                return decoded(message.content, message.is_text)
            except Exception as error:
                # Only another program writes such a row: whoever receives is not to end by it.
                if not message.is_refused:
                    message.is_refused = True
                    _log.warning("what was inserted for %r is no message: %s", channel, error)

    def new_channel(self, prefix: str = "specific") -> str:
        """The name of a channel that this process alone receives.

        Raises:
            TypeError: The prefix is no text.
            ValueError: It has a ``!``, or is too long: a name has 255 bytes at most, 66 of which
                follow it.
        """
        if not isinstance(prefix, str):
            raise TypeError(f"the prefix of a channel is text, not {type(prefix).__name__}")
        if "!" in prefix:
            raise ValueError(
                f"the prefix of a channel has no '!', which ends it, as {prefix!r} has"
            )
        name = f"{prefix}.{self._name}!{uuid.uuid4().hex}"
        check_name("channel", name)
        return name

    async def group_add(self, group: str, channel: str, *, connection: object = None) -> None:
        """Put a channel into a group, or let it stay there for longer.

        Raises:
            TypeError: A name that is no text.
            ValueError: A name that is none.
            oxlite.sqlite3.Error: The file cannot be written.
        """
        check_name("group", group)
        check_name("channel", channel)
        queue = store.queue_of(channel)
        rows = [(group, channel, self._group_expiry)]
        if connection is None and self._is_own(queue):
            await self._courier.join(queue, rows)
        else:
            await self._execute(store.ADD, (queue, json.dumps(rows)), connection)

    async def group_discard(self, group: str, channel: str, *, connection: object = None) -> None:
        """Take a channel out of a group, if it is there: it is given what was sent before.

        Raises as ``group_add``.
        """
        check_name("group", group)
        check_name("channel", channel)
        queue = store.queue_of(channel)
        rows = [(group, channel)]
        if connection is None and self._is_own(queue):
            await self._courier.leave(queue, rows)
            return
        await self._execute(store.REMOVE, (queue, json.dumps(rows)), connection)
        if self._is_own(queue):
            self._courier.note_left(queue, rows)

    async def flush(self, *, connection: object = None) -> None:
        """Delete all messages and groups, and what processes have kept of them.

        Raises:
            oxlite.sqlite3.Error: The file cannot be written.
        """
        if connection is None:
            await self._courier.flush()
        else:
            announcement = Announcement.of_rows(self._path, store.TOPIC_PREFIX)
            store.flush(self._joined(connection), announcement)

    async def close(self) -> None:
        """Close the file. Who waits is cancelled; it is opened anew when it is used again."""
        closed = _called(self._courier.close)
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            await database.close()
        await closed

    # What ``Broadcast`` has of it.

    async def _enter(self, groups: tuple[str, ...], channel: str) -> None:
        """Put a channel of this process into groups, before all that the courier is told later."""
        rows = [(group, channel, self._group_expiry) for group in groups]
        await self._courier.join(store.queue_of(channel), rows)

    def _leave(self, groups: tuple[str, ...], channel: str) -> None:
        """Take it out of them. It takes effect although nobody waits for it."""
        rows = [(group, channel) for group in groups]
        self._courier.leave_anyway(store.queue_of(channel), rows)

    # The file.

    def _capacity_in(self, queue: str) -> int:
        return _capacity_in(self._capacity, self._capacity_of, queue)

    def _is_own(self, queue: str) -> bool:
        return queue.endswith(f".{self._name}!")

    def _is_elsewhere(self, queue: str) -> bool:
        """Whether the queue is another process's."""
        return queue.endswith("!") and _cable_of(queue) is None

    def _joined(self, connection: object) -> sqlite3.Connection:
        """The driver's connection of a transaction, which is on the same file."""
        driver = joined(connection)
        Announcement.of_rows(self._path, store.TOPIC_PREFIX).check(driver)
        return driver

    async def _execute(
        self, sql: str, parameters: tuple[Any, ...], connection: object, announces: bool = False
    ) -> list[Any]:
        """Have a statement done as part of a transaction, or committed; the rows it returns."""
        if connection is None:
            return await self._write(sql, parameters, announces)
        announcement = Announcement.of_rows(self._path, store.TOPIC_PREFIX) if announces else None
        return store.TABLES.execute(self._joined(connection), sql, parameters, announcement)

    async def _write(self, sql: str, parameters: tuple[Any, ...], announces: bool) -> list[Any]:
        """Have a statement committed; the rows that it returns."""
        database = await self._opened()
        announcement = database._row_announcement(store.TOPIC_PREFIX) if announces else None
        return await store.TABLES.awrite(database, sql, parameters, announcement)

    async def _query(
        self, sql: str, parameters: tuple[Any, ...], connection: object = None
    ) -> list[Any]:
        """Read, as part of a transaction if there is one."""
        if connection is not None:
            return store.TABLES.execute(self._joined(connection), sql, parameters)
        return await store.TABLES.aquery(await self._opened(), sql, parameters)

    async def _opened(self) -> aio.Database:
        """The database; another one where the file was deleted or replaced."""
        if (database := self._usable()) is not None:
            return database
        async with self._opening():
            if (database := self._usable()) is not None:
                return database
            with self._lock:
                stale, self._database = self._database, None
            if stale is not None:
                # It has files beside it that the new one would take for its own.
                await stale.close()
                await _called(self._courier.leave_file)
            opened, identity = await self._opened_soon(stale is not None)
            left_over: aio.Database | None
            with self._lock:
                if self._database is None or self._identity != identity:
                    left_over, self._database, self._identity = self._database, opened, identity
                else:
                    left_over, opened = opened, self._database  # another loop was faster
        if left_over is not None:
            await left_over.close()
        return opened

    async def _opened_soon(self, is_replaced: bool) -> tuple[aio.Database, Identity]:
        """Open it. Where it was replaced, others may not have left the old one yet."""
        for _ in range(_TRIES_AFTER_REPLACEMENT if is_replaced else 0):
            try:
                return await self._file.opened()
            except sqlite3.OperationalError as error:
                if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR"):
                    raise
            await asyncio.sleep(_TRY_AGAIN_AFTER_SECONDS)
        return await self._file.opened()

    def _usable(self) -> aio.Database | None:
        with self._lock:
            is_same = self._database is not None and self._file.identity() == self._identity
            return self._database if is_same else None

    def _opening(self) -> asyncio.Lock:
        """One task of a loop opens it."""
        loop = asyncio.get_running_loop()
        with self._lock:
            return self._openings.setdefault(loop, asyncio.Lock())


def _capacity_in(capacity: int, capacity_of: Callable[[str], int] | None, queue: str) -> int:
    return capacity if capacity_of is None else arguments.capacity_of(capacity_of, queue)


def _cable_of(queue: str) -> Cable | None:
    """The cable of this process whose queue it is."""
    return _cables.get(queue[:-1].rpartition(".")[2]) if queue.endswith("!") else None


def _given_in(queue: str) -> int:
    """Up to which number the messages of a queue are given, if it is one of this process."""
    cable = _cable_of(queue)
    return 0 if cable is None else cable._courier.given(queue)


def _all_given() -> dict[str, int]:
    return {
        queue: number
        for cable in _all_cables()
        for queue, number in cable._courier.all_given().items()
    }


def _called(function: Callable[[Callable[[], None]], None]) -> "asyncio.Future[None]":
    """Call a function with what it calls, in whatever thread, when all is done; that is awaited."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not done.done():
            done.set_result(None)

    def call() -> None:
        with suppress(RuntimeError):  # it is closed, and nobody waits there
            loop.call_soon_threadsafe(tell)

    function(call)
    return done
