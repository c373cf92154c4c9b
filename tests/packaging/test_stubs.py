"""The stub of the native module declares what the built module has, and nothing else."""

import runpy
import subprocess
import sys
from pathlib import Path


def test_the_stub_agrees_with_the_built_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "oxlite._native"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_says_what_the_built_module_says() -> None:
    """``scripts/stubs.py`` has been run since a docstring of the native module has changed."""
    root = Path(__file__).parents[2]
    writer = runpy.run_path(str(root / "scripts" / "stubs.py"))
    text = (root / "python" / "oxlite" / "_native.pyi").read_text()
    assert text == writer["with_docstrings"](text)
    assert text.count('"""') > 200
