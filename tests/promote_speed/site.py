"""Processes that write a blog's file, as a site would, until they are refused.

``python -m tests.promote_speed.site DB SEED`` is one of them: it says how many of its writes were
acknowledged, how long the longest took, and whether it was refused in the end.
"""

import random
import select
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Final, Self

import psycopg

import oxlite
from oxlite.sqlite3 import Error

__all__ = ["Site"]

_WRITERS: Final = 3
_PAUSE_SECONDS: Final = 0.005
_LIMIT_SECONDS: Final = 60.0


class Site:
    """They write in the block.

    Attributes:
        acknowledged: How many writes were.
        longest_seconds: How long the longest took.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._processes: list[subprocess.Popen[str]] = []
        self.acknowledged = 0
        self.longest_seconds = 0.0

    def __enter__(self) -> Self:
        """Begin them."""
        for seed in range(_WRITERS):
            words = [sys.executable, "-m", __spec__.name, str(self._database), str(seed)]
            self._processes.append(
                subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        return self

    def __exit__(self, *_: object) -> None:
        """End those that are left."""
        for process in self._processes:
            process.kill()
            process.communicate()

    def await_refusals(self) -> None:
        """Wait until each was refused, and hear what it says."""
        for process in self._processes:
            said, _ = process.communicate(timeout=_LIMIT_SECONDS)
            acknowledged, longest, how = said.split()
            if how != "refused":
                raise SystemExit(f"a writer ended otherwise: {said}")
            self.acknowledged += int(acknowledged)
            self.longest_seconds = max(self.longest_seconds, float(longest))

    def compare(self, url: str) -> None:
        """See that the comments are the same on both sides."""
        columns = "id, post_id, author_id, body"
        with (
            closing(sqlite3.connect(self._database)) as here,
            psycopg.connect(url) as there,
            there.cursor(name="comments") as cursor,
        ):
            cursor.itersize = 10_000
            ours = Counter(map(hash, here.execute(f"SELECT {columns} FROM comment")))
            cursor.execute(f"SELECT {columns} FROM comment")
            ours.subtract(map(hash, cursor))
        different = sum(map(abs, ours.values()))
        if different:
            raise SystemExit(f"{different} comments are on one side alone")


def write(path: str, seed: int) -> None:
    """Write until a write is refused, or standard input ends."""
    draw = random.Random(seed)
    acknowledged, longest = 0, 0.0
    with closing(oxlite.connect(path, timeout=60, isolation_level=None)) as connection:
        while not select.select([sys.stdin], [], [], 0)[0]:
            begun = time.monotonic()
            known = draw.randrange(1, 100_000)
            try:
                match draw.randrange(4):
                    case 0:
                        connection.execute("DELETE FROM comment WHERE id = ?", (known,))
                    case 1:
                        sql = "UPDATE comment SET body = ? WHERE id = ?"
                        connection.execute(sql, (f"changed {begun}", known))
                    case _:
                        connection.execute(
                            "INSERT INTO comment (post_id, author_id, body, created)"
                            " VALUES (?, ?, ?, '2026-01-01 10:00:00')",
                            (draw.randrange(1, 1000), draw.randrange(1, 1000), f"new {begun}"),
                        )
                acknowledged += 1
            except Error as error:
                how = "refused" if "has moved to" in str(error) else "failed"
                print(acknowledged, longest, how)
                if how == "failed":
                    print(error, file=sys.stderr)
                return
            longest = max(longest, time.monotonic() - begun)
            time.sleep(_PAUSE_SECONDS)
    print(acknowledged, longest, "ended")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
