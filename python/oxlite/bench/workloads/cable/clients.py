"""The process of the WebSocket clients: those in the group, and those that send.

All are tasks of one event loop, which runs while they join and while messages are sent. Messages
leave at fixed instants, however long each takes; one whose instant has passed leaves at once. The
clients wait until each has heard all, and a little longer for what may come twice; where messages
were lost, until nothing has come for a while.

The payload handed over has the instants at which messages left, and for each client the numbers of
what it has heard and the instants at which it did (``time.monotonic_ns``; all signed 64-bit).
"""

import asyncio
import time
from array import array
from collections import Counter

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND, digest, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.cable import work
from oxlite.bench.workloads.cable.server import LOOPBACK
from oxlite.bench.workloads.cable.site import MEMBER, SENDER
from oxlite.bench.workloads.cable.work import CableParameters

JOIN_SECONDS = 120.0
LOOK_SECONDS = 0.05
LINGER_SECONDS = 0.2
SILENCE_SECONDS = 5.0
"""When nothing has come for so long, nothing will."""

WARM_PAUSE_SECONDS = 0.05


class Client:
    """A client in the group, and what it has heard.

    Attributes:
        numbers: of the messages, in the order in which they came.
        instants_ns: when each did.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.numbers = array("q")
        self.instants_ns = array("q")

    async def hear(self) -> None:
        """Note what comes, and when."""
        clock = time.monotonic_ns
        async for text in self.connection:
            instant_ns = clock()
            number = work.number(text)
            if number != work.WARM:
                self.numbers.append(number)
                self.instants_ns.append(instant_ns)


class ClientsTask(ScenarioTask[CableParameters]):
    """The clients of a server."""

    parameters_type = CableParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.digests = [digest(work.text(0))]
        self._url = f"ws://{LOOPBACK}:{arguments['port']}"
        self._workers = work.workers(self.parameters, self.scenario)
        self._count = work.messages(self.parameters, self.scenario)
        self._left_ns = array("q", bytes(8 * self._count))
        self._loop = asyncio.new_event_loop()
        self.exits.callback(self._loop.close)
        self._loop.run_until_complete(self._join())

    def run(self, turn: Message, start_ns: int) -> None:
        """Send all messages, and hear them."""
        try:
            self._loop.run_until_complete(self._converse())
        except ConnectionClosed as error:
            raise _ended(error) from None

    def collect(self) -> tuple[Message, bytes]:
        """What was sent and heard; see the module."""
        heard = [values for one in self._clients for values in (one.numbers, one.instants_ns)]
        return (
            {"counts": [len(one.numbers) for one in self._clients]},
            packed([self._left_ns, *heard]),
        )

    async def _join(self) -> None:
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                members = int(self.scenario["clients"])
                self._clients = [Client(one) for one in await self._connected(MEMBER, members)]
                self._senders = await self._connected(SENDER, work.SENDERS)
        except (OSError, InvalidHandshake, ConnectionClosed) as error:
            raise _ended(error) from None
        except TimeoutError:
            raise WorkerError(f"the clients have not joined in {JOIN_SECONDS:.0f} s") from None

    async def _connected(self, path: str, count: int) -> list[ClientConnection]:
        """So many WebSockets, divided evenly among the processes of the server."""
        rooms = work.shares(count, self._workers)
        taken: Counter[str | bytes] = Counter()
        shares: dict[str | bytes, int] = {}
        found: list[ClientConnection] = []
        while len(found) < count:
            one = await connect(
                self._url + path, compression=None, ping_interval=None, max_queue=None,
                open_timeout=None,
            )  # fmt: skip
            process = await one.recv()
            if process not in shares:
                shares[process] = rooms.pop(0) if rooms else 0
            if taken[process] < shares[process]:
                taken[process] += 1
                found.append(one)
            else:
                # Whichever process is free accepts it; the next one may be another's.
                await one.close()
        return found

    async def _converse(self) -> None:
        listening = [asyncio.ensure_future(one.hear()) for one in self._clients]
        await self._send_all()
        heard, since = -1, time.monotonic()
        while True:
            now, before = time.monotonic(), heard
            heard = sum(len(one.numbers) for one in self._clients)
            if heard >= self._count * len(self._clients):
                break
            if heard != before:
                since = now
            elif now - since > SILENCE_SECONDS:
                break
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(LINGER_SECONDS)
        if ended := sum(one.done() for one in listening):
            raise WorkerError(f"the server has ended {ended} of the clients' WebSockets")
        for one in listening:
            one.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        every = [*self._senders, *(one.connection for one in self._clients)]
        await asyncio.gather(*(one.close() for one in every))

    async def _send_all(self) -> None:
        clock, senders = time.monotonic_ns, self._senders
        for n in range(work.WARM_MESSAGES):
            await senders[n % len(senders)].send(work.text(work.WARM))
            await asyncio.sleep(WARM_PAUSE_SECONDS)
        gap_ns = NS_PER_SECOND / int(self.scenario["hertz"])
        begun_ns = clock()
        for number in range(self._count):
            text = work.text(number)
            ahead_ns = begun_ns + number * gap_ns - clock()
            if ahead_ns > 0:
                await asyncio.sleep(ahead_ns / NS_PER_SECOND)
            self._left_ns[number] = clock()
            await senders[number % len(senders)].send(text)


def _ended(error: Exception) -> WorkerError:
    return WorkerError(f"the server ends a client's WebSocket: {error!r}")
