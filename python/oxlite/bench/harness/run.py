"""Interleaved, paired repeats: A B D C, B C A D, C D B A.

Every round measures every cell once, so that what the machine does meanwhile
(heat, neighbours, a filling disk cache) meets all of them alike, and so that
the n-th samples of two rows may be compared with each other.

The order changes from round to round, because pairing removes drift and not
carry-over: what a cell leaves behind (pages still to be written back, say) is
paid for by the next one, and in a fixed order that would always be the same.

Where a round lasts minutes, the same cell's turn in it is another moment than that of the
next one. So a workload may divide its rounds into parts (:class:`Divided`): all cells do a
part, one after the other, before any does the next, and the order changes from part to part.

Invariants: the order of a round depends on the number of cells and of the round
alone, that of a part on its place and on how often it was done too; a cell that
fails is not run again and does not stop the others; at least one round is
measured, whatever the time budget says; a run that a signal ends gives its complete
rounds, or of the first round what there is.
"""

import itertools
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from oxlite.bench.errors import Interrupted, VerificationError, WorkerError
from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Plan, Row, Sample
from oxlite.bench.scenarios.scenario import Scenario

# The last two are of the lab's own files: a disk without room, for example.
FAILURES = (WorkerError, VerificationError, OSError, sqlite3.Error)


class Session(Protocol):
    """A workload made ready to measure any of its cells, again and again."""

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """Measure ``scenario`` once, from a fresh and identical start.

        Raises:
            WorkerError: a worker died or failed.
            VerificationError: the work done is not the work asked for.
        """
        ...


@runtime_checkable
class Divided(Session, Protocol):
    """A session whose rounds have parts, which all cells do before any does the next.

    ``measure`` is called once in a round as in any other session, when all parts are done,
    and gives what they have measured; also when the first round was cut, of the parts there are.
    """

    @property
    def parts(self) -> Sequence[str]:
        """What a round consists of, in order."""
        ...

    def do(self, scenario: Scenario, part: str) -> None:
        """Do a part once.

        Raises:
            WorkerError: a worker died or failed.
            VerificationError: the work done is not the work asked for.
        """
        ...

    def again(self, part: str) -> bool:
        """Whether all cells are to do the part once more, because it is short."""
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

    def planned(
        self, labels: Sequence[str], warm_ups: int, repeats: int, parts: Sequence[str] = ()
    ) -> None:
        """The run begins; its rounds have ``parts``, if they are divided."""
        ...

    def begun(self, round_name: str, label: str) -> None:
        """A cell is about to be measured, or in a divided round to do a part."""
        ...

    def ended(self, round_name: str, label: str, outcome: str) -> None:
        """A cell has been measured, or has failed; ``outcome`` says it briefly.

        In a divided round: all cells have done the part that ``label`` names.
        """
        ...

    def stopped_early(self, repeats: int, wanted: int) -> None:
        """The time budget ended the run after ``repeats`` of ``wanted`` rounds."""
        ...


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


class _Run:
    """A run while it lasts.

    Attributes:
        rows: what has been measured.
        orders: the turns of the rounds that are complete.
    """

    def __init__(
        self,
        session: Session,
        scenarios: Sequence[Scenario],
        listener: Listener,
        outcome: Callable[[Sample], str],
        clock: Callable[[], float],
    ) -> None:
        self.rows = [Row(scenario) for scenario in scenarios]
        self.orders: list[list[str]] = []
        self._session, self._listener, self._outcome = session, listener, outcome
        self._clock = clock
        self._pooled: list[dict[str, array[int]]] = [{} for _ in scenarios]
        self._is_warm_up, self._is_cut = True, False
        self._turns: list[str] = []
        # Samples pair by round, so they are held until it is complete.
        self._staged: dict[int, Sample] = {}

    def do(self, number: int, name: str, *, is_warm_up: bool) -> None:
        """Round ``number``."""
        self._is_warm_up, self._turns, self._staged = is_warm_up, [], {}
        if isinstance(self._session, Divided):
            self._parts(self._session, number, name)
            for index in range(len(self.rows)):
                self._measure(index)
        else:
            for index, row in self._working(number):
                self._turns.append(row.label)
                self._listener.begun(name, row.label)
                sample = self._measure(index)
                what = f"failed: {row.failure}" if sample is None else self._outcome(sample)
                self._listener.ended(name, row.label, what)
        if not is_warm_up:
            self._keep_round()

    def cut(self) -> None:
        """The round that has begun will not be completed: keep it only if it is the first."""
        self._is_cut = True
        if self._is_warm_up or self.orders:
            return
        if isinstance(self._session, Divided):
            # The last turn was interrupted. A sample is worth keeping if it has measured anything.
            for index, row in enumerate(self.rows):
                if index not in self._staged and row.label in self._turns[:-1]:
                    sample = self._measure(index)
                    if sample is not None and not (sample.figures or sample.failed):
                        del self._staged[index]
        if self._staged:
            self._keep_round()

    def has_failed(self) -> bool:
        """Whether no row is left that another round could measure."""
        return all(row.failure is not None for row in self.rows)

    def reduced(self) -> list[Row]:
        """The rows, with their pooled latencies reduced."""
        for row, pooled in zip(self.rows, self._pooled, strict=True):
            row.latencies = {kind: statistics.latencies(values) for kind, values in pooled.items()}
        return self.rows

    def _working(self, number: int) -> Iterator[tuple[int, Row]]:
        """The rows that have not failed, in the order of round ``number``, by their indices."""
        for index in order(len(self.rows), number):
            if self.rows[index].failure is None:
                yield index, self.rows[index]

    def _parts(self, session: Divided, number: int, name: str) -> None:
        """All parts of a round, as often as they are to be done."""
        for place, part in enumerate(session.parts):
            begun_at = self._clock()
            failures = []
            for times in itertools.count(number + place):
                for _, row in self._working(times):
                    self._turns.append(row.label)
                    self._listener.begun(name, f"{part}  {row.label}")
                    try:
                        session.do(row.scenario, part)
                    except FAILURES as error:
                        _fail(row, error)
                        failures.append(f"{row.label} failed: {row.failure}")
                if not session.again(part):
                    break
            outcome = "; ".join([f"{self._clock() - begun_at:.1f} s", *failures])
            self._listener.ended(name, part, outcome)

    def _measure(self, index: int) -> Sample | None:
        """Stage a sample of a row, and give it; ``None`` when the row has failed."""
        row = self.rows[index]
        if row.failure is not None:
            return None
        # Of the first round; what was interrupted is too short for it.
        with_environment = not (self._is_warm_up or self.orders or self._is_cut)
        try:
            sample = self._session.measure(row.scenario, with_environment=with_environment)
        except FAILURES as error:
            _fail(row, error)
            return None
        self._staged[index] = sample
        return sample

    def _keep_round(self) -> None:
        """Add the samples of a round to their rows, moving what belongs to a row out of them."""
        for index, sample in self._staged.items():
            for kind, values in sample.latencies_ns.items():
                self._pooled[index].setdefault(kind, array("Q")).extend(values)
            sample.latencies_ns = {}
            row = self.rows[index]
            row.samples.append(sample)
            row.environment, sample.environment = row.environment or sample.environment, None
        self._staged = {}
        self.orders.append(self._turns)


def _fail(row: Row, error: Exception) -> None:
    row.failure = " ".join(str(error).split())


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
        labels in the order in which they took their turns: in a divided round those of every
        part, one after the other.

    Raises:
        CutShort: a signal ended the run; it carries the same.
    """
    now = _Run(session, scenarios, listener, outcome, clock)
    parts = session.parts if isinstance(session, Divided) else ()
    labels = [scenario.label for scenario in scenarios]
    listener.planned(labels, plan.warm_ups, plan.repeats, parts)
    begun_at = clock()
    try:
        for number in range(plan.warm_ups + plan.repeats):
            is_warm_up = number < plan.warm_ups
            name = "warm-up" if is_warm_up else f"repeat {len(now.orders) + 1}/{plan.repeats}"
            round_begun_at = clock()
            now.do(number, name, is_warm_up=is_warm_up)
            if now.has_failed():
                break
            ended_at = clock()
            spent_seconds, round_seconds = ended_at - begun_at, ended_at - round_begun_at
            late = spent_seconds + round_seconds > plan.time_budget_seconds
            if plan.least_repeats <= len(now.orders) < plan.repeats and late:
                listener.stopped_early(len(now.orders), plan.repeats)
                break
    except Interrupted as error:
        now.cut()
        raise CutShort(error.signal_number, now.reduced(), now.orders) from None
    return now.reduced(), now.orders
