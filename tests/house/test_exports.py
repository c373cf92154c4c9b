"""What a module offers is what it says it offers.

A package whose ``__init__.py`` holds any name is a door, so it must have an
``__all__``. A single module may have one. Where it stands it is sorted
as ruff sorts it (constants, classes, the rest), every name in it exists, and
no public name that the module defines is missing from it.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def all_of(tree: ast.Module) -> list[str] | None:
    """The literal value of ``__all__``, or None without one."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))  # type: ignore[union-attr,arg-type]
    return None


def defined(tree: ast.Module) -> set[str]:
    """Every public name that a module defines at its top level (imports are not definitions)."""
    names: set[str] = set()
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {
                name.id
                for target in node.targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            }
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            pending += node.body + getattr(node, "orelse", []) + getattr(node, "finalbody", [])
            for handler in getattr(node, "handlers", []):
                pending += handler.body
    return {name for name in names if not name.startswith("_")}


def ruff_order(name: str) -> tuple[int, list[tuple[int, int | str]]]:
    """The key by which ruff sorts an ``__all__`` (rule RUF022)."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[:1].isupper() else 2
    parts = re.findall(r"\d+|\D+", name)
    return kind, [(0, int(part)) if part.isdigit() else (1, part) for part in parts]


def module_name(file: Path, package_directory: Path) -> str:
    parts = ["oxlite", *file.relative_to(package_directory).with_suffix("").parts]
    return ".".join(parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def offers(module_files: list[Path]) -> dict[Path, list[str]]:
    """What modules offer that say so."""
    found = {file: all_of(ast.parse(file.read_text())) for file in module_files}
    return {file: names for file, names in found.items() if names is not None}


def test_a_package_says_what_it_offers(
    module_files: list[Path], offers: dict[Path, list[str]]
) -> None:
    def is_empty(file: Path) -> bool:  # a docstring and no more
        return all(isinstance(node, ast.Expr) for node in ast.parse(file.read_text()).body)

    packages = [file for file in module_files if file.name == "__init__.py"]
    assert len(packages) > 20
    assert [file for file in packages if file not in offers and not is_empty(file)] == []


def test_what_is_offered_is_sorted_and_complete(offers: dict[Path, list[str]]) -> None:
    unsorted = [
        file for file, names in offers.items() if names != sorted(set(names), key=ruff_order)
    ]
    assert unsorted == []
    hidden = {
        file: names
        for file, offered in offers.items()
        if (names := defined(ast.parse(file.read_text())) - set(offered))
    }
    assert hidden == {}


EXISTS = """
import importlib, json, sys
missing = {}
for name, names in json.load(sys.stdin).items():
    try:
        module = importlib.import_module(name)
        missing[name] = [name for name in names if not hasattr(module, name)]
    except Exception as error:
        missing[name] = repr(error)
print(json.dumps({name: what for name, what in missing.items() if what}))
"""


def test_what_is_offered_exists(offers: dict[Path, list[str]], package_directory: Path) -> None:
    """In processes of their own: Django's face registers adapters for all of a process."""
    named = {module_name(file, package_directory): names for file, names in offers.items()}
    # Django's own modules of a backend import one another, and begin with base.
    base = "oxlite.django.sqlite3.base"
    of_django = {name: names for name, names in named.items() if name.startswith("oxlite.django")}
    others = {name: names for name, names in named.items() if name not in of_django}
    for modules in (others, {base: named[base]} | of_django):
        found = subprocess.run(
            [sys.executable, "-c", EXISTS],
            input=json.dumps(modules),
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(found.stdout) == {}


def test_the_stub_declares_what_the_extension_exports(
    package_directory: Path, parse: Callable[[Path], ast.Module]
) -> None:
    stub = package_directory / "_native.pyi"
    if not stub.exists():
        pytest.fail("the extension module has no stub")
    tree = parse(stub)
    native = importlib.import_module("oxlite._native")
    exported = {name for name in dir(native) if not name.startswith("_")}
    if sys.version_info < (3, 15):
        exported.add("SQLITE_KEYWORDS")  # which the standard library has since then
    assert defined(tree) == exported  # an alias of a type is private: it exists for checkers alone
