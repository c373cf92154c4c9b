"""The workload gate: every write is counted, and what is wrong is found out."""

import contextlib
import os
import sqlite3
from array import array
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.wait import until

from oxlite.bench import UsageError, VerificationError, WorkerError
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness import record
from oxlite.bench.harness.databases import make_file
from oxlite.bench.harness.outcomes import packed
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.axes import DISTURBANCE
from oxlite.bench.workloads.gate import figures, verify, work
from oxlite.bench.workloads.gate.figures import Outcome
from oxlite.bench.workloads.gate.victim import KINDS
from oxlite.bench.workloads.gate.work import GateParameters
from oxlite.bench.workloads.gate.workload import GateSession, GateWorkload

pytestmark = pytest.mark.slow

SMALL = GateParameters(processes=(2,), keys=10)
TINY = {"processes": (3,), "duration_seconds": 0.05}
CALM = "disturbance=calm,busy=backoff"
LOCKED = "OperationalError: database is locked"


def test_keys_depend_on_seed_and_process_alone() -> None:
    chosen = work.keys(SMALL, 0)
    assert chosen == work.keys(replace(SMALL, duration_seconds=1.0, processes=(3, 2)), 0)
    assert chosen != work.keys(SMALL, 1)
    assert chosen != work.keys(replace(SMALL, seed=2), 0)
    assert set(chosen) == set(range(10))


@pytest.mark.parametrize(
    "changes",
    [
        {"processes": ()},
        {"processes": (1,)},
        {"processes": (4, 1001)},
        {"duration_seconds": 0.0},
        {"duration_seconds": float("nan")},
        {"keys": 0},
        {"kills": 0},
        {"timeout_seconds": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        replace(SMALL, **changes)


def outcome(waits_ms: list[int], failed: dict[int, str] | None = None, **how: Any) -> Outcome:  # noqa: ANN401
    """What a process did whose writes took so long, some of which failed."""
    failed = failed or {}
    texts = list(dict.fromkeys(failed.values()))
    numbers = array("H", bytes(2 * len(waits_ms)))
    for index, text in failed.items():
        numbers[index] = texts.index(text) + 1
    return Outcome(array("Q", (1_000_000 * wait for wait in waits_ms)), numbers, texts, **how)


def test_the_last_write_counts_for_the_waits_and_not_for_the_rate() -> None:
    found = [outcome([1, 1, 1, 9]), outcome([2, 50, 3], {1: LOCKED})]
    sample = figures.sample(found, 0.5)
    assert sample.figures["writes_per_second"] == (3 + 1) / 0.5
    assert sample.figures["longest_wait_ms"] == 50.0  # in vain
    assert max(sample.latencies_ns["write"]) == 9_000_000
    assert sample.figures["jain"] == pytest.approx(0.8)
    assert sample.errors == {LOCKED: 1}
    assert sample.asked == 7
    assert "p99_wait_ms" not in sample.figures  # too few
    assert (sample.figures["slowest_process_per_second"], found[1].done()) == (2.0, 2)


def test_what_a_worker_hands_over_is_read() -> None:
    whole = outcome([1, 2, 3], {2: LOCKED})
    payload = packed((whole.times_ns, whole.numbers))
    assert figures.unpack({"errors": [LOCKED]}, payload, outsider=False) == whole
    with pytest.raises(VerificationError, match="did not write"):
        figures.unpack({"errors": []}, b"", outsider=False)


def fill(connection: Connection, _: Driver) -> None:
    work.fill(connection, SMALL)


@pytest.fixture
def worked(tmp_path: Path) -> tuple[Path, list[list[int]], list[Outcome]]:
    """A database on which two processes have written, one of them once in vain."""
    path = tmp_path / "gate.db"
    make_file(path, "rollback", fill)
    keys = [[0, 1, 0], [2, 3]]
    found = [outcome([1] * 3, {1: LOCKED}), outcome([1] * 4)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(work.WRITE, [(0,), (0,), (2,), (3,), (2,), (3,)])
    return path, keys, found


def test_the_right_table_is_accepted(worked: Any) -> None:  # noqa: ANN401
    path, keys, found = worked
    verify.check_table(path, keys, found, SMALL.keys)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE counter SET n = n - 1 WHERE k = 0", "of key 0 is 1, and 2 writes"),
        ("UPDATE counter SET n = n + 1 WHERE k = 1", "of key 1 is 1, and 0 writes"),
        ("DELETE FROM counter WHERE k = 9", "9 rows of 10"),
        ("INSERT INTO ballast VALUES(1)", "1 rows can be seen that were never committed"),
    ],
)
def test_a_wrong_table_is_found_out(worked: Any, sql: str, message: str) -> None:  # noqa: ANN401
    path, keys, found = worked
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)
    with pytest.raises(VerificationError, match=message):
        verify.check_table(path, keys, found, SMALL.keys)


def test_a_write_of_unknown_outcome_may_be_there(worked: Any) -> None:  # noqa: ANN401
    path, keys, found = worked
    found[0].errors = ["OperationalError: disk I/O error"]
    verify.check_table(path, keys, found, SMALL.keys)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE counter SET n = 1 WHERE k = 1")
    verify.check_table(path, keys, found, SMALL.keys)


def test_writers_write_and_are_compared(tmp_path: Path, listener: Listener) -> None:
    place = tmp_path / "place"
    place.mkdir()
    file = tmp_path / "r.json"
    request = Request(
        "gate",
        TINY,
        ["disturbance=calm,busy=fair,driver=oxlite", f"{CALM},driver=stdlib,pragmas=tuned"],
        repeats=1,
        directory=place,
        json_file=file,
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    labels = {
        "oxlite wal tuned backoff calm 3 processes",
        "oxlite wal tuned fair calm 3 processes",
        "oxlite wal durable backoff calm 3 processes",
        "oxlite wal durable fair calm 3 processes",
        "stdlib wal tuned backoff calm 3 processes",
    }
    assert {row.label for row in result.rows} == labels
    for row in result.rows:
        [sample] = row.samples
        assert len(sample.detail["processes"]) == 3
        done = sum(process["done"] for process in sample.detail["processes"])
        assert done + sum(sample.errors.values()) == sample.asked
        assert row.latencies["write"].count == done
        assert row.environment is not None
        policy = row.environment["connection"]["pragmas"]["synchronous"]
        assert policy == (2 if "durable" in row.label else 1)
    fair = "oxlite wal durable fair calm 3 processes"
    assert result.compared[fair] == ["oxlite wal durable backoff calm 3 processes", fair]
    assert result.compared["stdlib wal tuned backoff calm 3 processes"] == [
        "stdlib wal tuned backoff calm 3 processes"
    ]
    assert record.read(file).compared == result.compared
    page = markdown.render(result)
    assert "than backoff" in page
    assert not list(place.iterdir())


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "gate", "--processes", "2", "--processes", "3", "--duration", "0.02", "--repeats", "1",
        "--scenario", "driver=oxlite,busy=fair,pragmas=tuned,disturbance=calm,processes=3",
        "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "repeat with: oxlite bench gate --processes 2 --processes 3 --duration 0.02" in (
        ended.stdout
    )
    assert "2 processes" not in ended.stdout
    assert not list(tmp_path.iterdir())


def test_a_number_of_processes_that_the_run_does_not_have_is_refused(
    listener: Listener, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"unknown value of the axis processes '8': .*known: 3"):
        perform(Request("gate", TINY, ["processes=8"], directory=tmp_path), listener)


def test_after_kills_one_write_more_each_is_possible(worked: Any) -> None:  # noqa: ANN401
    path, _, _ = worked
    verify.check_total(path, 6, 0)
    verify.check_total(path, 5, 1)
    for acknowledged, unknown in ((7, 0), (5, 0), (3, 2)):
        with pytest.raises(VerificationError, match="the counters come to 6"):
            verify.check_total(path, acknowledged, unknown)


def test_the_selection_has_every_disturbance_and_the_peer() -> None:
    chosen = {one.get("disturbance") for one in GateWorkload.selection}
    assert chosen == set(DISTURBANCE.values)
    assert "stdlib" in {one["driver"] for one in GateWorkload.selection}


def test_outsiders_are_reported_apart(tmp_path: Path, listener: Listener) -> None:
    request = Request(
        "gate",
        TINY | {"processes": (5,)},
        ["disturbance=outsiders,busy=fair,driver=oxlite,pragmas=tuned"],
        repeats=1,
        directory=tmp_path,
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    for row in result.rows:
        [sample] = row.samples
        outsiders = [process["outsider"] for process in sample.detail["processes"]]
        assert outsiders == [False, True, False, True, False]
        for kind, outsider in (("write", False), ("outsiders' write", True)):
            done = [
                process["done"]
                for process in sample.detail["processes"]
                if process["outsider"] == outsider
            ]
            assert row.latencies[kind].count == sum(done)
        assert sample.figures["outsiders_longest_wait_ms"] > 0
    page = markdown.render(result)
    assert "Half of the processes are outsiders" in page
    assert "Writers are killed" not in page


def test_an_outsiders_error_is_told_from_ours() -> None:
    found = [
        outcome([1, 1], {0: LOCKED}),
        outcome([1, 1, 1], {0: LOCKED, 1: LOCKED}, outsider=True),
    ]
    sample = figures.sample(found, 1.0)
    assert sample.errors == {LOCKED: 1, f"outsiders: {LOCKED}": 2}
    assert sample.figures["writes_per_second"] == 0
    assert "jain" not in sample.figures


def test_writers_are_killed_and_the_others_go_on(tmp_path: Path, listener: Listener) -> None:
    request = Request(
        "gate",
        TINY | {"kills": 7},
        ["disturbance=kills,busy=fair,driver=oxlite,pragmas=tuned"],
        repeats=1,
        directory=tmp_path,
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    for row in result.rows:
        [sample] = row.samples
        assert sample.detail["kills"] == dict(zip(KINDS, (3, 2, 2), strict=True))
        assert {kind: row.latencies[kind].count for kind in KINDS} == sample.detail["kills"]
        assert sample.detail["acknowledged"] >= 7
        assert sample.figures["recovery_longest_ms"] >= sample.figures["recovery_median_ms"] > 0
        assert row.environment is not None
    assert not list(tmp_path.iterdir())


def killer(group: WorkerGroup, path: Path) -> psutil.Process:
    """Start the process that forks and kills, whose writers have no patience."""
    worker = group.start(
        GateSession.killer,
        {
            "parameters": asdict(replace(SMALL, kills=3, timeout_seconds=0.0)),
            "scenario": {"driver": "stdlib", "journal": "wal", "busy": "backoff", "processes": "2"},
            "path": str(path),
        },
        "own",
    )
    group.wait_ready()
    return psutil.Process(worker.process.pid)


def test_a_writer_that_ends_by_itself_fails_the_row(tmp_path: Path) -> None:
    path = tmp_path / "gate.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
    with WorkerGroup(tmp_path) as group:
        killer(group, path)
        with pytest.raises(WorkerError, match=r"writer \d ended with 1: .*no such table: counter"):
            group.release(60.0)


def test_a_hang_is_found_out_and_nobody_is_left(tmp_path: Path) -> None:
    path = tmp_path / "gate.db"
    make_file(path, "wal", fill)
    with closing(sqlite3.connect(path)) as connection, WorkerGroup(tmp_path) as group:
        one = killer(group, path)
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(WorkerError, match=r"nobody writes for 0\.5 s"):
            group.release(60.0, {"patience_seconds": 0.5})
        one.wait(60.0)
    assert not _with_open(path)


def test_writers_end_with_the_one_that_forked_them(tmp_path: Path) -> None:
    path = tmp_path / "gate.db"
    make_file(path, "wal", fill)
    with closing(sqlite3.connect(path)) as connection, WorkerGroup(tmp_path) as group:
        one = killer(group, path)
        connection.execute("BEGIN IMMEDIATE")
        group.workers[0].send({"do": "run", "start_ns": 0, "turn": {"patience_seconds": 60.0}})
        until(lambda: len(one.children()) >= 2)
        writers = one.children()
        one.kill()
        gone, alive = psutil.wait_procs(writers, timeout=60.0)
        assert len(gone) == 2
        assert not alive


def _with_open(path: Path) -> list[int]:
    """The processes other than this one that have the file open."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and str(path) in {
                file.path for file in process.open_files()
            }:
                found.append(process.pid)
    return found
