"""Processes that set, and what the files of the cache come to meanwhile."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cache_soak.setter import seconds_of

import oxlite
from oxlite.cache import Cache

_LOOK_SECONDS: Final = 0.02
_SIZE: Final = """SELECT (SELECT page_size FROM pragma_page_size)
  * ((SELECT page_count FROM pragma_page_count)
    - (SELECT freelist_count FROM pragma_freelist_count))
"""


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        processes: How many set.
        limit_bytes: The limit of the cache.
        sets: How many values were set.
        refused: How many could not be.
        written_bytes: The lengths of all values.
        evictions: How many entries were deleted to keep the limit.
        seconds: From the first to the last.
        used_bytes: The most that the pages in use came to.
        log_bytes: The longest WAL.
        longest_seconds: The longest ``set``.
        longest_together_seconds: The longest ``set_many``.
        most_seconds: What 999 of a thousand ``set`` do not take longer than.
        median_seconds: The same, one of two.
        looks: How often the files were looked at.
    """

    processes: int
    limit_bytes: int
    sets: int = 0
    refused: int = 0
    written_bytes: int = 0
    evictions: int = 0
    seconds: float = 0.0
    used_bytes: int = 0
    log_bytes: int = 0
    longest_seconds: float = 0.0
    longest_together_seconds: float = 0.0
    most_seconds: float = 0.0
    median_seconds: float = 0.0
    looks: int = 0


def soak(
    folder: Path,
    processes: int,
    limit_bytes: int,
    sets: int,
    seed: int,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Have so many processes set so many values together.

    Raises:
        RuntimeError: One of them has failed.
    """
    path = folder / "cache.db"
    Cache(path, size=limit_bytes).close()
    outcome = Outcome(processes, limit_bytes)
    command = [sys.executable, "-m", "tests.cache_soak.setter", str(path), str(limit_bytes)]
    running = [
        subprocess.Popen(
            [*command, str(sets // processes), str(seed * processes + number)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    try:
        with closing(oxlite.connect(path, profile="cache", isolation_level=None)) as connection:
            while any(process.poll() is None for process in running):
                _look(outcome, connection, path)
                progress(outcome)
                time.sleep(_LOOK_SECONDS)
            _look(outcome, connection, path)
        answers = [process.communicate()[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    if any(process.returncode for process in running):
        raise RuntimeError("a process that sets has failed")
    _add(outcome, [json.loads(answer) for answer in answers])
    return outcome


def _look(outcome: Outcome, connection: oxlite.sqlite3.Connection, path: Path) -> None:
    [(used,)] = connection.execute(_SIZE).fetchall()
    outcome.used_bytes = max(outcome.used_bytes, used)
    outcome.log_bytes = max(outcome.log_bytes, Path(f"{path}-wal").stat().st_size)
    outcome.looks += 1


def _add(outcome: Outcome, answers: list[dict[str, object]]) -> None:
    durations: Counter[int] = Counter()
    said: dict[str, float] = {}
    for answer in answers:
        counted = answer.pop("durations")
        assert isinstance(counted, list)
        for bucket, count in counted:
            durations[bucket] += count
        for name, value in answer.items():
            assert isinstance(value, int | float)
            is_longest = name in ("seconds", "longest", "longest_together")
            before = said.get(name, 0)
            said[name] = max(before, value) if is_longest else before + value
    outcome.sets, outcome.refused = int(said["sets"]), int(said["refused"])
    outcome.written_bytes, outcome.evictions = int(said["bytes"]), int(said["evictions"])
    outcome.seconds, outcome.longest_seconds = said["seconds"], said["longest"]
    outcome.longest_together_seconds = said["longest_together"]
    outcome.median_seconds = _share(durations, 0.5)
    outcome.most_seconds = _share(durations, 0.999)


def _share(durations: Counter[int], share: float) -> float:
    """What such a share of the calls do not take longer than."""
    left = share * durations.total()
    for bucket in sorted(durations):
        left -= durations[bucket]
        if left <= 0:
            return seconds_of(bucket)
    return 0.0
