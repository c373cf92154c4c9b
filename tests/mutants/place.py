"""Where in the source a mutant goes, found by its text.

White space does not count, so a place is found again when it was formatted anew or moved to
another file.

Invariant: a text that stands nowhere, or more than once, is an error that names the mutant.
"""

import textwrap
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.mutants.declared import Mutant

SOURCES = (("crates", "*.rs"), ("python/oxlite", "*.py"))

# The crate that all others use, and where the switch is.
CRATE = "oxlite-sqlite"
SWITCH = """
/// Whether that deliberate mistake is switched on, by the environment.
pub fn mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let chosen = || std::env::var("OXLITE_MUTANT").ok()?.parse().ok();
    *CHOSEN.get_or_init(|| chosen().unwrap_or(0)) == number
}
"""


class Place(NamedTuple):
    """Where a mutant goes: from ``start`` to ``end`` in the text of ``file``.

    Attributes:
        file: Relative to the project's folder.
    """

    mutant: Mutant
    file: Path
    start: int
    end: int

    @property
    def is_rust(self) -> bool:
        """Whether it is compiled, and not put into the text of a module."""
        return self.file.suffix == ".rs"


class Source:
    """The text of one file, and the same without white space."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.text = text
        self.positions = [index for index, char in enumerate(text) if not char.isspace()]
        self.squeezed = squeezed(text)


def squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


def sources(root: Path) -> list[Source]:
    """The files in which mutants may go."""
    return [
        Source(file.relative_to(root), file.read_text())
        for folder, pattern in SOURCES
        for file in sorted((root / folder).rglob(pattern))
    ]


def find(mutant: Mutant, within: Iterable[Source]) -> Place:
    """Where a mutant goes.

    Raises:
        ValueError: Its original stands nowhere, or more than once.
    """
    before, mark, rest = mutant.original.partition("«")
    part, _, after = rest.partition("»") if mark else (before, "", "")
    skipped, length = (len(squeezed(before)) if mark else 0), len(squeezed(part))
    wanted = squeezed(before + part + after) if mark else squeezed(before)
    found = []
    for source in within:
        start = source.squeezed.find(wanted)
        while start >= 0:
            first = source.positions[start + skipped]
            last = source.positions[start + skipped + length - 1]
            found.append(Place(mutant, source.file, first, last + 1))
            start = source.squeezed.find(wanted, start + 1)
    if len(found) != 1:
        where = ", ".join(str(place.file) for place in found) or "nowhere"
        raise ValueError(f"{mutant.area}: {mutant.name!r} must stand once, and does in: {where}")
    return found[0]


def find_all(mutants: Iterable[Mutant], root: Path) -> list[Place]:
    """Where all of them go.

    Raises:
        ValueError: Some cannot be placed, or two in one place.
    """
    within = sources(root)
    places, wrong = [], []
    for mutant in mutants:
        try:
            places.append(find(mutant, within))
        except ValueError as error:
            wrong.append(str(error))
    places.sort(key=lambda place: (place.file, place.start))
    for one, other in pairwise(places):
        if one.file == other.file and one.end > other.start:
            wrong.append(f"{one.mutant.name!r} and {other.mutant.name!r} are in one place")
    if wrong:
        raise ValueError("\n".join(wrong))
    return places


def switched(original: str, place: Place) -> str:
    """The part of a Rust file that does one or the other: statements, or an expression."""
    crate = "crate" if CRATE in place.file.parts else CRATE.replace("-", "_")
    mutated = place.mutant.mutated.strip()
    choice = f"if {crate}::mutant({place.mutant.number}) {{ {mutated} }} else {{ {original} }}"
    return choice if original.endswith((";", "}")) else f"({choice})"


def with_switches(text: str, places: Iterable[Place]) -> str:
    """The text of a Rust file with all of its mutants, switched off."""
    for place in sorted(places, key=lambda place: place.start, reverse=True):
        part = switched(text[place.start : place.end], place)
        text = text[: place.start] + part + text[place.end :]
    return text


def with_mistake(text: str, place: Place) -> str:
    """The text of a Python module with one mutant."""
    line = text[text.rfind("\n", 0, place.start) + 1 : place.start]
    indentation = line[: len(line) - len(line.lstrip())]
    mutated = textwrap.dedent(place.mutant.mutated).strip()
    mutated = mutated.replace("\n", f"\n{indentation}") or "pass"
    return text[: place.start] + mutated + text[place.end :]
