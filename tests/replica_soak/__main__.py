"""``python -m tests.replica_soak --minutes 30``: what replication costs, and what came of it.

Writes the page of evidence; the exit code is 1 where anything has failed, the log was
longer than its limit, or less than 0.95 of the rate is left at half load.
"""

import argparse
import datetime
import os
import platform
import sys
import tempfile
from pathlib import Path

from tests.replica_soak.soak import WRITERS, Pair, Part, pairs, ratio, soak

import oxlite
from oxlite.replication import find_litestream

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "replica-soak.md"
LIMIT_BYTES = 64 << 20
LEAST_RATIO = 0.95


def mebibytes(size: int) -> str:
    """A size in words."""
    return f"{size / (1 << 20):,.1f} MiB"


def table(parts: list[Part]) -> str:
    """All parts, in the order in which they ran."""
    lines = [
        "| load | replicated | writes/s | longest write | largest log | checkpoints | incomplete |"
        " behind at most | readers named | errors |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for part in parts:
        cells = [
            "full" if part.is_full else "half",
            "yes" if part.is_replicated else "no",
            f"{part.rate:,.0f}",
            f"{part.longest_seconds * 1000:,.0f} ms",
            mebibytes(part.largest_bytes),
            f"{part.checkpoints:,}",
            f"{part.incomplete:,}",
            "" if part.behind_seconds is None else f"{part.behind_seconds:.1f} s",
            str(part.named),
            str(len(part.errors)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def ratio_text(found: list[Pair]) -> str:
    """The ratio with its spread."""
    middle, least, greatest = ratio(found)
    return f"{middle:.3f} ({least:.3f} to {greatest:.3f})"


def main() -> int:
    """Soaks, shows and writes."""
    parser = argparse.ArgumentParser(prog="make replica-soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    minutes: float = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="oxlite-replica-soak-") as folder:
        parts = soak(Path(folder), minutes * 60, lambda text: print(text, flush=True))
    half, full = (pairs(parts, is_full=is_full) for is_full in (False, True))
    errors = [error for part in parts for error in part.errors]
    largest = {
        load: max(pair.replicated.largest_bytes for pair in found)
        for load, found in (("half", half), ("full", full))
    }
    checkpoints = sum(part.checkpoints for part in parts if part.is_replicated)
    text = f"""\
**replica-soak: what replication costs writers, and how long the log becomes beside it**

- `make replica-soak MINUTES={minutes:g}`: {WRITERS} processes write single rows, in turn without and with
  `oxlite replicate` to a directory of the same disk, {minutes * 60 / 16:.0f} s each; "half load" is half of what they
  wrote without a pause in the first part. At the end of each part it is restored and compared
- writes/s with replication, of those without: {ratio_text(half)} at half load, {ratio_text(full)} at full load: the
  median of {len(half)} pairs each, the least and the greatest
- the limit of the log is {mebibytes(LIMIT_BYTES)}; the largest with replication was {mebibytes(largest["half"])} at half
  load, {mebibytes(largest["full"])} at full load. Writers have finished {checkpoints:,} checkpoints beside it; those of
  Litestream are not counted
- {len(errors)} errors: of writes, checkpoints, Litestream, and in what was restored
- {datetime.date.today():%-d %B %Y}; oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}, Litestream
  {find_litestream().version_text}, Python {platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()},
  {os.cpu_count()} processors

{table(parts)}
"""  # noqa: E501 - a title is one line
    EVIDENCE.write_text(text)
    print(text)
    for error in errors[:20]:
        print(error, file=sys.stderr)
    is_kept = max(largest.values()) <= LIMIT_BYTES
    return 0 if is_kept and not errors and ratio(half)[0] >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
