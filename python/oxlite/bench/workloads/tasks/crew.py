"""The programs of a system's workers: started, held back until all of them are there, ended.

Each worker process is shown to be there, and its threads too, by a task that holds it back: as many
as can run at once have begun before anything is measured, and end together.

Invariant: none of the programs, nor a process of theirs, is left when the ``with`` block ends.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import psutil

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.programs import Program
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.tasks import work
from oxlite.bench.workloads.tasks.ledger import ENDED, FIRST, RUNS, Gate, Ledger
from oxlite.bench.workloads.tasks.systems.base import Told
from oxlite.bench.workloads.tasks.systems.catalogue import Kind, kind

SILENCE_SECONDS = 60.0
"""When no task has begun or ended for so long, none will."""

END_SECONDS = 30.0
LOOK_SECONDS = 0.005
LOCKED = "is locked"

Hold = Callable[[Sequence[tuple[int, int]]], object]
"""Enqueues tasks that hold workers back, each with the place of the program whose it is."""


class Crew(contextlib.AbstractContextManager["Crew"]):
    """The workers of a measurement; see the module.

    Attributes:
        ledger: where they note what they run.
        gate: what holds them back.
    """

    def __init__(self, scenario: Scenario, told: Told, directory: Path, ledger: Ledger) -> None:
        self.kind: Kind = kind(scenario)
        self.ledger = ledger
        self.gate = Gate(Path(told.ledger))
        self._told, self._directory = told, directory
        processes, threads = work.slots(scenario)
        self._words = self.kind.programs(scenario, processes, threads)
        self._each = processes * threads // len(self._words)
        self._logs: list[Path] = []
        # By their places.
        self._programs: dict[int, Program] = {}
        self._exits: dict[int, contextlib.ExitStack] = {}

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return self._each * len(self._words)

    def __enter__(self) -> Self:
        """Start the programs."""
        try:
            for place in range(len(self._words)):
                self._begin(place)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        for exits in self._exits.values():
            exits.close()
        self.gate.close()

    def _begin(self, place: int) -> None:
        log = self._directory / f"workers-{len(self._logs)}.log"
        self._logs.append(log)
        exits = self._exits[place] = contextlib.ExitStack()
        self._programs[place] = exits.enter_context(
            Program(
                "a worker's program",
                self._words[place],
                log,
                directory=self._directory,
                environment=self._told.environment(),
            )
        )

    def renew(self, pid: int) -> None:
        """Have a worker in the place of one that was killed, if its program does not see to it.

        Args:
            pid: the process of the program, as ``program_of`` gives it.
        """
        if self.kind.renews:
            return
        [place] = (n for n, program in self._programs.items() if program.pid == pid)
        self._exits[place].close()
        self._begin(place)

    def program_of(self, pid: int) -> int:
        """The process of the program whose worker a process is."""
        for program in self._programs.values():
            if pid in self._tree(program):
                return program.pid
        raise WorkerError(f"process {pid} runs a task, and is no worker's")

    def pids(self) -> list[int]:
        """All processes of all programs."""
        return [pid for program in self._programs.values() for pid in self._tree(program)]

    def hold(self, enqueue: Hold, first: int) -> None:
        """Have each worker begin a task that ends when the gate is opened.

        Args:
            enqueue: enqueues them.
            first: the number of the first one; the others follow.
        """
        holds = [(first + n, n // self._each) for n in range(self.slots)]
        enqueue(holds)
        numbers = range(first, first + self.slots)
        self._wait(lambda: self.ledger.have(FIRST, numbers), self.slots, "workers began")

    def wait_until_begun(self, number: int, times: int) -> None:
        """Wait until a task has begun so often. Raises as ``wait_until_ended``."""
        self._wait(lambda: self.ledger.value(RUNS, number), times, "times a task began")

    def wait_until_ended(self, numbers: range) -> None:
        """Wait until these tasks have ended.

        Raises:
            WorkerError: they have not, and none has ended for a while; or a program has ended.
        """
        self._wait(lambda: self.ledger.have(ENDED, numbers), len(numbers), "tasks ended")

    def _wait(self, reached: Callable[[], int], wanted: int, what: str) -> None:
        found, since = -1, time.monotonic()
        while True:
            before, found = found, reached()
            if found >= wanted:
                return
            now = time.monotonic()
            if found != before:
                since = now
            elif now - since > SILENCE_SECONDS:
                raise self._failed(f"only {found:,} of {wanted:,} {what}")
            for program in self._programs.values():
                program.require()
            time.sleep(LOOK_SECONDS)

    def end(self) -> None:
        """Let them end in order, if they do so by themselves; else that is left to the kernel."""
        if self.kind.ends:
            for program in self._programs.values():
                program.stop(END_SECONDS, signal.SIGTERM)

    def locked(self) -> int:
        """How often they have said that the database is locked."""
        return sum(log.read_text(errors="replace").count(LOCKED) for log in self._logs)

    def _failed(self, how: str) -> WorkerError:
        if not self._programs:
            return WorkerError(how)
        *_, program = self._programs.values()
        return WorkerError(f"{how}; {program.failed('says last')}")

    def _tree(self, program: Program) -> list[int]:
        with contextlib.suppress(psutil.NoSuchProcess):
            main = psutil.Process(program.pid)
            return [main.pid, *(child.pid for child in main.children(recursive=True))]
        return []


def kill(pid: int) -> int:
    """Kill a process; the instant just before."""
    instant_ns = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    return instant_ns
