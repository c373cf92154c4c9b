"""Other Pythons for the workers: what is there is asked, and what cannot run is refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import oxlite
from oxlite.bench import UsageError
from oxlite.bench.harness import cells, installed
from oxlite.bench.scenarios.scenario import Scenario

SELF = {"oxlite": oxlite.__version__, "needed": [], "drivers": {}, "builds": {}}


@pytest.fixture
def answering(tmp_path: Path) -> Callable[[str], str]:
    """A program that prints a text, whatever it is asked."""

    def made(text: str) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
        path.chmod(0o755)
        return str(path)

    return made


def missing(interpreter: str, driver: str = "stdlib") -> str | None:
    return installed.missing(Scenario(driver, build="own", interpreter=interpreter))


def test_this_python_can_run_workers() -> None:
    assert missing(sys.executable) is None


def test_what_is_missing_there_is_the_reason_of_a_cell(answering: Callable[[str], str]) -> None:
    there = answering(json.dumps({**SELF, "drivers": {"apsw": "apsw is not installed"}}))
    cell = cells.cell(Scenario("apsw", build="own", interpreter=there))
    assert cell.reason == "apsw is not installed"
    assert missing(there) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "is not a Python"),
        (json.dumps({**SELF, "oxlite": "0.0.1"}), "has oxlite 0.0.1, and the lab is"),
        (json.dumps({**SELF, "needed": ["psutil"]}), "lacks psutil; run `.*pip install psutil`"),
    ],
)
def test_what_cannot_run_workers_is_refused(
    answering: Callable[[str], str], text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        missing(answering(text))


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot run .*: No such file"):
        missing(str(tmp_path / "python"))
    with pytest.raises(UsageError, match="cannot run oxlite's lab"):
        missing("false")
