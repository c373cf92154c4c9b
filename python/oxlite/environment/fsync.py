"""The measured cost of a sync: what a durable commit cannot be faster than.

Four series: ``fsync`` and ``fdatasync``, each after a block appended (the file
grows, so its metadata is written too) and after one overwritten in place (as
SQLite does in a write-ahead log that is used again).

Invariants: only a temporary file of our own is touched, never a database's
(closing any descriptor of a file drops the process's POSIX locks on it); that
file is removed whatever happens. It keeps its name while it is measured,
because some file systems skip the sync of a file without one.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["BLOCK_BYTES", "measure_fsync"]

BLOCK_BYTES = 4096
"""What is written before each sync: SQLite's usual page."""

_SERIES_LIMIT_SECONDS = 2.0
_FEWEST_SAMPLES = 5


def measure_fsync(directory: Path | str, *, samples: int = 64) -> dict[str, Any]:
    """Measure what a sync costs in a directory.

    A series ends early after 2 s (but not before 5 samples), so a slow disk
    does not hold the report up; ``samples`` says how many were taken.

    Args:
        directory: an existing directory; a temporary file is made in it.
        samples: how many syncs per series, at least 1.

    Returns:
        ``{"measured": True, "block_bytes": 4096, "series": [...]}``, where a
        series has ``call`` ("fsync", "fdatasync"), ``write`` ("append",
        "overwrite"), ``median_us``, ``min_us``, ``max_us`` (microseconds of
        the sync alone) and ``samples``. Where no file can be made:
        ``{"measured": False, "reason": ...}``.

    Raises:
        ValueError: ``samples`` is less than 1.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    try:
        return {
            "measured": True,
            "block_bytes": BLOCK_BYTES,
            "series": _all_series(Path(directory), samples),
        }
    except OSError as error:
        return {"measured": False, "reason": error.strerror or str(error)}


def _all_series(directory: Path, samples: int) -> list[dict[str, Any]]:
    series = []
    descriptor, name = tempfile.mkstemp(prefix=".oxlite-fsync-", dir=directory)
    try:
        for call in ("fsync", "fdatasync"):
            sync: Callable[[int], None] | None = getattr(os, call, None)
            if sync is None:  # macOS has no fdatasync
                continue
            for write in ("append", "overwrite"):
                durations = _durations_us(descriptor, sync, samples, grow=write == "append")
                series.append({"call": call, "write": write, **_summary(durations)})
    finally:
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)
    return series


def _durations_us(
    descriptor: int, sync: Callable[[int], None], samples: int, *, grow: bool
) -> list[float]:
    block = os.urandom(BLOCK_BYTES)
    os.lseek(descriptor, 0, os.SEEK_END)
    deadline = time.perf_counter() + _SERIES_LIMIT_SECONDS
    durations: list[float] = []
    while len(durations) < samples:
        if grow:
            os.write(descriptor, block)
        else:
            os.pwrite(descriptor, block, 0)
        begun = time.perf_counter()
        sync(descriptor)
        ended = time.perf_counter()
        durations.append((ended - begun) * 1e6)
        if ended > deadline and len(durations) >= _FEWEST_SAMPLES:
            break
    return durations


def _summary(durations_us: list[float]) -> dict[str, Any]:
    return {
        "median_us": round(statistics.median(durations_us), 1),
        "min_us": round(min(durations_us), 1),
        "max_us": round(max(durations_us), 1),
        "samples": len(durations_us),
    }
