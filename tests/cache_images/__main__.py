"""``python -m tests.cache_images``: images of a cache after a power cut, until there are enough.

Writes ``docs/evidence/cache-images.md``. Ends with 0 if nothing is wrong, 1 if something is; the
images of some violations are kept then.
"""

import argparse
import datetime
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.cache_images.campaign import VIOLATIONS, run
from tests.cache_images.judge import Tally
from tests.cache_images.recording import ROOT
from tests.cache_images.workloads import WORKLOADS, Play
from tests.faults.injector import SUPPORTED, build

from oxlite import sqlite3

_PAGE = ROOT / "docs" / "evidence" / "cache-images.md"
_PROGRESS_SECONDS = 10

_HEADING = """\
`make cache-images` records, below everything of ours, what a cache does to its files, which are
never synced, and opens what a disk may hold when the power fails at any moment of it: each sector
of 512 bytes any version that it has had, independently of all others, each file any length, and any
of the files alone (the model of `make crash`: [decision 36](../decisions/0036-power-cuts.md)). Keys
are read, alone, together and listed, counted, added, touched, deleted and set anew. Every answer
must be a miss, or a value that was set for this key once and has not expired, and after a call that
has set or deleted it what that call has left; nothing may be raised, but by `incr` for a damaged
file; nothing may hang; and in the end a value that is set is there."""


def plays(seed: int, wanted: str | None) -> Iterator[Play]:
    """All workloads, again and again."""
    while True:
        for name in WORKLOADS:
            if wanted in (None, name):
                yield Play(name, seed)
        seed += 1


def _table(title: str, unit: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {name} | {times:,} |" for name, times in sorted(counts.items())]
    return [f"| {title} | {unit} |", "|---|---:|", *rows, ""]


def page(tally: Tally, command: str, seconds: float, seed: int) -> str:
    """The page for ``docs/evidence``."""
    machine = (
        f"SQLite {sqlite3.sqlite_version}, CPython {platform.python_version()}, "
        f"{platform.system()} {platform.release()} {platform.machine()}, "
        f"{os.cpu_count()} processors; {datetime.date.today():%-d %B %Y}; seed {seed}."
    )
    lines = ["# What a power cut leaves of a cache", "", _HEADING, ""]
    lines += [f"Repeat with `{command}`. {machine}", ""]
    lines += [
        f"{tally.distinct:,} distinct images from {tally.recordings.total():,} recordings with"
        f" {tally.events:,} events; {seconds:,.0f} s; {tally.wrong.total():,} violations.",
        "",
        f"{tally.values:,} values were read, each of which was one of its key. Of"
        f" {tally.without_seals:,} of the images the rows were read as well as they are:"
        f" {tally.wrong_without_seals:,} of these had a value that its key never had, and the cache"
        f" gave it to nobody. `incr` has raised {tally.raised:,} times that the file is damaged.",
        "",
    ]
    lines += _table("workload", "images", tally.images)
    lines += _table("the cache was", "images", tally.outcomes)
    lines += _table("shape (an image may have several)", "images", tally.shapes)
    if tally.wrong:
        lines += ["Violations:", ""]
        lines += [f"- {n:,} times {kind} ({name})" for (name, kind), n in tally.wrong.most_common()]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.cache_images", description=__doc__)
    parser.add_argument("--images", type=int, default=100_000, help="distinct images (100000)")
    parser.add_argument("--seed", type=int, help="the first seed (drawn, and printed)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--workload", choices=list(WORKLOADS), help="only this one")
    parser.add_argument("--page", type=Path, default=_PAGE, help="where the page goes")
    options = parser.parse_args()
    if not SUPPORTED:
        print("files can be recorded on x86-64 Linux only")
        return 2
    build()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    begun = last = time.monotonic()

    def progress(tally: Tally) -> None:
        nonlocal last
        if time.monotonic() - last > _PROGRESS_SECONDS:
            last = time.monotonic()
            print(
                f"{last - begun:5.0f} s  {tally.recordings.total():5,} recordings "
                f"{tally.distinct:9,} distinct images  {tally.wrong.total():,} violations",
                flush=True,
            )

    tally = run(
        plays(seed, options.workload),
        options.workers,
        lambda tally: tally.distinct >= options.images,
        progress,
    )
    command = f"make cache-images IMAGES={options.images} SEED={seed} WORKERS={options.workers}"
    text = page(tally, command, time.monotonic() - begun, seed)
    print("\n" + text)
    options.page.write_text(text)
    for violation in tally.violations:
        print(f"{violation.play} at {violation.point}, {violation.image.shape}: {violation.what}")
    if tally.wrong:
        print(f"The images of some are kept in {VIOLATIONS}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
