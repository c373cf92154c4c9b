"""File systems made for a test: in a mount namespace of their own, which root alone may have."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.operations.doctor import zoo
from tests.operations.doctor.zoo import Ward

MOUNTS = {
    "overlay-file-system": "mkdir l u w"
    " && mount -t overlay none -o lowerdir=l,upperdir=u,workdir=w m",
    "disk-nearly-full": "mount -t tmpfs -o size=2m none m",
    "read-only-file-system": "cp app.db m && mount --bind m m && mount -o remount,bind,ro m",
}


@pytest.mark.parametrize("code", MOUNTS)
def test_it_is_found(code: str, ward: Ward) -> None:
    zoo.plain(ward)
    (ward.directory / "m").mkdir()
    found = in_namespace(ward.directory, MOUNTS[code])
    assert code in {finding["code"] for finding in found["findings"]}


def in_namespace(directory: Path, mount: str) -> dict[str, Any]:
    """What is said of a copy of the database on a file system that only this command sees."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may mount")
    doctor = f"{sys.executable} -m oxlite.cli doctor m/app.db --json"
    script = f"{{ {mount}; }} >&2 || exit 99; [ -e m/app.db ] || cp app.db m || exit 98; {doctor}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"it cannot be mounted here: {done.stderr}")
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
