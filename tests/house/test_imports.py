"""Imports of the package run one way.

::

    cli → {replication, promotion, bench → django} → operations → {cable, cache, environment, tasks}
    → {sqlalchemy, aio} → sqlite3 → _native

A room may import any room below it, never one beside or above it. The rooms
above the faces see public names only. ``oxlite`` itself (its ``__init__``) is
the door: it shows the driver, and everything but the driver may use it.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DOOR = "oxlite"
DRIVER = {"_native", "sqlite3"}
FACES = {"aio", "django", "sqlalchemy"}
BELOW: dict[str, set[str]] = {
    DOOR: DRIVER
    | {"connection", "database", "notifications", "retries", "schema", "unloadable"}
    | {"version"},
    "_native": set(),
    "sqlite3": {"_native"},
    "branch": {"operations"},
    "changeset": {"_native"},
    "connection": DRIVER,
    "schema": DRIVER,
    "retries": DRIVER,
    "notifications": DRIVER | {"connection"},
    "arrays": set(),
    "patterns": {"_native"},
    "bell": set(),
    "unloadable": set(),
    "version": set(),
    "file_locks": set(),
    "own_tables": DRIVER | {DOOR, "aio"},
    "database": DRIVER | {"connection", "notifications", "schema"},
    **{face: DRIVER | {DOOR} for face in FACES},
    "aio": DRIVER | {DOOR, "connection", "database", "notifications"},
    "sqlalchemy": DRIVER
    | {DOOR, "aio", "arrays", "connection", "own_tables", "patterns", "schema"},
    "cable": DRIVER | {DOOR, "aio", "bell", "connection", "notifications", "own_tables"},
    "cache": DRIVER | {DOOR, "aio", "connection", "database", "file_locks"},
    "tasks": DRIVER
    | {DOOR, "aio", "bell", "connection", "file_locks", "notifications", "own_tables"},
    "operations": DRIVER | {DOOR, "environment", "file_locks"},
    "replication": DRIVER | {DOOR, "file_locks", "operations"},
    "promotion": DRIVER | {DOOR, "operations", "own_tables"},
    "django": DRIVER
    | {DOOR, "arrays", "cable", "cache", "connection", "environment", "notifications"}
    | {"operations", "own_tables", "patterns", "retries", "schema", "tasks"},
    "environment": {"sqlite3", DOOR} | FACES - {"django"},
    "bench": {"sqlite3", DOOR, "cache", "environment", "operations", "tasks"} | FACES,
    "cli": {"sqlite3", DOOR, "cache", "environment", "bench", "operations", "promotion"}
    | {"replication", "tasks"}
    | FACES,
}
PUBLIC_NAMES_ONLY = {"bench", "cli", "environment"}

# The rooms of the lab, the lowest first: each imports those before it alone.
LAB = (
    "errors", "registry", "parameters", "scenarios", "drivers", "harness", "layout", "claims",
    "contest", "driver_table", "workloads", "permutation", "conditions", "changes", "advice",
    "report", "stored", "lab", "series",
)  # fmt: skip

# It puts the extension module that a scenario names in the place of the installed one.
MAY_NAME_THE_EXTENSION = {"bench/harness/bootstrap.py"}


def module_name(file: Path, package_directory: Path) -> list[str]:
    """The dotted name, in parts; a package's ``__init__`` is the package."""
    parts = ["oxlite", *file.relative_to(package_directory).with_suffix("").parts]
    return parts[:-1] if parts[-1] == "__init__" else parts


def room(name: str) -> str | None:
    """Which room a dotted name of ours belongs to; None for a module of others."""
    first, _, rest = name.partition(".")
    if first != "oxlite":
        return None
    return rest.partition(".")[0] or DOOR


def imported(file: Path, package_directory: Path) -> Iterator[str]:
    """Every dotted name that a module imports, anywhere in it."""
    here = module_name(file, package_directory)
    package = here if file.name == "__init__.py" else here[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def imported_rooms(file: Path, package_directory: Path) -> set[str]:
    """The rooms of ours that a module imports from."""
    rooms = set()
    for name in imported(file, package_directory):
        found = room(name)
        # ``from oxlite import connect`` comes from the door, ``import sqlite3`` is a room.
        if found is not None:
            rooms.add(found if found in BELOW or _is_room(found, package_directory) else DOOR)
    return rooms


def _is_room(name: str, package_directory: Path) -> bool:
    return (package_directory / name).is_dir() or (package_directory / f"{name}.py").exists()


@pytest.fixture(scope="module")
def rooms(module_files: list[Path], package_directory: Path) -> dict[Path, str]:
    """Which room each module is in."""
    names = {file: room(".".join(module_name(file, package_directory))) for file in module_files}
    return {file: name for file, name in names.items() if name is not None}


def test_every_room_has_a_place(rooms: dict[Path, str]) -> None:
    """``BELOW`` says what each may import, and names none that does not exist."""
    assert len(rooms) > 200
    assert set(rooms.values()) == BELOW.keys() - {"_native"}


def test_imports_run_one_way(rooms: dict[Path, str], package_directory: Path) -> None:
    wrong = {
        file: names
        for file, own in rooms.items()
        if (names := imported_rooms(file, package_directory) - BELOW[own] - {own})
    }
    assert wrong == {}


def test_the_lab_has_no_circle(rooms: dict[Path, str], package_directory: Path) -> None:
    """A room of ``oxlite.bench`` imports those before it in ``LAB``, and all of them are there."""
    lab = {
        file: module_name(file, package_directory)[2]
        for file, own in rooms.items()
        if own == "bench" and file != package_directory / "bench" / "__init__.py"
    }
    assert set(lab.values()) == set(LAB)
    wrong = {
        f"{file.relative_to(package_directory)} imports {name}"
        for file, own in lab.items()
        for name in imported(file, package_directory)
        if name.startswith("oxlite.bench.") and name.split(".")[2] in LAB[LAB.index(own) + 1 :]
    }
    assert wrong == set()


def test_rooms_above_the_faces_use_public_names(
    rooms: dict[Path, str], package_directory: Path
) -> None:
    private = {
        file: name
        for file, own in rooms.items()
        if own in PUBLIC_NAMES_ONLY
        for name in imported(file, package_directory)
        if room(name) not in {None, own} and _has_private_part(name)
    }
    assert private == {}


def test_the_extension_is_not_named_in_passing(
    rooms: dict[Path, str], package_directory: Path
) -> None:
    naming = [
        file
        for file, own in rooms.items()
        if own in PUBLIC_NAMES_ONLY
        and file.relative_to(package_directory).as_posix() not in MAY_NAME_THE_EXTENSION
        and any(
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("oxlite._")
            for node in ast.walk(ast.parse(file.read_text()))
        )
    ]
    assert naming == []


def _has_private_part(name: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def test_the_rules_have_no_circle() -> None:
    for name, below in BELOW.items():
        for other in below:
            assert name not in BELOW[other], f"{name} and {other} may import each other"


@pytest.mark.parametrize("module", ["oxlite", "oxlite.sqlite3"])
def test_the_driver_loads_nothing_else(module: str) -> None:
    code = f"import {module}, sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert module in loaded
    unwanted = {"click", "psutil", "rich", "typer", "asyncio"} | {
        f"oxlite.{room}" for room in BELOW.keys() - DRIVER - BELOW[DOOR] - {DOOR}
    }
    assert not loaded & unwanted


def test_the_environment_report_loads_neither_rich_nor_psutil() -> None:
    code = "import oxlite.environment, sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"rich", "psutil"} & set(done.stdout.split())
