"""Runs SQLAlchemy's tests of any dialect in a process of their own.

Their machinery takes a whole pytest session: it replaces the collection, reads a ``setup.cfg``, and
keeps its database in the current folder.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent

_CONFIGURATION = """\
[tool:pytest]
addopts = --import-mode=importlib -p no:cacheprovider -p no:randomly
markers =
    backend
    sparse_backend
    sparse_driver_backend
    mypy
    timing_intensive
    memory_intensive

[sqla_testing]
requirement_cls = requirements:Requirements
profile_file = profiles.txt
"""


class Outcome(NamedTuple):
    """What became of the tests.

    Attributes:
        passed: How many passed.
        failed: Those that did not, with what they said.
        skipped: Those that were skipped, with the reason.
        output: What pytest printed.
    """

    passed: int
    failed: Mapping[str, str]
    skipped: Mapping[str, str]
    output: str


def run(url: str, folder: Path, seconds: float) -> Outcome:
    """Run them.

    Args:
        url: The database; a relative file is in ``folder``.
        folder: An empty folder.
        seconds: How long they may take.

    Raises:
        subprocess.TimeoutExpired: They took longer.
    """
    (folder / "setup.cfg").write_text(_CONFIGURATION)
    report = folder / "report.xml"
    paths = [str(HERE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", "setup.cfg", "--rootdir", "."),
            *("-p", "dialect_plugin", "-q", "--tb=short", f"--junit-xml={report}"),
            *("--maxfail=1000000", "--dburi", url, str(HERE / "suite.py")),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    output = done.stdout + done.stderr
    if not report.exists():
        return Outcome(0, {"the session": output[-5000:]}, {}, output)
    passed, failed, skipped = 0, {}, {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        trouble = next((child for child in case if child.tag in {"failure", "error"}), None)
        if trouble is not None:
            failed[name] = trouble.text or ""
        elif (skip := case.find("skipped")) is not None:
            skipped[name] = skip.get("message") or ""
        else:
            passed += 1
    return Outcome(passed, failed, skipped, output)
