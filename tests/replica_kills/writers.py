"""The program of those who write: ``python -m tests.replica_kills.writers DB FOLDER SEED``.

One process for each of them, without a pause; the last of them writes many rows at a time. They
wait until there is a database.
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
_PAUSE_SECONDS = 0.01
"""Of his, so that others come to write as well."""


def slip_path(folder: Path, writer: int) -> Path:
    """Where a writer says what he does."""
    return folder / f"writer-{writer}"


def _write(path: Path, folder: Path, writer: int, seed: int) -> None:
    choice = random.Random(seed * WRITERS + writer)
    slip = Slip(slip_path(folder, writer))
    is_last = writer == WRITERS - 1
    while not path.exists():
        time.sleep(0.005)
    with Database(path) as db:
        while True:
            rows = choice.randint(*_ROWS) if is_last else 1
            number = append(db, writer, rows, slip, time.time())
            slip.say("done", number, time.time())
            if is_last:
                time.sleep(choice.random() * _PAUSE_SECONDS)


def _main() -> None:
    path, folder, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    children = []
    for writer in range(WRITERS):
        process_id = os.fork()
        if process_id == 0:
            _write(path, folder, writer, seed)
        children.append(process_id)
    for _ in children:  # none ends by itself
        _process_id, status = os.wait()
        print(f"a writer has ended: {status}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    _main()
