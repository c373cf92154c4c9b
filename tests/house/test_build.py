"""What SQLite's list of compile options does not tell about the build."""

import subprocess
import sysconfig
from pathlib import Path

import oxlite

NATIVE = Path(oxlite.__file__).with_name(f"_native{sysconfig.get_config_var('EXT_SUFFIX')}")


def test_a_durable_commit_calls_fdatasync_and_not_fsync() -> None:
    """``HAVE_FDATASYNC`` is no option SQLite lists; what the library imports tells.

    ``nm`` comes with the linker, without which nothing could have been built.
    """
    command = ["nm", "--dynamic", "--undefined-only", NATIVE]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].partition("@")[0] for line in listing.splitlines()}
    assert "fdatasync" in names
    assert "fsync" not in names
