"""Processes that have a channel layer and no server: one that prepares it, members, a watcher.

What idle members cost is counted without a server, because uvicorn has a timer of its own.
"""

import asyncio
import threading
import time

from oxlite.bench.drivers.base import distribution_version
from oxlite.bench.errors import WorkerError
from oxlite.bench.harness import wakeups
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.cable import work
from oxlite.bench.workloads.cable.layers import configure
from oxlite.bench.workloads.cable.work import CableParameters

JOIN_SECONDS = 60.0
SETTLE_SECONDS = 6.0
"""After it, what began with the processes has come to rest: limits of five seconds among it."""


class LayerTask(ScenarioTask[CableParameters]):
    """A process with a channel layer."""

    parameters_type = CableParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.digests = [digest(work.text(0))]
        configure(self.scenario.driver, self.scenario["way"], self.place.path)
        from channels.layers import get_channel_layer

        self.layer = get_channel_layer()

    def ready(self) -> Message:
        """Which driver, and which Channels."""
        facts = super().ready()
        channels = distribution_version("channels")
        return {**facts, "versions": {**facts["versions"], "channels": channels}}

    async def leave(self) -> None:
        """Close what the layer has opened in this event loop, if it lets one."""
        if close := getattr(self.layer, "close", None):
            await close()

    def run(self, turn: Message, start_ns: int) -> None:
        """Nothing, unless a process of another kind."""

    def collect(self) -> tuple[Message, bytes]:
        """Nothing, unless a process of another kind."""
        return {}, b""


class PrepareTask(LayerTask):
    """Makes what must be there before several processes open the layer, or empties it."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        if self.scenario.driver == "channels_lite":
            from django.core.management import call_command

            call_command("migrate", verbosity=0)
        if self.driver.is_server:
            # The others have a file of their own for each measurement.
            asyncio.run(self.layer.flush())

    def connection(self) -> tuple[object, str]:
        """One with the settings of those that are measured."""
        path = self.place.path
        if self.scenario.driver == "oxlite":
            from oxlite import connect

            return connect(path, profile="cache"), str(path.parent)
        if self.scenario.driver == "channels_lite":
            from django.db import connection

            connection.ensure_connection()
            return connection.connection, str(path.parent)
        return super().connection()


class MembersTask(LayerTask):
    """Members of the group, each a task of one event loop that waits for a message."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._members: int = arguments["members"]
        self._heard = 0
        self._all_heard = threading.Event()
        joined = threading.Event()
        self._failure: Exception | None = None
        # They wait for what comes until the process ends.
        threading.Thread(target=self._live, args=(joined,), daemon=True).start()
        if not joined.wait(JOIN_SECONDS) or self._failure is not None:
            raise WorkerError(f"the members have not joined: {self._failure!r}")

    def run(self, turn: Message, start_ns: int) -> None:
        """Wait, and then for the message that shows that all of them have waited."""
        self._all_heard.wait(turn["seconds"])

    def collect(self) -> tuple[Message, bytes]:
        """How many members it has, and how many have heard the message."""
        if self._failure is not None:
            raise WorkerError(f"a member has failed: {self._failure!r}") from self._failure
        return {"members": self._members, "heard": self._heard}, b""

    def _live(self, joined: threading.Event) -> None:
        async def wait(name: str) -> None:
            await self.layer.receive(name)
            self._heard += 1

        async def live() -> None:
            names = [await self.layer.new_channel() for _ in range(self._members)]
            for name in names:
                await self.layer.group_add(work.GROUP, name)
            joined.set()
            await asyncio.gather(*(wait(name) for name in names))
            await self.leave()
            self._all_heard.set()

        try:
            asyncio.run(live())
        except Exception as error:
            self._failure = error
        finally:
            joined.set()


class WatcherTask(LayerTask):
    """Watches idle members from outside, and then tells the group something."""

    def run(self, turn: Message, start_ns: int) -> None:
        """Watch them."""
        time.sleep(SETTLE_SECONDS)
        before = wakeups.spent(turn["members"])
        time.sleep(self.parameters.idle_seconds)
        switches, running_ns = wakeups.spent(turn["members"]).since(before)
        self._facts = {"switches": switches, "running_ns": running_ns}
        asyncio.run(self._tell())

    def collect(self) -> tuple[Message, bytes]:
        """What the kernel has counted."""
        return self._facts, b""

    async def _tell(self) -> None:
        await self.layer.group_send(work.GROUP, {"type": work.KIND, work.TEXT: work.text(0)})
        await self.leave()
