"""The size of the write-ahead log under a full load of writes, beside readers of several kinds.

Writers are processes with a ``Database`` each; so are the readers. The size of the file is looked
at twenty times a second. What the log's bound is: ``docs/wal.md``.
"""

import contextlib
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import oxlite

WRITERS = 2

# What is written while a checkpoint runs comes on top of the limits. It takes milliseconds, and
# most of a second where the disk is busy with somebody else's data.
CHECKPOINT_SECONDS = 1.0

# A write changes one page: a frame.
FRAME_BYTES = 4096 + 24

_WRITER = """
import json, logging, sys, time, oxlite
path, seconds, limit = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
told = []
class Keep(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
logging.getLogger("oxlite").addHandler(Keep())
writes, longest = 0, 0.0
with oxlite.Database(path, timeout=30, pragmas={"journal_size_limit": limit}) as db:
    now = time.monotonic()
    ends = now + seconds
    while now < ends:
        began = now
        db.execute(
            "INSERT INTO entry (id) VALUES (?) ON CONFLICT DO UPDATE SET n = n + 1", (writes % 997,)
        )
        writes += 1
        now = time.monotonic()
        longest = max(longest, now - began)
    found = db.stats()
print(json.dumps({
    "writes": writes, "longest": longest,
    "checkpoints": found.checkpoints, "incomplete": found.checkpoints_incomplete,
    "waits": found.checkpoint_waits,
    "errors": found.checkpoint_errors, "error": found.checkpoint_error, "told": told,
}))
"""

_READER = """
import random, sys, time, oxlite
path, seconds, longest, pause = sys.argv[1], *map(float, sys.argv[2:5])
choose = random.Random(int(sys.argv[5]))
ends = time.monotonic() + seconds
with oxlite.Database(path, timeout=30) as db:
    while (remaining := ends - time.monotonic()) > 0:
        with db.read() as connection:
            connection.execute("SELECT sum(n) FROM entry").fetchall()
            time.sleep(min(remaining, longest * choose.uniform(0.5, 1)))
        time.sleep(pause * choose.random())
"""


@dataclass(frozen=True)
class Readers:
    """A kind of reader, and how many of it there are."""

    name: str
    count: int
    longest_seconds: float
    """How long it has a snapshot, at most; half as long at least."""
    pause_seconds: float
    """How long it has none, at most."""


KINDS = [
    Readers("none", 0, 0, 0),
    Readers("three, 20 ms each, no gap between them", 3, 0.02, 0),
    Readers("three, 50 ms each, no gap between them", 3, 0.05, 0),
    Readers("one of up to 5 s that comes and goes", 1, 5, 1),
    Readers("one for all the time", 1, 1e6, 0),
]


@dataclass(frozen=True)
class Outcome:
    """What became of the log."""

    readers: Readers
    limit_bytes: int
    seconds: float
    writes: int
    longest_write_seconds: float
    largest_bytes: int
    last_bytes: int
    checkpoints: int
    incomplete: int
    waits: int
    """How often readers were waited for."""
    errors: list[str]
    told: list[str]

    @property
    def names(self) -> int:
        """How often the readers were named."""
        return sum("cannot be begun anew while it is read" in text for text in self.told)

    @property
    def bound_bytes(self) -> int:
        """What the log stays below where no reader stays for longer than it is waited for."""
        written_bytes_per_second = self.writes / self.seconds * FRAME_BYTES
        return 2 * self.limit_bytes + int(CHECKPOINT_SECONDS * written_bytes_per_second)


def soak(folder: Path, readers: Readers, seconds: float, limit_bytes: int) -> Outcome:
    """Write for so long, beside such readers."""
    path = folder / "app.db"
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, n DEFAULT 1)")

    def started(script: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, path, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    reading = [
        started(_READER, seconds, readers.longest_seconds, readers.pause_seconds, number)
        for number in range(readers.count)
    ]
    writing = [started(_WRITER, seconds, limit_bytes) for _ in range(WRITERS)]
    processes = reading + writing
    log = Path(f"{path}-wal")
    largest = last = 0
    try:
        ends = time.monotonic() + seconds + 120
        while any(process.poll() is None for process in writing):
            with contextlib.suppress(FileNotFoundError):
                last = log.stat().st_size or last
                largest = max(largest, last)
            if time.monotonic() > ends:
                raise TimeoutError("the writers do not end")
            time.sleep(0.05)
        outputs = [process.communicate(timeout=60)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    if failed := [process.returncode for process in processes if process.returncode]:
        raise RuntimeError(f"processes have failed: {failed}")
    found = [json.loads(output) for output in outputs[len(reading) :]]
    return Outcome(
        readers=readers,
        limit_bytes=limit_bytes,
        seconds=seconds,
        writes=sum(one["writes"] for one in found),
        longest_write_seconds=max(one["longest"] for one in found),
        largest_bytes=largest,
        last_bytes=last,
        checkpoints=sum(one["checkpoints"] for one in found),
        incomplete=sum(one["incomplete"] for one in found),
        waits=sum(one["waits"] for one in found),
        errors=[one["error"] for one in found if one["errors"]],
        told=[text for one in found for text in one["told"]],
    )
