"""``python -m tests.functions --calls 1000000``: the driver's functions beside Django's own.

The exit code is 1 where a call had two outcomes.
"""

import argparse
import random
import sys

from tests.functions.comparison import Outcome, compare
from tests.functions.samples import compare_any_values, compare_samples
from tests.functions.searches import compare_searches
from tests.functions.texts import compare_texts


def main() -> int:
    """Compare, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, default=100_000, help="for regular expressions")
    parser.add_argument("--samples", type=int, default=100_000, help="for the aggregates")
    parser.add_argument("--texts", type=int, default=200_000, help="for the small functions")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    found = compare(
        arguments.calls,
        arguments.seed,
        lambda number: print(f"{number:,}", end="\r", file=sys.stderr, flush=True),
    )
    outcomes = (
        found,
        compare_samples(arguments.samples, arguments.seed),
        compare_any_values(arguments.samples, arguments.seed),
        compare_searches(arguments.searches, arguments.seed),
        compare_texts(arguments.texts, arguments.seed),
    )
    for outcome in outcomes:
        show(outcome)
    return 1 if any(outcome.differences for outcome in outcomes) else 0


def show(found: Outcome) -> None:
    """Print what was compared, and what was not the same."""
    for name, count in sorted(found.calls.items()):
        by_django, errors = found.originals[name], found.errors[name]
        print(f"{name:28}{count:12,} calls {by_django:12,} by Django's {errors:12,} errors")
    for call, expected, actual in found.differences[:20]:
        print(f"{call}: {expected} is expected, and there is {actual}")
    print(f"{sum(found.calls.values()):,} calls, {len(found.differences):,} differences")


if __name__ == "__main__":
    sys.exit(main())
