"""A promotion that is killed again and again, on either side, while others write.

In each cycle a new file is promoted to a new database. Invariants that are looked at:

- However often it was killed, in the end PostgreSQL has what the file has: each row, once. All that
  was acknowledged to a writer is in the file, so it is there as well.
- After a cut-over nothing is written here any more; without one, and after it was taken back, the
  file has nothing of ours left and can be written.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import psycopg
from tests.kill_campaigns import WrongError

from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import Scratch

__all__ = ["Campaign"]

_SCHEMA: Final = """
    CREATE TABLE author (id INTEGER PRIMARY KEY, number INTEGER UNIQUE, name TEXT);
    CREATE TABLE note (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        author_id INTEGER REFERENCES author (id) ON DELETE CASCADE, text TEXT
    );
    CREATE TABLE line (a TEXT, b INTEGER);
    CREATE TABLE word (word TEXT PRIMARY KEY NOT NULL, count INTEGER) WITHOUT ROWID;
"""
_TABLES: Final = {"author": "id, number, name", "note": "id, author_id, text",
                  "line": "a, b", "word": "word, count"}  # fmt: skip
_LIMIT_SECONDS: Final = 300.0
_KILLED: Final = -signal.SIGKILL
_GONE: Final = ("was lost", "cannot be reached")


class Campaign:
    """See the module.

    Args:
        folder: Where files are; PostgreSQL's account must be able to enter it.
        seed: Of all that is drawn.
        rows: In the largest table.

    Attributes:
        kills: How many processes were killed.
        tally: What has happened how often.
        pauses: How long writers waited in each cut-over, in seconds.
    """

    def __init__(self, folder: Path, seed: int, rows: int) -> None:
        self._folder = folder
        self._draw = random.Random(seed)
        self._rows = rows
        self.kills = 0
        self.tally: Counter[str] = Counter()
        self.pauses: list[float] = []

    def run(self, cycles: int, tell: Callable[[Counter[str]], None]) -> None:
        """Run it.

        Raises:
            WrongError: Something is not as it should be.
        """
        self._folder.mkdir(exist_ok=True)
        with PostgresServer(Scratch(self._folder)) as server:
            for number in range(cycles):
                self._cycle(server, number)
                self.tally["cycles"] += 1
                tell(self.tally)

    def _cycle(self, server: PostgresServer, number: int) -> None:
        place = server.database("promoted")
        url = f"postgresql://postgres@/{place.name}?host={place.parent}"
        database = self._folder / "app.db"
        for path in self._folder.glob("app.db*"):
            path.unlink()
        self._fill(database)
        is_cut_over = number % 2 == 0
        with self._writers(database) as writers:
            self._killed_often(database, url, is_cut_over=is_cut_over)
            if number % 5 == 4 and not self._is_done(url):
                self._take_back(database, url)
                self._killed_often(database, url, is_cut_over=is_cut_over)
            done = self._promote(database, url, is_cut_over=is_cut_over)
            if is_cut_over:
                if done["pause_seconds"] is not None:  # else the one before had come so far
                    self.pauses.append(done["pause_seconds"])
                for writer in writers:
                    assert writer.stdout is not None
                    said = writer.stdout.readline().strip()
                    if said != "refused":
                        raise WrongError(f"a writer says {said!r} after a cut-over")
        if not is_cut_over:
            # Written meanwhile, and not carried over: once more, with nobody beside it.
            self._look_for_rests(database)
            with psycopg.connect(url, autocommit=True) as connection:
                for table in _TABLES:
                    connection.execute(f"DROP TABLE {table} CASCADE")
            self._promote(database, url, is_cut_over=False)
        self._compare(database, url)
        self.tally["cut over" if is_cut_over else "copied"] += 1

    def _fill(self, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            numbers = range(1, self._rows + 1)
            connection.executemany(
                "INSERT INTO author VALUES (?, ?, ?)", ((n, n, "x" * 40) for n in numbers)
            )
            connection.executemany(
                "INSERT INTO note VALUES (?, ?, ?)", ((n, n, "y\t\\N\n" * 9) for n in numbers)
            )
            connection.executemany(
                "INSERT INTO line VALUES (?, ?)", ((f"l{n}", n) for n in numbers)
            )
            connection.executemany(
                "INSERT INTO word VALUES (?, ?)", ((f"k{n}", n) for n in numbers)
            )
            connection.commit()

    @contextmanager
    def _writers(self, database: Path) -> Iterator[list[subprocess.Popen[str]]]:
        """Three that write, one of them by another SQLite; they end with the block."""
        writers = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.promote_kills.writer", str(database)),
                    *(str(self._draw.randrange(10**9)), str(self._rows), library),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for library in ("ox", "ox", "stock")
        ]
        try:
            yield writers
            for writer in writers:
                said, _ = writer.communicate(timeout=_LIMIT_SECONDS)
                *lines, last = said.splitlines()
                if lines not in ([], ["refused"]) or writer.returncode:
                    raise WrongError(f"a writer says {lines}, and ends with {writer.returncode}")
                self.tally["acknowledged writes"] += int(last.split()[0])
        finally:
            for writer in writers:
                if writer.poll() is None:
                    writer.kill()
                writer.wait()
                for pipe in (writer.stdin, writer.stdout):
                    if pipe is not None:
                        pipe.close()

    def _begin(self, database: Path, url: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "oxlite.cli", "promote", str(database), url, "--json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _killed_often(self, database: Path, url: str, *, is_cut_over: bool) -> None:
        words = ["--cut-over"] if is_cut_over else []
        for _ in range(self._draw.randrange(1, 6)):
            process = self._begin(database, url, *words)
            # Where most happens, and now and then anywhere.
            time.sleep(self._draw.uniform(0.3, 2.0))
            if process.poll() is None and self._draw.random() < 0.3:
                self._kill_there(url)
                _, said = process.communicate(timeout=_LIMIT_SECONDS)
                if process.returncode == 0:
                    self.tally["not hindered by it"] += 1
                elif process.returncode != 2 or not any(word in said for word in _GONE):
                    raise WrongError(f"of a lost PostgreSQL it says {said} ({process.returncode})")
            else:
                process.kill()
                process.communicate()
                if process.returncode == _KILLED:
                    self.kills += 1
                    self.tally["killed: promote"] += 1
            if self._is_done(url):
                self._undo(database, url)

    def _is_done(self, url: str) -> bool:
        """Whether it had ended, or was about to and had no more to do."""
        self._await(url)
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(
                "SELECT to_regclass('author') IS NOT NULL AND"
                " to_regclass('oxlite_promotion.promotion') IS NULL"
            ).fetchone()
        return row == (True,)

    def _undo(self, database: Path, url: str) -> None:
        """What it has made is taken away, so that there is more to kill."""
        self.tally["ended before it was killed"] += 1
        done = self._begin(database, url, "--abort")
        _, said = done.communicate(timeout=_LIMIT_SECONDS)
        if done.returncode:
            raise WrongError(f"--abort says {said}")
        with psycopg.connect(url, autocommit=True) as connection:
            for table in _TABLES:
                connection.execute(f"DROP TABLE IF EXISTS {table} CASCADE")

    def _kill_there(self, url: str) -> None:
        """Kill PostgreSQL's process for the promotion: all of its others end as well."""
        self._await(url)
        with psycopg.connect(url, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'oxlite promote'"
            ).fetchall()
        for (pid,) in rows:
            os.kill(pid, signal.SIGKILL)
            self.kills += 1
            self.tally["killed: PostgreSQL"] += 1

    def _await(self, url: str) -> None:
        """PostgreSQL begins anew by itself after such a kill."""
        ends = time.monotonic() + _LIMIT_SECONDS
        while True:
            try:
                psycopg.connect(url).close()
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.1)
            else:
                return

    def _take_back(self, database: Path, url: str) -> None:
        done = self._begin(database, url, "--abort")
        _, said = done.communicate(timeout=_LIMIT_SECONDS)
        if done.returncode:
            raise WrongError(f"--abort says {said}")
        self._look_for_rests(database)
        with psycopg.connect(url, autocommit=True) as connection:
            names = list(_TABLES)
            rows = connection.execute(
                "SELECT relname FROM pg_class WHERE relname = ANY(%s)", (names,)
            ).fetchall()
        if rows:
            raise WrongError(f"--abort has left {rows} in PostgreSQL")
        self.tally["taken back"] += 1

    def _look_for_rests(self, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection:
            rests = connection.execute(
                "SELECT name FROM sqlite_schema WHERE name LIKE 'oxlite%'"
            ).fetchall()
        if rests:
            raise WrongError(f"the file still has {rests}")

    def _promote(self, database: Path, url: str, *, is_cut_over: bool) -> dict[str, float | None]:
        process = self._begin(database, url, *(["--cut-over"] if is_cut_over else []))
        said, failed = process.communicate(timeout=_LIMIT_SECONDS)
        if process.returncode:
            raise WrongError(f"a promotion that nobody kills ends with {failed}")
        found: dict[str, float | None] = json.loads(said)
        return found

    def _compare(self, database: Path, url: str) -> None:
        with (
            closing(sqlite3.connect(database)) as here,
            psycopg.connect(url, autocommit=True) as there,
        ):
            for table, columns in _TABLES.items():
                ours = Counter(here.execute(f"SELECT {columns} FROM {table}"))
                theirs = Counter(there.execute(f"SELECT {columns} FROM {table}"))
                if ours != theirs:
                    raise WrongError(
                        f"{table}: SQLite alone has {list((ours - theirs).items())[:3]},"
                        f" PostgreSQL alone {list((theirs - ours).items())[:3]}"
                    )
                self.tally["rows compared"] += ours.total()
