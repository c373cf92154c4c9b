"""The parts of the soak: A without replication and B with it, by turns, and what came of each.

The rate of half a load is half of what the writers reach in the first part of a full one without
replication. The size of the WAL is looked at twenty times a second.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import oxlite
from oxlite.replication import (
    find_litestream,
    read_state,
    replication_status,
    restore_from,
    store_of,
)

__all__ = ["WRITERS", "Pair", "Part", "pairs", "ratio", "soak"]

WRITERS = 2
_BEGINS_WITHIN_SECONDS = 60.0
_ENDS_WITHIN_SECONDS = 180.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Part:
    """What came of one part.

    Attributes:
        is_full: Whether they wrote without a pause.
        is_replicated: Whether it was replicated.
        rate: Writes in a second.
        longest_seconds: The longest write.
        largest_bytes: Of the WAL.
        checkpoints: That writers have finished; those of Litestream are not counted.
        incomplete: That they could not finish.
        behind_seconds: How far behind the replica was at most.
        named: How often a warning has named who reads the WAL.
        errors: Whatever failed.
    """

    is_full: bool
    is_replicated: bool
    rate: float
    longest_seconds: float
    largest_bytes: int
    checkpoints: int
    incomplete: int
    behind_seconds: float | None
    named: int
    errors: list[str]


@dataclass(frozen=True)
class Pair:
    """One part without and one with replication, one after the other."""

    without: Part
    replicated: Part

    @property
    def ratio(self) -> float:
        """What of the rate is left."""
        return self.replicated.rate / self.without.rate


def pairs(parts: list[Part], *, is_full: bool) -> list[Pair]:
    """Those of one load."""
    of_load = [part for part in parts if part.is_full is is_full]
    return [Pair(*two) for two in zip(of_load[::2], of_load[1::2], strict=True)]


def ratio(found: list[Pair]) -> tuple[float, float, float]:
    """The median of the pairs' ratios, the least and the greatest."""
    ratios = [pair.ratio for pair in found]
    return statistics.median(ratios), min(ratios), max(ratios)


def soak(folder: Path, seconds: float, say: Callable[[str], None]) -> list[Part]:
    """A B A B … for so long in all: half of the time at half load, half at full load.

    There are four pairs of each load.
    """
    each = seconds / 16
    parts: list[Part] = []
    half = 0.0
    for number in range(4):
        for is_full in (True, False):
            for is_replicated in (False, True):
                where = folder / f"{number}-{is_full}-{is_replicated}"
                where.mkdir()
                part = _part(where, each, 0.0 if is_full else half, is_replicated)
                half = half or part.rate / 2
                parts.append(part)
                say(
                    f"{'full' if is_full else 'half'} load,"
                    f" {'with' if is_replicated else 'without'}: {part.rate:,.0f} writes/s, WAL"
                    f" {part.largest_bytes / (1 << 20):.1f} MiB, {len(part.errors)} errors"
                )
    return parts


def _part(folder: Path, seconds: float, rate: float, is_replicated: bool) -> Part:
    path = folder / "app.db"
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, n DEFAULT 1, filling BLOB)")
    log = folder / "replicator.log"
    errors: list[str] = []
    behind: list[float] = []
    with _replicated(path, folder / "replica", log) if is_replicated else contextlib.nullcontext():
        command = [sys.executable, "-m", "tests.replica_soak.load", str(path), str(seconds)]
        writers = [
            subprocess.Popen([*command, str(rate / WRITERS)], stdout=subprocess.PIPE, text=True)
            for _ in range(WRITERS)
        ]
        largest, ends, status_at = 0, time.monotonic() + seconds + _ENDS_WITHIN_SECONDS, 0.0
        try:
            while any(writer.poll() is None for writer in writers):
                with contextlib.suppress(FileNotFoundError):
                    largest = max(largest, Path(f"{path}-wal").stat().st_size)
                if is_replicated and time.monotonic() > status_at:
                    status_at = time.monotonic() + 1
                    status = replication_status(path)
                    if status.health in ("failing", "stopped") or status.restarts:
                        errors.append(f"{status.health}: {status.failure}")
                    behind.append(status.behind_seconds or 0.0)
                if time.monotonic() > ends:
                    raise TimeoutError("the writers do not end")
                time.sleep(_LOOK_SECONDS)
            found = [json.loads(writer.communicate()[0]) for writer in writers]
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
    if is_replicated:
        said = log.read_text()
        errors += [line for line in said.splitlines() if " ERROR " in line or " WARNING " in line]
        errors += _compared(path, folder)
    errors += [error for one in found for error in one["errors"]]
    errors += ["a checkpoint has failed" for one in found if one["checkpoint_errors"]]
    return Part(
        is_full=not rate,
        is_replicated=is_replicated,
        rate=sum(one["writes"] / one["seconds"] for one in found),
        longest_seconds=max(one["longest"] for one in found),
        largest_bytes=largest,
        checkpoints=sum(one["checkpoints"] for one in found),
        incomplete=sum(one["incomplete"] for one in found),
        behind_seconds=max(behind) if behind else None,
        named=sum(one["named"] for one in found),
        errors=errors,
    )


@contextlib.contextmanager
def _replicated(path: Path, replica: Path, log: Path) -> Iterator[None]:
    """``oxlite replicate`` at work, which has sent everything at the end of the block."""
    command = [sys.executable, "-m", "oxlite.cli", "replicate", str(path), "--to", str(replica)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        ends = time.monotonic() + _BEGINS_WITHIN_SECONDS
        while (state := read_state(path)) is None or state.sent_at is None:
            if process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"it does not replicate: {log.read_text()}")
            time.sleep(_LOOK_SECONDS)
        yield
        process.terminate()
        if code := process.wait(_ENDS_WITHIN_SECONDS):
            raise RuntimeError(f"it has ended with {code}: {log.read_text()}")
    finally:
        process.kill()
        process.wait()


def _compared(path: Path, folder: Path) -> list[str]:
    """What is in the replica, which was ended in order, is what is in the database."""
    copy = folder / "restored.db"
    restore_from(find_litestream(), store_of(str(folder / "replica")), copy)
    contents = []
    for one in (path, copy):
        with contextlib.closing(oxlite.connect(one)) as connection:
            contents.append(connection.execute("SELECT * FROM entry ORDER BY id").fetchall())
    for one in folder.glob("replica/**/*"):
        if one.is_file():
            os.unlink(one)  # noqa: PTH108 - the disk is for the next part
    return [] if contents[0] == contents[1] else ["the replica is not what the database is"]
