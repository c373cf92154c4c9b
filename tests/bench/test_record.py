"""The stored schema: a round trip, and files that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import FutureRecordError, MalformedRecordError, UsageError
from oxlite.bench.harness import record
from oxlite.bench.harness.cells import Cell
from oxlite.bench.harness.model import Metric, Plan, Result, Row, Sample
from oxlite.bench.harness.statistics import latencies
from oxlite.bench.scenarios.scenario import Scenario

METRICS = [Metric("wall_seconds", "wall time", "lower")]


@pytest.fixture
def result() -> Result:
    stock = Row(
        Scenario("stdlib", journal="rollback", build="own"),
        [
            Sample({"wall_seconds": value}, 5000, {"OperationalError: locked": 1})
            for value in (2.0, 4.0)
        ],
        {"read": latencies(range(5000))},
        {"schema": "oxlite.environment/1"},
    )
    wal = Row(
        Scenario("stdlib", journal="wal", build="own"),
        [
            Sample(
                {"wall_seconds": value}, detail={"rows": 3}, absent={"a": "x"}, failed={"b": "y"}
            )
            for value in (1.0, 1.0)
        ],
    )
    broken = Row(
        Scenario("oxlite", journal="wal", build="tuned"), failure="worker 1 was killed by SIGKILL"
    )
    return Result(
        workload="kv",
        parameters={"processes": 3, "write_ratio": 0.05},
        plan=Plan(2, 10.0, 1),
        repeats=2,
        baselines=[stock.label],
        rows=[stock, wal, broken],
        impossible=[Cell(Scenario("stdlib", busy="fair"), "no busy handler")],
        work_digest="abc",
        command="oxlite bench kv",
        started_at="2026-01-01T00:00:00+00:00",
        duration_seconds=1.5,
        notes=["a note"],
        orders=[[stock.label, wal.label], [wal.label, stock.label]],
        left=["oxlite rollback"],
    )


def test_a_result_survives_the_file(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(record.dumps(result, METRICS))
    assert record.read(path) == result


def test_a_file_of_before_some_fields_were_kept_is_read(result: Result) -> None:
    data = changed(result)
    del data["orders"], data["left"]
    for row in data["rows"]:
        for sample in row["samples"]:
            del sample["absent"], sample["failed"]
    old = record.from_json(data)
    assert old.orders == []
    assert old.rows[1].failed_figures() == {}


def test_a_file_with_labels_of_an_earlier_lab_means_the_same_rows(result: Result) -> None:
    text = json.dumps(record.to_json(result, METRICS)).replace("stdlib wal", "stdlib log")
    earlier = json.loads(text)
    assert earlier["orders"] == [
        ["stdlib rollback", "stdlib log"],
        ["stdlib log", "stdlib rollback"],
    ]
    assert record.from_json(earlier) == result


def test_the_file_says_what_can_be_computed(result: Result) -> None:
    data = record.to_json(result, METRICS)
    assert (data["format"], data["version"]) == ("oxlite-bench", 1)
    stock, wal, broken = data["rows"]
    assert stock["summaries"]["wall_seconds"]["median"] == 3.0
    assert stock["latencies"]["read"]["percentiles_ns"]["99.9"] is None
    assert wal["improvements"][stock["label"]]["wall_seconds"]["maximum"] == 4.0
    assert broken["summaries"] == {}
    assert data["impossible"][0]["reason"] == "no busy handler"
    assert data["orders"] == [["stdlib rollback", "stdlib wal"], ["stdlib wal", "stdlib rollback"]]


def changed(result: Result, **changes: object) -> dict[str, Any]:
    return json.loads(json.dumps(record.to_json(result, METRICS))) | changes


def test_a_later_version_is_refused(result: Result) -> None:
    with pytest.raises(FutureRecordError, match=r"schema version 2.*upgrade"):
        record.from_json(changed(result, version=2))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something"},
        {"version": "1"},
        {"version": 0},
        {"rows": 3},
        {"rows": [{}]},
        {"rows": [{"scenario": {"driver": "x", "journal": "nonsense"}}]},
        {"plan": {"unknown": 1}},
        {"parameters": None},
        {"repeats": "many"},
        {"repeats": 1},
        {"repeats": 10**12},
    ],
)
def test_what_is_malformed_is_refused(result: Result, changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecordError):
        record.from_json(changed(result, **changes))


@pytest.mark.parametrize("percent", ["100", "150", "-1"])
def test_a_percentile_that_there_cannot_be_is_named(result: Result, percent: str) -> None:
    data = changed(result)
    data["rows"][0]["latencies"]["read"]["percentiles_ns"] = {percent: 7}
    with pytest.raises(MalformedRecordError, match=f"there is no percentile {percent}"):
        record.from_json(data)


def test_a_row_is_there_once(result: Result) -> None:
    data = changed(result)
    data["rows"].append(data["rows"][0])
    with pytest.raises(MalformedRecordError, match="stdlib rollback is there twice"):
        record.from_json(data)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_row_without_all_its_samples_is_named(result: Result, lost: int) -> None:
    data = changed(result)
    del data["rows"][1]["samples"][:lost]
    with pytest.raises(MalformedRecordError, match=f"stdlib wal has {2 - lost} samples of 2"):
        record.from_json(data)


def test_a_row_may_have_had_no_turn_before_an_interruption(result: Result) -> None:
    data = changed(result, interrupted=True)
    data["rows"][1]["samples"] = []
    assert record.from_json(data).rows[1].samples == []


@pytest.mark.parametrize("figure", [1e308, -1e308, 5e-324])
def test_a_figure_whose_ratios_would_be_infinite_is_none(result: Result, figure: float) -> None:
    data = changed(result)
    data["rows"][0]["samples"][0]["figures"]["wall_seconds"] = figure
    with pytest.raises(MalformedRecordError, match="no figure of a measurement"):
        record.from_json(data)


def test_a_missing_field_is_named(result: Result) -> None:
    data = changed(result)
    del data["baselines"]
    with pytest.raises(MalformedRecordError, match="baselines"):
        record.from_json(data)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\xff"])
def test_a_file_that_is_no_result_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(MalformedRecordError, match=r"r\.json"):
        record.read(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        record.read(tmp_path / "absent.json")
