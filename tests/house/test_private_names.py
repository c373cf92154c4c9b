"""Tests use public names: what is behind them may change without a test that has to follow."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# In a program that a test writes for a child as well, so the text is looked at.
_USED = re.compile(r"(?<![\w.])([A-Za-z]\w*)((?:\.\w+|\[[^\]]*\]|\([^()]*\))*?)\._([a-z]\w*)")
_OWN = {"self", "cls"}

ALLOWED = {
    "_replace": "a method of every named tuple",
    "_fields": "an attribute of every named tuple",
    "_exit": "os._exit: a forked child ends with it",
    "_getframe": "sys._getframe: CPython's, for the standard library's sake",
    "_is_gil_enabled": "sys._is_gil_enabled: CPython's, and documented under this name",
    "_native": "oxlite._native: the extension module itself, which has a stub",
    "_iterdump": "CPython's name in sqlite3.dump, by which libraries call it",
    "_conn": "aiosqlite's name for the driver's connection, by which libraries call it",
}


def private_names(text: str) -> Iterator[str]:
    """The names with an underscore that a test has of somebody else's objects and of ``oxlite``."""
    for found in _USED.finditer(text):
        if not (found[1] in _OWN and not found[2]):
            yield f"_{found[3]}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "oxlite":
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


def test_a_test_uses_no_private_name(python_files: list[Path], root: Path) -> None:
    wrong = {}
    for file in python_files:
        place = file.relative_to(root).parts
        # What runs other people's tests puts itself into what they have.
        if place[0] != "tests" or place[1] == "upstream" or file == Path(__file__):
            continue
        names = set(private_names(file.read_text())) - ALLOWED.keys()
        if names:
            wrong["/".join(place)] = names
    assert wrong == {}


def test_the_rule_knows_one() -> None:
    found = "from oxlite.aio.loops import _mailboxes\n\ndb._writer.take()\nuse(x.y()[0]._lent)\n"
    assert set(private_names(found)) == {"_mailboxes", "_writer", "_lent"}
    assert not set(private_names("self._own = 1\nself.public\n'a sentence._'\n"))
