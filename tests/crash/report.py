"""What a run has found, as tables."""

from collections import Counter
from collections.abc import Callable, Iterable

from tests.crash.judge import Tally


def _table(title: str, rows: Iterable[tuple[str, int, int]]) -> list[str]:
    lines = [f"| {title} | images | violations |", "|---|---:|---:|"]
    total = [0, 0]
    for name, images, wrong in rows:
        lines.append(f"| {name} | {images:,} | {wrong:,} |")
        total = [total[0] + images, total[1] + wrong]
    return [*lines, f"| **all** | {total[0]:,} | {total[1]:,} |"]


def images(tally: Tally) -> list[str]:
    """The images by what was played."""
    wrong: Counter[tuple[str, str]] = Counter()
    for (workload, profile, _), times in tally.wrong.items():
        wrong[workload, profile] += times
    played = sorted(tally.images | wrong)
    return _table(
        "workload, profile",
        ((", ".join(one), tally.images[one], wrong[one]) for one in played),
    )


def _counts(title: str, counts: Counter[str], unit: str) -> list[str]:
    lines = [f"| {title} | {unit} |", "|---|---:|"]
    return [*lines, *(f"| {name} | {times:,} |" for name, times in sorted(counts.items()))]


def shapes(tally: Tally) -> list[str]:
    """The images by their shapes."""
    return _counts("shape (an image may have several)", tally.shapes, "images")


def situations(tally: Tally) -> list[str]:
    """The images by what was going on."""
    return _counts("while", tally.situations, "images")


def points(tally: Tally) -> list[str]:
    """The faults and killings."""
    return _counts("fault", tally.points, "places")


def wrong(tally: Tally) -> list[str]:
    """The violations."""
    return [
        f"{times:,} times {kind} ({workload}, {profile})"
        for (workload, profile, kind), times in tally.wrong.most_common()
    ]


def summary(tally: Tally, seconds: float) -> str:
    """In one line."""
    return (
        f"{tally.distinct:,} distinct images of {tally.judged:,} judged, from"
        f" {tally.recordings.total():,} recordings with {tally.events:,} events;"
        f" {tally.distinct / max(seconds, 1e-9):,.0f} distinct images/s;"
        f" {tally.wrong.total():,} violations"
    )


def page(
    heading: str,
    command: str,
    machine: str,
    mistakes: list[str],
    sections: list[tuple[str, Tally, float]],
) -> str:
    """The page for ``docs/evidence``."""
    lines = ["# What a power cut leaves", "", heading, ""]
    lines += [f"Repeat with `{command}`. {machine}", ""]
    lines += ["## What is wrong on purpose", "", "Each is left as soon as it is found out.", ""]
    lines += [*mistakes, ""]
    parts: list[tuple[str, Callable[[Tally], list[str]]]] = [
        ("by workload", images),
        ("by shape", shapes),
        ("by situation", situations),
        ("faults", points),
    ]
    for name, tally, seconds in sections:
        lines += [f"## {name}", "", f"{summary(tally, seconds)}; {seconds:.0f} s.", ""]
        for _, part in parts:
            table = part(tally)
            if len(table) > 2:
                lines += [*table, ""]
        if tally.declared:
            lines += ["Known, and not Oxlite's (`tests/crash/trouble.py`):", ""]
            lines += [f"- {name}: {times:,}" for name, times in tally.declared.most_common()]
            lines.append("")
        if tally.wrong:
            lines += ["Violations:", "", *(f"- {line}" for line in wrong(tally)), ""]
    return "\n".join(lines).rstrip() + "\n"
