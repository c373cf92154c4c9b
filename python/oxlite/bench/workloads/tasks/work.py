"""The work of ``tasks``: its parameters, and how many tasks a scenario has.

Invariant: the tasks of a scenario are numbered from 0, and the same for every system; those that
hold workers back until all of them are there have numbers after these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oxlite.bench.parameters import SHORTEST_SECONDS, Parameters, parameter
from oxlite.bench.scenarios.scenario import Scenario

LATENCY, EMPTY, SHORT, LONG, ENQUEUE, RECOVERY, WAITING, IDLE = LOADS = (
    "latency", "empty", "short", "long", "enqueue", "recovery", "waiting", "idle",
)  # fmt: skip

HOLD, FILL, FLOOD, PACE, RUSH, COUNT = ("hold", "fill", "flood", "pace", "rush", "count")
"""What a process that enqueues does in a turn."""

MILLISECONDS: Mapping[str, int] = {EMPTY: 0, SHORT: 1, LONG: 10}
"""How long the tasks sleep whose number in a second is measured, by the load."""

WARM_TASKS = 20
"""Tasks that each process enqueues before it is timed, where nothing else is."""

RECOVERING = 2
"""Worker processes of which one is killed."""

MS_PER_SECOND = 1000


@dataclass(frozen=True)
class TasksParameters(Parameters):
    """What shapes the work."""

    processes: Sequence[int] = parameter((1, 8), "Worker processes", quick=(1,), least=1, most=256)
    threads: Sequence[int] = parameter(
        (1, 8), "Tasks that each of them runs at once", quick=(1,), least=1, most=256
    )
    tasks: int = parameter(
        5_000, "Tasks that wait when workers begin", quick=400, least=1, most=1_000_000
    )
    duration_seconds: float = parameter(
        3.0,
        "Seconds in which tasks are enqueued; and for how long tasks that sleep keep workers busy",
        quick=0.3, least=SHORTEST_SECONDS, most=3600,
    )  # fmt: skip
    hertz: int = parameter(
        100, "Tasks in a second, where an idle worker begins each", least=1, most=100_000,
        option="--rate",
    )  # fmt: skip
    paced: int = parameter(1_000, "Tasks of that rate", quick=60, least=1, most=1_000_000)
    enqueuers: Sequence[int] = parameter(
        (1, 8), "Processes that enqueue", quick=(1,), least=1, most=256
    )
    kills: int = parameter(20, "Worker processes that are killed", quick=2, least=1, most=10_000)
    waiting: Sequence[int] = parameter(
        (1_000, 1_000_000), "Tasks that wait behind those that are counted", quick=(1_000, 20_000),
        least=1,
    )  # fmt: skip
    claimed: int = parameter(
        2_000, "Tasks that are counted before those", quick=300, least=1, most=1_000_000
    )
    idle_seconds: float = parameter(
        10.0, "Seconds for which an idle worker is watched", quick=1.0,
        least=SHORTEST_SECONDS, most=3600,
    )  # fmt: skip


def slots(scenario: Scenario) -> tuple[int, int]:
    """How many worker processes a scenario has, and how many tasks each runs at once."""
    if scenario["load"] == RECOVERY:
        return RECOVERING, 1
    return int(scenario.get("processes", 1)), int(scenario.get("threads", 1))


def count(parameters: TasksParameters, scenario: Scenario) -> int:
    """How many numbered tasks a scenario has, but for those that keep none of their instants."""
    load = scenario["load"]
    if load == LATENCY:
        return parameters.paced
    if load == RECOVERY:
        return parameters.kills
    if load == IDLE:
        return 1
    if load == WAITING:
        return parameters.claimed
    if milliseconds := MILLISECONDS.get(load, 0):
        processes, threads = slots(scenario)
        each = parameters.duration_seconds * MS_PER_SECOND / milliseconds
        return min(parameters.tasks, max(1, round(each * processes * threads)))
    return parameters.tasks
