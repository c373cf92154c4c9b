"""What a database of vulnerabilities did not say is not taken for its word."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What ``scripts/advisories.py`` has."""
    return runpy.run_path(str(ROOT / "scripts" / "advisories.py"))


def program(directory: Path, status: int, said: str) -> str:
    """A program in cargo-deny's place."""
    file = directory / "cargo-deny"
    file.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit {status}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("status", "said", "outcome"),
    [
        (0, "advisories ok", 0),
        (1, "error[vulnerability]: a double free", 1),
        (1, "[ERROR] failed to fetch advisory database https://…", 3),
        (101, "panicked", 1),
    ],
)
def test_what_is_made_of_cargo_denys_answer(
    script: dict[str, Any], tmp_path: Path, status: int, said: str, outcome: int
) -> None:
    assert script["crates"](program(tmp_path, status, said)) == outcome


def test_a_package_that_was_not_found_was_not_asked_about(script: dict[str, Any]) -> None:
    report = {
        "dependencies": [
            {"name": "oxlite", "skip_reason": "Dependency not found on PyPI"},
            {"name": "django", "skip_reason": "Dependency not found on PyPI"},
            {"name": "flask", "version": "3.1.0", "vulns": []},
        ]
    }
    assert script["judged"](report) == ([], ["django"])


def test_what_is_known_of_a_package_is_told(script: dict[str, Any]) -> None:
    known = {"id": "PYSEC-2026-1", "fix_versions": ["3.1.1"], "aliases": []}
    report = {"dependencies": [{"name": "flask", "version": "3.1.0", "vulns": [known]}]}
    assert script["judged"](report) == (["flask 3.1.0: PYSEC-2026-1, mended in 3.1.1"], [])
