"""The results of a run: what the harness fills, the record stores, the report reads.

Invariants: a row has one sample for each measured round, in the order of the
rounds, so that samples of two rows pair by index; a failed row has a reason
and its samples are not used; figures are plain numbers in the metric's unit.
What can be computed from samples (medians, ratios) is computed, not stored in
the model.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oxlite.bench.harness import statistics
from oxlite.bench.harness.cells import Cell
from oxlite.bench.harness.statistics import Better, Latencies, Summary
from oxlite.bench.scenarios.scenario import Scenario

TOLERATED_FAILURES = 0.001
"""The part of its operations that a row may fail and still be compared by its time."""

JsonObject = dict[str, Any]

UNITS: Mapping[str, str] = {"_seconds": "s", "_ms": "ms", "_us": "us", "_ns": "ns"}
"""How the names of metrics end, and what that is for a reader."""


@dataclass(frozen=True)
class Metric:
    """A figure every sample has.

    Attributes:
        name: its key, unit last (``wall_seconds``).
        title: its name for a reader.
        better: whether a lower or a higher value is the better one.
        of_all_work: whether it is a time for all of the work, or a rate in that time,
            so that it may be compared only between rows that did all of it.
    """

    name: str
    title: str
    better: Better
    of_all_work: bool = False

    @property
    def title_with_unit(self) -> str:
        """The title with the unit that the name ends with, if the title does not have it."""
        unit = next((unit for end, unit in UNITS.items() if self.name.endswith(end)), None)
        said = unit is None or self.title.endswith(f" {unit}")
        return self.title if said else f"{self.title}, {unit}"


@dataclass
class Sample:
    """One measurement of one cell.

    Attributes:
        figures: by metric name; a metric that has no value here is absent.
        asked: how many operations it was to do; 0 where they cannot fail singly.
        errors: failed operations by class and message.
        latencies_ns: every latency by kind of operation; pooled into the row,
            not kept with the sample.
        detail: whatever else is worth storing, such as figures per process.
        absent: why a metric has no value, by name, where it cannot have one.
        failed: why a metric has no value, by name, where its work went wrong.
        environment: the environment report, when it was asked for; moved into the row.
    """

    figures: dict[str, float]
    asked: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    latencies_ns: dict[str, "array[int]"] = field(default_factory=dict)
    detail: JsonObject = field(default_factory=dict)
    environment: JsonObject | None = None
    absent: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass
class Row:
    """All measurements of one cell.

    Attributes:
        scenario: its conditions.
        samples: one for each measured round.
        latencies: the distribution by kind, over all samples together.
        environment: the report of a connection that was measured.
        failure: why the row failed, or ``None``.
    """

    scenario: Scenario
    samples: list[Sample] = field(default_factory=list)
    latencies: dict[str, Latencies] = field(default_factory=dict)
    environment: JsonObject | None = None
    failure: str | None = None

    @property
    def label(self) -> str:
        """The name of the row."""
        return self.scenario.label

    def figures(self, metric: str) -> list[float | None]:
        """The metric in each round."""
        return [sample.figures.get(metric) for sample in self.samples]

    def summary(self, metric: str) -> Summary | None:
        """The metric over all rounds; ``None`` if the row failed or never had it."""
        if self.failure is not None:
            return None
        return statistics.summarise([value for value in self.figures(metric) if value is not None])

    def percentile_ns(self, kind: str, percent: float) -> int | None:
        """That of all repeats together; ``None`` if the row failed, or too few lie beyond it."""
        found = None if self.failure is not None else self.latencies.get(kind)
        return None if found is None else found.percentiles.get(percent)

    def errors(self) -> dict[str, int]:
        """Failed operations by class and message, over all rounds."""
        total: Counter[str] = Counter()
        for sample in self.samples:
            total.update(sample.errors)
        return dict(total)

    def absent_figures(self) -> dict[str, str]:
        """Why metrics cannot have a value, by name."""
        return {name: why for sample in self.samples for name, why in sample.absent.items()}

    def failed_figures(self) -> dict[str, str]:
        """Why metrics have no value in some round though they should, by name."""
        return {name: why for sample in self.samples for name, why in sample.failed.items()}

    def failed(self) -> bool:
        """Whether it did, or anything that it was to measure."""
        return self.failure is not None or bool(self.failed_figures())

    def did_its_work(self) -> bool:
        """Whether next to none of its operations failed."""
        failed = sum(self.errors().values())
        return failed <= TOLERATED_FAILURES * sum(sample.asked for sample in self.samples)


@dataclass(frozen=True)
class Plan:
    """How long and how often to measure.

    Attributes:
        repeats: measured rounds wanted; seven bound a median with 98 % confidence.
        time_budget_seconds: no round begins that would probably end after this.
        warm_ups: rounds before the measured ones, verified and then forgotten.
        least_repeats: measured rounds there are, whatever time they take.
    """

    repeats: int = 7
    time_budget_seconds: float = 600.0
    warm_ups: int = 1
    least_repeats: int = 1


@dataclass
class Result:
    """A whole run.

    Attributes:
        workload: its name.
        parameters: everything that shaped the work, by name.
        plan: what was asked for.
        repeats: the measured rounds there was time for.
        baselines: labels of the rows that ratios are taken against.
        compared: for each row, by label, those of them that it is compared with; a row that
            is not named is compared with all.
        rows: the measured and the failed ones, in order.
        impossible: the cells that could not run here, with reasons.
        work_digest: of the list of work, the same for every row.
        command: the command line that repeats the run.
        started_at: ISO 8601, UTC.
        duration_seconds: from the first cell to the last.
        notes: sentences the reader should know, such as that the disk is memory.
        orders: for each measured round, the labels in the order of their turns.
        left: labels of the cells that could run here and that the workload's own
            selection leaves out; none where the user chose.
        interrupted: whether a signal ended it early, so that it is a part of the run.
    """

    workload: str
    parameters: JsonObject
    plan: Plan
    repeats: int
    baselines: Sequence[str]
    rows: list[Row]
    impossible: Sequence[Cell]
    work_digest: str
    command: str
    started_at: str
    duration_seconds: float
    notes: Sequence[str] = ()
    orders: Sequence[Sequence[str]] = ()
    left: Sequence[str] = ()
    compared: Mapping[str, Sequence[str]] = field(default_factory=dict)
    interrupted: bool = False

    def row(self, label: str) -> Row | None:
        """The row called ``label``, if it was measured without failure."""
        return next((row for row in self.rows if row.label == label and not row.failure), None)

    def compared_with(self, row: Row) -> list[str]:
        """The labels of the rows that a row is compared with, itself left out."""
        return [
            label for label in self.compared.get(row.label, self.baselines) if label != row.label
        ]

    def improvement(self, row: Row, metric: Metric, baseline: str) -> Summary | None:
        """How many times better ``row`` is than the row ``baseline``, over paired rounds.

        ``None`` if that cannot be said: see :meth:`ratios`.
        """
        return statistics.summarise(self.ratios(row, metric, baseline))

    def ratios(self, row: Row, metric: Metric, baseline: str) -> list[float]:
        """How many times better ``row`` is than the row ``baseline``, in each paired round.

        None if that cannot be said: a row failed, or the metric is of work that
        one of them did not do. Failing is fast.
        """
        base = self.row(baseline)
        if base is None or row.failure is not None:
            return []
        if metric.of_all_work and not (base.did_its_work() and row.did_its_work()):
            return []
        return statistics.improvements(
            row.figures(metric.name), base.figures(metric.name), metric.better
        )

    def failed(self) -> bool:
        """Whether any row failed, or anything that a row was to measure."""
        return any(row.failed() for row in self.rows)

    def noise(self, metric: str) -> dict[str, float]:
        """The relative noise of ``metric`` by row, where it has one."""
        found: Mapping[str, Summary | None] = {row.label: row.summary(metric) for row in self.rows}
        return {
            label: summary.noise
            for label, summary in found.items()
            if summary is not None and summary.noise is not None
        }
