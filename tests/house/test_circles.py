"""No two files of a crate need one another.

Rust lets modules of a crate use each other as they like. Here what one file uses has to be
understood without it, as between crates. A module and those in its folder are one subject, so what
goes up or down between them does not count; nor does what comes from the root of the crate.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

Module = tuple[str, ...]

# Circles that stay, by their crate, each with its reason.
STAYING: dict[str, list[set[str]]] = {
    "oxlite-sqlite": [
        # `Locked` is the one way to a connection: each of these adds its methods to it, and the
        # connection keeps what each of them notes.
        {
            "callbacks",
            "checkpoint",
            "commit_guard",
            "connection",
            "observer",
            "preupdate",
            "read_only",
            "statement",
            "transaction_end",
            "usage",
            "write_queue",
        },
    ],
    "oxlite-core": [],
    "oxlite-functions": [],
    # `sqlite3.Row` is made of a cursor and a tuple, and a cursor makes rows.
    "oxlite-python": [{"cursor", "row"}],
}


def modules(source: Path) -> dict[Module, Path]:
    """The files of a crate by the names of their modules; the root is ``()``."""
    found = {}
    for file in source.rglob("*.rs"):
        parts = file.relative_to(source).with_suffix("").parts
        found[() if parts == ("lib",) else parts] = file
    return found


def paths(tree: str) -> Iterator[list[str]]:
    """Every path that a tree of ``use`` stands for: ``a::{b, c::d}``."""
    before, brace, rest = tree.partition("{")
    prefix = [part.strip() for part in before.split("::") if part.strip()]
    if not brace:
        yield [part.split(" as ")[0] for part in prefix]
        return
    depth, branch = 0, ""
    for character in rest[: rest.rindex("}")] + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if branch.strip():
                yield from ([*prefix, *path] for path in paths(branch))
            branch = ""
        else:
            branch += character


def used(text: str) -> Iterator[list[str]]:
    """The paths to other modules of the crate that a file names, in ``use`` or anywhere else."""
    code = re.sub(r"//.*", "", text)
    for tree in re.findall(r"\buse\s+((?:crate|super|self)\s*::[^;]*);", code):
        yield from paths(tree)
    for path in re.findall(r"\b(?:crate|super)(?:::\w+)+", code):
        yield path.split("::")


def target(path: list[str], here: Module, known: dict[Module, Path]) -> Module:
    """The module that a path leads to, which may name something in it."""
    base, rest = list(here), list(path)
    if rest[0] == "crate":
        base = []
    while rest and rest[0] in {"crate", "self", "super"}:
        if rest.pop(0) == "super":
            base = base[:-1]
    found = tuple(base + rest)
    while found not in known:
        found = found[:-1]
    return found


def graph(known: dict[Module, Path]) -> dict[Module, set[Module]]:
    """Which modules each uses, but for those above and below it."""

    def is_apart(one: Module, other: Module) -> bool:
        shorter = min(len(one), len(other))
        return one[:shorter] != other[:shorter]

    return {
        here: {
            there
            for path in used(file.read_text())
            if is_apart(here, there := target(path, here, known))
        }
        for here, file in known.items()
    }


def circles(uses: dict[Module, set[Module]]) -> list[set[str]]:
    """The sets of modules each of which leads to each other."""

    def reached(start: Module) -> set[Module]:
        seen: set[Module] = set()
        pending = [start]
        while pending:
            for there in uses[pending.pop()] - seen:
                seen.add(there)
                pending.append(there)
        return seen

    leads = {module: reached(module) for module in uses}
    found = {
        frozenset(other for other in leads[module] if module in leads[other])
        for module in uses
        if module in leads[module]
    }
    return [{"::".join(module) for module in circle} for circle in found]


@pytest.mark.parametrize("crate", STAYING)
def test_files_of_a_crate_have_no_circle(root: Path, crate: str) -> None:
    known = modules(root / "crates" / crate / "src")
    assert len(known) > 5
    found = circles(graph(known))
    staying = STAYING[crate]
    assert [circle for circle in found if circle not in staying] == []
    assert [circle for circle in staying if circle not in found] == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a; mod b; mod c;",
        "a.rs": "mod below;\nuse crate::{b::{self, Thing}, c as other};",
        "a/below.rs": "use super::Above;\nuse super::super::c::Last;",
        "b.rs": "// use crate::c;\nfn f() { crate::a::below::g() }",
        "c.rs": "use std::fmt;",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles(graph(modules(tmp_path))) == []
    (tmp_path / "c.rs").write_text("use crate::b::Thing;")
    assert circles(graph(modules(tmp_path))) == [{"a::below", "b", "c"}]
    (tmp_path / "a/below.rs").write_text("")
    assert circles(graph(modules(tmp_path))) == []
