"""What came of a run of mutants: a table, for a terminal and for ``docs/evidence``."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutants.campaign import Result

_HEAD = """\
# Deliberate mistakes that the tests find

`make mutants` makes {count} deliberate mistakes, one after the other, and runs the tests of the
area that each is made in (`tests/mutants/areas`): those alone must find it. A test that has found
one passes again without it. Captured on {where}.

{summary}

"""


def save(results: Sequence[Result], commit: str, file: Path) -> None:
    """Write what came of a run, to stand beside a later one."""
    found = {result.mutant.name: result.by for result in results}
    file.write_text(json.dumps({"commit": commit, "found": found}, indent=1) + "\n")


def summary(results: Sequence[Result]) -> str:
    """How many were found."""
    found = sum(result.by is not None for result in results)
    areas = len({result.mutant.area for result in results})
    return (
        f"{found} of {len(results)} mutants in {areas} areas were found by the tests of their area."
    )


def page(results: Sequence[Result], commit: str, when: str, earlier: Path | None) -> str:
    """A page for ``docs/evidence``, with the run before beside this one."""
    before: dict[str, Any] = {"commit": "", "found": {}}
    if earlier:
        before = json.loads(earlier.read_text())
    where = (
        f"{when}, CPython {platform.python_version()}, {platform.system()} on {platform.machine()}"
    )
    told = f"At commit {commit}: {summary(results)}"
    if earlier:
        both = [name for name, by in before["found"].items() if by]
        kept = [result for result in results if result.mutant.name in both and result.by]
        told += (
            f" At commit {before['commit']}, with the tests of that time: {len(both)} of"
            f" {len(before['found'])}. {len(kept)} were found by both."
        )
    columns = ["area", "mutant", "found by"] + ["before"] * bool(earlier)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for result in results:
        row = [result.mutant.area, result.mutant.name, _short(result.by)]
        if earlier:
            name = result.mutant.name
            row.append(_short(before["found"][name]) if name in before["found"] else "not tried")
        lines.append(f"| {' | '.join(row)} |")
    head = _HEAD.format(count=len(results), where=where, summary=told)
    return head + "\n".join(lines) + "\n"


def _short(by: str | None) -> str:
    """The test that found it, without the case of a test that has several."""
    if by is None:
        return "**nobody**"
    return f"`{by.partition('[')[0]}`"
