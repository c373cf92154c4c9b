"""The ASGI application: a member hears what the group is told; a sender tells it.

Each says first in which process it is, so that clients can be divided evenly.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from oxlite.bench.workloads.cable import work
from oxlite.bench.workloads.cable.layers import configure_as_told

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]

MEMBER, SENDER = "/member", "/sender"
"""The paths of their WebSockets."""


def application() -> Application:
    """The application, with the layer that the environment tells of."""
    configure_as_told()
    # Channels can be loaded where Django is set up alone.
    from channels.generic.websocket import AsyncWebsocketConsumer

    class Greeter(AsyncWebsocketConsumer):  # type: ignore[misc, unused-ignore]
        async def connect(self) -> None:
            await self.accept()
            await self.send(text_data=str(os.getpid()))

    class Member(Greeter):
        groups = (work.GROUP,)

        async def tell(self, event: dict[str, str]) -> None:
            await self.send(text_data=event[work.TEXT])

    class Sender(Greeter):
        async def receive(
            self, text_data: str | None = None, bytes_data: bytes | None = None
        ) -> None:
            message = {"type": work.KIND, work.TEXT: text_data}
            await self.channel_layer.group_send(work.GROUP, message)

    consumers = {MEMBER: Member.as_asgi(), SENDER: Sender.as_asgi()}

    async def route(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401
        await consumers[scope["path"]](scope, receive, send)

    return route
