"""``scripts/second_chance.sh``: who failed beside others is tried alone, and nobody else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CALM = "def test_calm():\n    pass\n"
FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path(__file__).with_name("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first
"""
DIES_ONCE = FAILS_ONCE.replace("assert not is_first", "if is_first: __import__('os')._exit(3)")
FAILS = "def test_fails():\n    assert False\n"
MANY_FAIL_ONCE = FAILS_ONCE.replace(
    "def test_fails_once():",
    "import pytest\n@pytest.mark.parametrize('number', range(6))\ndef test_many(number):",
).replace('"seen"', 'f"seen{number}"')


@pytest.mark.skipif(sys.platform == "win32", reason="a script for bash")
@pytest.mark.parametrize(
    ("tests", "status", "runs"),
    [
        ([CALM], 0, 1),
        ([CALM, FAILS_ONCE], 0, 2),
        ([FAILS_ONCE, FAILS], 1, 2),
        ([CALM, DIES_ONCE], 3, 1),
        ([MANY_FAIL_ONCE], 1, 1),
        (["import nothing_of_that_name\n"], 2, 2),
    ],
    ids=[
        "all pass",
        "one fails once",
        "one fails always",
        "one dies",
        "many fail",
        "not collected",
    ],
)
def test_who_failed_is_tried_alone(
    tmp_path: Path, tests: list[str], status: int, runs: int
) -> None:
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    for number, text in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(text)
    pytest_here = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--rootdir", tmp_path]
    done = subprocess.run(
        [ROOT / "scripts/second_chance.sh", *pytest_here, tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count("test session starts")) == (status, runs), done
    named = done.stdout.partition("PASSED ALONE")[2]
    assert ("test_fails_once" in named) == (status == 0 and runs == 2)
