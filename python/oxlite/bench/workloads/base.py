"""What a workload is: parameters, axes, selections, metrics, tables, a session.

A workload says *what* is measured; *how* (rounds, pairing, processes, storing,
drawing) is the harness's and the report's. To add one: write a package beside
``kv``, subclass :class:`Workload`, and add it to the catalogue.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any, ClassVar, Generic, TypeVar

from oxlite.bench.errors import UsageError, unknown
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import Scenario

Parameters = TypeVar("Parameters")
Filter = Mapping[str, str]


class Workload(ABC, Generic[Parameters]):
    """One workload.

    Attributes:
        name: its name on the command line.
        title: what it is, in a few words, for the head of a report.
        parameters_type: a frozen dataclass whose construction validates.
        quick: parameters that differ when ``--quick`` is given.
        axes: the axes it uses and the values they range over, ``driver`` first.
        baselines: what ratios are taken against: filters, each with what is different there
            (all axes, if it is one scenario for all rows).
        every: the filters of ``--all``: all cells, of the driver's own build unless they say more.
        selection: the filters of a run without options.
        quick_selection: the filters of ``--quick``.
        plan: how often to measure, unless the user says.
        quick_plan: the same of ``--quick``.
        metrics: the figures of a sample; the first is the one whose noise is reported.
        tables: what a report shows.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    parameters_type: ClassVar[type[Any]]
    quick: ClassVar[Mapping[str, object]] = {}
    axes: ClassVar[Mapping[str, Sequence[str]]]
    baselines: ClassVar[Sequence[Filter]]
    every: ClassVar[Sequence[Filter]] = ({},)
    selection: ClassVar[Sequence[Filter]]
    quick_selection: ClassVar[Sequence[Filter]]
    plan: ClassVar[Plan] = Plan()
    quick_plan: ClassVar[Plan] = Plan(time_budget_seconds=90.0)
    metrics: ClassVar[Sequence[Metric]]
    tables: ClassVar[Sequence[Drawable]]

    def metric(self, name: str) -> Metric:
        """One of its figures.

        Raises:
            UsageError: there is none of that name; the nearest one is suggested.
        """
        every = {metric.name: metric for metric in self.metrics}
        if name not in every:
            raise unknown(f"metric of {self.name}", name, every)
        return every[name]

    def parameters(self, given: Mapping[str, object], *, quick: bool) -> Parameters:
        """The parameters of a run: what was ``given``, else the (quick) defaults.

        Raises:
            UsageError: a value is out of range, or there is no such parameter.
        """
        known = {field.name for field in fields(self.parameters_type)}
        for name in given:
            if name not in known:
                raise UsageError(f"{self.name} has no parameter {name!r}")
        made: Parameters = self.parameters_type(**{**(self.quick if quick else {}), **given})
        return made

    def axes_of(self, parameters: Parameters) -> Mapping[str, Sequence[str]]:
        """The axes of a run: ``axes``, and such as the parameters bring with them."""
        return self.axes

    def grids(self, parameters: Parameters) -> Sequence[Grid]:
        """The grids of a run: one, unless parts of the workload have axes of their own."""
        return (self.axes_of(parameters),)

    @abstractmethod
    def work_digest(self, parameters: Parameters) -> str:
        """The sha256 of the list of work, which every cell must do."""

    @abstractmethod
    def session(
        self, parameters: Parameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> AbstractContextManager[Session]:
        """Make everything ready to measure any of ``scenarios``; undo it at the end."""

    @abstractmethod
    def outcome(self, sample: Sample) -> str:
        """A sample in a few words, for whoever watches the run."""
