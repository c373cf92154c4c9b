"""``THIRD-PARTY.txt`` lists what the module is linked from, and nothing else."""

import json
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

import oxlite

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What ``scripts/third_party.py`` has."""
    return runpy.run_path(str(ROOT / "scripts" / "third_party.py"))


@pytest.fixture(scope="module")
def linked(script: dict[str, Any]) -> list[Any]:
    """The crates in the module."""
    found: list[Any] = script["crates"]()
    return found


def test_the_script_has_been_run_since_a_version_has_changed(
    script: dict[str, Any], linked: list[Any]
) -> None:
    assert script["NOTICE"].read_text() == script["notice"](linked)
    assert script["BILL"].read_text() == script["bill"](linked)


def test_what_only_builds_is_not_listed(linked: list[Any]) -> None:
    names = {crate.name for crate in linked}
    assert {"libsqlite3-sys", "pyo3", "rustix", "smallvec"} <= names
    assert not names & {"cc", "loom", "proc-macro2", "pkg-config", "syn"}
    assert not {name for name in names if name.startswith("oxlite")}


def test_the_sqlite_that_is_listed_is_the_one_in_the_module(script: dict[str, Any]) -> None:
    connection = oxlite.sqlite3.connect(":memory:")
    source = connection.execute("SELECT sqlite_source_id()").fetchone()[0]
    connection.close()
    text = script["NOTICE"].read_text()
    assert f"\nSQLite {oxlite.sqlite3.sqlite_version}\n" in text
    assert f"\nCheck-in {source}\n" in text
    (component,) = json.loads(script["BILL"].read_text())["components"]
    assert component["version"] == oxlite.sqlite3.sqlite_version


def test_a_licence_is_taken_that_is_allowed(linked: list[Any]) -> None:
    allowed = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"]
    assert {crate.chosen for crate in linked} <= set(allowed)
