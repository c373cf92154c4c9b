"""The source tree, for tests that hold its architecture.

A rule is one test, which looks at every file that it is about and names those that break it. These
tests look at the checkout, not at an installed package, and need nothing of it imported unless they
say so.
"""

import ast
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "oxlite"


def _tracked() -> list[Path]:
    """What git tracks or would track; in a source archive, every file."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return [path for path in ROOT.rglob("*") if path.is_file() and not _is_generated(path)]
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def _is_generated(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    made = {"target", "dist", "__pycache__"}
    return any(part in made or part.endswith("_cache") or part == ".git" for part in parts) or (
        parts[0].startswith(".venv")
    )


@pytest.fixture(scope="session")
def tracked_files() -> list[Path]:
    """Every file of the project."""
    return sorted(_tracked())


@pytest.fixture(scope="session")
def python_files(tracked_files: list[Path]) -> list[Path]:
    """Modules and stubs, of the package and of everything beside it."""
    return [file for file in tracked_files if file.suffix in {".py", ".pyi"}]


@pytest.fixture(scope="session")
def module_files(tracked_files: list[Path]) -> list[Path]:
    """The modules of the package."""
    found = [file for file in tracked_files if file.suffix == ".py"]
    return [file for file in found if file.is_relative_to(PACKAGE)]


@pytest.fixture(scope="session")
def rust_files(tracked_files: list[Path]) -> list[Path]:
    """The files of the crates, and of the interposer of the tests."""
    return [file for file in tracked_files if file.suffix == ".rs"]


@pytest.fixture(scope="session")
def parse() -> Callable[[Path], ast.Module]:
    """Parses a module or a stub; stubs may use ``type X = …`` before this Python can."""

    def parsed(path: Path) -> ast.Module:
        text = path.read_text()
        if path.suffix == ".pyi":
            text = re.sub(r"^type (\w+) =", r"\1 =", text, flags=re.MULTILINE)
        return ast.parse(text)

    return parsed


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def package_directory() -> Path:
    """The directory of the package ``oxlite``."""
    return PACKAGE
