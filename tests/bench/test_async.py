"""The workload async: every way of calling does the work, and is compared and judged."""

from array import array
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import make_file
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.async_ import figures, verify, work
from oxlite.bench.workloads.async_.figures import RATE
from oxlite.bench.workloads.async_.tables import TABLES
from oxlite.bench.workloads.async_.work import AsyncParameters

pytestmark = pytest.mark.slow

TINY = {"tasks": (3,), "rows": 50, "duration_seconds": 0.05}


def test_every_way_of_calling_does_the_work(tmp_path: Path, listener: Listener) -> None:
    request = Request("async", TINY, ["driver=oxlite"], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    assert {row.label for row in result.rows} == {
        *(
            f"{driver} durable read {call} 3 tasks"
            for driver, call in [
                ("aiosqlite", "cursor"),
                ("aiosqlite", "fetchall"),
                ("oxlite", "database"),
                ("oxlite", "cursor"),
                ("oxlite", "fetchall"),
            ]
        ),
        "aiosqlite durable insert cursor 3 tasks",
        "oxlite durable insert cursor 3 tasks",
        "oxlite durable insert database 3 tasks",
    }
    for row in result.rows:
        [sample] = row.samples
        assert sum(sample.detail["tasks"]) == sample.asked > 0
        assert row.environment is not None
        # Durable in every row.
        assert row.environment["connection"]["pragmas"]["synchronous"] == 2
    assert not list(tmp_path.iterdir())


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "async", "--tasks", "2", "--duration", "0.02", "--rows", "10", "--repeats", "1",
        "--scenario", "driver=oxlite,call=database,operation=insert", "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "repeat with: oxlite bench async --tasks 2 --rows 10 --duration 0.02" in ended.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tasks": ()}, "--tasks must be at least one number"),
        ({"tasks": (0,)}, "--tasks"),
        ({"rows": 0}, "--rows"),
        ({"duration_seconds": 0.0}, "--duration"),
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AsyncParameters(**given)


def test_aiosqlite_is_for_this_workload_alone() -> None:
    driver = DRIVERS.get("aiosqlite")
    assert "oxlite bench async" in str(driver.refusal(Scenario("aiosqlite", journal="wal")))
    assert "no database" in str(
        driver.refusal(Scenario("aiosqlite", call="database", tasks="1", build="own"))
    )


def test_rows_that_nobody_was_told_of_are_found(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    make_file(path, "wal", lambda connection, _: work.fill(connection, AsyncParameters(rows=3)))
    verify.check_table(path, [])
    with pytest.raises(VerificationError, match="0 rows, and 2 inserts were acknowledged"):
        verify.check_table(path, [2, 0])


def test_a_worker_must_account_for_every_task() -> None:
    one = array("Q", [5]).tobytes()
    facts = {"counts": [1, 1], "delays": 0, "seconds": 1.0}
    assert [list(each) for each in figures.unpack(facts, one * 2).durations_ns] == [[5], [5]]
    with pytest.raises(VerificationError, match="does not account"):
        figures.unpack(facts, one)
    with pytest.raises(VerificationError, match="a task has done nothing"):
        figures.unpack({**facts, "counts": [0, 2]}, one * 2)


def test_bars_are_judged_against_aiosqlite() -> None:
    def row(driver: str, call: str, rate: float) -> Row:
        build = DRIVERS.get(driver).default_build
        scenario = Scenario(
            driver, pragmas="durable", operation="read", call=call, tasks="16", build=build
        )
        return Row(scenario, [Sample({RATE.name: rate}, 1)] * 2)

    rows = [row("aiosqlite", "cursor", 10.0), row("oxlite", "database", 100.0)]
    result = Result("async", {}, Plan(), 1, [], rows, [], "", "", "", 1.0)
    [drawing] = TABLES[-1].drawings(result)
    verdicts = [(line.name, line.cells[2]) for line in drawing.lines if "calls/s" in line.name]
    assert verdicts == [("read, 16 tasks: calls/s than by a cursor", "missed by 17%")]
    rows[1].samples[0].figures[RATE.name] = 120.0
    [drawing] = TABLES[-1].drawings(result)
    assert drawing.lines[0].cells[2] == "held"
    result.rows = rows[:1]
    assert not TABLES[-1].drawings(result)
