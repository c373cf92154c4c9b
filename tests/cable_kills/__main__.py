"""``python -m tests.cable_kills --kills 1000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/cable-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
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

from tests.cable_kills.campaign import MEMBERS, STAYING, Campaign
from tests.cable_kills.member import WrongError

import oxlite

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "cable-kills.md"
_PROGRESS_SECONDS = 10.0


def page(campaign: Campaign, command: str, seconds: float) -> str:
    """The page for ``docs/evidence``."""
    rows = [
        *((f"killed: {what}", count) for what, count in campaign.killed.items()),
        ("stopped for a moment: processes that stay", campaign.stopped),
        ("messages that were sent to the group", campaign.messages),
        (f"given to the {STAYING * MEMBERS} members that stay, each once and in order",
         campaign.delivered),
    ]  # fmt: skip
    table = "\n".join(f"| {what} | {count:,} |" for what, count in rows)
    return f"""\
**cable-kills: those who send to a group and those who are in it are killed, and nobody else loses a message**

- `{command}`: two processes send to a group, two have members in it, and
  both are killed at random moments; two others have {MEMBERS} members each and stay. Each of these must
  have heard every message of each life of a sender, from the first to the last that was
  acknowledged, once and in order
- {sum(campaign.killed.values()):,} kills in {seconds:,.0f} s, {datetime.date.today():%-d %B %Y}; nothing was wrong
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}, Python {platform.python_version()},
  {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors

| what | how many |
|---|---:|
{table}
"""  # noqa: E501 - a title is one line


def main() -> int:
    """Kills, shows and writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.cable_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--seed", type=int, help="of all that is drawn (drawn, and printed)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    begun = last = time.monotonic()

    def progress(campaign: Campaign) -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_SECONDS:
            last = time.monotonic()
            print(f"{last - begun:6.0f} s  {sum(campaign.killed.values()):,} kills", flush=True)

    with tempfile.TemporaryDirectory(prefix="oxlite-cable-kills-") as folder:
        campaign = Campaign(Path(folder), seed)
        try:
            campaign.run(options.kills, progress)
        except WrongError as error:
            print(f"WRONG: {error}", file=sys.stderr)
            return 1
    command = f"make cable-kills KILLS={options.kills} SEED={seed}"
    EVIDENCE.write_text(page(campaign, command, time.monotonic() - begun))
    print(EVIDENCE.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
