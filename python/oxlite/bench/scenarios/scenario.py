"""A scenario: one value on each axis that a workload uses.

Which axes there are, and what their values mean, the workloads say: see
:mod:`oxlite.bench.scenarios.axes`.

Invariants: every scenario has a driver; two with the same values are equal, whatever their order.
The label names every axis in the order in which the workload names them, and so is unique within
a workload; a build is named, with the driver (``oxlite-seed``), only where it is not the driver's
default one.
"""

from collections.abc import Container, Iterator, Mapping, Sequence

from oxlite.bench.errors import UsageError
from oxlite.bench.scenarios.axes import BUILD, DRIVER, Axis, require

UNNAMED_BUILDS = ("own", "tuned")

ANY = "any"
"""Stands in a filter for every value: the axis must be there."""


class Scenario(Mapping[str, str]):
    """One combination of conditions: values by axis; ``None`` leaves an axis out."""

    __slots__ = ("_values",)

    def __init__(self, driver: str, **axes: str | None) -> None:
        used = {axis: value for axis, value in axes.items() if value is not None}
        self._values: Mapping[str, str] = {"driver": driver, **used}

    def __getitem__(self, axis: str) -> str:
        """The value on an axis that it uses."""
        return self._values[axis]

    def __iter__(self) -> Iterator[str]:
        """The axes that it uses, in order."""
        return iter(self._values)

    def __len__(self) -> int:
        """How many axes it uses."""
        return len(self._values)

    def __hash__(self) -> int:
        """By value."""
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        """As it is made."""
        return f"Scenario({', '.join(f'{axis}={value!r}' for axis, value in self.items())})"

    @property
    def driver(self) -> str:
        """Who talks to the database."""
        return self["driver"]

    def but(self, **axes: str) -> "Scenario":
        """The same with other values on some axes."""
        return Scenario(**{**self._values, **axes})

    def counts(self) -> list[int]:
        """Its values that are numbers: how many are at work."""
        return [int(value) for value in self.values() if value.isdigit()]

    @property
    def label(self) -> str:
        """The name of the row: ``oxlite wal tuned fair``."""
        return self.label_of(self)

    def label_of(self, axes: Container[str]) -> str:
        """The label with some of the axes alone; a number is named with its axis: ``1 client``."""
        words = [
            _counted(value, axis) if value.isdigit() else value
            for axis, value in self.items()
            if axis in axes and axis not in {"driver", "build"}
        ]
        if "driver" in axes:
            words.insert(0, self.driver)
        if "build" in axes and (build := self.get("build", "own")) not in UNNAMED_BUILDS:
            words[:1] = [f"{self.driver}-{build}"]
        return " ".join(words)


def _counted(value: str, axis: str) -> str:
    """A number of what an axis counts."""
    if value == "1":
        axis = axis.removesuffix("es") if axis.endswith("sses") else axis.removesuffix("s")
    return f"{value} {axis}"


def parse_filter(text: str, axes: Sequence[Axis]) -> dict[str, str]:
    """Read ``axis=value,axis=value`` as the user writes it after ``--scenario``.

    ``axis=any`` chooses the scenarios that have the axis. Values that only a run knows are
    checked there, and so are drivers.

    Args:
        text: what the user wrote.
        axes: those of the workload.

    Raises:
        UsageError: no such axis or value, an axis given twice, or not of this form.
    """
    known = {axis.name: axis.values for axis in (*axes, BUILD)} | {DRIVER.name: ()}
    chosen: dict[str, str] = {}
    for part in text.split(","):
        name, separator, value = (word.strip() for word in part.partition("="))
        if not separator or not value:
            raise UsageError(
                f"a scenario is written axis=value,axis=value (driver=oxlite,journal=wal), "
                f"not {text!r}"
            )
        require(known, {name: value}, ANY)
        if name in chosen:
            raise UsageError(f"the axis {name!r} is given twice in {text!r}")
        chosen[name] = value
    return chosen
