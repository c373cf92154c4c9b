"""Every module of the package, imported and unused in a parent, before every door in its children.

``python -m tests.forks.matrix FOLDER`` prints what was wrong, as JSON: by module, then by door. The
process itself imports nothing of ``oxlite``: each parent is a child of it that has imported one
module (or all of them), and its children are forked from that.

With ``--packages`` it is packages and the modules beside them alone. With ``--multiprocessing`` it
is the same, and the children are started by ``multiprocessing``, and end as those do.
"""

import importlib
import json
import multiprocessing
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.forks import doors

# Programs of their own, which nobody imports into a server.
PROGRAMS = {"bench", "cli"}

PARENTS_AT_ONCE = 4


def modules() -> list[str]:
    """All modules of the package that an application may import, by walking its folder."""
    package = find_spec("oxlite")
    assert package is not None
    assert package.submodule_search_locations is not None
    root = Path(package.submodule_search_locations[0])
    missing = {name for name in ("django", "sqlalchemy") if find_spec(name) is None}
    names = []
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[0] in PROGRAMS | missing or parts[-1] == "__main__":
            continue
        if parts[:2] == ("django", "tasks") and {"admin", "models", "migrations"} & {*parts}:
            continue  # Django imports them, where the application is installed
        names.append(".".join(["oxlite", *(part for part in parts if part != "__init__")]))
    return [*names, "oxlite._native"]


def started_by_multiprocessing(path: str, folder: Path) -> dict[str, str]:
    """As ``doors.use_all``, by ``multiprocessing``."""
    context = multiprocessing.get_context("fork")
    children = []
    for number, (name, use) in enumerate(doors.DOORS.items()):
        told = folder / f"{os.getpid()}-{number}"
        child = context.Process(target=_tell, args=(use, path, told))
        child.start()
        children.append((name, child, told))
    wrong = {}
    for name, child, told in children:
        child.join(doors.LIMIT_SECONDS)
        if child.exitcode is None:
            child.kill()
            child.join()
            wrong[name] = "killed: it has hung"
        elif child.exitcode != 0:
            wrong[name] = told.read_text() if told.exists() else f"ended with {child.exitcode}"
    return wrong


def _tell(use: doors.Door, path: str, told: Path) -> None:
    import traceback

    try:
        use(path)
    except BaseException:
        told.write_text(traceback.format_exc())
        raise


def as_parent(imported: list[str], folder: Path, by_multiprocessing: bool, answer: Path) -> None:
    """Import, and have children use the doors."""
    path = str(folder / f"{len(imported)}-{imported[0]}.db")
    doors.make(path)
    if "django" in sys.modules:
        doors.configure_django(path)
    for name in imported:
        importlib.import_module(name)
    use = started_by_multiprocessing if by_multiprocessing else doors.use_all
    answer.write_text(json.dumps(use(path, folder)))


def main() -> None:
    """Go through the matrix."""
    folder = Path(sys.argv[1])
    by_multiprocessing = "--multiprocessing" in sys.argv
    # So that not each of hundreds of children imports them; and in an order that Django allows.
    for name in ("asyncio", "django.db.backends.sqlite3.base", "sqlalchemy.ext.asyncio"):
        if find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    assert not any(name.partition(".")[0] == "oxlite" for name in sys.modules)
    everything = modules()
    combinations = [[name] for name in everything] + [everything]
    if by_multiprocessing or "--packages" in sys.argv:
        packages = [name for name in everything if name.count(".") <= 1]
        combinations = [[name] for name in packages] + [everything]
    said: dict[str, dict[str, str]] = {}
    running: list[tuple[str, int, Path, Path]] = []
    while combinations or running:
        while combinations and len(running) < PARENTS_AT_ONCE:
            imported = combinations.pop()
            name = imported[0] if len(imported) == 1 else "all of them"
            told, answer = folder / f"{name}.told", folder / f"{name}.answer"

            def work(imported: list[str] = imported, answer: Path = answer) -> None:
                as_parent(imported, folder, by_multiprocessing, answer)

            running.append((name, doors.begin(work, told, doors.LIMIT_SECONDS + 20), told, answer))
        name, child, told, answer = running.pop(0)
        wrong = doors.end(child, told)
        said[name] = {"the parent itself": wrong} if wrong else json.loads(answer.read_text())
    print(
        json.dumps(
            {
                "wrong": {name: what for name, what in said.items() if what},
                "doors": list(doors.DOORS),
                "modules": everything,
            }
        )
    )


if __name__ == "__main__":
    main()
