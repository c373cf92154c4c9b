"""Notifications for tasks: ``async for`` over what is notified.

Invariants:
- The event loop hears of a notification by a file descriptor; nothing is polled.
- A task that is cancelled while it waits has taken nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from oxlite._native import Announcement, Subscription
from oxlite.aio.connection import Connection
from oxlite.notifications import Notification, insert

__all__ = ["Listener", "notify_with", "readable"]


_YIELD_EVERY = 64
"""After so many notifications that were there already, other tasks have a turn."""


class Listener:
    """Notifications as they come: an asynchronous iterator, for one task at a time.

    Closed at the end of an ``async with`` block.
    """

    def __init__(
        self,
        subscription: Subscription,
        timeout: float | None,
        prepare: Callable[[], Awaitable[None]],
        database: object,
    ) -> None:
        self._subscription: Subscription | None = subscription
        self._timeout = timeout
        # Makes the table, so that others can insert; once.
        self._prepare: Callable[[], Awaitable[None]] | None = prepare
        self._is_waiting = False
        self._taken = 0
        # Kept open while somebody listens.
        self._database: object = database

    def __aiter__(self) -> Self:
        """This one."""
        return self

    async def __anext__(self) -> Notification:
        """Wait for the next one.

        Raises:
            StopAsyncIteration: None has come within the timeout, or it is closed.
            RuntimeError: Another task waits for it.
            oxlite.NotificationsLost: Some are not there any more.
            oxlite.sqlite3.Error: They cannot be read.
        """
        if self._is_waiting:
            raise RuntimeError("another task waits for this listener: make one for each task")
        self._is_waiting = True
        try:
            return await self._next()
        finally:
            self._is_waiting = False

    async def _next(self) -> Notification:
        self._taken += 1
        if self._taken % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(self._timeout):
                if self._prepare is not None:
                    await self._prepare()
                    self._prepare = None
                while (subscription := self._subscription) is not None:
                    taken = subscription.take(0.0)
                    if taken is not None:
                        return Notification(*taken)
                    if subscription.has_ended():
                        await self.aclose()
                        break
                    await readable(subscription.fileno())
        except TimeoutError:
            pass
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Listen no longer. The iteration of a task that waits ends."""
        subscription, self._subscription = self._subscription, None
        self._database = None
        if subscription is not None:
            subscription.close()

    async def __aenter__(self) -> Self:
        """This one."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close it."""
        await self.aclose()


async def readable(descriptor: int) -> None:
    """Wait until something can be read."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def hear() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(descriptor, hear)
    try:
        await future
    finally:
        # A task that was left waiting is closed after its loop.
        if not loop.is_closed():
            loop.remove_reader(descriptor)


async def notify_with(
    connection: object, announcement: Announcement, channel: str, payload: str | bytes | None
) -> None:
    """Notify as part of the transaction that is open on a connection of asyncio's.

    Args:
        connection: One of ``oxlite.aio``'s, or a session or connection of SQLAlchemy's asyncio.
        announcement: What is signalled when it commits.
        channel: The channel.
        payload: What is stored.

    Raises:
        TypeError: It is none of these.
    """
    driver = await _driver_connection(connection)
    await driver.run_sync(insert, announcement, channel, payload)


async def _driver_connection(connection: object) -> Connection:
    """The driver's connection of one, with its transaction begun."""
    found = connection
    if not hasattr(found, "get_raw_connection") and callable(
        begin := getattr(found, "connection", None)
    ):
        found = await begin()  # an AsyncSession's
    if hasattr(found, "get_raw_connection"):
        found = (await found.get_raw_connection()).driver_connection
    if isinstance(found, Connection):
        return found
    raise TypeError(
        "connection= takes a connection of oxlite.aio's, or an AsyncSession or AsyncConnection"
        f" of SQLAlchemy's, not {type(connection).__name__}"
    )
