"""What keeps a release from being made by mistake, and what it is made of."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from trove_classifiers import classifiers

import oxlite

ROOT = Path(__file__).resolve().parents[2]

LOG = """\
# Changelog

## Unreleased

{unreleased}

## 0.1.1 - 2026-12-24

### Fixed

- A fault.

## 0.1.0 - 2026-12-01 [YANKED]

The first.
"""


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What ``scripts/release.py`` has."""
    return runpy.run_path(str(ROOT / "scripts" / "release.py"))


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The metadata of the package."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def refused(script: dict[str, Any], call: str, *arguments: object) -> str:
    """What is said about why there can be no release."""
    with pytest.raises(script["NotReadyError"]) as caught:
        script[call](*arguments)
    return str(caught.value)


def test_a_tag_that_agrees_is_released(script: dict[str, Any]) -> None:
    script["check"]("v0.1.1", "0.1.1", LOG.format(unreleased="Nothing yet."))
    script["check"]("v0.1.1", "0.1.1", LOG.format(unreleased=""))


@pytest.mark.parametrize(
    ("tag", "version", "unreleased", "reason"),
    [
        ("v0.1.2", "0.1.1", "", "has to be v0.1.1"),
        ("0.1.1", "0.1.1", "", "has to be v0.1.1"),
        ("v0.1.2", "0.1.2", "", "no section '## 0.1.2"),
        ("v0.1.1", "0.1.1", "- More.", "under Unreleased"),
    ],
)
def test_a_tag_that_does_not_agree_is_refused(
    script: dict[str, Any], tag: str, version: str, unreleased: str, reason: str
) -> None:
    text = LOG.format(unreleased=unreleased)
    assert reason in refused(script, "check", tag, version, text)


def test_a_section_without_a_date_or_without_a_word_is_refused(script: dict[str, Any]) -> None:
    undated = "## 0.1.0\n\nThe first.\n"
    assert "no date" in refused(script, "check", "v0.1.0", "0.1.0", undated)
    no_day = "## 0.1.0 - 2026-12-32\n\nThe first.\n"
    assert "which is no date" in refused(script, "check", "v0.1.0", "0.1.0", no_day)
    empty = "## 0.1.0 - 2026-12-01\n\n## 0.0.9 - 2026-11-01\n\nOld.\n"
    assert "says nothing" in refused(script, "check", "v0.1.0", "0.1.0", empty)
    assert "none of a version" in refused(script, "check", "v0.1.0", "0.1.0", "## Some words\n")


def files(script: dict[str, Any], directory: Path, pythons: list[str]) -> None:
    """The files of a release, without anything in them."""
    directory.joinpath("oxlite-0.1.0.tar.gz").touch()
    for python in pythons:
        tag = f"cp{python.replace('.', '')}"
        for system in script["SYSTEMS"]:
            # maturin names the older form of the tag as well.
            other = system.replace("manylinux_2_17", "manylinux2014")
            tags = system if other == system else f"{other}.{system}"
            directory.joinpath(f"oxlite-0.1.0-{tag}-{tag}-{tags}.whl").touch()


def test_all_files_of_a_release_are_asked_for(script: dict[str, Any], tmp_path: Path) -> None:
    files(script, tmp_path, ["3.11", "3.15"])
    script["check_files"](tmp_path, "0.1.0", ["3.11", "3.15"])
    lacks = refused(script, "check_files", tmp_path, "0.1.0", ["3.11", "3.14", "3.15"])
    assert "oxlite-0.1.0-cp314-cp314-musllinux_1_2_aarch64.whl" in lacks
    assert "has also" in refused(script, "check_files", tmp_path, "0.1.0", ["3.11"])
    (tmp_path / "oxlite-0.1.0.tar.gz").unlink()
    assert "lacks oxlite-0.1.0.tar.gz" in refused(
        script, "check_files", tmp_path, "0.1.0", ["3.11", "3.15"]
    )


def test_the_version_is_one_everywhere(script: dict[str, Any]) -> None:
    version = script["version"]()
    assert version == oxlite.__version__
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    own = [of for name, of in workspace["dependencies"].items() if name.startswith("oxlite-")]
    assert {of["version"] for of in own} == {version}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    assert {of["version"] for of in locked if of["name"].startswith("oxlite-")} == {version}
    series = version.rpartition(".")[0]
    assert (
        f"| {series}, the latest release of it | is mended |" in (ROOT / "SECURITY.md").read_text()
    )


def test_the_change_log_has_the_version_and_nothing_newer(script: dict[str, Any]) -> None:
    first, second, *_ = script["sections"]((ROOT / "CHANGELOG.md").read_text())
    assert (first, second) == ("Unreleased", script["version"]())


def test_the_change_log_says_what_kind_each_change_is_of() -> None:
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    text = (ROOT / "CHANGELOG.md").read_text()
    assert set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE)) <= kinds


def test_the_index_knows_every_classifier(project: dict[str, Any]) -> None:
    assert [name for name in project["classifiers"] if name not in classifiers] == []


def test_the_classifiers_say_what_the_pages_say(
    script: dict[str, Any], project: dict[str, Any]
) -> None:
    pythons = script["pythons"]()
    assert project["requires-python"] == f">={pythons[0]}"
    page = (ROOT / "docs" / "stability.md").read_text()
    assert f"| CPython | {pythons[0]} to {pythons[-1]}," in page
    assert "Development Status :: 4 - Beta" in project["classifiers"]
    assert "Oxlite is *beta*" in page
    oldest = min(name for name in project["classifiers"] if "Django :: " in name).rpartition(" ")[2]
    assert f"django>={oldest}" in project["optional-dependencies"]["django"]
    assert f"| Django | {oldest} and later |" in page
