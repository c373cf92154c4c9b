"""``python -m tests.mutants``: all mutants, or those of some areas.

Ends with 0 if each was found, 1 if one was not or the tests fail without any.
"""

import argparse
import datetime
import subprocess
import sys
from pathlib import Path

from tests.mutants.campaign import Campaign
from tests.mutants.copy_of_tree import ROOT, CopyOfTree
from tests.mutants.declared import areas
from tests.mutants.place import find_all
from tests.mutants.report import page, save, summary


def main() -> int:
    """Run them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="areas, or parts of the names of mutants")
    parser.add_argument("--list", action="store_true", help="show them, and run nothing")
    parser.add_argument("--evidence", type=Path, help="write a page there")
    parser.add_argument("--save", type=Path, help="write what was found there")
    parser.add_argument("--before", type=Path, help="what an earlier run has written with --save")
    options = parser.parse_args()

    everything = areas()
    places = find_all((mutant for area in everything for mutant in area.mutants), ROOT)
    wanted = {area.name for area in everything} & {*options.names}
    parts = {*options.names} - wanted
    chosen = [
        (area, mutants)
        for area in everything
        if (
            mutants := [
                mutant
                for mutant in area.mutants
                if not options.names
                or area.name in wanted
                or any(name in mutant.name for name in parts)
            ]
        )
    ]
    if options.list:
        for area, mutants in chosen:
            print(
                f"{area.name}: {' '.join(area.tests)} {'; '.join(map(' '.join, area.rust_tests))}"
            )
            for mutant in mutants:
                print(f"  {mutant.number:3} {mutant.name}")
        return 0
    copy = CopyOfTree()
    copy.fill(places)
    print("Building a copy with all mutants in it: minutes the first time", flush=True)
    copy.build()
    campaign = Campaign(copy, places)
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True)
    for area, mutants in chosen:
        campaign.try_area(area, mutants, lambda text: print(text, flush=True))
        if options.save:
            save(campaign.results, commit.strip(), options.save)
    if options.evidence:
        when = datetime.date.today().strftime("%d %B %Y").lstrip("0")
        options.evidence.write_text(page(campaign.results, commit.strip(), when, options.before))
    print(summary(campaign.results))
    for name, test in campaign.unsound.items():
        print(f"{name}: not tried, since {test} fails without a mutant")
    are_found = all(result.by for result in campaign.results)
    return 0 if are_found and not campaign.unsound else 1


if __name__ == "__main__":
    sys.exit(main())
