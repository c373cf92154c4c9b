"""What a release has promised is still there, until the next 0.x.

``promised.json`` is what ``scripts/promises.py`` has written down before the first release of this
0.x, and docs/stability.md says what it means. More may come; what is in the record stays. A test
that fails here says which promise a change would break: keep the old name beside the new one, with
a ``DeprecationWarning``, or leave the change to the next 0.x.
"""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import oxlite

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What ``scripts/promises.py`` has."""
    return runpy.run_path(str(ROOT / "scripts" / "promises.py"))


@pytest.fixture(scope="module")
def promised() -> dict[str, Any]:
    """The record."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "promised.json").read_text())
    return found


@pytest.fixture(scope="module")
def current(script: dict[str, Any]) -> dict[str, Any]:
    """What a record would have that was written now."""
    found: dict[str, Any] = script["promised"]()
    return found


@pytest.fixture(scope="module")
def page() -> str:
    """docs/stability.md."""
    return (ROOT / "docs" / "stability.md").read_text()


def split(entry: str) -> tuple[str, list[str] | None]:
    """A name, and its parameters if it has some that can be seen."""
    name, is_called, rest = entry.partition("(")
    return name, rest.removesuffix(")").split(", ") if is_called else None


def is_kept(wanted: list[str] | None, found: list[str] | None) -> bool:
    """Whether the parameters are there in their order, whatever has come between them."""
    if wanted is None or found is None:
        return True
    rest = iter(found)
    return all(name in rest for name in wanted if name)


def test_the_record_is_of_this_series(promised: dict[str, Any]) -> None:
    assert oxlite.__version__.startswith(f"{promised['series']}.")


@pytest.mark.parametrize("what", ["options", "commands", "illnesses", "extras", "dialects"])
def test_nothing_that_was_promised_is_gone(
    promised: dict[str, Any], current: dict[str, Any], what: str
) -> None:
    assert promised[what]
    assert set(promised[what]) - set(current[what]) == set()


def test_every_key_of_json_is_there(promised: dict[str, Any], current: dict[str, Any]) -> None:
    assert promised["json"].keys() == current["json"].keys()
    gone = {
        command: set(keys) - set(current["json"][command])
        for command, keys in promised["json"].items()
    }
    assert set().union(*gone.values()) == set(), gone


def test_every_name_that_was_promised_takes_what_it_took(
    promised: dict[str, Any], current: dict[str, Any]
) -> None:
    now = dict(map(split, current["names"]))
    assert len(promised["names"]) > 900
    broken = {
        name
        for name, parameters in map(split, promised["names"])
        if name not in now or not is_kept(parameters, now[name])
    }
    assert broken == set()


@pytest.mark.parametrize("what", ["compile options", "formats", "profiles", "tables"])
def test_what_is_to_stay_as_it_is_has_not_changed(
    promised: dict[str, Any], current: dict[str, Any], what: str
) -> None:
    assert promised[what] == current[what]


def test_a_broken_promise_is_noticed() -> None:
    assert is_kept(["a", "b"], ["a", "new", "b"])
    assert not is_kept(["a", "b"], ["b", "a"])
    assert not is_kept(["a"], ["b"])
    assert split("oxlite.connect(database, profile)") == (
        "oxlite.connect",
        ["database", "profile"],
    )


def test_the_page_lists_the_modules(script: dict[str, Any], page: str) -> None:
    listed = re.findall(r"^\| `(oxlite[\w.]*)`", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted([*script["MODULES"], "oxlite.sqlite3"])


def test_the_page_says_each_format(current: dict[str, Any], page: str) -> None:
    missing = {
        what: mark
        for what, mark in current["formats"].items()
        if not re.search(rf"^\|.*{re.escape(what)}.*\|.*`{re.escape(mark)}`", page, re.MULTILINE)
    }
    assert missing == {}


def test_the_page_names_the_tables(current: dict[str, Any], page: str) -> None:
    families = {re.sub(r"^(oxlite_[a-z]+).*", r"\1", name) for name in current["tables"]}
    assert {name for name in families if f"`{name}" not in page} == set()
