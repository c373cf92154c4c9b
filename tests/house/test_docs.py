"""The documents name everything there is: commands, options, profiles, pragmas."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from oxlite.bench.report.reference import with_workloads
from oxlite.bench.workloads.catalogue import WORKLOADS

Command = Any  # of Click, or of the Click inside Typer


def commands(command: Command, path: str = "oxlite") -> Iterator[tuple[str, Command]]:
    """Every command with its full name, groups included."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


def options(command: Command) -> set[str]:
    """The long and short strings of a command's options."""
    return {
        string
        for parameter in command.params
        for string in (*parameter.opts, *parameter.secondary_opts)
        if string.startswith("-") and string != "--help"
    }


@pytest.fixture(scope="module")
def tree() -> dict[str, Command]:
    from oxlite.cli.app import app

    return dict(commands(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def sections(root: Path) -> dict[str, str]:
    """The sections of the command line's page by their headings."""
    text = (root / "docs" / "cli.md").read_text()
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {title.strip("` "): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def said_of(name: str, sections: dict[str, str]) -> str:
    """What the page says of a command; the options of all workloads stand with their group."""
    own = sections.get(name, "")
    is_workload = name.removeprefix("oxlite bench ") in WORKLOADS.names()
    return own + sections["oxlite bench"] if is_workload else own


def test_the_workloads_are_described_as_they_are(root: Path) -> None:
    """``scripts/reference.py`` has been run since a workload has changed."""
    page = (root / "docs" / "cli.md").read_text()
    assert page == with_workloads(page)


def test_every_command_has_a_section(tree: dict[str, Command], sections: dict[str, str]) -> None:
    assert not tree.keys() - sections.keys()


def test_no_section_is_of_a_command_that_is_gone(
    tree: dict[str, Command], sections: dict[str, str]
) -> None:
    assert not {title for title in sections if title.startswith("oxlite")} - tree.keys()


def test_every_option_is_in_its_commands_section(
    tree: dict[str, Command], sections: dict[str, str]
) -> None:
    missing = {
        f"{name} {option}"
        for name, command in tree.items()
        for option in options(command)
        if not re.search(rf"`{re.escape(option)}[` =]", said_of(name, sections))
    }
    assert not missing


def test_no_option_is_described_that_is_gone(
    tree: dict[str, Command], sections: dict[str, str]
) -> None:
    stale = {
        f"{name} {option}"
        for name, command in tree.items()
        for option in re.findall(r"^\| `(--[a-z-]+)", sections.get(name, ""), flags=re.MULTILINE)
        if option not in options(command) and name != "oxlite bench"
    }
    assert not stale


def test_every_profile_and_pragma_is_described(root: Path) -> None:
    import oxlite

    text = (root / "docs" / "profiles.md").read_text()
    profiles = oxlite.profiles()
    assert profiles
    words = set(profiles) | {pragma for settings in profiles.values() for pragma in settings}
    assert not {word for word in words if not re.search(rf"`{re.escape(word)}[` =]", text)}
