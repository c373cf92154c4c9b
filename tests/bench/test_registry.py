"""The registry refuses a second entry of one name and suggests for an unknown one."""

from dataclasses import dataclass

import pytest

from oxlite.bench import UsageError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.registry import Registry
from oxlite.bench.workloads.catalogue import WORKLOADS


@dataclass
class Thing:
    name: str


def test_entries_are_found_and_keep_their_order() -> None:
    things: Registry[Thing] = Registry("thing")
    second, first = things.add(Thing("b")), things.add(Thing("a"))
    assert list(things) == [second, first]
    assert things.names() == ("b", "a")
    assert things.get("a") is first
    assert "b" in things


def test_a_duplicate_is_refused() -> None:
    things: Registry[Thing] = Registry("thing")
    things.add(Thing("a"))
    with pytest.raises(ValueError, match="the thing 'a' is registered twice"):
        things.add(Thing("a"))


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown driver 'oxlight': did you mean 'oxlite'"):
        DRIVERS.get("oxlight")


def test_a_workload_is_complete() -> None:
    for workload in WORKLOADS:
        names = [metric.name for metric in workload.metrics]
        assert len(names) == len(set(names))
        assert workload.axes[0].name == "driver"
        assert set(workload.axes[0].values) <= set(DRIVERS.names())
        assert workload.about.partition("\n")[0].endswith(".")
        for quick in (False, True):
            parameters = workload.parameters({}, quick=quick)
            for grid in workload.grids(parameters):
                order = [axis.name for axis in workload.axes if axis.name in grid]
                assert list(grid) == order, "labels name axes in this order"
