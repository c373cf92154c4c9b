"""What is left of a run that a signal ended, and of one whose disk has no room."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench.errors import Interrupted
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.run import CutShort, run
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.stored import read

pytestmark = pytest.mark.slow

A, B = Scenario("stdlib", journal="rollback"), Scenario("stdlib", journal="wal")
PATIENCE_SECONDS = 60.0


def cut_at(session: Any, listener: Any, turns: int, warm_ups: int = 0) -> CutShort:  # noqa: ANN401
    """The run of two cells that is interrupted in the turn after ``turns``."""

    def answer(label: str, turn: int) -> Sample:
        if len(made.turns) > turns:
            raise Interrupted(signal.SIGTERM)
        return Sample({"wall_seconds": turn + 1.0})

    made = session(answer)
    with pytest.raises(CutShort) as caught:
        run(made, [A, B], Plan(repeats=5, warm_ups=warm_ups), listener, lambda _: "")
    assert caught.value.signal_number == signal.SIGTERM
    return caught.value


@pytest.mark.parametrize(
    ("turns", "rounds", "samples"),
    [(0, 0, [0, 0]), (1, 1, [1, 0]), (2, 1, [1, 1]), (3, 1, [1, 1]), (4, 2, [2, 2])],
)
def test_only_complete_rounds_are_kept_so_that_samples_pair(
    scripted: Callable[..., Any],
    listener: object,
    turns: int,
    rounds: int,
    samples: list[int],
) -> None:
    cut = cut_at(scripted, listener, turns)
    assert len(cut.orders) == rounds
    assert [len(row.samples) for row in cut.rows] == samples


def test_nothing_is_kept_of_a_warm_up(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    cut = cut_at(scripted, listener, 1, warm_ups=1)
    assert cut.orders == []
    assert not any(row.samples for row in cut.rows)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_part_that_was_measured_is_written_and_marked(
    start: Callable[..., Any], tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "r.json"
    lab = start(
        "driver", "--operation", "get", "--scale", "0.01", "--repeats", "100000", "--no-warm-up",
        "--time-budget", "1000", "--directory", str(tmp_path), "--json", str(file),
    )  # fmt: skip
    for line in lab.stdout:
        if line.startswith("repeat 3/"):
            break
    lab.send_signal(number)
    stdout, stderr = lab.communicate(timeout=PATIENCE_SECONDS)
    assert lab.returncode == 128 + number
    assert stderr == ""
    assert f"Note: interrupted by {number.name}: this is a part of the run" in stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]
    result = read(file)
    assert result.interrupted
    assert result.repeats == len(result.orders) >= 2
    assert {len(row.samples) for row in result.rows} == {result.repeats}


def cut(start: Callable[..., Any], file: Path) -> str:
    """What a run prints that is written to ``file`` and interrupted in its second round."""
    lab = start(
        "driver", "--operation", "get", "--scale", "0.01", "--repeats", "100000", "--no-warm-up",
        "--time-budget", "1000", "--directory", str(file.parent), "--json", str(file),
    )  # fmt: skip
    for line in lab.stdout:
        if line.startswith("repeat 1/"):
            break
    lab.send_signal(signal.SIGINT)
    stdout, _ = lab.communicate(timeout=PATIENCE_SECONDS)
    return str(stdout)


def test_a_part_does_not_replace_a_whole_run(
    start: Callable[..., Any], recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    file, part = tmp_path / "r.json", tmp_path / "r.part.json"
    whole = recorded("driver").read_bytes()
    file.write_bytes(whole)
    assert f"Note: {file} is kept as it was; this part is in {part}" in cut(start, file)
    assert sorted(tmp_path.iterdir()) == [file, part]
    assert file.read_bytes() == whole
    assert read(part).interrupted
    # A part is replaced by the next one.
    part.replace(file)
    assert "is kept as it was" not in cut(start, file)
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def test_the_first_round_of_orm_is_kept_as_far_as_it_went(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    pytest.importorskip("django", reason="Django is not installed")
    file = tmp_path / "r.json"
    lab = start(
        "orm", "--level", "3", "--repeats", "2", "--no-warm-up", "--at-least", "0",
        "--scenario", "driver=stdlib,mapper=django,journal=rollback",
        "--directory", str(tmp_path), "--json", str(file),
    )  # fmt: skip
    lines = (line for line in lab.stdout if line.startswith("repeat 1/"))
    next(lines), next(lines)
    lab.send_signal(signal.SIGINT)
    stdout, stderr = lab.communicate(timeout=PATIENCE_SECONDS)
    assert stderr == ""
    assert "this is a part of the run" in stdout
    result = read(file)
    assert result.interrupted
    for row in result.rows:
        [sample] = row.samples
        assert sample.figures
        assert "sum_ms" not in sample.figures


def test_that_nothing_was_measured_is_said(start: Callable[..., Any], tmp_path: Path) -> None:
    lab = start(
        "driver", "--repeats", "1", "--directory", str(tmp_path), "--json", str(tmp_path / "r.json")
    )
    for line in lab.stdout:
        if "measured rounds" in line:
            break
    lab.send_signal(signal.SIGINT)
    _, stderr = lab.communicate(timeout=PATIENCE_SECONDS)
    assert lab.returncode == 128 + signal.SIGINT
    said = "oxlite: interrupted by SIGINT before anything was measured: nothing is kept"
    assert said in stderr.splitlines()
    assert not list(tmp_path.iterdir())


SMALL = """
import os, subprocess, sys
place = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", place], check=True)
command = [sys.executable, "-m", "oxlite.cli", "bench", *sys.argv[2:], "--directory", place]
os._exit(subprocess.run(command).returncode)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run ``oxlite bench`` with its databases on a disk of 1.2 MB, which nobody else sees."""
    place = tmp_path / "small"
    place.mkdir()
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    mount = [*unshare, "mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(place)]
    if shutil.which("unshare") is None:
        pytest.skip("a small disk needs unshare")
    if subprocess.run(mount, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("this machine lets us mount no disk of our own")

    def runner(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*unshare, sys.executable, "-c", SMALL, str(place), *arguments],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    return runner


def test_rows_that_there_is_no_room_for_fail_by_name(small_disk: Callable[..., Any]) -> None:
    ended = small_disk("kv", "--keys", "100000", "--processes", "2", "--repeats", "1")
    assert ended.returncode == 1
    assert "failed  stdlib rollback stock backoff: database or disk is full" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_a_disk_that_becomes_full_fails_rows_and_the_rest_goes_on(
    small_disk: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "r.json"
    ended = small_disk(
        "inserts", "--duration", "0.5", "--threads", "1", "--repeats", "1", "--json", str(file),
        "--scenario", "driver=oxlite,step=at_once", "--scenario", "driver=oxlite,step=defaults",
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    assert "full" in ended.stdout
    rows = {row["scenario"]["step"]: row for row in json.loads(file.read_text())["rows"]}
    assert rows["at_once"]["failure"] or rows["at_once"]["samples"][0]["errors"]
    assert rows["defaults"]["samples"]
