"""The workload gate: every write is counted, and what is wrong is found out."""

import sqlite3
from array import array
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.harness import record
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import markdown
from oxlite.bench.workloads.gate import figures, verify, work
from oxlite.bench.workloads.gate.figures import Outcome
from oxlite.bench.workloads.gate.parameters import GateParameters

SMALL = GateParameters(processes=(2,), keys=10)
TINY = {"processes": (3,), "duration_seconds": 0.05}
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
    outcomes = array("H", bytes(2 * len(waits_ms)))
    for index, text in failed.items():
        outcomes[index] = texts.index(text) + 1
    return Outcome(array("Q", (1_000_000 * wait for wait in waits_ms)), outcomes, texts, **how)


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
    payload = whole.waits_ns.tobytes() + whole.outcomes.tobytes()
    assert figures.unpack({"errors": [LOCKED]}, payload, outsider=False) == whole
    with pytest.raises(VerificationError, match="did not write"):
        figures.unpack({"errors": []}, b"", outsider=False)


@pytest.fixture
def worked(tmp_path: Path) -> tuple[Path, list[list[int]], list[Outcome]]:
    """A database on which two processes have written, one of them once in vain."""
    path = tmp_path / "gate.db"
    work.create_database(path, SMALL, "rollback")
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
        ["busy=fair,driver=oxlite", "busy=backoff,driver=stdlib,pragmas=tuned"],
        repeats=1,
        directory=place,
        json_file=file,
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    labels = {
        "oxlite wal tuned backoff 3 processes",
        "oxlite wal tuned fair 3 processes",
        "oxlite wal durable backoff 3 processes",
        "oxlite wal durable fair 3 processes",
        "stdlib wal tuned backoff 3 processes",
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
    fair = "oxlite wal durable fair 3 processes"
    assert result.compared[fair] == ["oxlite wal durable backoff 3 processes", fair]
    assert result.compared["stdlib wal tuned backoff 3 processes"] == [
        "stdlib wal tuned backoff 3 processes"
    ]
    assert record.read(file).compared == result.compared
    page = markdown.render(result)
    assert "than backoff" in page
    assert not list(place.iterdir())


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "gate", "--processes", "2", "--processes", "3", "--duration", "0.02", "--repeats", "1",
        "--scenario", "driver=oxlite,busy=fair,pragmas=tuned,processes=3", "--directory", tmp_path,
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
