"""Writes down what a release promises: ``tests/stability/promised.json``.

    .venv/bin/python scripts/promises.py

docs/stability.md says what is promised for how long. This is all that a program can find of it:
public names with their parameters, options, commands, JSON schemas, files and tables. A test
compares it with what is there, and names what is missing. It is run before the first release of a
0.x (docs/release.md); whoever runs it after that breaks a promise.
"""

import importlib
import inspect
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

Command = Any  # of Click, or of the Click inside Typer

ROOT: Final = Path(__file__).resolve().parents[1]
RECORD: Final = ROOT / "tests" / "stability" / "promised.json"

MODULES: Final = (
    "oxlite",
    "oxlite.aio",
    "oxlite.branch",
    "oxlite.cable",
    "oxlite.cache",
    "oxlite.cache.aio",
    "oxlite.changeset",
    "oxlite.django",
    "oxlite.django.cache",
    "oxlite.django.channels",
    "oxlite.django.fields",
    "oxlite.django.forms",
    "oxlite.django.indexes",
    "oxlite.django.middleware",
    "oxlite.django.tasks",
    "oxlite.operations",
    "oxlite.operations.doctor",
    "oxlite.operations.top",
    "oxlite.promotion",
    "oxlite.replication",
    "oxlite.sqlalchemy",
    "oxlite.tasks",
)
"""The modules whose ``__all__`` is promised. ``oxlite.sqlite3`` has CPython's names beside them."""

FORMATS: Final = {
    "file of a cache": ("python/oxlite/cache/store.py", r"^APPLICATION_ID: Final = (.+)$"),
    "app.db-used": ("python/oxlite/cache/recency.py", r'^_MAGIC: Final = b"(.+)\\n"$'),
    "manifest of a backup": ("python/oxlite/operations/manifest.py", r"^_FORMAT: Final = (.+)$"),
    "record of the lab": ("python/oxlite/bench/harness/record.py", r"^VERSION(?:: \w+)? = (.+)$"),
    "oxlite env --json": ("python/oxlite/environment/assembly.py", r'^SCHEMA = "(.+)"$'),
    "oxlite doctor --json": (
        "python/oxlite/operations/doctor/report.py",
        r'^SCHEMA: Final = "(.+)"$',
    ),
    "oxlite top --json": ("python/oxlite/operations/top/sample.py", r'^SCHEMA: Final = "(.+)"$'),
    "app.db-gate": (
        "crates/oxlite-core/src/write/queue/holder.rs",
        r'^const FORM: &str = "(.+)";$',
    ),
    "app.db-activity": ("crates/oxlite-core/src/activity/note.rs", r'^const FORM: &str = "(.+)";$'),
    "memory of signals": (
        "crates/oxlite-core/src/signals/board.rs",
        r'^const PAGE: PageKind = PageKind::new\(\s+"-(.+)",$',
    ),
    "memory of shared commits": (
        "crates/oxlite-core/src/write/shared_commit/member.rs",
        r"^pub\(super\) const FORMAT: u64 = (.+);$",
    ),
}
"""What is written for other processes and later releases: where its mark stands in the source."""


def _parameters(function: Callable[..., object]) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    names = [name for name in signature.parameters if name not in {"self", "cls"}]
    return f"({', '.join(names)})"


def _of_class(name: str, cls: type) -> Iterator[str]:
    """A class, its constructor, and what itself and its bases of Oxlite's define."""
    own = [base for base in cls.__mro__ if base.__module__.split(".")[0] in {"oxlite", "_native"}]
    made = next((base for base in own if inspect.isfunction(vars(base).get("__init__"))), None)
    yield name + (_parameters(vars(made)["__init__"]) if made is not None else "")
    members = {member for base in own for member in vars(base) if not member.startswith("_")}
    for member in sorted(members):
        found = inspect.getattr_static(cls, member)
        found = getattr(found, "__func__", found)
        is_called = callable(found) and not isinstance(found, type)
        yield f"{name}.{member}" + (_parameters(found) if is_called else "")


def names() -> list[str]:
    """Every public name with its parameters, as ``oxlite.aio.Database.query(sql, parameters)``."""
    found: list[str] = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            full, value = f"{module_name}.{name}", getattr(module, name)
            if inspect.isclass(value):
                found += _of_class(full, value)
            else:
                found.append(full + (_parameters(value) if callable(value) else ""))
    return sorted(set(found))


def commands() -> list[str]:
    """Every command with its options. The lab's are not promised."""
    import typer.main

    from oxlite.cli.app import app

    def each(command: Command, path: str) -> Iterator[str]:
        yield path
        for parameter in command.params:
            for option in [*parameter.opts, *parameter.secondary_opts]:
                if option.startswith("--") and option != "--help":
                    yield f"{path} {option}"
        for name, child in getattr(command, "commands", {}).items():
            if name != "bench":
                yield from each(child, f"{path} {name}")

    return sorted(each(typer.main.get_command(app), "oxlite"))


def json_keys() -> dict[str, list[str]]:
    """The outermost keys of what commands print with ``--json``."""
    import oxlite

    found = {}
    with tempfile.TemporaryDirectory() as directory:
        with oxlite.Database(Path(directory, "app.db")) as db:
            db.execute("CREATE TABLE note (text TEXT)")
        for command in (
            "env app.db",
            "doctor app.db",
            "top app.db --once",
            "backup app.db backup.db",
            "snapshot create app.db",
        ):
            done = subprocess.run(
                [
                    *(sys.executable, "-c", "import oxlite.cli; oxlite.cli.main()"),
                    *(*command.split(), "--json"),
                ],
                cwd=directory,
                stdout=subprocess.PIPE,
                check=True,
            )
            found[f"oxlite {command}"] = sorted(json.loads(done.stdout))
    return found


def formats() -> dict[str, str]:
    """The marks of what is written for others."""
    found = {}
    for what, (file, pattern) in FORMATS.items():
        mark = re.search(pattern, (ROOT / file).read_text(), flags=re.MULTILINE)
        assert mark is not None, f"{file} has no line like {pattern}"
        found[what] = mark[1]
    return found


def tables() -> dict[str, str]:
    """The tables, indexes and triggers that Oxlite makes in databases of users, by name."""
    import oxlite
    from oxlite import cable, cache, tasks

    with tempfile.TemporaryDirectory() as directory:
        of_cache, of_site = Path(directory, "cache.db"), Path(directory, "site.db")
        with cache.Cache(of_cache, size=1 << 20) as opened:
            opened.set("key", "value")
        with oxlite.Database(of_site) as db:
            db.notify("channel")
            with db.write() as connection:
                for module in (tasks, cable):
                    importlib.import_module(f"{module.__name__}.store").TABLES.prepare(connection)
        found: dict[str, str] = {}
        for file in (of_cache, of_site):
            connection = oxlite.sqlite3.connect(file)
            rows = connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE name GLOB 'oxlite_*'"
            )
            found |= dict(rows)
            connection.close()
    return found


def sqlite_options() -> list[str]:
    """With which options SQLite is compiled."""
    settings = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text())
    flags: str = settings["env"]["LIBSQLITE3_FLAGS"]["value"]
    return sorted(flags.split())


def promised() -> dict[str, Any]:
    """All that is written down."""
    import oxlite
    from oxlite.operations.doctor import ILLNESSES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {
        "series": oxlite.__version__.rpartition(".")[0],
        "names": names(),
        "options": sorted(option.name for option in oxlite.options()),
        "profiles": oxlite.profiles(),
        "commands": commands(),
        "illnesses": sorted(illness.code for illness in ILLNESSES),
        "extras": sorted(project["optional-dependencies"]),
        "dialects": sorted(project["entry-points"]["sqlalchemy.dialects"]),
        "compile options": sqlite_options(),
        "formats": formats(),
        "json": json_keys(),
        "tables": tables(),
    }


if __name__ == "__main__":
    RECORD.write_text(json.dumps(promised(), indent=1, sort_keys=True) + "\n")
