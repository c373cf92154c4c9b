"""The command line in a process of its own, with or without root's rights."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NOBODY = 65534

# Every import is made first: an unprivileged user may not be allowed to read this Python.
_AS_NOBODY = f"""
import contextlib, io, os, sys
from oxlite.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    ways = ["env"], ["env", "--json"], ["env", "/no/such/file"], ["doctor", os.__file__], \\
        ["top", os.__file__]
    for arguments in ways:
        main(arguments)
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(main(sys.argv[1:]))
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def oxlite() -> Run:
    """Runs ``oxlite`` with the given arguments and returns what came of it."""

    def run(
        *arguments: str | Path,
        cwd: Path | None = None,
        as_nobody: bool = False,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        how = ["-c", _AS_NOBODY] if as_nobody else ["-m", "oxlite.cli"]
        return subprocess.run(
            [sys.executable, *how, *map(os.fspath, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd,
            env={**os.environ, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"} | (environment or {}),
            timeout=60,
        )

    return run


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        directory.chmod(0o755)
