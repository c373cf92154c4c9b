"""Shared by the tests of the lab: a command to run, and a session that measures nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from oxlite.bench.harness.model import Sample
from oxlite.bench.scenarios.scenario import Scenario


class Quiet:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def planned(
        self, labels: Sequence[str], warm_ups: int, repeats: int, parts: Sequence[str] = ()
    ) -> None:
        self.heard.append(("planned", *labels))

    def begun(self, round_name: str, label: str) -> None:
        self.heard.append(("begun", round_name, label))

    def ended(self, round_name: str, label: str, outcome: str) -> None:
        self.heard.append(("ended", round_name, label, outcome))

    def stopped_early(self, repeats: int, wanted: int) -> None:
        self.heard.append(("stopped", str(repeats), str(wanted)))


class Scripted:
    """A session whose samples are given by a function of label and turn."""

    def __init__(self, answer: Callable[[str, int], Sample]) -> None:
        self._answer = answer
        self.turns: list[str] = []

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        self.turns.append(scenario.label)
        return self._answer(scenario.label, self.turns.count(scenario.label) - 1)


@pytest.fixture
def listener() -> Quiet:
    return Quiet()


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "oxlite.cli", "bench", *arguments]


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start ``oxlite bench`` with arguments, its output captured; it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def starter(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"COLUMNS": "120"},
        )
        started.append(process)
        return process

    yield starter
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def bench() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run ``oxlite bench`` to its end."""

    def runner(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command(*map(str, arguments)), capture_output=True, text=True, timeout=100, check=False
        )

    return runner


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that any account may enter: root's server runs as another one."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


RECORDED = {
    "kv": (
        "kv", "--processes", "2", "--queries", "400", "--write-ratio", "0.3", "--repeats", "3",
        "--no-warm-up", "--fairness", "0.05",
        "--scenario", "journal=wal,pragmas=tuned,busy=backoff",
    ),
    "ladder": (
        "inserts", "--threads", "4", "--duration", "0.05", "--repeats", "2",
        "--scenario", "driver=oxlite,step=wal", "--scenario", "driver=oxlite,step=normal",
    ),
    "locked": (
        "inserts", "--threads", "4", "--duration", "0.2", "--repeats", "1",
        "--scenario", "driver=stdlib,busy=none,pragmas=tuned",
    ),
    "driver": (
        "driver", "--operation", "get", "--scale", "0.01", "--repeats", "2", "--no-warm-up",
    ),
}  # fmt: skip
"""Short runs, of which the tests of reports take the records."""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a record by its name; the run is made when it is first asked for."""
    place = tmp_path_factory.mktemp("records")

    def file(name: str) -> Path:
        path = place / f"{name}.json"
        if not path.exists():
            arguments = (*RECORDED[name], "--json", str(path), "--directory", str(place))
            ended = subprocess.run(
                command(*arguments), capture_output=True, text=True, timeout=100, check=False
            )
            assert ended.returncode == 0, ended.stderr
        return path

    return file
