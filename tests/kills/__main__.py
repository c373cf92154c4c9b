"""``python -m tests.kills --kills 5000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/shared-restarts.md`` where nothing is wrong; the exit code is 1 if anything
is.
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

from tests.kills.campaign import (
    BESIDE,
    LONG,
    LONG_UNKNOWN,
    MET,
    RESTART,
    STARTER,
    UNKNOWN,
    WRITER,
    Campaign,
    Tally,
    WrongError,
)

import oxlite

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "shared-restarts.md"
_PROGRESS_SECONDS = 10.0
_ROWS = (WRITER, MET, STARTER, RESTART, LONG, UNKNOWN, LONG_UNKNOWN, BESIDE)


def table(tally: Tally) -> str:
    """The counts, as Markdown."""
    lines = ["| what | how many |", "|---|---:|"]
    lines += [f"| {name} | {tally.counts[name]:,} |" for name in _ROWS]
    lines.append(f"| entries acknowledged, each of which was there | {tally.entries:,} |")
    lines.append(f"| the longest log at a new beginning, bytes | {tally.longest_log_bytes:,} |")
    return "\n".join(lines)


def page(tally: Tally, kills: int, seed: int, seconds: float) -> str:
    """The page for ``docs/evidence``."""
    return f"""\
**shared-restarts: all who share their syncs are killed, and others begin anew**

- `make kills KILLS={kills} SEED={seed}`: up to four processes share their syncs until their log is
  as long as is drawn, and are killed, at once or one after the other; some of those that then begin
  anew are killed as well, and whoever is let live looks at everything: `integrity_check`, each
  writer's entries in their order, all that were acknowledged, each transaction as a whole
- {tally.kills:,} kills in {seconds:,.0f} s, {datetime.date.today():%-d %B %Y}; nothing was wrong
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}, Python {platform.python_version()},
  {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors

{table(tally)}
"""


def main() -> int:
    """Kills, shows and writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=5000, help="how many processes (5000)")
    parser.add_argument("--seed", type=int, help="of all that is drawn (drawn, and printed)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    begun = last = time.monotonic()

    def progress(tally: Tally) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > _PROGRESS_SECONDS:
            last = now
            print(
                f"{now - begun:5.0f} s  {tally.kills:7,} kills  {tally.counts[RESTART]:6,} new "
                f"beginnings, {tally.counts[LONG_UNKNOWN]:,} of a long log of unknown end",
                flush=True,
            )

    with tempfile.TemporaryDirectory(prefix="oxlite-kills-") as folder:
        campaign = Campaign(Path(folder), seed)
        try:
            campaign.run(options.kills, progress)
        except WrongError as error:
            print(f"wrong after {campaign.tally.kills:,} kills: {error}\n{table(campaign.tally)}")
            return 1
    text = page(campaign.tally, options.kills, seed, time.monotonic() - begun)
    EVIDENCE.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
