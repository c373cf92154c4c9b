"""The stub of the native module declares what the built module has, and nothing else."""

import subprocess
import sys


def test_the_stub_agrees_with_the_built_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "oxlite._native"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
