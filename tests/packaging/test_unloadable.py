"""Where the native module is missing or another's, the import of Oxlite says what is the matter.

Each installation is a copy of the package with something wrong about it, imported by a process of
its own.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import oxlite
from oxlite.unloadable import explanation
from oxlite.version import VERSION

PACKAGE = Path(oxlite.__file__).parent
NATIVE = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A copy of the installed package that may be damaged."""
    ignored = shutil.ignore_patterns("__pycache__", "builds", "bench", "django", "_native.*")
    shutil.copytree(PACKAGE, tmp_path / "oxlite", ignore=ignored)
    shutil.copy(PACKAGE / NATIVE, tmp_path / "oxlite")
    return tmp_path / "oxlite"


def said(installation: Path, statement: str = "import oxlite") -> str:
    """The last line with which the import ends; nothing if it succeeds."""
    program = f"import sys; sys.path.insert(0, {str(installation.parent)!r}); {statement}"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=60
    )
    return ended.stderr.strip().rpartition("\n")[2]


def test_a_whole_installation_is_imported(installation: Path) -> None:
    assert said(installation) == ""


@pytest.mark.parametrize(
    "statement", ["import oxlite", "from oxlite import sqlite3", "import oxlite.aio"]
)
def test_no_native_module(installation: Path, statement: str) -> None:
    (installation / NATIVE).unlink()
    message = said(installation, statement)
    assert message.startswith("ImportError: Oxlite cannot be loaded: its native module (_native.")
    assert "make build" in message
    assert "pip install --force-reinstall --no-cache-dir oxlite" in message


def test_one_for_another_python(installation: Path) -> None:
    """So it looks where a glibc wheel is forced upon musl too: its name is another."""
    other = "_native.cpython-310-x86_64-linux-gnu.so"
    (installation / NATIVE).rename(installation / other)
    message = said(installation)
    assert "for another Python, processor or C library" in message
    assert other in message
    assert NATIVE in message


@pytest.mark.parametrize("kind", ["link to nowhere", "directory"])
def test_one_of_the_right_name_that_is_no_file(installation: Path, kind: str) -> None:
    """As a cache leaves it that was emptied while environments linked to it."""
    native = installation / NATIVE
    native.unlink()
    if kind == "directory":
        native.mkdir()
    else:
        native.symlink_to(installation / "gone")
    message = said(installation)
    assert f"its native module ({NATIVE}) is not there" in message
    assert "for another Python" not in message


def test_one_that_may_not_be_read(installation: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (installation / NATIVE).chmod(0)
    assert "this system refuses its native module" in said(installation)


def test_one_in_a_zip(installation: Path) -> None:
    archive = shutil.make_archive(
        str(installation.parent / "packages"), "zip", installation.parent, "oxlite"
    )
    shutil.rmtree(installation)
    message = said(Path(archive) / "oxlite")
    assert f"it lies in an archive ({Path(archive) / 'oxlite'})" in message
    assert "pip" not in message


def test_one_that_needs_a_library_that_is_not_there(installation: Path) -> None:
    native = installation / NATIVE
    native.write_bytes(native.read_bytes().replace(b"libc.so.6\0", b"libq.so.6\0"))
    message = said(installation)
    assert "was built for another system than this one (libq.so.6" in message
    assert "pip 21.2" in message


def test_one_of_another_version(installation: Path) -> None:
    (installation / "version.py").write_text('VERSION = "0.0.9"\n')
    message = said(installation)
    assert f"are of different versions ({VERSION} and 0.0.9)" in message
    assert "pip install --force-reinstall" in message


def test_one_that_lacks_a_name(installation: Path) -> None:
    """Python files of a later version want more than an earlier native module has."""
    retries = installation / "retries.py"
    retries.write_text(f"from oxlite._native import of_a_later_version\n{retries.read_text()}")
    message = said(installation)
    assert "are of different versions (cannot import name 'of_a_later_version'" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF, and no more", "file too short"),
        (b"no library\n" * 999, "invalid ELF header"),
        ((PACKAGE / NATIVE).read_bytes()[:100], "cannot read file data"),
    ],
    ids=["short", "text", "torn"],
)
def test_one_that_is_damaged(installation: Path, content: bytes, words: str) -> None:
    (installation / NATIVE).write_bytes(content)
    message = said(installation)
    assert "its native module is damaged, or for another processor" in message
    assert words in message
    assert "pip install --force-reinstall" in message


@pytest.mark.parametrize(
    "words",
    [
        "failed to map segment from shared object: Operation not permitted",
        "failed to map segment from shared object",
        "cannot open shared object file: Too many open files",
        "cannot open shared object file: Permission denied",
    ],
)
def test_one_that_the_system_refuses(words: str) -> None:
    """In the loader's words for a file system without programs, and for a file of another user."""
    error = ImportError(f"/site/{NATIVE}: {words}", name="oxlite._native", path=f"/site/{NATIVE}")
    message = str(explanation(error))
    assert "refuses its native module" in message
    assert "noexec" in message
    assert "--force-reinstall" not in message


def test_what_the_module_itself_says_is_left_as_it_is() -> None:
    assert explanation(ImportError("Oxlite needs the GIL")) is None


def test_another_import_error_is_left_alone(installation: Path) -> None:
    retries = installation / "retries.py"
    retries.write_text(f"import a_module_that_is_not_there\n{retries.read_text()}")
    assert said(installation) == "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"


def test_a_folder_that_cannot_be_written(installation: Path) -> None:
    """As in an image whose packages are read-only: nothing is written there."""
    before = sorted(installation.rglob("*"))
    for directory in [installation, *filter(Path.is_dir, before)]:
        directory.chmod(0o555)
    try:
        assert said(installation, "sys.dont_write_bytecode = True; import oxlite, oxlite.aio") == ""
        assert sorted(installation.rglob("*")) == before
    finally:
        for directory in [installation, *filter(Path.is_dir, before)]:
            directory.chmod(0o755)


def test_the_python_files_have_the_version_of_the_crates() -> None:
    assert oxlite.__version__ == VERSION
