"""The workload orm: every operation does its work on every driver, and is compared."""

from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm import worker
from oxlite.bench.workloads.orm.operations import TIMED
from oxlite.bench.workloads.orm.parameters import OrmParameters
from oxlite.bench.workloads.orm.table import SUM, TABLES

TINY = {"level": 1}


def test_every_operation_does_its_work_on_every_driver(tmp_path: Path, listener: Listener) -> None:
    asked = ["driver=oxlite"]
    result = perform(Request("orm", TINY, asked, repeats=1, directory=tmp_path), listener)
    assert not result.failed(), [row.failure for row in result.rows]
    assert {row.label for row in result.rows} == {
        f"{driver} wal {pragmas}" for driver in ("stdlib", "oxlite")
        for pragmas in ("tuned", "durable")
    }  # fmt: skip
    for row in result.rows:
        [sample] = row.samples
        assert not sample.failed
        assert sample.figures.keys() == {SUM.name, *(timed.metric for timed in TIMED)}
        assert row.environment is not None
        pragmas = row.environment["connection"]["pragmas"]
        durable = row.scenario.pragmas == "durable"
        assert (pragmas["journal_mode"], pragmas["synchronous"]) == ("wal", 2 if durable else 1)
    assert not list(tmp_path.iterdir())


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "orm", "--level", "0", "--operation", "creation", "--repeats", "1",
        "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "model_object_and_associated_object_creation (txn)" in ended.stdout
    assert "repeat with: oxlite bench orm --level 0 --operation creation" in ended.stdout


def test_what_is_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match="--level"):
        OrmParameters(level=-1)
    with pytest.raises(UsageError, match="operation"):
        OrmParameters(operation=("nonsense",))


def test_an_operation_that_does_nothing_is_degenerate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario("stdlib", journal="wal", pragmas="tuned", build="own")
    arguments = {
        "parameters": {"level": 1, "operation": ["model_object_select_by_pk"]},
        "scenario": scenario.used(),
        "path": str(tmp_path / "orm.db"),
    }
    task = worker.OrmTask(arguments)
    try:
        monkeypatch.setattr(task._mapper, "prepare", lambda _name, _n: lambda: 39)
        task.run({}, 0)
        facts, _ = task.collect()
    finally:
        task.close()
    assert facts["figures"] == {}
    assert set(facts["failed"].values()) == {
        "ValueError: degenerate: it concerned 39 objects instead of 40"
    }


def test_what_is_slower_in_a_repeat_is_named() -> None:
    metric = TIMED[0].metric

    def row(driver: str, *milliseconds: float) -> Row:
        build = "tuned" if driver == "oxlite" else "own"
        scenario = Scenario(driver, journal="wal", pragmas="tuned", build=build)
        return Row(scenario, [Sample({metric: value}, 1) for value in milliseconds])

    rows = [row("stdlib", 10.0, 10.0, 10.0), row("oxlite", 5.0, 5.0, 20.0)]
    result = Result("orm", {}, Plan(), 3, [], rows, [], "", "", "", 1.0)
    [drawing] = TABLES[0].drawings(result)
    assert [line.name for line in drawing.lines] == [TIMED[0].title]
    assert "slower: model_object_creation 2.00 (0.50" in drawing.remarks[0]
    rows[1].samples.pop()
    rows[0].samples.pop()
    [drawing] = TABLES[0].drawings(result)
    assert drawing.remarks[0].endswith("none is slower")
