"""The workload busy: all of its transactions are run, whatever the way of waiting."""

import json
import sqlite3
import threading
import time
from array import array
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers import handlers
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.oxlite import BUSY
from oxlite.bench.harness.cells import cell
from oxlite.bench.harness.databases import make_file
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.axes import HANDLERS, WAITING
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.busy.parameters import BusyParameters
from oxlite.bench.workloads.busy.worker import ChildTask
from oxlite.bench.workloads.busy.workload import BusyWorkload, sample_of

pytestmark = pytest.mark.slow

TINY = {"processes": (2,), "threads": (2,), "long": (0, 2), "hold_seconds": 0.3}
OURS = {mode for mode in (*WAITING, *HANDLERS) if mode in {*BUSY, *HANDLERS}}


@pytest.mark.parametrize(
    "changes",
    [
        {"processes": (0,)},
        {"threads": ()},
        {"long": (-1,)},
        {"hold_seconds": float("nan")},
        {"transactions": 0},
        {"timeout_seconds": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        replace(BusyParameters(), **changes)


def test_the_digest_tells_the_work() -> None:
    digest = BusyWorkload().work_digest
    assert digest(BusyParameters()) == digest(BusyParameters(timeout_seconds=1.0))
    assert digest(BusyParameters()) != digest(BusyParameters(transactions=2))


def test_children_wait_for_the_parent_in_every_way(tmp_path: Path, listener: Listener) -> None:
    request = Request("busy", TINY, ["driver=oxlite"], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    assert {row.scenario.get("busy") for row in result.rows} == OURS
    assert len(result.rows) == 2 * len(OURS)
    for row in result.rows:
        [sample] = row.samples
        assert not sample.errors
        assert sample.asked == int(row.scenario.get("long") or 0) + 4
        assert row.latencies["transaction"].count == 4
        assert len(sample.detail["children_ms"]) == 2
        assert ("parent_ms" in sample.figures) == (row.scenario.get("long") == "2")
        assert row.environment is not None
    page = markdown.render(result)
    assert "slowest published" in page
    assert not list(tmp_path.iterdir())


def test_who_cannot_wait_does_not_fail_the_row(tmp_path: Path, listener: Listener) -> None:
    given = TINY | {"long": (1,), "hold_seconds": 1.0, "timeout_seconds": 0.01}
    request = Request(
        "busy", given, ["busy=fair,driver=oxlite", "busy=jitter,driver=oxlite"], repeats=1,
        directory=tmp_path,
    )  # fmt: skip
    for row in perform(request, listener).rows:
        [sample] = row.samples
        assert row.failure is None
        assert sample.asked == 5
        assert all("locked" in text for text in sample.errors)


def child(elapsed_ms: int, waits_ms: list[int], errors: dict[str, int] | None = None) -> Any:  # noqa: ANN401
    waits_ns = array("Q", (wait * 1_000_000 for wait in waits_ms))
    facts = {"elapsed_ns": elapsed_ms * 1_000_000, "done": len(waits_ms), "errors": errors or {}}
    return facts, waits_ns.tobytes()


def test_figures_are_of_children() -> None:
    found = [child(1005, [], {}), child(900, [1, 2]), child(850, [3], {"locked": 1})]
    found[0][0]["done"] = 1
    sample = sample_of(found, 5)
    assert sample.figures == {
        "parent_ms": 1005.0,
        "fastest_child_ms": 850.0,
        "slowest_child_ms": 900.0,
        "difference_ms": 50.0,
    }
    assert list(sample.latencies_ns["transaction"]) == [1_000_000, 2_000_000, 3_000_000]
    with pytest.raises(VerificationError, match="4 transactions and 1 errors, asked for 6"):
        sample_of(found, 6)


def test_the_published_figures_stand_beside(tmp_path: Path, bench: Callable[..., Any]) -> None:
    file = tmp_path / "r.json"
    ended = bench(
        "busy", "--processes", "8", "--threads", "4", "--long", "0", "--hold", "1",
        "--repeats", "1", "--scenario", "driver=oxlite,busy=fair",
        "--directory", tmp_path, "--json", file,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "27.0" in ended.stdout
    assert "--long 0 --hold 1.0 --transactions 1" in ended.stdout
    assert {row["label"] for row in json.loads(file.read_text())["rows"]} == {
        f"oxlite wal tuned {busy} 8 processes 4 threads 0 long" for busy in ("backoff", "fair")
    }


def test_threads_that_are_never_released_end(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    make_file(path, "wal", lambda connection, _: connection.execute("CREATE TABLE t(a)", ()))
    before = threading.active_count()
    arguments = {
        "parameters": asdict(BusyParameters()),
        "scenario": {"driver": "stdlib", "journal": "wal", "busy": "backoff", "threads": "3"},
        "path": str(path),
    }
    task = ChildTask(arguments)
    assert threading.active_count() == before + 3
    task.close()
    assert threading.active_count() == before


def test_the_handlers_sleep_as_they_say() -> None:
    growing = [handlers.SLEEPS_MS[min(asked, 11)] for asked in range(20)]
    for asked, middle_ms in enumerate(growing):
        assert 0.5 * middle_ms <= handlers.jitter_ms(asked) <= 1.5 * middle_ms
    assert [handlers.reversed_ms(asked) for asked in range(14)] == [*growing[11::-1], 1, 1]
    assert [handlers.held_ms(asked, 10_000) for asked in range(20)] == growing
    assert [handlers.held_ms(asked, 350) for asked in range(11, 14)] == [100, 22, 0]


@pytest.mark.parametrize("name", ["reversed", "held"])
def test_a_handler_lets_others_run_or_not(name: str) -> None:
    wait = handlers.handler(name, 10.0)
    turns, longest_pause = 0, 0.0
    begun, done = threading.Event(), threading.Event()

    def run() -> None:
        nonlocal turns, longest_pause
        last, is_last = time.monotonic(), False
        while not is_last:
            is_last = done.is_set()  # then it looks once more
            now = time.monotonic()
            longest_pause = max(longest_pause, now - last)
            turns, last = turns + 1, now
            begun.set()

    other = threading.Thread(target=run)
    other.start()
    try:
        assert begun.wait(30)
        before = turns
        assert wait({"reversed": 0, "held": 11}[name])  # both sleep 100 ms
        after = turns
    finally:
        done.set()
        other.join()
    if name == "held":
        assert longest_pause >= 0.1
    else:
        assert after - before > 100


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_gives_up_after_its_timeout(name: str, tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    make_file(path, "wal", lambda connection, _: connection.execute("CREATE TABLE t(a)", ()))
    driver = DRIVERS.get("oxlite")
    scenario = Scenario("oxlite", journal="wal", busy=name)
    with (
        closing(sqlite3.connect(path)) as other,
        closing(driver.open(path, scenario, 0.05)) as ours,
    ):
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):  # the deadline is of each wait
            with pytest.raises(driver.errors(), match="locked"):
                ours.execute("BEGIN IMMEDIATE", ())
        other.rollback()
        ours.execute("BEGIN IMMEDIATE", ())


@pytest.mark.parametrize("name", HANDLERS)
def test_other_drivers_have_no_handlers_of_the_lab(name: str) -> None:
    for driver in ("stdlib", "apsw"):
        assert cell(Scenario(driver, busy=name)).reason
