"""Programs of the lab: real ones that work, fail, hang and leave children behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.wait import until

from oxlite.bench import WorkerError
from oxlite.bench.harness import programs
from oxlite.bench.harness.programs import Program

PATIENCE_SECONDS = 30.0


def start(directory: Path, *arguments: str, **named: object) -> Program:
    output = directory / "output"
    return Program("the thing", arguments, output, directory=directory, **named)  # type: ignore[arg-type]


def python(directory: Path, code: str) -> Program:
    return start(directory, sys.executable, "-c", code)


def test_a_program_works_and_ends(tmp_path: Path) -> None:
    with start(tmp_path, "sh", "-c", 'echo "$WORD" > said', environment={"WORD": "here"}) as one:
        one.wait(PATIENCE_SECONDS)
        assert one.has_ended()
        with pytest.raises(WorkerError, match="the thing has ended"):
            one.require()
    assert (tmp_path / "said").read_text() == "here\n"


def test_modules_are_found_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "modules"
    place.mkdir()
    (place / "found_here.py").write_text("print('found')\n")
    monkeypatch.chdir(tmp_path)
    known = [path for path in [os.environ.get("PYTHONPATH")] if path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["modules", *known]))
    work = tmp_path / "work"
    work.mkdir()
    with python(work, "import found_here") as one:
        one.wait(PATIENCE_SECONDS)
    assert (work / "output").read_text() == "found\n"


def test_a_program_is_asked_to_end(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, lambda *_: exit(0)); print(1, flush=True)"
    with python(tmp_path, f"{code}; time.sleep(600)") as one:
        until((tmp_path / "output").read_text)
        one.require()
        one.stop(PATIENCE_SECONDS)


def test_the_error_says_why(tmp_path: Path) -> None:
    with python(tmp_path, "print('begun', flush=True); [][1]") as one:
        with pytest.raises(WorkerError) as caught:
            one.wait(PATIENCE_SECONDS)
        said = "the thing ended with exit code 1: IndexError: list index out of range"
        assert str(caught.value) == said
    with (
        start(tmp_path, "sh", "-c", "kill -9 $$") as one,
        pytest.raises(WorkerError, match="the thing ended with signal 9"),
    ):
        one.wait(PATIENCE_SECONDS)


def test_a_program_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    with start(tmp_path, "sleep", "600") as one:
        with pytest.raises(WorkerError, match="the thing did not end in 0 s"):
            one.wait(0.05)
        pid = one.pid
    assert not psutil.pid_exists(pid)


def test_nothing_of_its_group_is_left(tmp_path: Path) -> None:
    """Not even what a program left behind that has ended before."""
    with start(tmp_path, "sh", "-c", "sleep 600 & echo $! > child") as one:
        one.wait(PATIENCE_SECONDS)
        child = psutil.Process(int((tmp_path / "child").read_text()))
        assert child.is_running()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_program_of_a_lab_that_has_ended_does_not_begin() -> None:
    launch = (os.getppid(), signal.SIGKILL.value, os.geteuid(), os.getegid())
    done = subprocess.run(
        [sys.executable, "-P", str(programs.LAUNCH), *map(str, launch), "echo", "begun"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the lab has ended\n")
