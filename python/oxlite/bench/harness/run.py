"""Interleaved, paired repeats: A B D C, B C A D, C D B A.

Every round measures every cell once, so that what the machine does meanwhile
(heat, neighbours, a filling disk cache) meets all of them alike, and so that
the n-th samples of two rows may be compared with each other.

The order changes from round to round, because pairing removes drift and not
carry-over: what a cell leaves behind (pages still to be written back, say) is
paid for by the next one, and in a fixed order that would always be the same.

Invariants: the order of a round depends on the number of cells and of the round
alone; a cell that fails is not run again and does not stop the others; at
least one round is measured, whatever the time budget says.
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


def order(count: int, number: int) -> list[int]:
    """In which order round ``number`` measures ``count`` cells.

    The rounds are the rows of a Williams design (a Latin square balanced for the
    predecessor), and after those the same backwards. In ``count`` rounds every
    cell stands once in every place, and follows every other once; for an odd
    ``count``, where no square does that, twice in two times as many rounds.
    """
    # 0, 1, n-1, 2, n-2, …: each difference between neighbours, modulo n, occurs once.
    zigzag = [(step + 1) // 2 if step % 2 else (count - step // 2) % count for step in range(count)]
    backwards, shift = divmod(number % (2 * count), count)
    places = [(place + shift) % count for place in zigzag]
    return places[::-1] if backwards else places


def run(
    session: Session,
    scenarios: Sequence[Scenario],
    plan: Plan,
    listener: Listener,
    outcome: Callable[[Sample], str],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Row], list[list[str]]]:
    """Measure all ``scenarios`` in rounds.

    Args:
        session: the prepared workload.
        scenarios: the cells that can run here.
        plan: how many rounds, and within what time.
        listener: told what happens.
        outcome: puts a sample in a few words for the listener.
        clock: seconds, monotonic.

    Returns:
        the rows in the order of ``scenarios``, and for each measured round the
        labels in the order in which they took their turns.
    """
    gathered = _Gathered(scenarios)
    listener.planned([scenario.label for scenario in scenarios], plan.warm_ups, plan.repeats)
    begun_at = clock()
    orders: list[list[str]] = []
    for number in range(plan.warm_ups + plan.repeats):
        warming = number < plan.warm_ups
        name = "warm-up" if warming else f"repeat {len(orders) + 1}/{plan.repeats}"
        round_begun_at = clock()
        turns: list[str] = []
        for index in order(len(scenarios), number):
            row = gathered.rows[index]
            if row.failure is not None:
                continue
            turns.append(row.label)
            listener.begun(name, row.label)
            try:
                sample = session.measure(row.scenario, with_environment=not warming and not orders)
            except (WorkerError, VerificationError) as error:
                row.failure = str(error)
                listener.ended(name, row.label, f"failed: {error}")
                continue
            listener.ended(name, row.label, outcome(sample))
            if not warming:
                gathered.keep(index, sample)
        if not warming:
            orders.append(turns)
        now = clock()
        spent_seconds, round_seconds = now - begun_at, now - round_begun_at
        late = spent_seconds + round_seconds > plan.time_budget_seconds
        if orders and len(orders) < plan.repeats and late:
            listener.stopped_early(len(orders), plan.repeats)
            break
    return gathered.finish(), orders
