"""Rooms for web applications without Django: whoever is in a room is given what is sent there.

Rooms are groups of the cable: what Django's channel layer sends to a group arrives in the room of
that name, and the other way around, if both use the same file.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from os import PathLike
from types import TracebackType
from typing import Any, Self

from oxlite.cable.arguments import check_name
from oxlite.cable.cable import Cable

__all__ = ["Broadcast", "Subscriber"]


class Broadcast:
    """Rooms in a file, for all processes that open it.

    >>> broadcast = Broadcast("cable.db")
    >>> async with broadcast.subscribe("chat") as messages:
    ...     async for message in messages:
    ...         await websocket.send_json(message)

    Args:
        path: The file; made if it is not there.
        expiry: For how many seconds a message waits for a process that is busy.
        capacity: How many messages may wait for a process.
    """

    def __init__(
        self, path: str | PathLike[str], *, expiry: float = 60.0, capacity: int = 100
    ) -> None:
        self._cable = Cable(path, expiry=expiry, capacity=capacity)

    async def publish(self, room: str, message: Mapping[str, Any]) -> None:
        """Send a message to all who are in a room, in any process.

        Raises:
            oxlite.cable.MessageTooLarge: It has more than four mebibytes.
            TypeError: It is no dict, or holds what cannot be sent; or the name is no text.
            ValueError: A number has more than 64 bits, or it is nested too deeply; or the name is
                none.
            oxlite.sqlite3.Error: The file cannot be written.
        """
        check_name("room", room)
        await self._cable.group_send(room, message)

    def subscribe(self, *rooms: str) -> "Subscriber":
        """Be in rooms during an ``async with`` block, whose value gives their messages.

        Raises:
            TypeError: No room, or a name that is no text.
            ValueError: A name that is none: 1 to 255 bytes.
        """
        if not rooms:
            raise TypeError("subscribe() takes the names of rooms")
        for room in rooms:
            check_name("room", room)
        return Subscriber(self._cable, rooms)

    async def close(self) -> None:
        """Close the file. Those who are in rooms are cancelled."""
        await self._cable.close()


class Subscriber(AbstractAsyncContextManager["Subscriber"]):
    """The messages of rooms, in the order in which they were sent: an asynchronous iterator."""

    def __init__(self, cable: Cable, rooms: tuple[str, ...]) -> None:
        self._cable = cable
        self._rooms = rooms
        self._channel = cable.new_channel("room")
        self._was_entered = self._was_left = False

    async def __aenter__(self) -> Self:
        """Enter the rooms: what is sent from here on is given.

        Raises:
            RuntimeError: It was entered before.
            oxlite.sqlite3.Error: The file cannot be written.
        """
        if self._was_entered:
            raise RuntimeError(
                "a subscription is entered once: call subscribe() for each async with block"
            )
        self._was_entered = True
        try:
            await self._cable._enter(self._rooms, self._channel)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Leave them. Nothing is waited for: who is cancelled leaves them too."""
        self._leave()

    def _leave(self) -> None:
        self._was_left = True
        self._cable._leave(self._rooms, self._channel)

    def __aiter__(self) -> Self:
        """This one."""
        return self

    async def __anext__(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            RuntimeError: The block has not begun, or has ended.
        """
        if not self._was_entered or self._was_left:
            raise RuntimeError(
                "a subscription gives messages inside its block: async with"
                " broadcast.subscribe(...) as messages"
            )
        return await self._cable.receive(self._channel)
