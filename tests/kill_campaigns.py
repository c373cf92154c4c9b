"""What campaigns of kills share: options, a seed, progress, and the page of evidence at the end.

Invariants:
- What was drawn is drawn again by the command that stands on the page.
- A page is written where nothing was wrong, and only there.
"""

import argparse
import datetime
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import oxlite

__all__ = ["Goal", "Run", "WrongError", "main"]

_EVIDENCE = Path(__file__).resolve().parents[1] / "docs" / "evidence"
_PROGRESS_SECONDS = 10.0


class WrongError(Exception):
    """Something is not as it should be, and what."""


class Goal(NamedTuple):
    """How much of something there is to be.

    Attributes:
        count: If nothing is said.
        help: What it is.
    """

    count: int
    help: str


class Run:
    """One run of a campaign.

    Attributes:
        seed: Of all that is drawn.
        goals: How much there is to be, by name.
        folder: Where its files are.
        command: By which it is run again.
    """

    def __init__(self, seed: int, goals: Mapping[str, int], folder: Path, command: str) -> None:
        self.seed = seed
        self.goals = goals
        self.folder = folder
        self.command = command
        self._begun = self._said = time.monotonic()

    def say(self, what: Callable[[], str]) -> None:
        """Show how far it is, from time to time."""
        now = time.monotonic()
        if now - self._said >= _PROGRESS_SECONDS:
            self._said = now
            print(f"{now - self._begun:6.0f} s  {what()}", flush=True)

    def came_to(self, kills: int, beside_sqlite: str = "") -> str:
        """The lines of the page that say how it ended, and where it was.

        Args:
            kills: How many processes were killed.
            beside_sqlite: What follows SQLite's version.
        """
        seconds = time.monotonic() - self._begun
        return f"""\
- {kills:,} kills in {seconds:,.0f} s, {datetime.date.today():%-d %B %Y}; nothing was wrong
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}{beside_sqlite}, Python {platform.python_version()},
  {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors"""  # noqa: E501


def main(
    target: str,
    doc: str | None,
    evidence: str,
    goals: Mapping[str, Goal],
    campaign: Callable[[Run], str],
) -> int:
    """Run a campaign.

    Args:
        target: The target of ``make``.
        doc: What ``--help`` says.
        evidence: The name of the page.
        goals: Options that say how much there is to be.
        campaign: Runs it, and returns the page.

    Returns:
        The exit code: 1 if anything was wrong.
    """
    parser = argparse.ArgumentParser(prog=f"make {target}", description=doc)
    for name, goal in goals.items():
        what = f"{goal.help} ({goal.count:,})"
        parser.add_argument(f"--{name}", type=int, default=goal.count, help=what)
    parser.add_argument("--seed", type=int, help="of all that is drawn (drawn, and printed)")
    given = vars(parser.parse_args())
    seed = given.pop("seed")
    if seed is None:
        seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    command = " ".join(
        [
            f"make {target}",
            *(f"{name.upper()}={given[name]}" for name in goals),
            f"SEED={seed}",
        ]
    )
    with tempfile.TemporaryDirectory(prefix=f"oxlite-{target}-") as folder:
        try:
            page = campaign(Run(seed, given, Path(folder), command))
        except WrongError as error:
            print(f"WRONG: {error}", file=sys.stderr)
            return 1
    (_EVIDENCE / f"{evidence}.md").write_text(page)
    print(page)
    return 0
