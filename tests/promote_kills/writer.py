"""``python -m tests.promote_kills.writer DB SEED ROWS ox|stock``: writes until standard input ends.

Says ``refused`` once a write is refused since the file was promoted, and at its end how many writes
were acknowledged and how long the longest took.
"""

import random
import select
import sys
import time
from types import ModuleType
from typing import Any, Final

__all__ = ["main"]

_STATEMENTS: Final = (
    "INSERT INTO author (number, name) VALUES (:any, 'new')",
    "INSERT OR REPLACE INTO author (id, number, name) VALUES (:more, :known, 'replaced')",
    "REPLACE INTO author (number, name) VALUES (:known, 'moved')",
    "UPDATE author SET name = :any WHERE id = :known",
    "UPDATE author SET number = :any WHERE id = :known",
    "DELETE FROM author WHERE id = :known",
    "INSERT INTO note (author_id, text) SELECT id, :any FROM author LIMIT 1 OFFSET :few",
    "UPDATE note SET text = :any WHERE id = :known",
    "DELETE FROM note WHERE id BETWEEN :known AND :known + 3",
    "INSERT INTO line VALUES (:any, :known)",
    "DELETE FROM line WHERE rowid = :known",
    "INSERT INTO word VALUES ('k' || :known, :any)"
    " ON CONFLICT (word) DO UPDATE SET count = excluded.count",
    "UPDATE OR IGNORE word SET word = 'm' || :any WHERE word = 'k' || :known",
    "DELETE FROM word WHERE word = 'k' || :known",
)
_PAUSE_SECONDS: Final = 0.001


def _library(name: str) -> ModuleType:
    if name == "stock":
        import sqlite3

        return sqlite3
    import oxlite

    return oxlite


def main(path: str, seed: int, rows: int, name: str) -> None:
    """Write, as the module says."""
    library: Any = _library(name)
    errors = library.Error if name == "stock" else library.sqlite3.Error
    draw = random.Random(seed)
    connection = library.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    acknowledged, longest, is_refused = 0, 0.0, False
    while not select.select([sys.stdin], [], [], 0)[0]:
        chosen = [draw.choice(_STATEMENTS)]
        if draw.random() < 0.3:
            chosen = ["BEGIN IMMEDIATE", *draw.choices(_STATEMENTS, k=4), "COMMIT"]
            if draw.random() < 0.3:
                chosen[-1] = "ROLLBACK"
        begun = time.monotonic()
        try:
            for sql in chosen:
                connection.execute(
                    sql,
                    {
                        "any": draw.randrange(10**9),
                        "known": draw.randrange(rows),
                        "more": draw.randrange(2 * rows),
                        "few": draw.randrange(20),
                    },
                )
            acknowledged += 1
        except errors as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if "has moved to" in str(error) and not is_refused:
                is_refused = True
                print("refused", flush=True)
            elif not is_refused and "constraint failed" not in str(error):
                print(f"failed: {error}", flush=True)
        longest = max(longest, time.monotonic() - begun)
        time.sleep(_PAUSE_SECONDS)
    print(f"{acknowledged} {longest}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
