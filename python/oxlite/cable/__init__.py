"""The cable: messages between processes, to channels and groups, without a server.

- ``Broadcast``: rooms for Starlette, FastAPI and whatever else runs an event loop.
- ``Cable``: channels and groups, on which that and ``oxlite.django.channels`` are built.

How to use it: ``docs/cable.md``. It needs ``pip install "oxlite[cable]"``.
"""

from oxlite.cable.broadcast import Broadcast, Subscriber
from oxlite.cable.cable import Cable
from oxlite.cable.errors import MessageTooLarge, QueueFull

__all__ = ["Broadcast", "Cable", "MessageTooLarge", "QueueFull", "Subscriber"]
