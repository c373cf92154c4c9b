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

from collections.abc import Mapping
from os import PathLike
from typing import Any

from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import BaseChannelLayer
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from oxlite import cable
from oxlite.connection import ProfileName
from oxlite.django.current_transaction import current_connection

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
        self.channel_capacity = self.compile_capacities(channel_capacity or {})
        self.group_expiry = group_expiry
        self._alias = database
        if database is not None and path is None:
            path = connections[database].settings_dict["NAME"]
        elif path is None or database is not None:
            raise ImproperlyConfigured(
                "the CONFIG of OxliteChannelLayer takes a path, such as BASE_DIR / 'cable.db', or"
                " database, the alias of a database whose file is used: one of the two"
            )
        self._cable = cable.Cable(
            path,
            profile=profile or ("cache" if database is None else "web"),
            expiry=expiry,
            group_expiry=group_expiry,
            capacity=capacity,
            capacity_of=self.get_capacity if channel_capacity else None,
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
            await self._cable.send(channel, message, connection=self._connection())
        except cable.QueueFull as error:
            raise ChannelFull(str(error)) from None
        except cable.MessageTooLarge as error:
            raise MessageTooLarge(str(error)) from None

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message of a channel; of all of this process's that begin so."""
        self.require_valid_channel_name(channel)
        return await self._cable.receive(channel)

    async def new_channel(self, prefix: str = "specific") -> str:
        """The name of a channel that this process alone receives."""
        return self._cable.new_channel(prefix)

    async def group_add(self, group: str, channel: str) -> None:
        """Put a channel into a group."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        await self._cable.group_add(group, channel)

    async def group_discard(self, group: str, channel: str) -> None:
        """Take a channel out of a group, if it is there."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        await self._cable.group_discard(group, channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send a message to all channels of a group but those that are full.

        Raises:
            MessageTooLarge: It has more than four mebibytes.
            TypeError: The name is none, or the message cannot be sent.
        """
        self.require_valid_group_name(group)
        try:
            await self._cable.group_send(group, message, connection=self._connection())
        except cable.MessageTooLarge as error:
            raise MessageTooLarge(str(error)) from None

    def _connection(self) -> object:
        """That of the ``atomic()`` in which this is called, if a message is part of it."""
        return None if self._alias is None else current_connection(self._alias)

    async def flush(self) -> None:
        """Delete all messages and groups."""
        await self._cable.flush()

    async def close(self) -> None:
        """Close the file. It is opened anew when it is used again."""
        await self._cable.close()
