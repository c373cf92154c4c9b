"""The turns of ``gil`` in one worker process, which measures one driver.

The process lives through the whole run; its threads live for one turn. A turn
that fails fails alone.

Invariant: all but the main thread's connection, which is idle meanwhile, is
opened and closed within a turn, and every turn starts from the same file.
"""

import time
from array import array
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.base import Connection
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.gil import parts, turns, work
from oxlite.bench.workloads.gil.parameters import GilParameters

TIMEOUT_SECONDS = 10.0
SAMPLES = 7
SAMPLED_ROUNDS = 10


def round_seconds(connection: Connection) -> float:
    """How long one round of the query takes, undisturbed."""
    fastest_ns = None
    for _ in range(SAMPLES):
        begun_ns = time.perf_counter_ns()
        parts.check_query(connection, SAMPLED_ROUNDS)
        elapsed_ns = time.perf_counter_ns() - begun_ns
        fastest_ns = elapsed_ns if fastest_ns is None else min(fastest_ns, elapsed_ns)
    assert fastest_ns is not None
    return fastest_ns / 1e9 / SAMPLED_ROUNDS


class GilTask(Task):
    """One driver, its turns and their figures."""

    def __init__(self, arguments: Message) -> None:
        parameters = GilParameters(**arguments["parameters"])
        self._scale = parameters.scale
        self._scenario = Scenario(**arguments["scenario"])
        self._path = Path(arguments["path"])
        self._driver = DRIVERS.get(self._scenario.driver)
        self._connection = self._opened()
        parts.warm(self._connection)
        one_seconds = round_seconds(self._connection)
        readers = max(*turns.READERS, *turns.IDLE_READERS)
        self._bench = turns.Bench(
            opened=self._opened,
            lookups=[work.lookups(parameters.seed, reader) for reader in range(readers)],
            scale=parameters.scale,
            short_rounds=max(1, round(turns.SHORT_QUERY_SECONDS / one_seconds)),
            long_rounds=max(1, round(turns.LONG_QUERY_SECONDS / one_seconds)),
            written=self._written,
            figures={},
            late_ns={},
            detail={},
        )
        self._absent: dict[str, str] = {}
        self._failed: dict[str, str] = {}

    def ready(self) -> Message:
        """Who is measured."""
        return {"versions": self._driver.versions()}

    def run(self, turn: Message, start_ns: int) -> None:
        """Every turn once, on the scale of the run or of this ``turn``."""
        bench = self._bench
        bench.scale = turn.get("scale", self._scale)
        bench.figures, bench.late_ns, bench.detail = {}, {}, {}
        self._absent, self._failed = {}, {}
        for one in turns.turns():
            reasons, reason = self._failed, ""
            try:
                one.measure(bench)
            except turns.AbsentError as error:
                reasons, reason = self._absent, f"{error}"
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
            for metric in one.metrics:
                if metric.name not in bench.figures:
                    reasons[metric.name] = reason

    def collect(self) -> tuple[Message, bytes]:
        """The figures, what has none, with reasons; how late every tick was, in the payload."""
        bench = self._bench
        return {
            "figures": bench.figures,
            "absent": self._absent,
            "failed": self._failed,
            "ticks": {kind: len(late_ns) for kind, late_ns in bench.late_ns.items()},
            "detail": {
                **bench.detail,
                "short_query_rounds": bench.short_rounds,
                "long_query_rounds": bench.long_rounds,
            },
        }, b"".join(late_ns.tobytes() for late_ns in bench.late_ns.values())

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self._connection, str(self._path.parent)

    def close(self) -> None:
        """See the base class."""
        self._connection.close()

    def _opened(self) -> Connection:
        return open_connection(self._driver, self._path, self._scenario, TIMEOUT_SECONDS)

    def _written(self, expected: int) -> None:
        """Check how many rows were written, and forget them.

        Raises:
            VerificationError: it is another number than was counted.
        """
        execute = self._connection.execute
        [found] = execute(work.WRITTEN, ()).fetchone()
        execute(work.FORGET, ()).fetchall()
        execute(work.CHECKPOINT, ()).fetchall()
        if found != expected:
            raise VerificationError(f"{found} rows were written, and {expected} counted")


def unpacked(facts: Message, payload: bytes) -> "dict[str, array[int]]":
    """How late every tick was, by kind."""
    every = array("Q")
    every.frombytes(payload)
    late_ns, begun = {}, 0
    for kind, count in facts["ticks"].items():
        late_ns[kind] = every[begun : begun + count]
        begun += count
    return late_ns
