"""The turns of ``gil`` in one worker process, which measures one driver.

The process lives through the whole run; its threads live for one turn. A turn
that fails fails alone.

Invariant: all but the main thread's connection, which is idle meanwhile, is
opened and closed within a turn, and every turn starts from the same file.
"""

import timeit
from dataclasses import replace
from functools import partial

from oxlite.bench.drivers.base import Connection
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.gil import parts, turns, work

SAMPLES = 7
SAMPLED_ROUNDS = 10


def round_seconds(connection: Connection) -> float:
    """How long one round of the query takes, undisturbed."""
    query = partial(parts.check_query, connection, SAMPLED_ROUNDS)
    return min(timeit.repeat(query, number=1, repeat=SAMPLES)) / SAMPLED_ROUNDS


class GilTask(ScenarioTask[work.GilParameters]):
    """One driver, its turns and their figures."""

    parameters_type = work.GilParameters
    timeout_seconds = 10.0

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        parts.warm(self.measured)
        one_seconds = round_seconds(self.measured)
        readers = range(max(*turns.READERS, *turns.IDLE_READERS))
        self._bench = turns.Bench(
            opened=self.place.opened,
            lookups=[work.lookups(self.parameters.seed, reader) for reader in readers],
            scale=self.parameters.scale,
            short_rounds=max(1, round(turns.SHORT_QUERY_SECONDS / one_seconds)),
            long_rounds=max(1, round(turns.LONG_QUERY_SECONDS / one_seconds)),
            written=self._written,
        )
        self._absent: dict[str, str] = {}
        self._failed: dict[str, str] = {}

    def run(self, turn: Message, start_ns: int) -> None:
        """Every turn once, on the scale of the run or of this ``turn``."""
        scale = turn.get("scale", self.parameters.scale)
        bench = self._bench = replace(self._bench, scale=scale, figures={}, late_ns={}, detail={})
        self._absent, self._failed = {}, {}
        for one in turns.turns():
            reasons, reason = self._failed, ""
            try:
                one.measure(bench)
            except turns.AbsentError as error:
                reasons, reason = self._absent, f"{error}"
            except Exception as error:
                reason = outcomes.line(error)
            for metric in one.metrics:
                if metric.name not in bench.figures:
                    reasons[metric.name] = reason

    def collect(self) -> tuple[Message, bytes]:
        """The figures, what has none, with reasons; how late every tick was, in the payload."""
        bench = self._bench
        rounds = {
            "short_query_rounds": bench.short_rounds,
            "long_query_rounds": bench.long_rounds,
        }
        return {
            "figures": bench.figures,
            "absent": self._absent,
            "failed": self._failed,
            "ticks": {kind: len(late_ns) for kind, late_ns in bench.late_ns.items()},
            "detail": bench.detail | rounds,
        }, outcomes.packed(bench.late_ns.values())

    def _written(self, expected: int) -> None:
        """Check how many rows were written, and forget them.

        Raises:
            VerificationError: it is another number than was counted.
        """
        execute = self.measured.execute
        [found] = execute(work.WRITTEN, ()).fetchone()
        execute(work.FORGET, ()).fetchall()
        execute(work.CHECKPOINT, ()).fetchall()
        if found != expected:
            raise VerificationError(f"{found} rows were written, and {expected} counted")
