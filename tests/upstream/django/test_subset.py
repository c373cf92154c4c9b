"""Django's own tests of backends and caches, on ``oxlite.django``. All: ``make test-django``."""

import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

HERE = Path(__file__).resolve().parent
LABELS = ["backends", "transactions", "basic", "cache"]


def load(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"_django_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(900)
def test_djangos_tests_of_backends_pass() -> None:
    tree = load("tree")
    found = tree.run("oxlite", version("django"), 1, LABELS)
    declared = tree.declarations(tree.DECLARED, version("django"))
    failed = {test for test, outcome in found.items() if outcome == "failed"}
    assert failed == set(declared), (tree.CACHE / "oxlite.log").read_text()[-5000:]
    assert sum(outcome == "passed" for outcome in found.values()) > 750


@pytest.mark.timeout(900)
def test_djangos_tests_of_caches_and_sessions_pass_with_oxlites_in_the_place_of_memory() -> None:
    tree = load("tree")
    found = tree.run("cache", version("django"), 1, ["cache", "sessions_tests"])
    declared = tree.declarations(HERE / "cache_declared.toml", version("django"))
    failed = {test for test, outcome in found.items() if outcome == "failed"}
    assert failed == set(declared), (tree.CACHE / "cache.log").read_text()[-5000:]
    assert sum(outcome == "passed" for outcome in found.values()) > 1_000
