"""Django's own tests of ``ArrayField`` pass on Oxlite's, but for those that are declared."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.upstream.trees import source

pytestmark = pytest.mark.slow  # the source distribution is fetched

HERE = Path(__file__).resolve().parent
FLOOR = 137  # as many as 5.2 has

django = pytest.importorskip("django", reason="the extra oxlite[django] is not installed")
if django.VERSION[:2] != (5, 2):
    pytest.skip("what declared.toml changes is in the tests of Django 5.2", allow_module_level=True)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What became of each test, and what it said."""
    tests, folder = source("django", django.__version__), tmp_path_factory.mktemp("arrays")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "suite.py"), str(tests), str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return {name: (outcome, said) for name, (outcome, said) in json.loads(lines[-1]).items()}


@pytest.fixture(scope="module")
def declared() -> dict[str, str]:
    """The tests that do not pass, and why."""
    entries = tomllib.loads((HERE / "declared.toml").read_text())["declared"]
    return {test: entry["reason"].strip() for entry in entries for test in entry["tests"]}


def test_all_pass_but_the_declared(
    outcomes: dict[str, tuple[str, str]], declared: dict[str, str]
) -> None:
    assert len(outcomes) >= FLOOR
    not_passed = {name: said for name, (outcome, said) in outcomes.items() if outcome != "passed"}
    assert {name: said for name, said in not_passed.items() if name not in declared} == {}


def test_what_is_declared_is_needed_and_has_a_reason(
    outcomes: dict[str, tuple[str, str]], declared: dict[str, str]
) -> None:
    assert declared.keys() <= outcomes.keys()
    assert {name for name in declared if outcomes[name][0] == "passed"} == set()
    assert all(declared.values())
