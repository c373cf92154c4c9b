"""django-tasks-db's tests pass on Oxlite's backend, but for those that are declared."""

import json
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.upstream.django_tasks_db.suite import RELEASE
from tests.upstream.trees import source

HERE = Path(__file__).resolve().parent
FLOOR = 95  # as many as that release has

if not find_spec("django") or not (find_spec("django.tasks") or find_spec("django_tasks")):
    pytest.skip("neither Django's tasks nor django-tasks are here", allow_module_level=True)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What became of each test, and what it said."""
    tests, folder = source("django_tasks_db", RELEASE), tmp_path_factory.mktemp("tasks")
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
def declared() -> dict[str, tuple[str, bool]]:
    """The tests that need not pass: why, and whether they may."""
    entries = tomllib.loads((HERE / "declared.toml").read_text())["declared"]
    return {
        test: (entry["reason"].strip(), entry.get("may_pass", False))
        for entry in entries
        for test in entry["tests"]
    }


def test_all_pass_but_the_declared(
    outcomes: dict[str, tuple[str, str]], declared: dict[str, tuple[str, bool]]
) -> None:
    assert len(outcomes) >= FLOOR
    not_passed = {name: said for name, (outcome, said) in outcomes.items() if outcome != "passed"}
    assert {name: said for name, said in not_passed.items() if name not in declared} == {}


def test_what_is_declared_is_needed_and_has_a_reason(
    outcomes: dict[str, tuple[str, str]], declared: dict[str, tuple[str, bool]]
) -> None:
    assert declared.keys() <= outcomes.keys()
    must_fail = {name for name, (_, may_pass) in declared.items() if not may_pass}
    assert {name for name in must_fail if outcomes[name][0] == "passed"} == set()
    assert all(reason for reason, _ in declared.values())
