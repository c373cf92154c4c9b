"""The work of ``notify``: its parameters, the messages, and the tables that a scenario starts from.

Invariant: a message is its number and a filling, the same for every system; the numbers of those
that are measured count up from 0, and those that warm a system up have another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.parameters import SHORTEST_SECONDS, Parameters, parameter, timeout
from oxlite.bench.scenarios.scenario import Scenario

CHANNEL, ELSEWHERE = "lab", "elsewhere"
"""Where messages are published, and where nobody publishes anything."""

WARM, WARM_MESSAGES = -1, 20

CREATE = "CREATE TABLE message (id INTEGER PRIMARY KEY, payload TEXT NOT NULL)"
CREATE_COUNTER = "CREATE TABLE counter (n INTEGER NOT NULL)"
FILL_COUNTER = "INSERT INTO counter VALUES (0)"
WRITE = "UPDATE counter SET n = n + 1"
COUNTED = "SELECT n FROM counter"

FILLING = "x" * 90


@dataclass(frozen=True)
class NotifyParameters(Parameters):
    """What shapes the work."""

    listeners: Sequence[int] = parameter((1, 100), "Listeners", quick=(1,), least=1, most=10_000)
    hertz: Sequence[int] = parameter(
        (100, 1_000, 10_000), "Messages in a second", quick=(500,), least=1, most=1_000_000,
        option="--rate",
    )  # fmt: skip
    messages: int = parameter(20_000, "Messages of a scenario at most", quick=250, least=1)
    duration_seconds: float = parameter(
        10.0, "Seconds in which they are published, or transactions written", quick=0.5,
        least=SHORTEST_SECONDS, most=3600,
    )  # fmt: skip
    idle_seconds: float = parameter(
        10.0, "Seconds for which idle listeners are watched", quick=1.0,
        least=SHORTEST_SECONDS, most=3600,
    )  # fmt: skip
    processes: int = parameter(
        10, "Processes among which the listeners are divided", quick=2, least=1, most=1000
    )
    elsewhere: Sequence[int] = parameter(
        (0, 10), "Listeners to another channel, where transactions are counted", quick=(0, 2),
        most=10_000,
    )  # fmt: skip
    timeout_seconds: float = timeout("Seconds to wait for a lock")


def text(number: int) -> str:
    """The payload of a message: some hundred bytes."""
    return f"{number} {FILLING}"


def number(payload: str | bytes) -> int:
    """The number of a message."""
    return int(payload.split(None, 1)[0])


def messages(parameters: NotifyParameters, scenario: Scenario) -> int:
    """How many messages are published in a scenario."""
    wanted = round(int(scenario.get("hertz", 0)) * parameters.duration_seconds)
    return min(parameters.messages, max(1, wanted))


def division(parameters: NotifyParameters, scenario: Scenario) -> list[int]:
    """How many listeners each process has."""
    listeners = int(scenario.get("listeners") or scenario.get("elsewhere") or 0)
    processes = min(listeners, parameters.processes)
    return [listeners * (n + 1) // processes - listeners * n // processes for n in range(processes)]


def fill(connection: Connection) -> None:
    """Make the tables."""
    for statement in (CREATE, CREATE_COUNTER, FILL_COUNTER):
        connection.execute(statement, ())
