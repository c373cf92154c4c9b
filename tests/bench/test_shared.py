"""The workload shared: whose syncs are shared, and what that has to be worth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.gate.figures import JAIN, LONGEST, WRITES
from oxlite.bench.workloads.shared.bars import remarks
from oxlite.bench.workloads.shared.parameters import SharedParameters

TINY = {"processes": (3,), "duration_seconds": 0.05}


def test_every_write_is_durable_in_its_way(tmp_path: Path, listener: Listener) -> None:
    request = Request("shared", TINY, ["commit=shared,busy=gate"], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    found = {}
    for row in result.rows:
        [sample] = row.samples
        assert sum(process["done"] for process in sample.detail["processes"]) == sample.asked
        assert row.environment is not None
        found[row.label] = row.environment["connection"]["pragmas"]["synchronous"]
    assert found == {
        "oxlite wal durable gate shared 3 processes": 1,
        "oxlite wal durable gate each 3 processes": 2,
        "oxlite wal durable backoff each 3 processes": 2,
    }
    assert not list(tmp_path.iterdir())


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "shared", "--processes", "1", "--duration", "0.02", "--repeats", "1",
        "--scenario", "commit=shared,busy=gate", "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "repeat with: oxlite bench shared --processes 1 --duration 0.02" in ended.stdout
    assert "--kills" not in ended.stdout


def test_no_process_is_too_few() -> None:
    with pytest.raises(UsageError, match="--processes"):
        SharedParameters(processes=(0,))


def writers(commit: str, busy: str, rates: Sequence[float], longest_ms: float) -> Row:
    scenario = Scenario(
        "oxlite", journal="wal", pragmas="durable", busy=busy, commit=commit, processes="25"
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
    writes, longest, jain = remarks(result)
    assert writes.startswith("25 processes held, not in every repeat: writes per second")
    assert longest.startswith("25 processes missed by 20%: longest wait")
    assert jain.startswith("25 processes held: Jain's index")
    result.rows = rows[:1]
    assert "not known" in remarks(result)[0]
