"""Shared by the tests of the lab: a command to run, and a session that measures nothing."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from oxlite.bench.harness.model import Sample
from oxlite.bench.scenarios.scenario import Scenario


class Quiet:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def planned(self, labels: Sequence[str], warm_ups: int, repeats: int) -> None:
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
