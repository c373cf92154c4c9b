"""Worker processes: real ones that work, fail, die and hang."""

import os
import signal
import textwrap
from pathlib import Path

import psutil
import pytest

from oxlite.bench import WorkerError
from oxlite.bench.harness.processes import WorkerGroup

TASKS = """
import os, sys, time
from oxlite.bench.harness.worker import Task

class Counting(Task):
    def __init__(self, arguments):
        print("libraries may print")
        self.number = arguments["number"]
    def ready(self):
        return {"number": self.number}
    def run(self, turn, start_ns):
        assert time.perf_counter_ns() >= start_ns
        self.result = self.number * turn["factor"]
    def collect(self):
        return {"result": self.result}, bytes([self.result])
    def connection(self):
        raise NotImplementedError
    def close(self):
        pass

class Failing(Counting):
    def run(self, turn, start_ns):
        raise RuntimeError("two\\nlines")

class Leaving(Counting):
    def run(self, turn, start_ns):
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)

class Hanging(Counting):
    def run(self, turn, start_ns):
        time.sleep(600)

class Unprepared(Counting):
    def __init__(self, arguments):
        raise ValueError("cannot open")
    """


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lab_test_tasks.py").write_text(textwrap.dedent(TASKS))
    known = os.environ.get("PYTHONPATH")
    paths = [str(tmp_path), *([known] if known else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return tmp_path


def start(group: WorkerGroup, *names: str) -> None:
    for number, name in enumerate(names):
        group.start(f"lab_test_tasks:{name}", {"number": number}, "own")


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if "bootstrap.py" in " ".join(child.cmdline())
    ]


def test_a_group_works_through_its_steps(directory: Path) -> None:
    with WorkerGroup(directory) as group:
        start(group, "Counting", "Counting", "Counting")
        group.wait_ready()
        assert [worker.facts["number"] for worker in group.workers] == [0, 1, 2]
        group.release(30.0, {"factor": 10})
        assert group.collect() == [({"result": n * 10}, bytes([n * 10])) for n in range(3)]
        group.release(30.0, {"factor": 5}, only=group.workers[2])
        assert group.collect(only=group.workers[2]) == [({"result": 10}, bytes([10]))]
        group.stop()
        assert [worker.process.returncode for worker in group.workers] == [0, 0, 0]
    assert not children()
    assert not list(directory.glob("*.stderr"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Failing", "worker 1: RuntimeError: two lines"),
        ("Leaving", "worker 1 ended early with exit code 3: last words"),
    ],
)
def test_a_worker_that_fails_says_why(directory: Path, name: str, reason: str) -> None:
    with WorkerGroup(directory) as group:
        start(group, "Counting", name)
        group.wait_ready()
        with pytest.raises(WorkerError, match=reason):
            group.release(30.0, {"factor": 1})
    assert not children()


def test_a_worker_that_cannot_prepare_says_why(directory: Path) -> None:
    with WorkerGroup(directory) as group:
        start(group, "Unprepared")
        with pytest.raises(WorkerError, match="ValueError: cannot open"):
            group.wait_ready()
    assert not children()


def test_a_worker_that_hangs_is_given_up_and_ended(directory: Path) -> None:
    with WorkerGroup(directory) as group:
        start(group, "Hanging")
        group.wait_ready()
        with pytest.raises(WorkerError, match="no worker answered 'finished'"):
            group.release(0.3)
    assert not children()


def test_a_killed_worker_is_named_with_its_signal(directory: Path) -> None:
    with WorkerGroup(directory) as group:
        start(group, "Counting")
        group.wait_ready()
        group.workers[0].process.send_signal(signal.SIGKILL)
        group.workers[0].process.wait()
        with pytest.raises(WorkerError, match="killed by SIGKILL"):
            group.release(30.0, {"factor": 1})


def test_workers_end_when_the_group_is_left_by_an_exception(directory: Path) -> None:
    def interrupted() -> None:
        with WorkerGroup(directory) as group:
            start(group, "Hanging", "Hanging")
            group.wait_ready()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not children()
