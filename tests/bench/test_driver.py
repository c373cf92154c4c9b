"""The workload driver: every driver that is here takes its turns."""

from pathlib import Path
from typing import Any

from oxlite.bench.lab import Request, perform
from oxlite.bench.workloads.driver.workload import METRICS


def test_drivers_take_turns_and_leave_nothing(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    request = Request("driver", {"operations": 200}, repeats=2, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    absent = {cell.scenario.driver for cell in result.impossible}
    assert {row.scenario.driver for row in result.rows} == {"stdlib", "apsw", "oxlite"} - absent
    assert "stdlib" not in absent
    for row in result.rows:
        assert all(row.summary(metric.name) is not None for metric in METRICS)
    begun = [heard[2] for heard in listener.heard if heard[0] == "begun"]
    rows = [row.label for row in result.rows]
    assert begun[len(rows) :] == [label for turns in result.orders for label in turns]
    assert all(sorted(turns) == sorted(rows) for turns in result.orders)
    assert not list(tmp_path.iterdir())
