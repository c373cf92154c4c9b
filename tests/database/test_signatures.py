"""Both faces have the same methods, parameters and options, but for what is declared here."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from tests.database.faces import Either

import oxlite
import oxlite.aio

ONLY_ASYNCIO = {"open", "__await__"}
"""Making an object cannot be awaited."""


def public(face: type) -> dict[str, Any]:
    """The public methods of a class, its constructor and context managers included."""
    # What is read without a call is no method.
    special = {"__init__", "__await__"}
    names = {name for name in dir(face) if not name.startswith("_") or name in special}
    found = {name: getattr(face, name) for name in names}
    return {name: one for name, one in found.items() if not isinstance(one, property)}


def parameters(method: Either) -> list[tuple[str, Any, Any, str]]:
    """Names, kinds, defaults and annotations."""
    found = inspect.signature(method).parameters.values()
    return [(one.name, one.kind, one.default, str(one.annotation)) for one in found]


def test_both_have_the_same_methods() -> None:
    threads, tasks = public(oxlite.Database), public(oxlite.aio.Database)
    assert tasks.keys() - threads.keys() == ONLY_ASYNCIO
    assert threads.keys() - tasks.keys() == set()
    assert hasattr(oxlite.Database, "__enter__")
    assert hasattr(oxlite.aio.Database, "__aenter__")


@pytest.mark.parametrize("name", sorted(public(oxlite.Database)))
def test_a_method_takes_and_answers_the_same(name: str) -> None:
    on_threads, on_tasks = getattr(oxlite.Database, name), getattr(oxlite.aio.Database, name)
    assert parameters(on_threads) == parameters(on_tasks)
    assert on_threads.__doc__
    assert on_tasks.__doc__
    if name in {"listen", "read", "write", "stream"}:  # an iterator of one kind or the other
        return
    answers = [inspect.signature(one).return_annotation for one in (on_threads, on_tasks)]
    assert str(answers[0]).replace("_Rows", "list[Any]") == str(answers[1])
    assert inspect.iscoroutinefunction(on_tasks) == (name not in {"__init__", "stats"})
    assert not inspect.iscoroutinefunction(on_threads)


def test_the_differences_are_told_with_their_reasons() -> None:
    page = (Path(__file__).parents[2] / "docs" / "asyncio.md").read_text()
    _, _, section = page.partition("\n## What differs from `oxlite.Database`\n")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert len(rows) > 4
    assert all(all(cell.strip() for cell in row) for row in rows)
