"""Writers of ``gate`` that are killed again and again, and how soon another one commits.

The worker process of this scenario writes nothing itself and has no connection: it forks
the writers, kills one, waits until another has committed, and forks the next in its
place. A fork of a small process is ready at once, where a new Python takes a
tenth of a second: so ten thousand kills are a matter of minutes.

The time measured runs from the instant before the signal to the return of the
first statement that committed in another process after it, on the clock that all share.

The connection of the environment report is opened when all of them have ended.

Invariants: nothing waits without a limit (what takes longer counts as a hang,
and fails the row); no writer outlives this process.

The payload handed over is the times of each kind of kill (unsigned 64-bit ns), one kind
after the other.
"""

import itertools
import os
import random
import signal
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NoReturn, TypeVar

from oxlite.bench.errors import VerificationError, WorkerError
from oxlite.bench.harness.bootstrap import die_with_parent
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.gate import work
from oxlite.bench.workloads.gate.victim import (
    ACKNOWLEDGED,
    ANY,
    KILLED_NS,
    KIND,
    KINDS,
    LOCKED,
    ORDER,
    STOPPED,
    TAKEN,
    TAKER,
    Shared,
    write_until_stopped,
)
from oxlite.bench.workloads.gate.work import GateParameters

PATIENCE_SECONDS = 10.0
"""How much longer than a lock's timeout something may take before it counts as a hang."""

LONGEST_DELAY_SECONDS = 0.003
"""A kill comes after a random time, so that it meets the victim and the queue anywhere."""

LOOK_SECONDS = 0.0002
FAILED = 1

Found = TypeVar("Found")


class KillsTask(ScenarioTask[GateParameters]):
    """The process that forks and kills.

    Attributes:
        kinds: whom the kills meet, one kind after the other.
        statement: what the writers write.
    """

    parameters_type = GateParameters
    kinds: ClassVar[Sequence[str]] = KINDS
    statement: ClassVar[str] = work.WRITE

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._writers = int(self.scenario.get("processes", 0))
        self._keys = [work.keys(self.parameters, place) for place in range(self._writers)]
        self.digests = [work.keys_digest(keys) for keys in self._keys]
        self._shared = Shared(self._writers)
        self._source = random.Random(f"{self.parameters.seed}:kills")
        self._places: dict[int, int] = {}
        self._times_ns = {kind: array("Q") for kind in self.kinds}
        self._elapsed_seconds = self._limit_seconds = 0.0

    def run(self, turn: Message, start_ns: int) -> None:
        """Fork the writers, kill as often as asked, let the rest end.

        Args:
            turn: may name ``patience_seconds``.
            start_ns: see the base class.
        """
        patience_seconds = turn.get("patience_seconds", PATIENCE_SECONDS)
        self._limit_seconds = self.parameters.timeout_seconds + patience_seconds
        for place in range(self._writers):
            self._fork(place)
        self._await(lambda: self._shared.total(ACKNOWLEDGED), "nobody writes")
        begun_ns = time.perf_counter_ns()
        for number in range(self.parameters.kills):
            kind = self.kinds[number % len(self.kinds)]
            while self._kill(kind, number) != kind:
                pass
        self._elapsed_seconds = (time.perf_counter_ns() - begun_ns) / 1e9
        self._before_the_end()
        self._shared.words[STOPPED] = 1
        while self._places:
            self._await(self._ended, "a writer does not stop")

    def _meet(self, kind: str, number: int) -> int:
        """Wait until somebody is where a kill of ``kind`` should meet him, and choose him.

        Returns:
            The process to be killed.
        """
        words = self._shared.words
        if kind == ANY:
            place = self._any_place()
        else:
            order = words[ORDER] + 1
            words[KIND] = KINDS.index(kind)
            words[ORDER] = order
            self._await(lambda: words[TAKEN] == order, f"nobody gets the lock before kill {number}")
            place = words[TAKER]
        self._pause()
        return self._pid(place)

    def _any_place(self) -> int:
        return int(self._source.random() * self._writers)

    def _pause(self) -> None:
        time.sleep(self._source.random() * LONGEST_DELAY_SECONDS)

    def _pid(self, place: int) -> int:
        return next(pid for pid, its_place in self._places.items() if its_place == place)

    def _met(self, kind: str, pid: int) -> str:
        """Of which kind the kill has become: ``pid`` has the signal and has not been waited for."""
        return kind

    def _parameters_of(self, place: int) -> Iterator[tuple[int, ...]]:
        """Of the writes of a writer that is about to begin."""
        return ((key,) for key in itertools.cycle(self._keys[place]))

    def _gone(self, place: int, *, is_killed: bool) -> None:
        """A writer has ended."""

    def _before_the_end(self) -> None:
        """Nobody will be killed any more, and all still write."""

    def _kill(self, kind: str, number: int) -> str:
        """Kill one, note how long it takes until another commits, and replace it.

        Returns:
            Of which kind the kill has become.
        """
        pid = self._meet(kind, number)
        killed_ns = time.perf_counter_ns()
        self._shared.words[KILLED_NS] = killed_ns
        os.kill(pid, signal.SIGKILL)
        kind = self._met(kind, pid)
        os.waitpid(pid, 0)
        place = self._places.pop(pid)
        self._gone(place, is_killed=True)
        first_ns = self._await(
            lambda: min(self._shared.commits_after(killed_ns), default=None),
            f"nobody commits after kill {number}, of kind {kind}",
        )
        self._times_ns[kind].append(first_ns - killed_ns)
        self._fork(place)
        return kind

    def _await(self, look: Callable[[], Found | None], complaint: str) -> Found:
        """Wait until ``look`` finds something.

        Raises:
            VerificationError: it takes too long.
            WorkerError: a writer has ended by itself.
        """
        deadline = time.monotonic() + self._limit_seconds
        while not (found := look()):
            if time.monotonic() > deadline:
                raise VerificationError(f"{complaint} for {self._limit_seconds:g} s")
            if not self._shared.words[STOPPED]:
                self._ended()
            time.sleep(LOOK_SECONDS)
        return found

    def _ended(self) -> bool:
        """Whether a writer has ended, which is noted.

        Raises:
            WorkerError: it should not have.
        """
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return False
        place = self._places.pop(pid)
        if status or not self._shared.words[STOPPED]:
            code = os.waitstatus_to_exitcode(status)
            raise WorkerError(f"writer {place} ended with {code}: {self._reason(place)}")
        self._gone(place, is_killed=False)
        return True

    def _reason(self, place: int) -> str:
        file = self._reason_file(place)
        return file.read_text() if file.exists() else "for no reason given"

    def _reason_file(self, place: int) -> Path:
        return self.place.path.with_name(f"writer-{place}.failure")

    def _fork(self, place: int) -> None:
        parent = os.getpid()
        parameters = self._parameters_of(place)
        pid = os.fork()
        if pid:
            self._places[pid] = place
        else:
            self._write(place, parent, parameters)

    def _write(self, place: int, parent: int, parameters: Iterator[tuple[int, ...]]) -> NoReturn:
        """What the forked child does; it ends here, without what Python does at its end."""
        code = FAILED
        try:
            die_with_parent()
            if os.getppid() == parent:
                connection = self.place.opened()
                write_until_stopped(
                    self._shared, place, connection, self.failures, self.statement, parameters
                )
                connection.close()
            code = 0
        except BaseException:
            lines = traceback.format_exception_only(*sys.exc_info()[:2])
            self._reason_file(place).write_text(" ".join("".join(lines).split()))
        finally:
            os._exit(code)

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        return {
            "kills": {kind: len(times_ns) for kind, times_ns in self._times_ns.items()},
            "acknowledged": self._shared.total(ACKNOWLEDGED),
            "locked": self._shared.total(LOCKED),
            "elapsed_seconds": self._elapsed_seconds,
        }, packed(self._times_ns.values())

    def close(self) -> None:
        """End what still runs, and close."""
        for pid in self._places:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._places.clear()
        super().close()
