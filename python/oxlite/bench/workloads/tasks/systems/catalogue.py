"""The systems, by what workers they have; none is loaded by this.

What is set here, and in the modules of the systems, is what a system is known to be fast with, or
its default: ``docs/methodology.md`` lists it.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.tasks.systems.base import System, Told
from oxlite.bench.workloads.tasks.work import RECOVERY

PACKAGE = "oxlite.bench.workloads.tasks.systems"
PYTHON = (sys.executable, "-P")

Words = list[str]
Commands = Callable[[int, int], list[Words]]
"""Gives the programs that have so many worker processes, each running so many tasks at once."""


@dataclass(frozen=True)
class Kind:
    """A system that was not loaded.

    Attributes:
        module: its application; it has a function ``system``.
        commands: its programs.
        has_threads: whether a process can run several tasks at once.
        renews: whether a program soon starts a worker anew that was killed, however often. Else the
            lab starts a program anew, with one process each.
        ends: whether its programs end in order when they are sent SIGTERM, having written all.
    """

    module: str
    commands: Commands
    has_threads: bool = True
    renews: bool = True
    ends: bool = False

    def programs(self, scenario: Scenario, processes: int, threads: int) -> list[Words]:
        """The programs of a scenario."""
        if scenario["load"] == RECOVERY and not self.renews:
            return [words for _ in range(processes) for words in self.commands(1, threads)]
        return self.commands(processes, threads)


def _oxlite(processes: int, threads: int) -> list[Words]:
    return [
        [
            *PYTHON, "-m", "oxlite.cli", "worker", f"{PACKAGE}.oxlite:queue",
            "--processes", str(processes), "--threads", str(threads), "--log-level", "warning",
        ]
    ]  # fmt: skip


def _celery(processes: int, threads: int) -> list[Words]:
    if threads > 1:
        pools = [("threads", threads)] * processes
    else:
        # One process without a pool is faster than one with a pool of one.
        pools = [("prefork" if processes > 1 else "solo", processes)]
    return [
        [
            *PYTHON, "-m", "celery", "-A", f"{PACKAGE}.celery", "worker", "--pool", pool,
            "--concurrency", str(size), "-Q", f"{celery_queue()},{celery_queue(place)}",
            "-n", f"lab{place}@localhost", "--loglevel", "WARNING",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]
        for place, (pool, size) in enumerate(pools)
    ]  # fmt: skip


def _huey(processes: int, threads: int) -> list[Words]:
    one = [*PYTHON, "-m", "huey.bin.huey_consumer", f"{PACKAGE}.huey.huey", "--quiet"]
    if threads == 1 and processes > 1:
        return [[*one, "-k", "process", "-w", str(processes)]]
    return [[*one, "-k", "thread", "-w", str(threads)]] * processes


def _django(processes: int, threads: int) -> list[Words]:
    return [[*PYTHON, "-c", f"from {PACKAGE}.django import work; work()"]] * processes


def _honker(processes: int, threads: int) -> list[Words]:
    code = f"from {PACKAGE}.honker import work; work({threads})"
    return [[*PYTHON, "-c", code]] * processes


KINDS: Mapping[tuple[str, str], Kind] = {
    ("oxlite", "file"): Kind("oxlite", _oxlite, renews=False, ends=True),
    ("celery", "redis"): Kind("celery", _celery),
    ("huey", "file"): Kind("huey", _huey),
    ("django_tasks_db", "file"): Kind("django", _django, has_threads=False),
    ("django_tasks_db", "postgresql"): Kind("django", _django, has_threads=False),
    ("honker", "file"): Kind("honker", _honker),
}
"""By the values of the axes ``driver`` and ``way``."""


def kind(scenario: Scenario) -> Kind:
    """That of a scenario."""
    return KINDS[scenario.driver, scenario["way"]]


def opened(scenario: Scenario, told: Told) -> System:
    """The system, in a process that has none yet."""
    os.environ.update(told.environment())
    made: System = import_module(f"{PACKAGE}.{kind(scenario).module}").system()
    return made


def celery_queue(place: int | None = None) -> str:
    """Celery's queue of all programs, or of the one at that place.

    Its programs fetch more tasks than they run, so that what is to hold one back is sent to it.
    """
    return "lab" if place is None else f"lab-{place}"


def slots_of(programs: Sequence[Words], processes: int, threads: int) -> int:
    """How many tasks each of the programs runs at once."""
    return processes * threads // len(programs)
