"""What is declared in ``areas/``: the areas, their tests, and their mutants.

A file for each area: ``tests`` (paths for pytest), ``rust_tests`` (a crate, then ``tests/NAME`` or
a part of the names of its unit tests), and its mutants: ``name``, ``original``, ``mutated``. The
original is found by its text, whatever white space is in it, and stands once in ``crates`` and
``python/oxlite``. Where it has a part in ``«»`` that part alone is replaced; the rest says which
place is meant.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

AREAS = Path(__file__).parent / "areas"


class Mutant(NamedTuple):
    """One deliberate mistake.

    Attributes:
        number: By which the environment switches it on, from 1.
        area: The name of its area.
        name: What is wrong with it; unique.
        original: The text before.
        mutated: What stands in the place of it, or of its part in ``«»``.
    """

    number: int
    area: str
    name: str
    original: str
    mutated: str


class Area(NamedTuple):
    """A part of the product, and its own tests.

    Attributes:
        name: The name of its file.
        tests: What pytest is to run.
        rust_tests: A crate and which of its tests, for each run.
        mutants: Its mutants.
    """

    name: str
    tests: tuple[str, ...]
    rust_tests: tuple[tuple[str, str], ...]
    mutants: tuple[Mutant, ...]


def areas(folder: Path = AREAS) -> list[Area]:
    """All areas in the order of their names, their mutants numbered through.

    Raises:
        ValueError: Something is declared that is not known, or a name twice.
    """
    found: list[Area] = []
    names: set[str] = set()
    for file in sorted(folder.glob("*.toml")):
        declared = tomllib.loads(file.read_text())
        _refuse_others(file, declared, {"tests", "rust_tests", "mutant"})
        mutants = []
        for entry in declared.get("mutant", []):
            _refuse_others(file, entry, {"name", "original", "mutated"})
            if entry["name"] in names:
                raise ValueError(f"{file.name}: {entry['name']!r} is declared twice")
            names.add(entry["name"])
            mutants.append(Mutant(len(names), file.stem, **entry))
        rust_tests = tuple(tuple(each.split()) for each in declared.get("rust_tests", ()))
        found.append(Area(file.stem, tuple(declared.get("tests", ())), rust_tests, tuple(mutants)))
    return found


def _refuse_others(file: Path, entry: dict[str, Any], known: set[str]) -> None:
    if others := entry.keys() - known:
        raise ValueError(f"{file.name}: {', '.join(sorted(others))} is not known")
