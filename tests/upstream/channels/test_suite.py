"""channels-redis' tests of its layer pass on Oxlite's, but for those that are declared."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.upstream.channels.suite import RELEASE
from tests.upstream.trees import source

HERE = Path(__file__).resolve().parent
FLOOR = 28  # as many as that release has


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What became of each test, and what it said."""
    tests, folder = source("channels_redis", RELEASE), tmp_path_factory.mktemp("channels")
    done = subprocess.run(
        [sys.executable, str(HERE / "suite.py"), str(tests), str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return {name: (outcome, said) for name, (outcome, said) in json.loads(lines[-1]).items()}


@pytest.fixture(scope="module")
def declared() -> dict[str, str]:
    """The tests that need not pass, and why."""
    entries = tomllib.loads((HERE / "declared.toml").read_text())["declared"]
    return {entry["test"]: entry["reason"].strip() for entry in entries}


def test_all_pass_but_the_declared(
    outcomes: dict[str, tuple[str, str]], declared: dict[str, str]
) -> None:
    assert len(outcomes) >= FLOOR
    not_passed = {name: said for name, (outcome, said) in outcomes.items() if outcome != "passed"}
    assert {name: said for name, said in not_passed.items() if name not in declared} == {}


def test_what_is_declared_is_needed_and_has_a_reason(
    outcomes: dict[str, tuple[str, str]], declared: dict[str, str]
) -> None:
    assert {name for name in declared if outcomes.get(name, ("passed", ""))[0] == "passed"} == set()
    assert all(declared.values())
