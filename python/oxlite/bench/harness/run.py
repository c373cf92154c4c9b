"""Interleaved, paired repeats: A B D C, B C A D, C D B A.

Every round measures every cell once, so that what the machine does meanwhile
(heat, neighbours, a filling disk cache) meets all of them alike, and so that
the n-th samples of two rows may be compared with each other.

The order changes from round to round, because pairing removes drift and not
carry-over: what a cell leaves behind (pages still to be written back, say) is
paid for by the next one, and in a fixed order that would always be the same.

Invariants: the order of a round depends on the number of cells and of the round
alone; a cell that fails is not run again and does not stop the others; at
least one round is measured, whatever the time budget says; a run that a signal ends
gives its complete rounds, or of the first round what there is.
"""

import sqlite3
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Protocol

from oxlite.bench.errors import Interrupted, VerificationError, WorkerError
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


class CutShort(Interrupted):
    """A signal ended the run.

    Attributes:
        rows: of the rounds until then.
        orders: as :func:`run` returns them.
    """

    def __init__(self, signal_number: int, rows: list[Row], orders: list[list[str]]) -> None:
        super().__init__(signal_number)
        self.rows = rows
        self.orders = orders


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
        self._round: list[tuple[int, Sample]] = []

    def stage(self, index: int, sample: Sample) -> None:
        """Hold a sample until its round is complete, since samples pair by round."""
        self._round.append((index, sample))

    def keep_round(self) -> None:
        """Add the samples of a round to their rows."""
        for index, sample in self._round:
            self._keep(index, sample)
        self._round = []

    def cut(self, turns: list[str], orders: list[list[str]]) -> None:
        """The round that has begun will not be completed: keep it only if it is the first."""
        if not orders and self._round:
            self.keep_round()
            orders.append(turns)

    def _keep(self, index: int, sample: Sample) -> None:
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

    Raises:
        CutShort: a signal ended the run; it carries the same.
    """
    gathered = _Gathered(scenarios)
    listener.planned([scenario.label for scenario in scenarios], plan.warm_ups, plan.repeats)
    begun_at = clock()
    orders: list[list[str]] = []
    turns: list[str] = []
    try:
        for number in range(plan.warm_ups + plan.repeats):
            warming = number < plan.warm_ups
            name = "warm-up" if warming else f"repeat {len(orders) + 1}/{plan.repeats}"
            round_begun_at = clock()
            turns = []
            for index in order(len(scenarios), number):
                row = gathered.rows[index]
                if row.failure is not None:
                    continue
                turns.append(row.label)
                listener.begun(name, row.label)
                try:
                    first = not warming and not orders
                    sample = session.measure(row.scenario, with_environment=first)
                except (WorkerError, VerificationError, OSError, sqlite3.Error) as error:
                    # The last two are of the lab's own files: a disk without room, for example.
                    row.failure = " ".join(str(error).split())
                    listener.ended(name, row.label, f"failed: {row.failure}")
                    continue
                listener.ended(name, row.label, outcome(sample))
                if not warming:
                    gathered.stage(index, sample)
            if not warming:
                gathered.keep_round()
                orders.append(turns)
            now = clock()
            spent_seconds, round_seconds = now - begun_at, now - round_begun_at
            late = spent_seconds + round_seconds > plan.time_budget_seconds
            if orders and len(orders) < plan.repeats and late:
                listener.stopped_early(len(orders), plan.repeats)
                break
    except Interrupted as error:
        gathered.cut(turns, orders)
        raise CutShort(error.signal_number, gathered.finish(), orders) from None
    return gathered.finish(), orders
