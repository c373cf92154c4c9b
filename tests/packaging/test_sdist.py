"""The source archive builds, far from the checkout, the SQLite that the checkout builds.

The compile-time options of SQLite come from a file that Cargo finds by walking up from where it is
started. So the archive is unpacked outside of the checkout, and the wheel that is built from it is
installed where nothing of the project is.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import oxlite
from oxlite import sqlite3

# Compiling SQLite and the crates anew takes minutes; a repeated run, seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]

# What a developer's tree may hold beside its sources, and no wheel may.
STRAYS = [
    "python/oxlite/_native.cpython-399-x86_64-linux-gnu.so",
    "python/oxlite/bench/builds/stock/_native.abi3.so",
    "python/oxlite/bench/builds/seed/notes.txt",
]

# What libsqlite3-sys reads, set as where other programs are built with the system's SQLite.
OF_ANOTHER_SQLITE = {
    "LIBSQLITE3_FLAGS": "-DSQLITE_OMIT_JSON",
    "LIBSQLITE3_SYS_USE_PKG_CONFIG": "1",
    "SQLITE_MAX_COLUMN": "7",
    "SQLITE_MAX_EXPR_DEPTH": "5",
}

TELL = """
import json, oxlite
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
options = [option for (option,) in connection.execute("PRAGMA compile_options")]
print(json.dumps([oxlite.__file__, sqlite3.sqlite_version, options]))
"""


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Runs a command without what this process's own environment says of the build."""
    told = {"LIBSQLITE3_FLAGS", "RUSTFLAGS", "PYTHONPATH", "CARGO_TARGET_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in told}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment | variables,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.fail(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of the checkout."""
    if shutil.which("cargo") is None:
        pytest.fail("building needs a Rust toolchain")
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "maturin", "sdist", "--out", folder, cwd=ROOT)
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def names(archive: Path) -> list[str]:
    """The files in the archive, without the folder they all lie in."""
    with tarfile.open(archive) as opened:
        members = [member.name for member in opened if member.isfile()]
    (top,) = {name.partition("/")[0] for name in members}
    assert top == f"oxlite-{oxlite.__version__}"
    return sorted(name.partition("/")[2] for name in members)


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source tree out of the archive, outside of the checkout."""
    folder = tmp_path_factory.mktemp("unpacked")
    assert not folder.resolve().is_relative_to(ROOT)
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    for file in tree.rglob("*"):
        # Every file of an archive has the same old time, by which Cargo would take what it built of
        # an earlier archive, unpacked in the same place, for this one's.
        os.utime(file)
    return tree


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the unpacked tree, strays laid in it, built in an environment that says else."""
    for name in STRAYS:
        stray = unpacked / name
        stray.parent.mkdir(parents=True, exist_ok=True)
        stray.write_text("not for others")
    # What Cargo kept from a tree with other options is never taken for this one's.
    flags = (unpacked / ".cargo" / "config.toml").read_bytes()
    target = ROOT / "target" / "sdist" / hashlib.sha256(flags).hexdigest()[:12]
    folder = tmp_path_factory.mktemp("wheel")
    run(
        *(sys.executable, "-m", "maturin", "build", "--release", "--locked"),
        *("--interpreter", sys.executable, "--out", folder),
        cwd=unpacked,
        CARGO_TARGET_DIR=str(target),
        PYO3_PYTHON=sys.executable,
        **OF_ANOTHER_SQLITE,
    )
    (wheel,) = folder.iterdir()
    return wheel


@pytest.mark.parametrize(
    "name",
    [
        ".cargo/config.toml",
        "Cargo.lock",
        "Cargo.toml",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "THIRD-PARTY.txt",
        "pyproject.toml",
        "python/oxlite/__init__.py",
        "python/oxlite/_native.pyi",
        "python/oxlite/py.typed",
        "crates/oxlite-sqlite/src/lib.rs",
        "crates/oxlite-core/src/lib.rs",
        "crates/oxlite-python/src/lib.rs",
        "crates/oxlite-python/sqlite.cdx.json",
    ],
)
def test_the_archive_holds(names: list[str], name: str) -> None:
    assert name in names


def test_the_archive_holds_the_options_and_the_versions_of_the_checkout(unpacked: Path) -> None:
    for name in (".cargo/config.toml", "Cargo.lock"):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_archive_holds_what_the_package_is_made_of_and_nothing_else(names: list[str]) -> None:
    """Tests, pages and examples are in the repository, at the tag of the release."""
    listed = run("git", "ls-files", "-co", "--exclude-standard", "crates", "python", cwd=ROOT)
    made_of = {name for name in listed.splitlines() if (ROOT / name).is_file()}
    beside = {
        *(".cargo/config.toml", "CHANGELOG.md", "Cargo.lock", "Cargo.toml", "LICENSE"),
        *("PKG-INFO", "README.md", "THIRD-PARTY.txt", "pyproject.toml"),
        "build_backend/oxlite_build.py",
    }
    assert set(names) - made_of == beside
    assert made_of - set(names) == set()


def test_the_archive_of_a_commit_is_the_same_wherever_and_whenever_it_is_built(
    tmp_path: Path,
) -> None:
    sums = set()
    for place, zone, mask in [("one", "UTC", 0o022), ("other/place", "Asia/Tokyo", 0o077)]:
        clone = tmp_path / place
        run("git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", clone, cwd=tmp_path)
        # What else lies in a tree.
        for stray in [*STRAYS, "notes.txt", "python/oxlite/left.db", "crates/left.rs"]:
            (clone / stray).parent.mkdir(parents=True, exist_ok=True)
            (clone / stray).write_text("not for others")
        for file in clone.rglob("*.py"):
            os.utime(file, (len(sums) * 1e6,) * 2)
        before = os.umask(mask)
        try:
            maturin = str(Path(sys.executable).with_name("maturin"))
            run(clone / "scripts/sdist.sh", clone / "dist", cwd=tmp_path, MATURIN=maturin, TZ=zone)
        finally:
            os.umask(before)
        (archive,) = (clone / "dist").iterdir()
        sums.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    assert len(sums) == 1


def test_the_archive_holds_nothing_that_was_built(names: list[str]) -> None:
    built = [
        name
        for name in names
        if name.endswith((".so", ".pyd", ".dylib", ".a", ".o", ".pyc", ".db", ".sqlite"))
        or name.startswith(("python/oxlite/bench/builds/", "target/", ".venv", ".git/"))
        or any(part == "__pycache__" or part.endswith("_cache") for part in name.split("/"))
    ]
    assert built == []


def test_the_wheel_holds_one_native_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    native = [name for name in names if name.endswith((".so", ".pyd", ".dylib"))]
    assert len(native) == 1
    assert native[0].startswith("oxlite/_native.")
    assert [name for name in names if "bench/builds" in name] == []
    assert "oxlite/py.typed" in names
    assert "oxlite/_native.pyi" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("crates/", "tests/", "target/")) for name in names)


def test_the_wheel_carries_the_licences_and_what_it_is_made_of(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        there = {name.partition(".dist-info/")[2]: name for name in opened.namelist()}
        texts = {
            name: opened.read(there[name]).decode()
            for name in (
                "METADATA",
                "licenses/LICENSE",
                "licenses/THIRD-PARTY.txt",
                "sboms/oxlite-python.cyclonedx.json",
                "sboms/sqlite.cdx.json",
            )
        }
    for name in ("LICENSE", "THIRD-PARTY.txt"):
        assert texts[f"licenses/{name}"] == (ROOT / name).read_text()
        assert f"\nLicense-File: {name}\n" in texts["METADATA"]
    assert "\nLicense-Expression: MIT\n" in texts["METADATA"]
    crates = {
        (crate["name"], crate["version"])
        for crate in json.loads(texts["sboms/oxlite-python.cyclonedx.json"])["components"]
    }
    for line in texts["licenses/THIRD-PARTY.txt"].splitlines():
        if line.startswith("== "):
            name, version = line.split()[1:3]
            assert (name, version) in crates
    (sqlite,) = json.loads(texts["sboms/sqlite.cdx.json"])["components"]
    assert sqlite["version"] == oxlite.sqlite_version


def test_the_index_takes_both(archive: Path, wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", archive, wheel, cwd=tmp_path)
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel, cwd=ROOT)


def test_the_wheel_carries_the_sqlite_of_the_development_build(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    file, version, options = json.loads(run(python, "-I", "-c", TELL, cwd=tmp_path))
    assert Path(file).is_relative_to(environment)
    connection = sqlite3.connect(":memory:")
    ours = [option for (option,) in connection.execute("PRAGMA compile_options")]
    connection.close()
    assert version == sqlite3.sqlite_version
    assert options == ours
    assert {"THREADSAFE=2", "ENABLE_FTS5", "DEFAULT_MEMSTATUS=0"} <= set(options)
