"""The tests of one area, run once: whether they found something.

Invariant: what they have started ends with them; a run that does not end is a finding.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.mutants.copy_of_tree import CopyOfTree
from tests.mutants.declared import Area

# How long one test may take, and a run beyond twice what it takes without a mutant, in seconds.
_TEST_AT_MOST = 40
_RUN_AT_MOST = 120.0

CONTROL_AT_MOST = 600.0
"""How long the tests of an area may take without a mutant."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - |$)", re.MULTILINE)
_BEGUN = re.compile(
    r"^(tests/\S+::\S.*?) *(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|$)", re.MULTILINE
)
_RUST_FAILED = re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE)
_RUST_RUN = re.compile(r"^running (\d+) tests?$", re.MULTILINE)


class Found(NamedTuple):
    """What came of a run.

    Attributes:
        by: The test that failed; ``None`` if all passed.
        how: How the run ended, where no test has said that it failed.
        seconds: How long it took.
        output: What was printed.
    """

    by: str | None
    how: str
    seconds: float
    output: str


def run(area: Area, copy: CopyOfTree, number: int, expected: float = 0.0) -> Found:
    """Run the tests of an area to the first that fails.

    Args:
        area: Whose tests.
        copy: Where.
        number: The mutant that is switched on; 0 for none.
        expected: How long it takes without a mutant, in seconds, if that is known.

    Raises:
        ValueError: There are no such tests.
    """
    began = time.monotonic()
    at_most = _RUN_AT_MOST + 2 * expected
    output = ""
    for crate, which in area.rust_tests:
        program = copy.rust_tests.get((crate, which if which.startswith("tests/") else "lib"))
        if program is None:
            raise ValueError(f"{area.name}: {crate} has no {which}")
        arguments = [] if which.startswith("tests/") else [which]
        code, output = _watched([str(program), *arguments], copy, number, at_most)
        counted = _RUST_RUN.search(output)
        if counted is None or counted[1] == "0":
            raise ValueError(f"{area.name}: {crate} has no tests that are called {which}")
        if code != 0:
            failed = _RUST_FAILED.search(output)
            name, how = (failed[1], "") if failed else (which, _ended(code))
            return Found(f"{crate} {name}", how, time.monotonic() - began, output)
    if area.tests:
        code, output = _watched(_pytest(*area.tests), copy, number, at_most)
        if code in {4, 5}:  # a wrong path, or none of these tests
            raise ValueError(f"{area.name}: {output[-2000:]}")
        if code != 0:
            return Found(*_culprit(code, output), time.monotonic() - began, output)
    return Found(None, "", time.monotonic() - began, output)


def run_one(test: str, area: Area, copy: CopyOfTree) -> bool:
    """Whether a test passes without any mutant, by itself."""
    if not test.startswith("tests/"):
        rust_only = area._replace(tests=())
        return run(rust_only, copy, 0).by is None
    code, _ = _watched(_pytest(test), copy, 0, _RUN_AT_MOST)
    return code == 0


def _pytest(*paths: str) -> list[str]:
    # One after the other, whatever the project's own run does beside.
    return [
        *(sys.executable, "-m", "pytest", "-x", "-v", "-rfE", "--tb=short", "--color=no"),
        *(
            "-o",
            "addopts=--import-mode=importlib",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-p",
            "no:asyncio",
        ),
        *(f"--timeout={_TEST_AT_MOST}", *paths),
    ]


def _culprit(code: int | None, output: str) -> tuple[str, str]:
    """The test that failed, or in the midst of which the run ended, and how it did."""
    if code is not None and (failed := _FAILED.search(output)):
        return failed[1], ""
    begun = _BEGUN.findall(output)
    return begun[-1] if begun else "tests/", _ended(code)


def _ended(code: int | None) -> str:
    return "no end" if code is None else f"ended with {code}"


def _watched(
    command: list[str], copy: CopyOfTree, number: int, at_most: float
) -> tuple[int | None, str]:
    """Run a command in the copy: its exit code, ``None`` if it did not end, and its output."""
    log = Path(copy.folder.parent) / "output.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=copy.folder,
            env=copy.environment(number),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None
        try:
            code = process.wait(at_most)
        except subprocess.TimeoutExpired:
            code = None
        # Its own group alone: also what a test has left behind.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code, log.read_text(errors="replace")
