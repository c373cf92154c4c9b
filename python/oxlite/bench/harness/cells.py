"""Cells: the scenarios a run consists of, and those that cannot exist.

A selection is a list of filters, each a partial choice (``driver=oxlite``);
the axes it leaves open range over what the workload names for them. A workload
whose parts have different axes names several grids, each a set of axes; a filter
is of those grids that have its axes and values. A cell
whose combination makes no sense for its driver, or whose driver or build is
not installed, is kept with the reason, so that a report lists what is absent
instead of staying silent about it.

A baseline is a partial choice too: whatever it leaves open is as in the cells
that it is there for. So one that names every axis serves all, and one that names
only ``busy=fair`` is, for each cell, the same cell with that policy.

Invariants: no scenario appears twice; the order is that of the filters, then
that of the axes' values; the baselines come first.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness import installed
from oxlite.bench.scenarios.axes import BUILD, DRIVER, Grid, require
from oxlite.bench.scenarios.scenario import ANY, Scenario


@dataclass(frozen=True)
class Cell:
    """A scenario that was asked for.

    Attributes:
        scenario: the conditions.
        reason: why it cannot run here, or ``None`` if it can.
    """

    scenario: Scenario
    reason: str | None = None


def cell(scenario: Scenario) -> Cell:
    """The cell of ``scenario``: the first reason against it, if there is one."""
    reason = DRIVERS.get(scenario.driver).refusal(scenario)
    return Cell(scenario, reason or installed.missing(scenario))


def expand(axes: Grid, chosen: Mapping[str, str]) -> list[Scenario]:
    """Every scenario of a workload's ``axes`` that agrees with the filter ``chosen``.

    The axis ``build`` does not range: it is the driver's default unless chosen; ``any`` is all
    that there are of the driver.

    Raises:
        UsageError: the workload does not use an axis of the filter, or no such driver.
    """
    require({**axes, DRIVER.name: (), BUILD.name: ()}, chosen, ANY)
    ranges = [
        tuple(axes[axis]) if chosen.get(axis, ANY) == ANY else (chosen[axis],) for axis in axes
    ]
    scenarios = []
    for values in itertools.product(*ranges):
        picked = dict(zip(axes, values, strict=True))
        driver = DRIVERS.get(picked["driver"])
        build = chosen.get("build", driver.default_build)
        builds = driver.builds if build == ANY else (build,)
        scenarios += [Scenario(**picked, build=one) for one in builds]
    return scenarios


def selected(grids: Sequence[Grid], chosen: Mapping[str, str]) -> list[Scenario]:
    """Every scenario of all ``grids`` that agrees with the filter ``chosen``; there may be none.

    Raises:
        UsageError: no grid has an axis of the filter, or no such driver.
    """
    if len(grids) == 1:
        return expand(grids[0], chosen)
    require(dict.fromkeys([*itertools.chain(*grids), BUILD.name], ()), chosen)
    if (driver := chosen.get(DRIVER.name, ANY)) != ANY:
        DRIVERS.get(driver)
    return [one for axes in grids if _fits(axes, chosen) for one in expand(axes, chosen)]


def _fits(axes: Grid, chosen: Mapping[str, str]) -> bool:
    return all(
        axis == "build" or (axis in axes and value in {ANY, *axes[axis]})
        for axis, value in chosen.items()
    )


def cells(
    grids: Sequence[Grid],
    filters: Iterable[Mapping[str, str]],
    baselines: Sequence[Mapping[str, str]],
) -> list[Cell]:
    """The cells of a run: the baselines first, then what the filters select."""
    filters = list(filters)
    wanted: dict[Scenario, None] = {}
    for one, base in itertools.product(filters, baselines):
        # What the filter alone leaves open may be more than what its cells are compared with.
        compared = {
            found for scenario in selected(grids, one) for found in baselines_of(scenario, [base])
        }
        for scenario in selected(grids, _beside(one, base)):
            if scenario in compared:
                wanted[scenario] = None
    for chosen in filters:
        for scenario in selected(grids, chosen):
            wanted[scenario] = None
    return [cell(scenario) for scenario in wanted]


def baselines_of(scenario: Scenario, baselines: Iterable[Mapping[str, str]]) -> list[Scenario]:
    """The scenarios that ``scenario`` is compared with: itself, changed as each baseline says.

    A baseline of axes that it does not use is none of its own.
    """
    found = []
    for base in baselines:
        if not base.keys() <= scenario.keys():
            continue
        build = {"build": DRIVERS.get(base["driver"]).default_build} if "driver" in base else {}
        found.append(scenario.but(**{**build, **base}))
    return found


def _beside(chosen: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """The filter of the baselines of what the filter ``chosen`` selects."""
    # Another driver has builds of its own.
    kept = {
        axis: value for axis, value in chosen.items() if "driver" not in base or axis != "build"
    }
    return {**kept, **base}
