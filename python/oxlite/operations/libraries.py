"""Which SQLite is in a process: read from the files that it has mapped (Linux).

SQLite carries its version and the id of its source as text
(https://sqlite.org/c3ref/libversion.html). A file has both if it contains SQLite, and only the id
if it is merely built for one, as the ``sqlite3`` program of a distribution is.
"""

import mmap
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Library", "libraries_of", "version_in"]

_SOURCE: Final = re.compile(rb"(20\d\d)-(\d\d)-\d\d \d\d:\d\d:\d\d [0-9a-f]{40,64}")
_VERSION: Final = re.compile(rb"(?<![\w.])3\.(\d{1,2})\.(\d{1,2})\0")
_NAMES: Final = re.compile(r"sqlite|sqlcipher|libsql|oxlite|_native|apsw", re.IGNORECASE)
_OWN: Final = re.compile(r"oxlite.*_native|_native.*oxlite")

# No program is larger than this that has SQLite in it.
_AT_MOST_BYTES: Final = 512 << 20

# https://sqlite.org/chronology.html: the years in which these minor versions were made.
_YEARS: Final = (
    (0, 2004), (4, 2007), (7, 2010), (8, 2013), (10, 2016), (21, 2017), (26, 2018), (30, 2019),
    (34, 2020), (37, 2021), (40, 2022), (44, 2023), (47, 2024), (51, 2025), (99, 2026),
)  # fmt: skip

_Version = tuple[int, int, int]

_seen: dict[tuple[int, int, int], _Version | None] = {}


@dataclass(frozen=True, slots=True)
class Library:
    """A SQLite that a process has loaded.

    Attributes:
        path: The file that it is in.
        version: None if it could not be read.
        is_oxlite: Whether it is the one that Oxlite carries.
    """

    path: str
    version: _Version | None
    is_oxlite: bool


def libraries_of(process_id: int) -> tuple[Library, ...]:
    """The SQLites of a process; none where it cannot be looked at.

    Only files are read whose name speaks of SQLite, and the program itself.
    """
    process = Path("/proc") / str(process_id)
    try:
        lines = (process / "maps").read_text(errors="surrogateescape").splitlines()
        program = str((process / "exe").readlink())
    except OSError:
        return ()
    found: dict[str, Library] = {}
    for line in lines:
        fields = line.split(None, 5)
        if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/"):
            continue
        name = fields[5]
        if name in found or not (name == program or _NAMES.search(Path(name).name)):
            continue
        is_sqlite, version = _read(process, fields[0], name, program)
        if is_sqlite:
            found[name] = Library(name, version, _OWN.search(name) is not None)
    return tuple(found.values())


def version_in(content: "bytes | mmap.mmap") -> _Version | None:
    """The version of the SQLite in a file; None if there is none, or it does not tell."""
    source = _SOURCE.search(content)
    numbers = {(3, int(one[1]), int(one[2])) for one in _VERSION.finditer(content)}
    if source is None or not numbers:
        return None
    # A Python with SQLite in it has its own version there as well.
    year = int(source[1])
    return min(sorted(numbers, reverse=True), key=lambda number: abs(_year(number[1]) - year))


def _year(minor: int) -> int:
    return next(year for first, year in reversed(_YEARS) if minor >= first)


def _read(process: Path, address: str, name: str, program: str) -> tuple[bool, _Version | None]:
    """Whether a mapped file has SQLite in it, and which version."""
    # The mapped file itself, where the kernel lets us; a file of that name may be another by now.
    for path in (
        process / "map_files" / address,
        process / "exe" if name == program else process / "root" / name.lstrip("/"),
    ):
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                key = (status.st_dev, status.st_ino, status.st_mtime_ns)
                if key not in _seen:
                    _seen[key] = _scanned(file.fileno(), status.st_size)
        except (OSError, ValueError):
            continue
        return _seen[key] is not None, _seen[key]
    # It cannot be read: a library of that name is a SQLite of unknown version.
    return re.search(r"libsqlite3|sqlcipher", name) is not None, None


def _scanned(descriptor: int, size: int) -> _Version | None:
    if not 0 < size <= _AT_MOST_BYTES:
        return None
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as content:
        return version_in(content)
