"""Claims are judged by the median; one repeat, or a row that is not there, decides nothing."""

from collections.abc import Sequence

import pytest

from oxlite.bench.claims import Claim, ClaimsTable, NoneFail
from oxlite.bench.harness.model import Metric, Plan, Result, Row, Sample
from oxlite.bench.layout import ABSENT, DASH
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.catalogue import WORKLOADS

RATE = Metric("rate", "rate", "higher")
LATE = Metric("late_ms", "late", "lower")
OURS = {"driver": "oxlite"}
PEER = {"driver": "stdlib"}


def result(*rows: tuple[str, Sequence[float]], failed: int = 0) -> Result:
    errors = {"OperationalError: locked": failed} if failed else {}
    made = [
        Row(
            Scenario(driver, build="tuned" if driver == "oxlite" else "own"),
            [Sample({"rate": one, "late_ms": one}, 10, errors) for one in values],
        )
        for driver, values in rows
    ]
    return Result("kv", {}, Plan(), 3, [], made, [], "", "", "", 1.0)


@pytest.mark.parametrize(
    ("at_least", "values", "verdict"),
    [
        (True, [2.0, 3.0], "held"),
        (True, [1.0, 1.5, 1.8], "missed by 25%"),
        (True, [1.0, 2.5, 3.0], "held, with the bar inside the interval"),
        (True, [1.0, 1.0, 3.0], "missed by 50%, with the bar inside the interval"),
        (False, [1.0, 2.0], "held"),
        (False, [3.0, 3.0], "missed by 50%"),
        (True, [1.0, *[3.0] * 8], "held"),
        (True, [3.0], "not known: one repeat"),
        (True, [], "not known"),
    ],
)
def test_a_figure_is_judged(*, at_least: bool, values: Sequence[float], verdict: str) -> None:
    claim = Claim("fast", RATE, 2.0, OURS, at_least=at_least)
    [line] = claim.lines(result(("oxlite", values), ("stdlib", [9.0])))
    assert line.name == "fast"
    assert line.cells[0] == ("≥ 2.00" if at_least else "≤ 2.00")
    assert line.cells[-1] == verdict


def test_a_ratio_is_of_paired_repeats() -> None:
    measured = result(("oxlite", [4.0, 6.0]), ("stdlib", [2.0, 2.0]))
    [more] = Claim("faster", RATE, 2.0, OURS, PEER).lines(measured)
    assert more.cells == ("≥ 2.00", f"2.50 (2.00{DASH}3.00)", "held")
    [later] = Claim("late", LATE, 2.0, OURS, PEER, at_least=False, named=["driver"]).lines(measured)
    assert later.name == "oxlite: late"
    assert later.cells[1:] == (
        f"2.50 (2.00{DASH}3.00)",
        "missed by 25%, with the bar inside the interval",
    )


def test_what_was_not_measured_is_neither_held_nor_missed() -> None:
    claim = Claim("faster", RATE, 2.0, OURS, PEER)
    assert not list(claim.lines(result(("oxlite", [4.0]))))
    assert not list(claim.lines(result(("stdlib", [4.0]))))
    assert not ClaimsTable("Claims", [claim]).drawings(result(("oxlite", [4.0])))


def test_one_failure_is_one_too_many() -> None:
    claim = NoneFail("failures", RATE, 0.0, OURS, named=["driver"])
    [held] = claim.lines(result(("oxlite", [1.0, 1.0])))
    assert held.cells == ("0", "0 of 20", "held")
    measured = result(("oxlite", [1.0]), failed=1)
    [missed] = claim.lines(measured)
    assert missed.cells == ("0", "1 of 10", "missed")
    measured.rows[0].failure = "killed"
    [unknown] = claim.lines(measured)
    assert unknown.cells == ("0", ABSENT, "not known")


def test_published_claims_are_of_metrics_and_axes_that_there_are() -> None:
    for workload in WORKLOADS:
        axes = {axis.name for axis in workload.axes} | {"build"}
        for claim in workload.published:
            assert {*claim.rows, *claim.against} <= axes
            if isinstance(claim.metric, str):
                workload.metric(claim.metric)
