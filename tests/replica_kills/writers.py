"""The program of those who write: ``python -m tests.replica_kills.writers DB FOLDER SEED``.

One process for each of them, with pauses of at most a few milliseconds; the last of them writes
many rows at a time, with longer ones. They wait until there is a database.
"""

import os
import random
import sys
import time
from pathlib import Path

from tests.replica_kills.ledger import WRITERS, Slip, append

from oxlite import Database

__all__ = ["slip_path"]

_ROWS = (1, 400)
"""Of a transaction of the one who writes many."""
_PAUSES_SECONDS = (0.004, 0.1)
"""At most: of the others, and of his. Without any, what a cycle is about is the size of the WAL."""
_SECONDS_AT_MOST = 200
"""Who has begun them may be killed himself."""


def slip_path(folder: Path, writer: int) -> Path:
    """Where a writer says what he does."""
    return folder / f"writer-{writer}"


def _write(path: Path, folder: Path, writer: int, seed: int) -> None:
    choice = random.Random(seed * WRITERS + writer)
    ends = time.monotonic() + _SECONDS_AT_MOST
    slip = Slip(slip_path(folder, writer))
    is_last = writer == WRITERS - 1
    while not path.exists() and time.monotonic() < ends:
        time.sleep(0.005)
    with Database(path) as db:
        while time.monotonic() < ends:
            rows = choice.randint(*_ROWS) if is_last else 1
            number = append(db, writer, rows, slip, time.time())
            slip.say("done", number, time.time())
            time.sleep(choice.random() * _PAUSES_SECONDS[is_last])


def _main() -> None:
    path, folder, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    children = []
    for writer in range(WRITERS):
        process_id = os.fork()
        if process_id == 0:
            try:
                _write(path, folder, writer, seed)
            finally:
                os._exit(1)
        children.append(process_id)
    for _ in children:  # none ends by itself
        _process_id, status = os.wait()
        print(f"a writer has ended: {status}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    _main()
