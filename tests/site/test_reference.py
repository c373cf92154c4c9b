"""The reference has an entry for every public name, and pages import nothing but public names.

What is public is said once, here: these modules, and of each what its ``__all__`` says.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

PUBLIC = (
    "oxlite",
    "oxlite.aio",
    "oxlite.branch",
    "oxlite.cable",
    "oxlite.cache",
    "oxlite.cache.aio",
    "oxlite.changeset",
    "oxlite.database",
    "oxlite.django",
    "oxlite.django.cache",
    "oxlite.django.channels",
    "oxlite.django.expressions",
    "oxlite.django.fields",
    "oxlite.django.forms",
    "oxlite.django.indexes",
    "oxlite.django.middleware",
    "oxlite.django.tasks",
    "oxlite.environment",
    "oxlite.operations",
    "oxlite.operations.doctor",
    "oxlite.operations.top",
    "oxlite.promotion",
    "oxlite.replication",
    "oxlite.sqlalchemy",
    "oxlite.sqlite3",
    "oxlite.tasks",
)

NAMES_OF_AIOSQLITE = {"oxlite.aio.context", "oxlite.aio.core", "oxlite.aio.cursor"}
"""Modules that are there because aiosqlite has them; their names are those of ``oxlite.aio``."""

NOT_ITS_OWN = {"oxlite.notifications": {"Listener", "Notification", "Payload"}}
"""Modules of which some names are public."""


@cache
def offered(root: Path, module: str) -> frozenset[str]:
    """What the ``__all__`` of a module says, with what is added to it."""
    path = root.joinpath("python", *module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            if isinstance(node, ast.AugAssign):  # of the module with the constants
                names |= offered(root, "oxlite.sqlite3.constants")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                names |= set(ast.literal_eval(node.value))
    return frozenset(names)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_public_name_has_an_entry(site: Path, root: Path) -> None:
    there = {
        anchor
        for page in (site / "reference").rglob("*.html")
        for anchor in re.findall(r'\bid="(oxlite[^"]*)"', page.read_text())
    }
    names = {
        f"{module}.{name}"
        for module in (*PUBLIC, *NOT_ITS_OWN)
        for name in NOT_ITS_OWN.get(module, offered(root, module))
    }
    assert len(names) > 400
    assert names - there == set()


def test_what_is_promised_is_in_the_reference(root: Path) -> None:
    """By the record of ``tests/stability``."""
    promised = json.loads((root / "tests" / "stability" / "promised.json").read_text())["names"]
    assert promised
    unknown = set()
    for name in promised:
        path = name.partition("(")[0].split(".")
        # The module is the longest beginning that is one; what comes after it is in its __all__.
        end = max(i for i in range(1, len(path) + 1) if ".".join(path[:i]) in PUBLIC)
        module = ".".join(path[:end])
        if path[end:] and path[end] not in offered(root, module):
            unknown.add(name)
    assert unknown == set()


def imported(tree: ast.Module) -> set[tuple[str, str]]:
    """The names of ours that a program imports, each with its module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {(node.module, alias.name) for alias in node.names}
    return {one for one in found if one[0].partition(".")[0] == "oxlite"}


def blocks(page: Path) -> list[str]:
    """The Python of a page that can be parsed."""
    found = re.findall(r"^( *)```python.*\n((?:.*\n)*?)^\1```$", page.read_text(), re.MULTILINE)
    return [re.sub(f"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]


def test_pages_and_examples_import_public_names_alone(root: Path) -> None:
    pages = [page for page in (root / "docs").rglob("*.md") if "decisions" not in page.parts]
    programs = {str(page): code for page in pages for code in blocks(page)}
    programs |= {str(file): file.read_text() for file in (root / "examples").rglob("*.py")}
    found = {one for code in programs.values() for one in imported(ast.parse(code))}
    assert len(found) > 10
    private = {
        (module, name)
        for module, name in found
        if f"{module}.{name}" not in PUBLIC
        and module not in NAMES_OF_AIOSQLITE
        and (
            name not in NOT_ITS_OWN.get(module, offered(root, module) if module in PUBLIC else ())
            if name
            else module not in PUBLIC
        )
    }
    assert private == set()


def test_the_index_names_every_module_that_has_a_page(root: Path) -> None:
    index = (root / "docs" / "reference" / "index.md").read_text()
    pages = {page.name for page in (root / "docs" / "reference").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"({name})" not in index} == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_shows_values_in_the_place_of_private_constants_and_no_maps(site: Path) -> None:
    text = "".join(page.read_text() for page in (site / "reference").rglob("*.html"))
    assert set(re.findall(r">(_[A-Z][A-Z_]+)<", text)) == set()
    for private in ("file_bytes.py", "online_copy"):  # of the maps of oxlite.operations
        assert private not in text
