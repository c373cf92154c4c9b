"""The script that finds interpreters, or makes them: what it says without making one."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "pythons.py"
HERE = ".".join(map(str, sys.version_info[:2]))


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script with these arguments."""
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_one_that_is_there_is_found_and_is_that_version() -> None:
    found = run(
        "--find", HERE, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if found.returncode != 0:
        pytest.skip(f"no Python {HERE} with its own tests is on PATH: {found.stderr.strip()}")
    version, _, executable = found.stdout.strip().partition(" ")
    assert version == HERE
    said = subprocess.run([executable, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"Python {HERE}.")


def test_none_is_found_in_an_empty_cache(tmp_path: Path) -> None:
    """Of another processor none is on this machine by itself."""
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    found = run("--find", HERE, "--processor", other, XDG_CACHE_HOME=str(tmp_path))
    assert found.returncode == 1
    assert found.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_one_that_was_left_half_made_is_not_found(tmp_path: Path) -> None:
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    home = tmp_path / "oxlite" / "pythons" / f"3.14-{other}-glibc" / "usr" / "bin"
    home.mkdir(parents=True)
    (home / "python3.14").write_text("")
    found = run("--find", "3.14", "--processor", other, XDG_CACHE_HOME=str(tmp_path))
    assert found.returncode == 1


def test_a_version_that_is_not_supported() -> None:
    refused = run("3.10")
    assert refused.returncode == 2
    assert "not supported: 3.10 (supported: 3.11, 3.12, 3.13, 3.14, 3.15)" in refused.stderr


def test_one_that_cannot_be_had_says_why(tmp_path: Path) -> None:
    """Before anything is fetched: there are no sources of it."""
    refused = run("3.12", "--libc", "musl", XDG_CACHE_HOME=str(tmp_path))
    assert refused.returncode == 1
    assert "No sources of Python 3.12 are in Debian now" in refused.stderr
