"""``python -m tests.promote_speed --megabytes 1024 --rounds 3``: how fast a promotion is.

Beside it, in the same run: COPY of the same rows, from files that PostgreSQL itself has written,
into tables without keys; the three steps that one would take by hand (export, COPY, keys); and
pgloader, if it is installed. Then cut-overs while others write. Writes
``docs/evidence/promote-speed.md``; the exit code is 1 if a cut-over has lost something.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
from tests.promote_speed.data import make
from tests.promote_speed.site import Site

import oxlite
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import Scratch

EVIDENCE: Final = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "promote-speed.md"
_TABLES: Final = ("author", "post", "comment", "zoo")
_REFERENCES: Final = (
    ("post", "author_id", "author"),
    ("comment", "post_id", "post"),
    ("comment", "author_id", "author"),
)
_CHUNK: Final = 1 << 20


@dataclass
class Figures:
    """What was measured.

    Attributes:
        rows: In all tables.
        promote_seconds: Of each promotion.
        stages: Of each promotion: what it took how long for.
        copy_seconds: Of each COPY by hand.
        blog_rows: In the blog's tables.
        hand_seconds: Of each export, COPY and making of keys, by hand, of the blog's tables.
        pgloader_seconds: Of each run of pgloader, of the blog's tables.
        pgloader_said: What it says of errors and of tables that are not the same.
        memory_kibibytes: The most that a promotion has had.
        pauses: Of each cut-over, in seconds.
        longest: Write of each, in seconds.
        writes: Acknowledged beside them.
    """

    rows: int = 0
    promote_seconds: list[float] = field(default_factory=list)
    stages: list[dict[str, float]] = field(default_factory=list)
    copy_seconds: list[float] = field(default_factory=list)
    blog_rows: int = 0
    hand_seconds: list[float] = field(default_factory=list)
    pgloader_seconds: list[float] = field(default_factory=list)
    pgloader_said: str = ""
    memory_kibibytes: int = 0
    pauses: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    writes: int = 0


def promote(database: Path, url: str, *words: str) -> tuple[float, int, dict[str, object]]:
    """Promote; how long it took, how much memory it had, and what it says."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "oxlite.cli", "promote", str(database), url, "--json", *words],
            stdout=output,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        if process.returncode:
            raise SystemExit(f"oxlite promote ends with {process.returncode}")
        output.seek(0)
        return seconds, usage.ru_maxrss, json.loads(output.read())


def export(url: str, folder: Path) -> None:
    """Have PostgreSQL write its tables into files."""
    with psycopg.connect(url) as connection:
        for table in _TABLES:
            into = f"COPY {table} TO STDOUT"
            with (folder / table).open("wb") as file, connection.cursor().copy(into) as copy:
                for part in copy:
                    file.write(part)


def copy_by_hand(url: str, folder: Path) -> float:
    """COPY those files into tables without keys; how long that took."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS bare CASCADE")
        connection.execute("CREATE SCHEMA bare")
        for table in _TABLES:
            connection.execute(f"CREATE TABLE bare.{table} (LIKE public.{table})")
        connection.execute("CHECKPOINT")
        begun = time.monotonic()
        for table in _TABLES:
            into = f"COPY bare.{table} FROM STDIN"
            with (folder / table).open("rb") as file, connection.cursor().copy(into) as copy:
                while part := file.read(_CHUNK):
                    copy.write(part)
        seconds = time.monotonic() - begun
        connection.execute("DROP SCHEMA bare CASCADE")
        return seconds


def pgloader(database: Path, place: Path, folder: Path) -> tuple[float, str]:
    """Load with pgloader; how long it took, and what it says of errors.

    Without the table of odd columns: it makes no table with a type that it does not know. And with
    smaller batches than its own, with which it runs out of memory beyond some hundred megabytes.
    """
    commands = folder / "load"
    commands.write_text(
        f"LOAD DATABASE FROM sqlite://{database}"
        f" INTO postgresql://postgres@unix:{place.parent}:5432/{place.name}"
        " WITH include drop, create tables, create indexes, reset sequences,"
        " batch rows = 10000, prefetch rows = 10000"
        " EXCLUDING TABLE NAMES LIKE 'zoo';"
    )
    begun = time.monotonic()
    done = subprocess.run(
        ["pgloader", "--root-dir", str(folder / "pgloader"), str(commands)],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    errors = sum("ERROR" in line for line in done.stdout.splitlines())
    url = f"postgresql://postgres@/{place.name}?host={place.parent}"
    with psycopg.connect(url) as connection:
        rows = 0
        for table in _TABLES[:-1]:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            rows += 0 if row is None else row[0]
    if done.returncode:
        raise SystemExit(f"pgloader fails: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return seconds, f"{errors} errors, {rows:,} rows"


def by_hand(database: Path, url: str) -> float:
    """What one would do by hand: export, COPY, and keys, of the blog; how long it takes."""
    begun = time.monotonic()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA hand")
        for table in _TABLES[:-1]:
            connection.execute(f"CREATE TABLE hand.{table} (LIKE public.{table})")
            exporting = subprocess.Popen(
                ["sqlite3", "-csv", str(database), f"SELECT * FROM {table}"],
                stdout=subprocess.PIPE,
            )
            assert exporting.stdout is not None
            into = f"COPY hand.{table} FROM STDIN (FORMAT csv)"
            with connection.cursor().copy(into) as copy:
                while part := exporting.stdout.read(_CHUNK):
                    copy.write(part)
            exporting.wait()
            connection.execute(f"ALTER TABLE hand.{table} ADD PRIMARY KEY (id)")
        connection.execute("CREATE INDEX ON hand.post (author_id)")
        connection.execute("CREATE INDEX ON hand.comment (post_id)")
        for table, column, other in _REFERENCES:
            connection.execute(
                f"ALTER TABLE hand.{table} ADD FOREIGN KEY ({column}) REFERENCES hand.{other}"
            )
        seconds = time.monotonic() - begun
        connection.execute("DROP SCHEMA hand CASCADE")
    return seconds


def measure(megabytes: int, rounds: int, cut_overs: int) -> Figures:
    """All of it."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="oxlite-promote-speed-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        original = folder / "original.db"
        print("a file is made", flush=True)
        make(original, megabytes << 20)
        database = folder / "app.db"
        with PostgresServer(Scratch(folder)) as server:
            for number in range(rounds):
                shutil.copyfile(original, database)
                place = server.database("promoted")
                url = f"postgresql://postgres@/promoted?host={place.parent}"
                seconds, memory, said = promote(database, url)
                figures.promote_seconds.append(seconds)
                stages = said["seconds"]
                assert isinstance(stages, dict)
                figures.stages.append(stages)
                figures.memory_kibibytes = max(figures.memory_kibibytes, memory)
                rows = said["rows"]
                assert isinstance(rows, dict)
                figures.rows = sum(rows.values())
                figures.blog_rows = figures.rows - rows["zoo"]
                if number == 0:
                    export(url, folder)
                figures.copy_seconds.append(copy_by_hand(url, folder))
                if shutil.which("sqlite3"):
                    figures.hand_seconds.append(by_hand(original, url))
                print(f"promote {seconds:.1f} s, COPY {figures.copy_seconds[-1]:.1f} s", flush=True)
                if shutil.which("pgloader"):
                    loaded = server.database("loaded")
                    seconds, figures.pgloader_said = pgloader(original, loaded, folder)
                    figures.pgloader_seconds.append(seconds)
                    print(f"pgloader {seconds:.1f} s", figures.pgloader_said, flush=True)
            for _ in range(cut_overs):
                for path in folder.glob("app.db*"):
                    path.unlink()
                shutil.copyfile(original, database)
                place = server.database("promoted")
                url = f"postgresql://postgres@/promoted?host={place.parent}"
                with Site(database) as site:
                    _, _, said = promote(database, url, "--cut-over")
                    site.await_refusals()
                pause = said["pause_seconds"]
                assert isinstance(pause, float)
                site.compare(url)
                figures.pauses.append(pause)
                figures.longest.append(site.longest_seconds)
                figures.writes += site.acknowledged
                print(f"cut over: {pause:.2f} s, {site.acknowledged:,} writes", flush=True)
    return figures


def spread(figures: list[float], digits: int = 1) -> str:
    """A median, with the least and the greatest."""
    middle = statistics.median(figures)
    return f"{middle:.{digits}f} ({min(figures):.{digits}f} to {max(figures):.{digits}f})"


def page(figures: Figures, command: str, megabytes: int) -> str:
    """The page of evidence."""
    ratios = [
        bare / ours["copied"]
        for bare, ours in zip(figures.copy_seconds, figures.stages, strict=True)
    ]
    lines = [
        "| | seconds | rows | rows/s (median) |",
        "|---|---:|---:|---:|",
    ]
    for name, seconds, rows in (
        (
            "`oxlite promote`, all of it",
            figures.promote_seconds,
            figures.rows,
        ),
        *(
            (f"of that: {what}", [one[what] for one in figures.stages], figures.rows)
            for what in figures.stages[0]
        ),
        (
            "of that: copied and keys made",
            [one["copied"] + one["keys made"] for one in figures.stages],
            figures.rows,
        ),
        (
            "COPY of the same rows from ready files, no keys",
            figures.copy_seconds,
            figures.rows,
        ),
        (
            "by hand: `sqlite3 -csv`, COPY, keys made (without the odd table)",
            figures.hand_seconds,
            figures.blog_rows,
        ),
        (
            "pgloader, batches of 10,000 rows: rows, keys made (without the odd table)",
            figures.pgloader_seconds,
            figures.blog_rows,
        ),
    ):
        if seconds:
            rate = rows / statistics.median(seconds)
            lines.append(f"| {name} | {spread(seconds)} | {rows:,} | {rate:,.0f} |")
    said = f"\n- pgloader says: {figures.pgloader_said}" if figures.pgloader_said else ""
    cut = ""
    if figures.pauses:
        cut = f"""
- {len(figures.pauses)} cut-overs of the same file while three processes write ({figures.writes:,} writes were
  acknowledged): writers waited {spread(figures.pauses, 2)} s; the longest write took {spread(figures.longest, 2)} s. All rows
  were the same on both sides afterwards, those that were written last among them
"""  # noqa: E501
    return f"""\
**promote-speed: how fast a promotion is, beside COPY by hand and pgloader**

- `{command}`: {megabytes:,} MB, {figures.rows:,} rows: a blog's authors, posts and comments, and a table with 41 odd columns
- rows are copied at {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) of the rate of COPY from ready files. A promotion
  takes {figures.memory_kibibytes / 1024:,.0f} MiB of memory at most{said}
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}, PostgreSQL 18, Python {platform.python_version()},
  {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors; {datetime.date.today():%-d %B %Y}
{cut}
{chr(10).join(lines)}
"""  # noqa: E501


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="make promote-speed", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cut-overs", type=int, default=3)
    given = parser.parse_args()
    command = (
        f"make promote-speed MEGABYTES={given.megabytes} ROUNDS={given.rounds}"
        f" CUT_OVERS={given.cut_overs}"
    )
    figures = measure(given.megabytes, given.rounds, given.cut_overs)
    text = page(figures, command, given.megabytes)
    EVIDENCE.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
