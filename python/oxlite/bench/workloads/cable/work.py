"""The work of ``cable``: its parameters and the messages.

Invariant: a message is its number and a filling, the same for every channel layer; the numbers of
those that are measured count up from 0, the senders taking turns, and those that warm a server up
have another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.parameters import SHORTEST_SECONDS, Parameters, parameter
from oxlite.bench.scenarios.scenario import Scenario

GROUP = "lab"
KIND, TEXT = "tell", "text"
"""The type of a message, which names the consumer's method, and where its text is."""

SENDERS = 2
"""WebSockets that send, one in each process of the server; they are not in the group."""

WARM, WARM_MESSAGES = -1, 20
FILLING = "x" * 90


@dataclass(frozen=True)
class CableParameters(Parameters):
    """What shapes the work."""

    clients: Sequence[int] = parameter(
        (1, 50, 200), "WebSocket clients in the group", quick=(10,), least=1, most=10_000
    )
    hertz: Sequence[int] = parameter(
        (20, 500), "Messages in a second", quick=(50,), least=1, most=100_000, option="--rate"
    )
    messages: int = parameter(10_000, "Messages of a scenario at most", quick=50, least=1)
    duration_seconds: float = parameter(
        10.0, "Seconds in which they are sent", quick=1.0, least=SHORTEST_SECONDS, most=3600
    )
    idle_seconds: float = parameter(
        10.0, "Seconds for which idle members are watched", quick=1.0,
        least=SHORTEST_SECONDS, most=3600,
    )  # fmt: skip
    workers: int = parameter(2, "Processes of the server", least=1, most=64)


def text(number: int) -> str:
    """A message: some hundred bytes."""
    return f"{number} {FILLING}"


def number(text: str | bytes) -> int:
    """The number of a message."""
    return int(text.split(None, 1)[0])


def messages(parameters: CableParameters, scenario: Scenario) -> int:
    """How many messages are sent in a scenario."""
    wanted = round(int(scenario.get("hertz", 0)) * parameters.duration_seconds)
    return min(parameters.messages, max(1, wanted))


def workers(parameters: CableParameters, scenario: Scenario) -> int:
    """How many processes the server has: what is in the memory of one is heard in that alone."""
    return 1 if scenario.driver == "memory" else parameters.workers


def shares(count: int, workers: int) -> list[int]:
    """How many of so many each process has; the first has the most."""
    return [count // workers + (n < count % workers) for n in range(workers)]
