"""A store without room, or read-only: a file system made for it, which root alone may have."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.operations.databases import filled
from tests.replication.conftest import QUICK

_STEPS = """
import os, signal, subprocess, sys, time
from contextlib import closing
from pathlib import Path
import oxlite
from oxlite.replication import find_litestream, prove, replication_status
before, after, quick = sys.argv[1:]
database = Path("app.db").resolve()
def until(health):
    ends = time.monotonic() + 40
    while (found := replication_status(database)).health != health:
        assert time.monotonic() < ends, found
        time.sleep(0.05)
    return found
def add(count):
    with closing(oxlite.connect(database)) as connection:
        connection.executemany("INSERT INTO t (filling) VALUES (randomblob(3000))", [()] * count)
        connection.commit()
process = subprocess.Popen(
    [sys.executable, "-c", quick, "replicate", "run", str(database), "--to", "m/app"],
    stderr=open("log", "w"),
)
try:
    until("well")
    subprocess.run(before, shell=True, check=True)
    add(1000)
    print(until("failing").failure)
    assert process.poll() is None
    subprocess.run(after, shell=True, check=True)
    until("well")
    print("rows", sum(filter(None, prove(find_litestream(), database).contents.rows.values())))
finally:
    process.terminate()
    process.wait(60)
"""


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("true", "mount -o remount,size=50m m", "no space left on device"),
        (
            "mount --bind m/app/ltx m/app/ltx && mount -o remount,bind,ro m/app/ltx",
            "umount m/app/ltx && mount -o remount,size=50m m",
            "read-only file system",
        ),
    ],
)
def test_it_is_said_and_mends_by_itself(tmp_path: Path, before: str, after: str, says: str) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may mount")
    filled(tmp_path / "app.db", 10)
    (tmp_path / "m").mkdir()
    script = 'mount -t tmpfs -o size=1m none m || exit 99; exec "$0" -c "$1" "$2" "$3" "$4"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, sys.executable, _STEPS, before, after, QUICK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"it cannot be mounted here: {done.stderr}")
    assert done.returncode == 0, done.stderr + (tmp_path / "log").read_text()
    assert says in done.stdout
    assert "rows 101" in done.stdout
