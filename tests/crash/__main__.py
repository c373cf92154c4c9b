"""``python -m tests.crash``: crash images until there are enough, then faults at every place.

``python -m tests.crash replay FOLDER`` shows a violation that was kept. Ends with 0 if nothing is
wrong, 1 if something is.
"""

import argparse
import datetime
import itertools
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.crash import controls, kept, report, trouble
from tests.crash.callers import Play
from tests.crash.campaign import VIOLATIONS, Task, run
from tests.crash.judge import Judge, Tally
from tests.crash.recording import ROOT, Player
from tests.crash.verdict import Opener
from tests.crash.workloads import LONG, PROCESSES, profiles_of
from tests.faults.injector import SUPPORTED, build

from oxlite import sqlite3

_PAGE = ROOT / "docs" / "evidence" / "crash.md"
_PROGRESS_SECONDS = 5
_RANDOM_IMAGES = 5
_RANDOM_IMAGES_IN_TROUBLE = 1
_KILLINGS_AMONG = 500

_HEADING = """\
`make crash` records, below everything of ours, what Oxlite does to its files, and judges what a
disk may hold when the power fails at any moment of it: every acknowledged transaction is there
(`durable`, and `shared`, which is `web` with `durable_commit="shared"`; with `web` what is there
is a beginning of all commits), none that failed, none in part, and `integrity_check` and
`foreign_key_check` find nothing. The model and its limits:
[decision 36](../decisions/0036-power-cuts.md)."""


def arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["replay"], help="shows what was kept")
    parser.add_argument("folder", nargs="?", type=Path, help="where it was kept")
    parser.add_argument("--images", type=int, default=100_000, help="distinct images (100000)")
    parser.add_argument("--seed", type=int, help="the first seed (drawn, and printed)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--workload", help="only this one")
    parser.add_argument("--places", type=int, help="faults and killings at so many places (all)")
    parser.add_argument("--page", type=Path, default=_PAGE, help="where the page goes")
    return parser.parse_args()


def machine() -> str:
    """What it was run on."""
    return (
        f"SQLite {sqlite3.sqlite_version}, CPython {platform.python_version()}, "
        f"{platform.system()} {platform.release()} {platform.machine()}, "
        f"{os.cpu_count()} processors"
    )


def plays(seed: int, wanted: str | None) -> Iterator[Task]:
    """All workloads with their profiles, again and again."""
    names = [name for name in [*LONG, PROCESSES] if wanted in (None, name)]
    while True:
        for name in names:
            for profile in profiles_of(name):
                yield Task(Play(name, profile, seed), _RANDOM_IMAGES)
        seed += 1


def timed(
    tasks: Iterator[Task], workers: int, is_enough: Callable[[Tally], bool]
) -> tuple[Tally, float]:
    """Runs, and tells how far it is."""
    begun = last = time.monotonic()

    def progress(tally: Tally) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > _PROGRESS_SECONDS:
            last = now
            print(
                f"{now - begun:5.0f} s  {tally.recordings.total():6,} recordings "
                f"{tally.distinct:9,} distinct images  {tally.wrong.total():,} violations",
                flush=True,
            )

    tally = run(tasks, workers, is_enough, progress)
    return tally, time.monotonic() - begun


def check_controls() -> tuple[list[str], list[str]]:
    """Does all wrong that is known to be; what was found out, as lines, and what was not."""
    lines, missed = [], []
    with Player() as player, Opener() as opener:
        for control in controls.CONTROLS:
            tally = controls.judge(player, Judge(opener), control, _RANDOM_IMAGES)
            lines.append(f"- {control.name}: {', '.join(report.wrong(tally)) or 'NOTHING'}")
            print(lines[-1], flush=True)
            if not control.kinds & {kind for _, _, kind in tally.wrong}:
                missed.append(control.name)
    return lines, missed


def main() -> int:
    """Does what the command line asks for."""
    options = arguments()
    if not SUPPORTED:
        print("files can be recorded on x86-64 Linux only")
        return 2
    if options.what == "replay":
        print("\n".join(kept.show(options.folder)))
        return 0
    build()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}; {machine()}; {options.workers} workers", flush=True)
    print("What is wrong on purpose:")
    mistakes, missed = check_controls()
    print("Power cuts:", flush=True)
    sections = [
        (
            "Power cuts",
            *timed(
                plays(seed, options.workload),
                options.workers,
                lambda tally: tally.distinct >= options.images,
            ),
        )
    ]
    if options.places != 0:
        print("Faults and killings, and power cuts after them:", flush=True)
        with Player() as player:
            troubled = [
                Task(play, _RANDOM_IMAGES_IN_TROUBLE)
                for play in itertools.chain(
                    trouble.killings_among(player, seed, _KILLINGS_AMONG),
                    trouble.plays(player, seed),
                )
            ]
        if options.places is not None:
            troubled = random.Random(seed).sample(troubled, min(options.places, len(troubled)))
        name = "Faults and killings, and power cuts after them"
        sections.append((name, *timed(iter(troubled), options.workers, lambda _: False)))
    command = f"make crash IMAGES={options.images} SEED={seed} WORKERS={options.workers}"
    if options.places is not None:
        command += f" PLACES={options.places}"
    about = f"{machine()}; {datetime.date.today():%-d %B %Y}; seed {seed}."
    text = report.page(_HEADING, command, about, mistakes, sections)
    print("\n" + text)
    options.page.write_text(text)
    wrong = any(tally.wrong for _, tally, _ in sections)
    if wrong:
        print(f"Kept in {VIOLATIONS}; look again with: python -m tests.crash replay FOLDER")
    for name in missed:
        print(f"Not found out: {name}")
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    sys.exit(main())
