"""``python -m tests.cache_kills --kills 5000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/cache-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
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

from tests.cache_kills.board import SLOTS, Doing
from tests.cache_kills.campaign import (
    HANGS_AFTER_SECONDS,
    WAITS_AT_MOST_SECONDS,
    Campaign,
    Tally,
    WrongError,
)

import oxlite

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "cache-kills.md"
_PROGRESS_SECONDS = 10.0
_DOINGS = {
    Doing.OPEN: "while they opened it",
    Doing.INCR: "in `incr`",
    Doing.ADD: "in `add`",
    Doing.GET_OR_SET: "in `get_or_set`",
    Doing.SET: "in `set` or `set_many`",
    Doing.DELETE: "in `delete`",
    Doing.TOUCH: "in `touch`",
    Doing.READ: "in `get` or `get_many`",
    Doing.LIMITED_SET: "in `set` or `set_many` of the cache with a limit",
    Doing.LIMITED_READ: "in `get` or `get_many` of the cache with a limit",
    Doing.CLOSE: "while they closed it",
    Doing.NOTHING: "between two calls, or before the first",
}


def page(tally: Tally, command: str, seconds: float) -> str:
    """The page for ``docs/evidence``."""
    rows = [
        *((f"killed {text}", f"{tally.killed[doing]:,}") for doing, text in _DOINGS.items()),
        ("of all these, while they computed what others waited for", f"{tally.holders:,}"),
        ("times that all were killed at once", f"{tally.all_at_once:,}"),
        ("times that all was looked at", f"{tally.rounds:,}"),
        ("caches that were made anew", f"{tally.caches:,}"),
        ("operations that came to their end", f"{tally.operations:,}"),
        ("of these: steps of the counters, each of which was there", f"{tally.increments:,}"),
        ("steps that nobody was told of, and were there", f"{tally.unanswered:,}"),
        ("the longest `get_or_set`", f"{tally.longest_seconds * 1000:,.0f} ms"),
    ]
    table = "\n".join(f"| {what} | {count} |" for what, count in rows)
    return f"""\
**cache-kills: those who use a cache are killed in the midst of it, and what was acknowledged is there**

- `{command}`: {SLOTS} processes call two caches together, one without a limit and one
  of 1 MiB; they are killed at random moments and others come in their places. A third of them uses
  the cache for asyncio
- a counter is at least what was acknowledged, and at most that and one for each kill in `incr`; a key
  is added by one; a value is one of its key, and of the time in which it was read; a key of the cache
  without a limit is there, but where its writer has deleted it; one computes a value, and if he is
  killed the others go on (within {WAITS_AT_MOST_SECONDS:g} s); nobody is without an answer
  for {HANGS_AFTER_SECONDS:g} s; `integrity_check` finds nothing
- {tally.kills:,} kills in {seconds:,.0f} s, {datetime.date.today():%-d %B %Y}; nothing was wrong
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}, Python {platform.python_version()},
  {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors

| what | how many |
|---|---:|
{table}
"""  # noqa: E501 - a title is one line


def main() -> int:
    """Kills, shows and writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.cache_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=5000, help="how many (5000)")
    parser.add_argument("--seed", type=int, help="of all that is drawn (drawn, and printed)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    begun = last = time.monotonic()

    def progress(tally: Tally) -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_SECONDS:
            last = time.monotonic()
            print(f"{last - begun:6.0f} s  {tally.kills:,} kills", flush=True)

    with tempfile.TemporaryDirectory(prefix="oxlite-cache-kills-") as folder:
        campaign = Campaign(Path(folder), seed)
        try:
            campaign.run(options.kills, progress)
        except WrongError as error:
            print(f"WRONG after {campaign.tally.kills:,} kills: {error}", file=sys.stderr)
            return 1
    command = f"make cache-kills KILLS={options.kills} SEED={seed}"
    EVIDENCE.write_text(page(campaign.tally, command, time.monotonic() - begun))
    print(EVIDENCE.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
