"""``python -m tests.fuzz``: plays random cases for some minutes and says what it found."""

import argparse
import contextlib
import itertools
import random
import sys
import threading
import time
from pathlib import Path

from tests.fuzz import reference
from tests.fuzz.campaign import OXLITE, STANDARD_LIBRARY, Campaign, Pair, heading
from tests.fuzz.generator import case_of
from tests.fuzz.report import coverage, progress
from tests.fuzz.script import as_script

_PROGRESS_SECONDS = 10


def arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1, help="for how long (1)")
    parser.add_argument("--cases", type=int, help="how many cases, instead of a time")
    parser.add_argument("--seed", type=int, help="the first seed (drawn, and printed)")
    parser.add_argument("--workers", type=int, default=1, help="pairs of processes (1)")
    parser.add_argument("--seconds", type=int, default=10, help="time limit of a case (10)")
    parser.add_argument("--driver", default=OXLITE, help="the module under test")
    parser.add_argument("--show", action="store_true", help="print the case of --seed and end")
    parser.add_argument("--no-minimise", action="store_true", help="keep cases as they are")
    parser.add_argument(
        "--system-sqlite",
        action="store_true",
        help="compare with the interpreter's own SQLite; its version may explain differences",
    )
    parser.add_argument(
        "--findings", type=Path, default=reference.FOLDER / "findings", help="where scripts go"
    )
    return parser.parse_args()


def main() -> int:
    """Runs a campaign; 1 if anything was found."""
    options = arguments()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    environment = {} if options.system_sqlite else reference.environment()
    with contextlib.ExitStack() as stack:
        pairs = [
            stack.enter_context(
                Pair(STANDARD_LIBRARY, options.driver, environment, options.seconds)
            )
            for _ in range(options.workers)
        ]
        if options.show:
            print(as_script(case_of(seed, pairs[0].features), f"seed: {seed}"))
            return 0
        first = Campaign(pairs[0], options.findings, not options.no_minimise)
        rest = [Campaign(pair, options.findings, first.minimise, first) for pair in pairs[1:]]
        tell_beginning(seed, pairs[0])
        began = time.monotonic()
        stopped = threading.Event()

        def goes_on() -> bool:
            cases: int | None = options.cases
            minutes: float = options.minutes
            if stopped.is_set():
                return False
            if cases is not None:
                return first.statistics.cases < cases
            return time.monotonic() - began < minutes * 60

        workers = [
            threading.Thread(
                target=campaign.run, args=(itertools.count(seed + number, len(pairs)), goes_on)
            )
            for number, campaign in enumerate([first, *rest])
        ]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                while worker.is_alive():
                    worker.join(_PROGRESS_SECONDS)
                    print(progress(first, time.monotonic() - began), flush=True)
        except KeyboardInterrupt:
            stopped.set()
            print("stopping")
            for worker in workers:
                worker.join()
    print(coverage(first.statistics))
    tell_findings(first)
    return 1 if first.findings else 0


def tell_beginning(seed: int, pair: Pair) -> None:
    """Says what is compared."""
    versions = [child.features["sqlite_version"] for child in (pair.reference, pair.driver)]
    print(f"seed {seed}; SQLite {versions[0]} against {versions[1]}; Python {sys.version}")
    print(f"features of both: {', '.join(sorted(pair.features))}")


def tell_findings(campaign: Campaign) -> None:
    """Prints every kind of difference with its case, the most frequent first."""
    for finding in sorted(campaign.findings.values(), key=lambda finding: -finding.times):
        print(f"\n{finding.times} of {finding.path}\n{heading(finding)}")
        print("\n".join(f"    {step}" for step in finding.case.steps))


if __name__ == "__main__":
    sys.exit(main())
