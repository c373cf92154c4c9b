"""The crates of the core depend one way, and unsafe code has one place.

::

    oxlite-python → oxlite-core → oxlite-sqlite → libsqlite3-sys
                  → oxlite-functions
"""

import re
import tomllib
from pathlib import Path

import pytest

# Whose business each dependency is, and no other crate's.
OWNERS = {"pyo3": "oxlite-python", "libsqlite3-sys": "oxlite-sqlite"}
BELOW: dict[str, set[str]] = {
    "oxlite-sqlite": set(),
    "oxlite-core": {"oxlite-sqlite"},
    "oxlite-functions": set(),
    "oxlite-python": {"oxlite-core", "oxlite-functions", "oxlite-sqlite"},
}


@pytest.fixture(scope="module")
def dependencies(root: Path) -> dict[str, set[str]]:
    """Each crate of the workspace with all that its manifest names."""
    found = {}
    for manifest in root.glob("crates/*/Cargo.toml"):
        tables = tomllib.loads(manifest.read_text())
        name = tables["package"]["name"]
        sections = [tables, *tables.get("target", {}).values()]
        found[name] = {
            dependency
            for section in sections
            for kind in ("dependencies", "dev-dependencies", "build-dependencies")
            for dependency in section.get(kind, {})
        }
    return found


def test_every_crate_has_a_place(dependencies: dict[str, set[str]]) -> None:
    assert dependencies.keys() == BELOW.keys()


@pytest.mark.parametrize("crate", BELOW)
def test_crates_depend_one_way(dependencies: dict[str, set[str]], crate: str) -> None:
    ours = {name for name in dependencies[crate] if name.startswith("oxlite-")}
    assert ours <= BELOW[crate]


@pytest.mark.parametrize(("dependency", "owner"), OWNERS.items())
def test_a_dependency_has_one_owner(
    dependencies: dict[str, set[str]], dependency: str, owner: str
) -> None:
    families = {
        crate for crate, names in dependencies.items()
        if any(name == dependency or name.startswith(f"{dependency}-") for name in names)
    }  # fmt: skip
    assert families == {owner}


@pytest.mark.parametrize("crate", ["oxlite-core", "oxlite-functions"])
def test_the_policy_forbids_unsafe_code(root: Path, crate: str) -> None:
    text = (root / "crates" / crate / "src" / "lib.rs").read_text()
    assert "#![forbid(unsafe_code)]" in text


@pytest.mark.parametrize(
    ("interface", "crate"), [("libsqlite3_sys", "oxlite-sqlite"), ("pyo3", "oxlite-python")]
)
def test_an_interface_is_named_in_one_crate(
    rust_files: list[Path], root: Path, interface: str, crate: str
) -> None:
    naming = [file for file in rust_files if re.search(rf"\b{interface}\b", file.read_text())]
    assert naming
    assert [file for file in naming if not file.is_relative_to(root / "crates" / crate)] == []
