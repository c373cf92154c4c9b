"""``python -m tests.cache_soak --sets 10000000``: whether a cache keeps its limit.

Writes ``docs/evidence/cache-soak.md``; the exit code is 1 where the limit was passed by more than a
twentieth, a value was refused, or less was found than by an exact LRU by three points.
"""

import argparse
import datetime
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.cache_soak.soak import Outcome, soak
from tests.cache_soak.traces import EXPONENT, TRACES, Rates, compared

import oxlite

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "cache-soak.md"
LIMIT_BYTES = 64 << 20
PROCESSES = (1, 4)
_PROGRESS_SECONDS = 10.0


def mebibytes(size: int) -> str:
    """A size in words."""
    return f"{size / (1 << 20):,.1f} MiB"


def is_kept(outcome: Outcome) -> bool:
    """Whether the limit was kept, and nothing refused."""
    return outcome.used_bytes <= 1.05 * outcome.limit_bytes and not outcome.refused


def is_as_good(rates: Rates) -> bool:
    """Whether about as much was found as by an exact LRU."""
    return rates.share >= rates.exact_share - 0.03


def page(outcomes: list[Outcome], rates: list[Rates], command: str, load: str) -> str:
    """The page for ``docs/evidence``."""
    lines = [
        "**cache-soak: whether a cache keeps its limit, and how long a set takes meanwhile**",
        "",
        f"- `{command}`: processes set values into a cache of {mebibytes(LIMIT_BYTES)}, one in",
        "  four alone and of 100 B to 64 KiB (the logarithm of the length evenly distributed), the",
        "  others of 60 to 300 B, 75 by a `set_many`",
        "- the pages in use and the WAL are looked at some 50 times a second; the limit is kept if",
        "  the pages never pass it by more than a twentieth",
        "- what is found is compared with an exact LRU of as many entries; a scan asks once for as",
        f"  many keys as there is room for; the Zipf exponent is {EXPONENT}",
        f"- {datetime.date.today():%-d %B %Y}; oxlite {oxlite.__version__}, SQLite"
        f" {oxlite.sqlite_version}, Python {platform.python_version()},",
        f"  {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()}"
        f" processors; {load}",
        "",
        "| processes | values | bytes of values | values/s | most in use | of the limit |"
        " longest WAL | `set`: median | p99.9 | longest | longest `set_many` | evicted | refused |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {one.processes} | {one.sets:,} | {mebibytes(one.written_bytes)} |"
        f" {one.sets / one.seconds:,.0f} | {mebibytes(one.used_bytes)} |"
        f" {100 * one.used_bytes / one.limit_bytes:.1f} % | {mebibytes(one.log_bytes)} |"
        f" {one.median_seconds * 1e6:,.0f} us | {one.most_seconds * 1e3:,.2f} ms |"
        f" {one.longest_seconds * 1e3:,.0f} ms | {one.longest_together_seconds * 1e3:,.0f} ms |"
        f" {one.evictions:,} | {one.refused:,} |"
        for one in outcomes
    ]
    lines += [
        "",
        "| trace | requests | entries | found | by an exact LRU |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {one.name} | {one.requests:,} | {one.entries:,} | {100 * one.share:.1f} % |"
        f" {100 * one.exact_share:.1f} % |"
        for one in rates
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Soaks, compares, shows and writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.cache_soak", description=__doc__)
    parser.add_argument("--sets", type=int, default=10_000_000, help="values to set (10000000)")
    parser.add_argument("--seed", type=int, help="of all that is drawn (drawn, and printed)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    begun = last = time.monotonic()
    loads = [os.getloadavg()[0]]

    def progress(outcome: Outcome) -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_SECONDS:
            last = time.monotonic()
            loads.append(os.getloadavg()[0])
            used = mebibytes(outcome.used_bytes)
            print(f"{last - begun:6.0f} s  {outcome.processes} processes, {used}", flush=True)

    outcomes = []
    for processes in PROCESSES:
        with tempfile.TemporaryDirectory(prefix="oxlite-cache-soak-") as folder:
            outcome = soak(Path(folder), processes, LIMIT_BYTES, options.sets, seed, progress)
            outcomes.append(outcome)
            print(outcome, flush=True)
    rates = []
    with tempfile.TemporaryDirectory(prefix="oxlite-cache-soak-") as folder:
        for name in TRACES:
            rates.append(compared(Path(folder), name, LIMIT_BYTES // 4, seed))
            print(rates[-1], flush=True)
    load = f"load average {min(loads):.1f} to {max(loads):.1f}"
    command = f"make cache-soak SETS={options.sets} SEED={seed}"
    text = page(outcomes, rates, command, load)
    EVIDENCE.write_text(text)
    print("\n" + text)
    return 0 if all(map(is_kept, outcomes)) and all(map(is_as_good, rates)) else 1


if __name__ == "__main__":
    sys.exit(main())
