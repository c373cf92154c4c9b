"""What a workload declares: parameters, axes, selections, metrics, tables, a paragraph, a session.

A workload says *what* is measured; *how* (rounds, pairing, processes, storing, drawing) is the
harness's and the report's. Its command line, its part of ``docs/cli.md`` and of a report are made
from what it declares. To add one: see ``README.md`` beside this module.
"""

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any, ClassVar, Generic, TypeVar

from oxlite.bench import parameters as declaring
from oxlite.bench.claims import Published
from oxlite.bench.contest import Contest
from oxlite.bench.errors import UsageError, unknown
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import Drawable, number
from oxlite.bench.parameters import Parameters
from oxlite.bench.scenarios.axes import BUILD, Axis, Grid, require
from oxlite.bench.scenarios.scenario import Scenario

FEW_METRICS = 12
"""Where there are more of them, all are alike."""

P = TypeVar("P", bound=Parameters)
Filter = Mapping[str, str]


class Workload(ABC, Generic[P]):
    """One workload.

    Attributes:
        name: its name on the command line.
        title: what it is, in a few words, for the head of a report.
        about: the same for the command line and its page: a sentence, then paragraphs.
        examples: arguments of its command that are worth trying.
        parameters_type: what it takes.
        axes: those that it uses, ``driver`` first.
        baselines: what ratios are taken against: filters, each with what is different there
            (all axes, if it is one scenario for all rows).
        every: the filters of ``--all``: all cells, of the driver's own build unless they say more.
        selection: the filters of a run without options.
        quick_selection: the filters of ``--quick``.
        plan: how often to measure, unless the user says.
        quick_plan: the same of ``--quick``.
        metrics: the figures of a sample; the first is the one whose noise is reported.
        tables: what a report shows.
        published: what others have measured of the same.
        session_type: makes a session of parameters, scratch and an exit stack.
        told: figures of a sample for whoever watches the run, each with its words.
        contest: what a run comes to; none where Oxlite has no peer.
        ladder: the axis whose values stand on top of one another, if there is one.
        elsewhere: what was published of its values, in the first metric.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    examples: ClassVar[Sequence[str]]
    parameters_type: ClassVar[type[Any]]
    axes: ClassVar[Sequence[Axis]]
    baselines: ClassVar[Sequence[Filter]]
    every: ClassVar[Sequence[Filter]] = ({},)
    selection: ClassVar[Sequence[Filter]]
    quick_selection: ClassVar[Sequence[Filter]]
    plan: ClassVar[Plan] = Plan()
    quick_plan: ClassVar[Plan] = Plan(time_budget_seconds=30.0, warm_ups=0, least_repeats=3)
    metrics: ClassVar[Sequence[Metric]]
    tables: ClassVar[Sequence[Drawable]]
    published: ClassVar[Sequence[Published]] = ()
    session_type: ClassVar[type[Any]]
    told: ClassVar[Sequence[tuple[Metric, str]]] = ()
    contest: ClassVar[Contest | None] = None
    ladder: ClassVar[str] = ""
    elsewhere: ClassVar[Mapping[str, float]] = {}

    def metric(self, name: str) -> Metric:
        """One of its figures.

        Raises:
            UsageError: there is none of that name; the nearest one is suggested.
        """
        every = {metric.name: metric for metric in self.metrics}
        if name not in every:
            raise unknown(f"metric of {self.name}", name, every)
        return every[name]

    def first_metrics(self) -> Sequence[Metric]:
        """What its rows are judged by: the first of few metrics, or all of many."""
        return self.metrics if len(self.metrics) > FEW_METRICS else self.metrics[:1]

    def parameters(self, given: Mapping[str, object], *, quick: bool) -> Parameters:
        """The parameters of a run: what was ``given``, else the (quick) defaults.

        Raises:
            UsageError: a value is out of range, or there is no such parameter.
        """
        defaults = declaring.values(self.parameters_type, "quick" if quick else "default")
        for name in given:
            if name not in defaults:
                raise UsageError(f"{self.name} has no parameter {name!r}")
        made: P = self.parameters_type(**{**defaults, **given})
        return made

    def require(self, scenario: Scenario) -> None:
        """Refuse a scenario that is none of this workload's.

        Raises:
            UsageError: it has another axis, or a value that is not of its axis.
        """
        numbers = {one.name for one in declaring.declared(self.parameters_type) if one.kind is int}
        known = {axis.name: axis.values for axis in (*self.axes, BUILD)}
        require(known, scenario)
        for axis, value in scenario.items():
            if not known[axis] and axis in numbers and not value.isdigit():
                raise UsageError(f"the axis {axis} has numbers, not {value!r}")

    def grid(self, parameters: P) -> Grid:
        """Every axis with its values, or those of the parameter of its name; if there are any."""
        ranges = {
            axis.name: axis.values or tuple(map(str, getattr(parameters, axis.name)))
            for axis in self.axes
        }
        return {name: values for name, values in ranges.items() if values}

    def grids(self, parameters: P) -> Sequence[Grid]:
        """The grids of a run: one, unless parts of the workload have axes of their own."""
        return (self.grid(parameters),)

    def work(self, parameters: P) -> object:
        """The list of work, which every cell must do: something whose ``repr`` tells it."""
        return sorted(asdict(parameters).items())

    def work_digest(self, parameters: P) -> str:
        """The sha256 of the list of work."""
        return digest(self.work(parameters))

    @contextmanager
    def session(
        self, parameters: P, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """Make everything ready to measure any of ``scenarios``; undo it at the end."""
        with ExitStack() as exits:
            yield self.session_type(parameters, scratch, exits)

    def outcome(self, sample: Sample) -> str:
        """A sample in a few words, for whoever watches the run."""
        errors = sum(sample.errors.values())
        words = [
            text.format(number(sample.figures[metric.name]))
            for metric, text in self.told
            if metric.name in sample.figures
        ]
        if errors:
            words.append(f"{errors:,} errors")
        if sample.failed:
            words.append(f"{len(sample.failed)} failed")
        return ", ".join(words) or "nothing"
