"""Django Channels' layer in a file: ``oxlite.django.channels.OxliteChannelLayer``.

>>> CHANNEL_LAYERS = {
...     "default": {
...         "BACKEND": "oxlite.django.channels.OxliteChannelLayer",
...         "CONFIG": {"path": BASE_DIR / "cable.db"},
...     }
... }

Invariant: names, capacities and errors are those of Channels' specification; what a message goes
through is the cable's.
"""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from typing import Any
from weakref import WeakMethod

from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import BaseChannelLayer
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from oxlite import cable
from oxlite.connection import ProfileName
from oxlite.django.current_transaction import current_connection
from oxlite.sqlite3 import ProgrammingError

__all__ = ["OxliteChannelLayer"]


class OxliteChannelLayer(BaseChannelLayer):
    """Channels, process-local channels and groups in an SQLite file.

    Args:
        path: The file; made if it is not there. One of its own is best.
        database: Instead of ``path``, the alias of a database: its file is used, and what is sent
            inside ``atomic()`` leaves when that commits.
        profile: That of its connections. By default nothing is synced, or, with ``database``, what
            ``web`` does.
        expiry: For how many seconds a message waits to be received.
        group_expiry: For how many seconds a channel is in a group, since it was added last.
        capacity: How many messages may wait in a channel. The process-local channels of a process
            share it.
        channel_capacity: Capacities of other channels, by pattern as in ``fnmatch``, or compiled
            regular expression; the first that matches counts.
    """

    extensions = ["groups", "flush"]  # noqa: RUF012 - as the specification has it

    MessageTooLarge = MessageTooLarge
    ChannelFull = ChannelFull

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        database: str | None = None,
        profile: ProfileName | None = None,
        expiry: float = 60,
        group_expiry: float = 86400,
        capacity: int = 100,
        channel_capacity: Mapping[Any, int] | None = None,
    ) -> None:
        super().__init__(expiry=expiry, capacity=capacity)
        if (path is None) == (database is None):
            raise ImproperlyConfigured(
                "the CONFIG of OxliteChannelLayer takes a path, such as BASE_DIR / 'cable.db', or"
                " database, the alias of a database whose file is used: one of the two"
            )
        self.channel_capacity = self.compile_capacities(channel_capacity or {})
        self.group_expiry = group_expiry
        self._alias = database
        self._lock = threading.Lock()
        self._cables: dict[str, cable.Cable] = {}
        self._make = partial(
            cable.Cable,
            profile=profile or ("cache" if database is None else "web"),
            expiry=expiry,
            group_expiry=group_expiry,
            capacity=capacity,
            capacity_of=_weakly(self.get_capacity, capacity) if channel_capacity else None,
        )
        # Another database has another name while tests run, which is asked for at each use.
        self._path = None if path is None else self._made(path)

    def _made(self, path: str | PathLike[str]) -> str:
        """Make the cable of a file, with arguments that are found wrong now; its name."""
        try:
            made = self._make(path)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"the CONFIG of OxliteChannelLayer: {error}") from error
        name = str(path)
        self._cables[name] = made
        return name

    def _cable(self) -> cable.Cable:
        """That of the file that the settings name now."""
        name = self._path or str(connections.settings[self._alias]["NAME"])
        found = self._cables.get(name)
        if found is None:
            self._check_database()
            with self._lock:
                if name not in self._cables:
                    self._made(name)
                found = self._cables[name]
        return found

    def _check_database(self) -> None:
        assert self._alias is not None
        wrapper: Any = connections[self._alias]
        if wrapper.vendor != "sqlite":
            raise ImproperlyConfigured(
                f"the CONFIG of OxliteChannelLayer has database={self._alias!r}, whose ENGINE is"
                f" {wrapper.settings_dict['ENGINE']!r}: it takes one of SQLite, or path="
            )
        if wrapper.is_in_memory_db():
            raise ImproperlyConfigured(
                f"the CONFIG of OxliteChannelLayer has database={self._alias!r}, which is in"
                " memory: other processes and threads cannot use it. In tests, give that database"
                " a file: DATABASES[...]['TEST'] = {'NAME': BASE_DIR / 'test.sqlite3'}; or use"
                " 'channels.layers.InMemoryChannelLayer'"
            )

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        """Send a message to a channel.

        Raises:
            ChannelFull: As many wait there as may.
            MessageTooLarge: It has more than four mebibytes.
            TypeError: The name is none, or the message cannot be sent.
        """
        self.require_valid_channel_name(channel)
        try:
            await self._cable().send(channel, message, connection=self._connection())
        except cable.QueueFull as error:
            raise ChannelFull(str(error)) from None
        except cable.MessageTooLarge as error:
            raise MessageTooLarge(str(error)) from None

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message of a channel; of all of this process's that begin so.

        Raises:
            TypeError: The name is none.
            ValueError: It is a channel of another process.
            oxlite.sqlite3.ProgrammingError: Inside ``atomic()`` on the layer's database, for a
                channel that other processes receive as well.
        """
        self.require_valid_channel_name(channel)
        if not channel.partition("!")[1] and self._connection() is not None:
            raise ProgrammingError(
                f"receive({channel!r}) inside a transaction on {self._alias!r} would wait for the"
                " end of that: taking a message is a write of its own. Receive after it"
            )
        return await self._cable().receive(channel)

    async def new_channel(self, prefix: str = "specific") -> str:
        """The name of a channel that this process alone receives.

        Raises:
            TypeError: The prefix makes no name: ASCII letters, digits, hyphens, underscores and
                periods, with at most 33 characters.
        """
        try:
            name = self._cable().new_channel(prefix)
        except ValueError as error:
            raise TypeError(str(error)) from None
        self.require_valid_channel_name(name)
        return name

    async def group_add(self, group: str, channel: str) -> None:
        """Put a channel into a group."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        await self._cable().group_add(group, channel, connection=self._connection())

    async def group_discard(self, group: str, channel: str) -> None:
        """Take a channel out of a group, if it is there."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        await self._cable().group_discard(group, channel, connection=self._connection())

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send a message to all channels of a group but those that are full.

        Raises:
            MessageTooLarge: It has more than four mebibytes.
            TypeError: The name is none, or the message cannot be sent.
        """
        self.require_valid_group_name(group)
        try:
            await self._cable().group_send(group, message, connection=self._connection())
        except cable.MessageTooLarge as error:
            raise MessageTooLarge(str(error)) from None

    def _connection(self) -> object:
        """That of the transaction in which this is called, if what is written is part of it."""
        return None if self._alias is None else current_connection(self._alias)

    async def flush(self) -> None:
        """Delete all messages and groups."""
        await self._cable().flush(connection=self._connection())

    async def close(self) -> None:
        """Close the file. It is opened anew when it is used again."""
        for each in list(self._cables.values()):
            await each.close()


def _weakly(get_capacity: Callable[[str], int], default: int) -> Callable[[str], int]:
    """The method, without keeping its layer: the thread that receives for it would do so."""
    method = WeakMethod(get_capacity)

    def capacity_of(queue: str) -> int:
        found = method()
        return default if found is None else found(queue)

    return capacity_of
