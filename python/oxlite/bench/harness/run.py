"""Interleaved, paired repeats: A B C, A B C, A B C.

Every round measures every cell once, so that what the machine does meanwhile
(heat, neighbours, a filling disk cache) meets all of them alike, and so that
the n-th samples of two rows may be compared with each other.

Invariants: a cell that fails is not run again and does not stop the others;
at least one round is measured, whatever the time budget says.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from typing import Protocol

from oxlite.bench.errors import VerificationError, WorkerError
from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Plan, Row, Sample
from oxlite.bench.scenarios.scenario import Scenario


class Session(Protocol):
    """A workload made ready to measure any of its cells, again and again."""

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """Measure ``scenario`` once, from a fresh and identical start.

        Raises:
            WorkerError: a worker died or failed.
            VerificationError: the work done is not the work asked for.
        """
        ...


class Listener(Protocol):
    """Somebody who watches a run."""

    def planned(self, labels: Sequence[str], warm_ups: int, repeats: int) -> None:
        """The run begins."""
        ...

    def begun(self, round_name: str, label: str) -> None:
        """A cell is about to be measured."""
        ...

    def ended(self, round_name: str, label: str, outcome: str) -> None:
        """A cell has been measured, or has failed; ``outcome`` says it briefly."""
        ...

    def stopped_early(self, repeats: int, wanted: int) -> None:
        """The time budget ended the run after ``repeats`` of ``wanted`` rounds."""
        ...


class _Gathered:
    """The rows of a run while it lasts, with the latencies not yet reduced."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.rows = [Row(scenario) for scenario in scenarios]
        self._pooled: list[dict[str, array[int]]] = [{} for _ in scenarios]

    def keep(self, index: int, sample: Sample) -> None:
        """Add a sample to its row, moving what belongs to the row out of it."""
        for kind, values in sample.latencies_ns.items():
            self._pooled[index].setdefault(kind, array("Q")).extend(values)
        sample.latencies_ns = {}
        row = self.rows[index]
        row.samples.append(sample)
        row.environment, sample.environment = row.environment or sample.environment, None

    def finish(self) -> list[Row]:
        """Reduce the pooled latencies and give the rows."""
        for row, pooled in zip(self.rows, self._pooled, strict=True):
            row.latencies = {kind: statistics.latencies(values) for kind, values in pooled.items()}
        return self.rows


def run(
    session: Session,
    scenarios: Sequence[Scenario],
    plan: Plan,
    listener: Listener,
    outcome: Callable[[Sample], str],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Row], int]:
    """Measure all ``scenarios`` in rounds.

    Args:
        session: the prepared workload.
        scenarios: the cells that can run here.
        plan: how many rounds, and within what time.
        listener: told what happens.
        outcome: puts a sample in a few words for the listener.
        clock: seconds, monotonic.

    Returns:
        the rows in the order of ``scenarios``, and the measured rounds.
    """
    gathered = _Gathered(scenarios)
    listener.planned([scenario.label for scenario in scenarios], plan.warm_ups, plan.repeats)
    begun_at = clock()
    measured = 0
    for number in range(plan.warm_ups + plan.repeats):
        warming = number < plan.warm_ups
        name = "warm-up" if warming else f"repeat {measured + 1}/{plan.repeats}"
        round_begun_at = clock()
        for index, row in enumerate(gathered.rows):
            if row.failure is not None:
                continue
            listener.begun(name, row.label)
            try:
                sample = session.measure(
                    row.scenario, with_environment=not warming and measured == 0
                )
            except (WorkerError, VerificationError) as error:
                row.failure = str(error)
                listener.ended(name, row.label, f"failed: {error}")
                continue
            listener.ended(name, row.label, outcome(sample))
            if not warming:
                gathered.keep(index, sample)
        measured += not warming
        now = clock()
        spent_seconds, round_seconds = now - begun_at, now - round_begun_at
        late = spent_seconds + round_seconds > plan.time_budget_seconds
        if measured and measured < plan.repeats and late:
            listener.stopped_early(measured, plan.repeats)
            break
    return gathered.finish(), measured
