"""A framework's own tests, run on the standard library's driver and on Oxlite, and compared.

What fails, is skipped or is missing on Oxlite alone must be declared in a file, with its reason;
and what is declared must differ.
"""

import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Outcomes = Mapping[str, str]
"""``passed``, ``failed`` or ``skipped`` by the name of the test."""


def source(package: str, release: str) -> Path:
    """The folder with a source distribution; fetched into ``target`` if it is not there."""
    cache = ROOT / "target" / package
    folder = cache / f"{package}-{release}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--no-binary", package, "--dest", str(cache), f"{package}=={release}"),
            ],
            check=True,
        )
        with tarfile.open(cache / f"{package}-{release}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return folder


def beyond(stock: Outcomes, oxlite: Outcomes) -> dict[str, str]:
    """What fails, is skipped or is missing on Oxlite alone."""
    problems = {}
    for test in sorted(stock.keys() | oxlite.keys()):
        ours, theirs = oxlite.get(test, "missing"), stock.get(test, "missing")
        if ours in {"passed", theirs} or (ours == "skipped" and theirs == "failed"):
            continue
        if ours == "missing" and theirs == "skipped":
            continue
        problems[test] = f"{ours}, {theirs} on the standard library's driver"
    return problems


def declarations(path: Path, release: str) -> dict[str, str]:
    """The tests of a release that may differ, with the reason.

    An entry may say ``since``: the first release that has the test.
    """
    entries = tomllib.loads(path.read_text()).get("declared", [])
    return {
        entry["test"]: " ".join(entry["reason"].split())
        for entry in entries
        if _numbers(entry.get("since", "0")) <= _numbers(release)
    }


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]


@dataclass(frozen=True)
class Comparison:
    """Two runs of a tree.

    Attributes:
        title: What was run.
        said: How, in a paragraph.
        settings: How each of the two was told what to run on, by the name of its row.
        stock: What became of the tests on the standard library's driver.
        oxlite: And on Oxlite.
        declared: The tests that may differ, with the reason.
    """

    title: str
    said: str
    settings: Mapping[str, str]
    stock: Outcomes
    oxlite: Outcomes
    declared: Mapping[str, str]

    def report(self) -> str:
        """The comparison in Markdown."""
        lines = [f"# {self.title}", "", self.said, ""]
        lines += ["| driver | told by | passed | skipped | failed |", "|---|---|---:|---:|---:|"]
        rows = zip(self.settings.items(), (self.stock, self.oxlite), strict=True)
        for (name, settings), found in rows:
            count = Counter(found.values())
            numbers = " | ".join(f"{count[kind]:,}" for kind in ("passed", "skipped", "failed"))
            lines.append(f"| {name} | `{settings}` | {numbers} |")
        problems = beyond(self.stock, self.oxlite)
        lines += ["", f"## Fails or is skipped on Oxlite alone: {len(problems)}", ""]
        for test, what in problems.items():
            lines.append(f"- `{test}`: {what}. {self.declared.get(test, '**Not declared.**')}")
        both = sorted(
            test for test, what in self.oxlite.items() if what == self.stock.get(test) == "failed"
        )
        lines += ["", f"## Fails on both: {len(both)}", "", *(f"- `{test}`" for test in both)]
        better = sorted(
            test
            for test, what in self.oxlite.items()
            if what == "passed" and self.stock.get(test, "missing") != "passed"
        )
        lines += ["", f"## Passes on Oxlite alone: {len(better)}", ""]
        lines += [f"- `{test}` ({self.stock.get(test, 'missing')})" for test in better]
        return "\n".join(lines).rstrip() + "\n"

    def complaints(self, *, is_whole: bool) -> list[str]:
        """What is not as declared; of a part of the tree, declarations may be without use."""
        problems = beyond(self.stock, self.oxlite)
        wrong = [f"{test}: {what}" for test, what in problems.items() if test not in self.declared]
        if is_whole:
            needless = sorted(self.declared.keys() - problems.keys())
            wrong += [f"declared, but does not differ: {test}" for test in needless]
        return wrong
