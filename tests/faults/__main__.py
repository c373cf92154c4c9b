"""``python -m tests.faults``: every point of every chapter with every kind of fault.

Ends with 0 if nothing is wrong, 1 if something is.
"""

import argparse
import os
import platform
import sys
import time
from collections import Counter

from tests.faults import intended
from tests.faults.campaign import Findings, Series, all_series, run
from tests.faults.injector import SUPPORTED, build
from tests.faults.kinds import FAULTS

from oxlite import sqlite3

_SHOWN = 40


def table(findings: Findings) -> list[str]:
    """The points by kind, and what became of them."""
    lines = [
        "| fault | once | persistent | raised | no effect | wrong |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    total = [0] * 5
    wrong = Counter(series.fault for series, _, _ in findings.wrong)
    for name in FAULTS:
        once, persistent = (
            sum(
                n
                for series, n in findings.points.items()
                if (series.fault, series.is_persistent) == (name, mode)
            )
            for mode in (False, True)
        )
        absorbed = findings.outcomes[name, "absorbed"]
        row = [once, persistent, once + persistent - absorbed, absorbed, wrong[name]]
        total = [sum(pair) for pair in zip(total, row, strict=True)]
        lines.append(f"| {name} | " + " | ".join(f"{number:,}" for number in row) + " |")
    lines.append("| **all** | " + " | ".join(f"{number:,}" for number in total) + " |")
    return lines


def report(findings: Findings) -> list[str]:
    """All that is to be said."""
    lines = [*table(findings), "", "Raised:"]
    raised: dict[str, Counter[str]] = {}
    for (fault, outcome), times in findings.outcomes.items():
        if outcome != "absorbed":
            raised.setdefault(fault, Counter())[outcome] += times
    for fault in FAULTS:
        if fault in raised:
            names = (f"{name} {times:,}" for name, times in raised[fault].most_common())
            lines.append(f"  {fault}: " + ", ".join(names))
    lines += ["", "Declared (tests/faults/intended.py):"]
    for known in intended.DECLARED:
        lines.append(f"  {known.name}: {findings.declared[known.name]:,}")
    kinds: dict[tuple[Series, str], list[int]] = {}
    for series, point, what in findings.wrong:
        kinds.setdefault((series, what), []).append(point)
    if kinds:
        lines += ["", f"Wrong ({len(kinds)} kinds):"]
    for (series, what), points in list(kinds.items())[:_SHOWN]:
        lines.append(
            f"  {series.chapter}, {series.fault} {series.mode}, "
            f"{len(points)} points from {points[0]}:"
        )
        lines.append(f"    {what}")
    return lines


def main() -> int:
    """Runs the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--chapter", help="only this one")
    parser.add_argument("--fault", help="only this kind")
    options = parser.parse_args()
    if not SUPPORTED:
        print("faults can be injected on x86-64 Linux only")
        return 2
    build()
    series = [
        one
        for one in all_series()
        if options.chapter in (None, one.chapter) and options.fault in (None, one.fault)
    ]
    findings = Findings()
    begun = time.monotonic()
    last = 0.0

    def progress(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > 5 or done == len(series):
            last = now
            print(
                f"{now - begun:5.0f} s  {done:5,} of {len(series):,} series  "
                f"{findings.points.total():9,} points  {len(findings.wrong)} wrong",
                flush=True,
            )

    print(
        f"SQLite {sqlite3.sqlite_version}, CPython {platform.python_version()}, "
        f"{platform.system()} {platform.release()} {platform.machine()}, "
        f"{os.cpu_count()} processors, {options.workers} workers",
        flush=True,
    )
    run(series, options.workers, findings, progress)
    print()
    print("\n".join(report(findings)))
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
