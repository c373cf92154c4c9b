"""``python -m tests.notify_kills --kills 2000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/notify-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import argparse
import datetime
import os
import platform
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from tests.notify_kills.campaign import Campaign
from tests.notify_kills.history import WrongError
from tests.notify_kills.tally import ROUNDS, WATCHERS_KILLED, Tally, table

import oxlite

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "notify-kills.md"
_PROGRESS_SECONDS = 10.0


def page(tally: Tally, command: str, seconds: float) -> str:
    """The page for ``docs/evidence``."""
    return f"""\
**notify-kills: those who notify and those who listen are killed, and nothing is lost**

- `{command}`: four processes notify, half of
  them another program with the standard library's SQLite, and four listen; they are killed and
  stopped at random moments. After each round all must have come to all who listen: each
  notification of their channels once and in the order of the commits, through all of their lives,
  nothing that was rolled back, and all that was acknowledged
- {tally.kills:,} kills in {seconds:,.0f} s, {datetime.date.today():%-d %B %Y}; nothing was wrong
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version} beside {sqlite3.sqlite_version},
  Python {platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()},
  {os.cpu_count()} processors

{table(tally)}
"""


def main() -> int:
    """Kills, shows and writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.notify_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=2000, help="how many at least (2000)")
    parser.add_argument(
        "--notifications", type=int, default=1_000_000, help="how many at least (1,000,000)"
    )
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
                f"{now - begun:5.0f} s  {tally.counts[ROUNDS]:6,} rounds  {tally.kills:6,} kills, "
                f"{tally.counts[WATCHERS_KILLED]:,} of whom watched  {tally.notifications:9,} "
                f"notifications  {tally.delivered:10,} given  {tally.losses} times lost",
                flush=True,
            )

    with tempfile.TemporaryDirectory(prefix="oxlite-notify-kills-") as folder:
        campaign = Campaign(Path(folder), seed)
        try:
            campaign.run(options.kills, options.notifications, progress)
        except WrongError as error:
            print(f"wrong after {campaign.tally.kills:,} kills: {error}\n{table(campaign.tally)}")
            return 1
    command = f"make notify-kills KILLS={options.kills} SEED={seed}"
    if options.notifications != parser.get_default("notifications"):
        command += f" NOTIFICATIONS={options.notifications}"
    text = page(campaign.tally, command, time.monotonic() - begun)
    EVIDENCE.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
