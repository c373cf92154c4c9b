#!/usr/bin/env python3
"""What is to be so before a release, said by a program: the workflow ``publish.yml`` asks it.

    scripts/release.py check v0.1.0     the tag, the version and the change log agree
    scripts/release.py files dist       all files of the release are there, and no others
    scripts/release.py notes            what the change log says of this version

docs/release.md is the whole order. It needs the standard library alone, and Python 3.11.
"""

import re
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]

SYSTEMS: Final = (
    "manylinux_2_17_x86_64",
    "manylinux_2_17_aarch64",
    "musllinux_1_2_x86_64",
    "musllinux_1_2_aarch64",
)
"""What there is a wheel for, of each Python."""

_HEADING: Final = re.compile(r"^## (?P<version>\S+)(?: - (?P<date>\S+))?(?P<yanked> \[YANKED\])?$")


class NotReadyError(Exception):
    """Why there can be no release."""


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text())


def version() -> str:
    """The version, as Cargo.toml says it."""
    found: str = _toml("Cargo.toml")["workspace"]["package"]["version"]
    return found


def pythons() -> list[str]:
    """The versions of Python that the package says it supports."""
    classifiers = _toml("pyproject.toml")["project"]["classifiers"]
    words = "Programming Language :: Python :: 3."
    return [name.rpartition(" ")[2] for name in classifiers if name.startswith(words)]


def sections(text: str) -> dict[str, tuple[str | None, str]]:
    """The sections of a change log by their version: the date, and what is said.

    Raises:
        NotReadyError: A heading is none of a version.
    """
    found: dict[str, tuple[str | None, str]] = {}
    parts = re.split(r"^(## .*)$", text, flags=re.MULTILINE)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        read = _HEADING.match(heading)
        if read is None:
            raise NotReadyError(f"CHANGELOG.md has a heading that is none of a version: {heading}")
        found[read["version"]] = (read["date"], body.strip())
    return found


def check(tag: str, now: str, text: str) -> None:
    """See that a tag, a version and a change log agree.

    Args:
        tag: As it is pushed.
        now: The version of the tree.
        text: Its change log.

    Raises:
        NotReadyError: They do not.
    """
    if tag != f"v{now}":
        raise NotReadyError(f"the tag is {tag}, and the version is {now}: the tag has to be v{now}")
    said = sections(text)
    if now not in said:
        raise NotReadyError(f"CHANGELOG.md has no section '## {now} - DATE'")
    day, body = said[now]
    if day is None:
        raise NotReadyError(f"CHANGELOG.md has no date beside {now}: '## {now} - YYYY-MM-DD'")
    try:
        date.fromisoformat(day)
    except ValueError:
        raise NotReadyError(f"CHANGELOG.md says of {now} '{day}', which is no date") from None
    if not body:
        raise NotReadyError(f"CHANGELOG.md says nothing of {now}")
    if said.get("Unreleased", (None, ""))[1] not in {"", "Nothing yet."}:
        raise NotReadyError(f"CHANGELOG.md has changes under Unreleased: they belong to {now}")


def check_files(directory: Path, now: str, supported: list[str]) -> None:
    """See that a directory has the files of a release, and nothing else.

    Args:
        directory: Where they are.
        now: The version.
        supported: Of Python.

    Raises:
        NotReadyError: One is missing, or there is another one.
    """
    there = {file.name for file in directory.iterdir()}
    expected = {f"oxlite-{now}.tar.gz"}
    missing = expected - there
    for python in supported:
        tag = f"cp{python.replace('.', '')}"
        for system in SYSTEMS:
            fits = {
                name
                for name in there
                if name.startswith(f"oxlite-{now}-{tag}-{tag}-")
                and system in name.removesuffix(".whl").rpartition("-")[2].split(".")
            }
            expected |= fits
            if len(fits) != 1:
                missing.add(f"oxlite-{now}-{tag}-{tag}-{system}.whl")
    if missing:
        raise NotReadyError(f"{directory} lacks {', '.join(sorted(missing))}")
    if there - expected:
        raise NotReadyError(f"{directory} has also {', '.join(sorted(there - expected))}")


def main(arguments: list[str]) -> int:
    """The command line."""
    log = (ROOT / "CHANGELOG.md").read_text()
    try:
        match arguments:
            case ["check", tag]:
                check(tag, version(), log)
                print(f"{tag} can be released")
            case ["files", directory]:
                check_files(Path(directory), version(), pythons())
                print(f"{directory} has the files of {version()}")
            case ["notes"]:
                print(sections(log)[version()][1])
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except NotReadyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
