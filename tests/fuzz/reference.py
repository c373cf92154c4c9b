"""The standard library's driver on the very SQLite that Oxlite carries.

The interpreter's ``_sqlite3`` finds its SQLite at run time, so a shared library built from the same
source with the same options takes the place of the system's (``LD_LIBRARY_PATH``). Then no
difference is due to the version of SQLite, and messages can be compared as well.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from oxlite import sqlite3

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "fuzz"

# Options without effect on results, and those whose listed form is not the form of a definition.
_LEFT_OUT = re.compile(
    r"THREADSAFE|COMPILER|MUTEX|ATOMIC|SYSTEM_MALLOC|DEFAULT_|MAX_(?!VARIABLE_NUMBER)|MALLOC|TEMP_STORE"
    r"|DIRECT|USE_ALLOCA"
)


def amalgamation() -> Path | None:
    """The source of the SQLite that Oxlite is built from, where Cargo has unpacked it."""
    locked = re.search(
        r'name = "libsqlite3-sys"\nversion = "([^"]+)"', (ROOT / "Cargo.lock").read_text()
    )
    if locked is None:
        return None
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    pattern = f"registry/src/*/libsqlite3-sys-{locked[1]}/sqlite3/sqlite3.c"
    return next(cargo.glob(pattern), None)


def options() -> list[str]:
    """The options of Oxlite's build as definitions."""
    connection = sqlite3.connect(":memory:")
    listed = [name for (name,) in connection.execute("PRAGMA compile_options")]
    connection.close()
    kept = [name for name in listed if not _LEFT_OUT.match(name)]
    return ["-DSQLITE_THREADSAFE=1", *(f"-DSQLITE_{name}" for name in kept)]


def library_folder() -> Path | None:
    """The folder of the shared library, built if it is not there; None if it cannot be built."""
    source, compiler = amalgamation(), shutil.which("cc")
    if source is None or compiler is None:
        return None
    # With other options it is another library.
    digest = hashlib.sha256(" ".join(options()).encode()).hexdigest()[:12]
    folder = FOLDER / f"sqlite-{sqlite3.sqlite_version}-{digest}"
    library = folder / "libsqlite3.so.0"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            building = folder / "building.so"
            # Not optimised: it is compiled in a few seconds, and the scripts are short.
            arguments = ["-O0", "-w", "-fPIC", "-shared", "-o", str(building), *options()]
            subprocess.run(
                [compiler, *arguments, str(source), "-ldl", "-lpthread", "-lm"], check=True
            )
            building.rename(library)
    return folder


def environment() -> dict[str, str]:
    """How the standard library is given Oxlite's SQLite; empty if that cannot be."""
    folder = library_folder()
    return {} if folder is None else {"LD_LIBRARY_PATH": str(folder)}
