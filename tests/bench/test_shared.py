"""The workload shared: whose syncs are shared, and what that has to be worth."""

import os
import platform
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError, WorkerError
from oxlite.bench.harness.databases import make_file
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.gate import work
from oxlite.bench.workloads.gate.figures import JAIN, LONGEST, WRITES
from oxlite.bench.workloads.gate.victim import ANY
from oxlite.bench.workloads.gate.work import GateParameters
from oxlite.bench.workloads.shared import entries, syncs
from oxlite.bench.workloads.shared.entries import Writer
from oxlite.bench.workloads.shared.kills import SYNCING
from oxlite.bench.workloads.shared.tables import TABLES
from oxlite.bench.workloads.shared.workload import SharedParameters

pytestmark = pytest.mark.slow

TINY = {"processes": (3,), "duration_seconds": 0.05}
CALM = "disturbance=calm,commit=shared,busy=gate"

on_a_known_machine = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in syncs.SYNCS,
    reason="who is in a sync is seen on Linux alone",
)


def test_every_write_is_durable_in_its_way(tmp_path: Path, listener: Listener) -> None:
    request = Request("shared", TINY, [CALM], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    found = {}
    for row in result.rows:
        [sample] = row.samples
        assert sum(process["done"] for process in sample.detail["processes"]) == sample.asked
        assert row.environment is not None
        found[row.label] = row.environment["connection"]["pragmas"]["synchronous"]
    assert found == {
        "oxlite wal durable gate calm shared 3 processes": 1,
        "oxlite wal durable gate calm each 3 processes": 2,
        "oxlite wal durable backoff calm each 3 processes": 2,
    }
    assert not list(tmp_path.iterdir())


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "shared", "--processes", "1", "--duration", "0.02", "--repeats", "1",
        "--scenario", CALM, "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "repeat with: oxlite bench shared --processes 1 --duration 0.02" in ended.stdout
    assert "Writers are killed" not in ended.stdout


def test_no_process_is_too_few() -> None:
    with pytest.raises(UsageError, match="--processes"):
        SharedParameters(processes=(0,))


def writers(commit: str, busy: str, rates: Sequence[float], longest_ms: float) -> Row:
    scenario = Scenario(
        "oxlite",
        journal="wal",
        pragmas="durable",
        busy=busy,
        disturbance="calm",
        commit=commit,
        processes="25",
    )
    samples = [
        Sample({WRITES.name: rate, LONGEST.name: longest_ms, JAIN.name: 0.995}, 1) for rate in rates
    ]
    return Row(scenario, samples)


def test_bars_are_judged_in_paired_repeats() -> None:
    rows = [
        writers("shared", "gate", [6000.0, 9000.0, 4000.0], 10.0),
        writers("each", "gate", [1000.0, 1000.0, 1000.0], 100.0),
        writers("each", "backoff", [1000.0, 1000.0, 1000.0], 400.0),
    ]
    result = Result("shared", {}, Plan(), 3, [], rows, [], "", "", "", 1.0)
    [drawing] = TABLES[-1].drawings(result)
    assert [line.cells[-1] for line in drawing.lines] == [
        "held, with the bar inside the interval",
        "missed by 20%",
        "held",
    ]
    result.rows = rows[:1]
    [drawing] = TABLES[-1].drawings(result)
    assert [line.name for line in drawing.lines] == ["25 processes: Jain's index"]


@on_a_known_machine
def test_leaders_are_killed_in_their_syncs_and_the_others_go_on(
    tmp_path: Path, listener: Listener
) -> None:
    request = Request(
        "shared",
        {"processes": (5,), "kills": 50},
        ["disturbance=kills,commit=shared,busy=gate"],
        repeats=1,
        directory=tmp_path,
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    shared, *others = sorted(result.rows, key=lambda row: row.scenario.get("commit") != "shared")
    assert {row.scenario.get("busy") for row in others} == {"gate", "backoff"}
    for row in result.rows:
        [sample] = row.samples
        assert sample.detail["kills"][SYNCING] == 25
        assert sample.detail["kills"][ANY] >= 25
        # SQLite's own way of waiting lets somebody wait in vain, on a busy machine.
        assert row.scenario.get("busy") == "backoff" or not sample.errors
        assert sample.detail["acknowledged"] >= 50
    # Some were met in the sync of a checkpoint, or of the header of a log that began again.
    [sample] = shared.samples
    assert 15 <= sample.figures["leaders_lost"] <= sum(sample.detail["kills"].values())
    assert all("leaders_lost" not in row.samples[0].figures for row in others)
    page = markdown.render(result)
    assert "Writers are killed" in page
    assert "leaders lost" in page
    assert "Durable writes and fairness" not in page
    assert not list(tmp_path.iterdir())


def test_where_one_is_alone_nobody_is_killed(listener: Listener, tmp_path: Path) -> None:
    alone = {"processes": (1,)}
    request = Request("shared", alone, ["disturbance=kills"], directory=tmp_path)
    with pytest.raises(UsageError, match="no scenario with disturbance=kills"):
        perform(request, listener)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A database in which two writers have written two entries each, in turn."""
    path = tmp_path / "gate.db"
    make_file(path, "wal", lambda connection, _: work.fill(connection, GateParameters(keys=2)))
    entries.create_table(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(entries.WRITE, [(0, 1), (1, 1), (1, 2), (0, 2)])
    return path


def test_of_each_writer_there_is_what_it_was_told_of(written: Path) -> None:
    entries.check(written, [Writer(2, is_killed=False), Writer(2, is_killed=True)])
    entries.check(written, [Writer(2, is_killed=False), Writer(1, is_killed=True)])
    for wrong in (Writer(3, is_killed=True), Writer(1, is_killed=False), Writer(0, is_killed=True)):
        with pytest.raises(VerificationError, match="2 entries of writer 1"):
            entries.check(written, [Writer(2, is_killed=False), wrong])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM entry WHERE id = 2", "entry 2 of writer 1 stands where its entry 1"),
        ("UPDATE entry SET id = 9 WHERE id = 1", "entry 2 of writer 0 stands where its entry 1"),
        ("INSERT INTO ballast VALUES(1)", "never committed"),
    ],
)
def test_what_is_missing_or_out_of_order_is_found_out(
    written: Path, sql: str, message: str
) -> None:
    with closing(sqlite3.connect(written)) as connection, connection:
        connection.execute(sql)
    with pytest.raises(VerificationError, match=message):
        entries.check(written, [Writer(2, is_killed=False), Writer(2, is_killed=False)])


@on_a_known_machine
def test_who_is_in_a_sync_is_seen(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        with (tmp_path / "file").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
                os.fdatasync(file.fileno())
    deadline = time.monotonic() + 60
    while not syncs.is_syncing(child):
        assert time.monotonic() < deadline
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not syncs.is_syncing(os.getpid())
    assert not syncs.is_syncing(child)


def test_where_nobody_is_seen_that_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncs, "SYNCS", {})
    with pytest.raises(WorkerError, match="can be seen on Linux"):
        syncs.is_syncing(os.getpid())
