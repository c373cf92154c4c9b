"""What a result has charts of, and that their tables have every number."""

from array import array

import pytest

from oxlite.bench.harness.cells import cells
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.statistics import latencies
from oxlite.bench.layout import WITHHELD
from oxlite.bench.report.charts import LARGEST_GROUP, Bars, Curves, Stacks, charts, grouped
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.catalogue import WORKLOADS

KV = WORKLOADS.get("kv")


def row(samples: int = 2000, errors: int = 0, **axes: str) -> Row:
    one = Sample({"wall_seconds": 2.0}, 100, {"OperationalError: locked": errors} if errors else {})
    found = latencies(array("Q", (n * 1_000_000 for n in range(samples))))
    return Row(Scenario("oxlite", **axes), [one], {"read": found})


def result(*rows: Row) -> Result:
    return Result("kv", {}, Plan(), 1, [], list(rows), [], "", "", "2026-01-01", 1.0)


def test_of_one_percentile_there_is_no_curve() -> None:
    assert not [one for one in charts(result(row(30)), KV) if isinstance(one, Curves)]
    [curves] = [one for one in charts(result(row(2000)), KV) if isinstance(one, Curves)]
    assert curves.percents() == [50.0, 95.0, 99.0]


def test_a_withheld_percentile_is_a_mark_in_the_table() -> None:
    pair = result(row(2000, journal="wal"), row(30, journal="rollback"))
    [curves] = [one for one in charts(pair, KV) if isinstance(one, Curves)]
    assert [line.cells[1] for line in curves.table().lines] == ["1,899", WITHHELD]


def test_failures_are_ordered_by_how_many_are_at_work() -> None:
    pair = result(row(errors=25, processes="16"), row(errors=5, processes="4"))
    [stacks] = [one for one in charts(pair, KV) if isinstance(one, Stacks)]
    assert [line.cells for line in stacks.table().lines] == [
        ["5.00%", "95", "5"],
        ["25.00%", "75", "25"],
    ]


def test_without_failures_there_is_no_stack() -> None:
    assert not [one for one in charts(result(row()), KV) if isinstance(one, Stacks)]


def test_a_failed_row_is_in_no_chart() -> None:
    broken = row(journal="wal")
    broken.failure = "worker 1 was killed"
    [bars] = [one for one in charts(result(broken, row()), KV) if isinstance(one, Bars)]
    assert len(bars.bars) == 1


def test_many_rows_are_divided_until_they_can_be_read_together() -> None:
    rows = [
        row(pragmas=pragmas, busy=busy, processes=f"{count}")
        for pragmas in ("stock", "tuned", "durable")
        for busy in ("none", "backoff", "fair", "gate")
        for count in range(1, 5)
    ]
    groups = grouped(result(*rows))
    assert sum(len(group.rows) for group in groups) == len(rows)
    assert all(len(group.rows) <= LARGEST_GROUP for group in groups)
    assert all(len(set(group.names.values())) == len(group.rows) for group in groups)
    assert len({group.common for group in groups}) == len(groups)


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_what_a_workload_measures_by_itself_can_be_read(name: str) -> None:
    workload = WORKLOADS.get(name)
    grids = workload.grids(workload.parameters({}, quick=False))
    for filters in (workload.selection, workload.every):
        found = cells(grids, filters, workload.baselines)
        rows = [Row(cell.scenario, [Sample({})]) for cell in found if cell.reason is None]
        groups = grouped(Result(name, {}, Plan(), 1, [], rows, [], "", "", "", 1.0))
        sizes = [(group.common, len(group.rows)) for group in groups]
        drawn = {row.label for group in groups for row in group.rows}
        assert drawn == {row.label for row in rows}
        # A server's rows stand beside those that they are compared with, in every group.
        servers = sum(row.scenario.driver == "postgresql" for row in rows)
        assert all(size <= LARGEST_GROUP + min(servers, 2) for _, size in sizes), sizes
