"""The command: exit codes, one-line errors, and what an interruption leaves (nothing)."""

import json
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from oxlite.cli import main

Bench = Callable[..., Any]
LONG = ("--processes", "3", "--queries", "200000", "--scenario", "driver=stdlib,busy=backoff")
PATIENCE_SECONDS = 60.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kv", "--processes", "0"), "--processes must be at least 1"),
        (("kv", "--queries", "-5"), "--queries must be at least 1"),
        (("kv", "--repeats", "0"), "--repeats must be at least 1"),
        (("kv", "--write-ratio", "2"), "--write-ratio must be at most 1, not 2"),
        (("kv", "--timeout", "-1"), "--timeout must be at least 0"),
        (("kv", "--timeout", "inf"), "--timeout must be finite"),
        (("kv", "--timeout", "1e9"), "--timeout must be at most 86,400"),
        (("kv", "--fairness", "inf"), "--fairness must be finite"),
        (("kv", "--fairness", "nan"), "--fairness must be at least 0"),
        (("kv", "--time-budget", "inf"), "--time-budget must be finite"),
        (("kv", "--scenario", "driver=stdlib,busy=gate"), "nothing to run"),
        (("kv", "--processes", "many"), "valid integer"),
        (("kv", "--scenario", "driver=oxlit"), "did you mean 'oxlite'"),
        (("kv", "--scenario", "journal=wall"), "did you mean 'wal'"),
        (("kv", "--scenario", "jornal=wal"), "did you mean 'journal'"),
        (("kv", "--scenario", "mapper=django"), "unknown axis 'mapper'"),
        (("kv", "--directory", "/absent/directory"), "is not a directory"),
        (("kv", "--json", "/absent/directory/r.json"), "is not a directory"),
        (("kv", "--json", "/proc/r.json"), "cannot write /proc/r.json"),
        (("driver", "--markdown", "/proc/r.md"), "cannot write /proc/r.md"),
        (("all", "--results", "/proc/version"), "/proc/version is not a directory"),
        (("driver", "--interpreter", ""), "cannot run '': "),
        (("driver", "--batches", "0"), "--batches must be at least"),
        (("kw",), "unknown command 'kw': did you mean 'kv'?"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["bench", *arguments]) == 2
    said, error = capsys.readouterr()
    assert error.startswith("oxlite: error: ")
    assert message in error
    assert not said
    assert len(error.strip().splitlines()) == 1
    assert "Traceback" not in error


def test_a_run_prints_its_report_and_writes_its_file(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    place = tmp_path / "place"
    place.mkdir()
    ended = bench(
        "kv", "--processes", "2", "--queries", "30", "--repeats", "1", "--fairness", "0.05",
        "--scenario", "driver=stdlib,journal=wal,pragmas=tuned",
        "--directory", place, "--json", file,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "stdlib wal tuned backoff" in ended.stdout
    assert "not run  stdlib wal tuned fair: the standard library" in ended.stdout
    assert "repeat with: oxlite bench kv --processes 2 --queries 30" in ended.stdout
    assert json.loads(file.read_text())["workload"] == "kv"
    assert not list(place.iterdir())
    [line] = [line for line in ended.stdout.splitlines() if line.startswith("repeat with: ")]
    again = bench(*shlex.split(line.removeprefix("repeat with: oxlite bench ")))
    assert again.returncode == 0, again.stderr
    assert line in again.stdout


def test_a_full_disk_at_the_end_does_not_lose_the_report(bench: Bench, tmp_path: Path) -> None:
    page = tmp_path / "r.md"
    ended = bench(
        "driver", "--operation", "get", "--scale", "0.01", "--repeats", "1", "--json", "/dev/full",
        "--markdown", page, "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "repeat with: oxlite bench driver" in ended.stdout
    assert "stdlib (own build): driver " in ended.stdout
    assert ended.stderr == "oxlite: error: cannot write /dev/full: No space left on device\n"
    assert "| stdlib |" in page.read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.md"]


def test_a_reader_that_goes_away_ends_the_run_cleanly(start: Bench, tmp_path: Path) -> None:
    lab = start("kv", "--queries", "50", "--repeats", "1", "--directory", str(tmp_path))
    lab.stdout.close()
    lab.wait(PATIENCE_SECONDS)
    assert lab.returncode == 128 + signal.SIGPIPE
    assert "Traceback" not in lab.stderr.read()
    assert not list(tmp_path.iterdir())


def workers(lab: psutil.Process) -> list[psutil.Process]:
    found = []
    for child in lab.children():
        try:
            if "bootstrap.py" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_for_workers(lab: psutil.Process, count: int) -> list[psutil.Process]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = workers(lab)
        if len(found) == count:
            return found
        time.sleep(0.01)
    raise AssertionError("the workers did not start")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_no_process_and_no_file(
    start: Bench, tmp_path: Path, number: signal.Signals
) -> None:
    lab = start("kv", *LONG, "--directory", str(tmp_path), "--json", str(tmp_path / "r.json"))
    found = wait_for_workers(psutil.Process(lab.pid), 3)
    assert list(tmp_path.iterdir())
    lab.send_signal(number)
    _, stderr = lab.communicate(timeout=PATIENCE_SECONDS)
    assert lab.returncode == 128 + number
    assert "Traceback" not in stderr
    assert not any(process.is_running() for process in found)
    assert not list(tmp_path.iterdir())


def test_workers_die_with_a_killed_lab(start: Bench, tmp_path: Path) -> None:
    lab = start("kv", *LONG, "--directory", str(tmp_path))
    found = wait_for_workers(psutil.Process(lab.pid), 3)
    lab.kill()
    lab.communicate(timeout=PATIENCE_SECONDS)
    _, alive = psutil.wait_procs(found, timeout=PATIENCE_SECONDS)
    assert not alive


def test_a_killed_worker_fails_its_row_and_the_rest_goes_on(start: Bench, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    lab = start(
        "kv", "--processes", "3", "--queries", "4000", "--repeats", "1", "--fairness", "0.05",
        "--scenario", "driver=stdlib,busy=backoff,journal=wal,pragmas=tuned",
        "--directory", str(tmp_path), "--json", str(file),
    )  # fmt: skip
    wait_for_workers(psutil.Process(lab.pid), 3)[1].kill()
    stdout, _ = lab.communicate(timeout=PATIENCE_SECONDS)
    assert lab.returncode == 1
    assert "failed  stdlib rollback stock backoff: worker 1 was killed by SIGKILL" in stdout
    rows = json.loads(file.read_text())["rows"]
    assert rows[0]["failure"]
    assert rows[1]["failure"] is None
    assert rows[1]["samples"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]
