"""The file itself, what lies beside it, and who may write there."""

import math
import os
import shlex
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from oxlite.operations.doctor.place import Place, may_write
from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.subject import Subject
from oxlite.operations.files import MAGIC, OXLITES, SIDECARS
from oxlite.operations.restore import names_of_a_killed_restore

__all__ = ["CHECKS", "ILLNESSES", "NO_DATABASE", "UNREADABLE"]

_EMPTY: Final = Illness(
    "empty-file",
    "warning",
    "SQLite takes a file without bytes for a new database. It is what a misspelt path leaves"
    " behind, or a copy that has failed.",
)
NO_DATABASE: Final = Illness(
    "not-a-database", "error", "No SQLite can read it, so an application that opens it fails."
)
_ENCRYPTED: Final = Illness(
    "encrypted",
    "error",
    "Without its key nobody can read it; Oxlite's SQLite has no encryption, so it cannot with the"
    " key either.",
)
_HEADER: Final = Illness(
    "corrupt-header",
    "error",
    "The first 100 bytes say how all the others are to be read. SQLite refuses the file.",
)
_TRUNCATED: Final = Illness(
    "truncated",
    "error",
    "The end of the database is missing: a copy that was not finished, or a full disk. What was"
    " there is lost, and reading it is an error.",
)
_PARTIAL: Final = Illness(
    "partial-page",
    "warning",
    "SQLite writes whole pages. Something else has cut the file or written behind its end.",
)
_LINKS: Final = Illness(
    "hard-links",
    "warning",
    "Journal and WAL are named after the name by which the file is opened. Two programs that use"
    " two names do not see each other's, and corrupt it.",
)
_READ_ONLY: Final = Illness(
    "file-read-only", "warning", "Each write fails: attempt to write a readonly database."
)
_DIRECTORY_READ_ONLY: Final = Illness(
    "directory-read-only",
    "warning",
    "Journal, WAL and its index are made in the directory, so writing fails, and in WAL mode"
    " reading too.",
)
_OPEN_TO_ALL: Final = Illness(
    "file-world-writable",
    "warning",
    "Every user of the machine, and every program that one of them runs, can change or destroy the"
    " data.",
)
_DIRECTORY_OPEN_TO_ALL: Final = Illness(
    "directory-world-writable",
    "warning",
    "Every user can replace the database, or put a journal there that is rolled back into it.",
)
_SIDECAR_PERMISSIONS: Final = Illness(
    "sidecar-permissions",
    "warning",
    "Who may write the database cannot write a file beside it, so its writes fail, and in WAL mode"
    " its reads too. It is what a program leaves that was run as another user.",
)
_SIDECAR_KIND: Final = Illness(
    "sidecar-not-a-file",
    "error",
    "SQLite follows no link there and opens nothing but a file: the database cannot be opened or"
    " written.",
)
_GATE: Final = Illness(
    "gate-permissions",
    "warning",
    "Oxlite does not use such a file, so writers of several processes do not queue. Who may not"
    " write the database could keep its writers waiting by it.",
)
_STRAY_WAL: Final = Illness(
    "stray-wal",
    "error",
    "The database is not in WAL mode, so this WAL is of another file of that name, as when a"
    " backup was put in its place. Who opens the database next writes the old pages into it.",
)

UNREADABLE: Final = frozenset(
    {
        "corrupt-header", "empty-file", "encrypted", "not-a-database", "sidecar-not-a-file",
        "stray-wal",
    }
)  # fmt: skip
"""With these SQLite is not asked for the content.

There is none, a FIFO would stop it, or it would be read through the WAL of another file.
"""

_WAL_MAGIC: Final = (bytes.fromhex("377f0682"), bytes.fromhex("377f0683"))
_OTHERS: Final = {
    b"\x1f\x8b": "gzip data",
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "data compressed with zstd",
    b"LTX1": "an LTX file of Litestream",
    b"PRAGMA ": "SQL text, as the shell's .dump writes it",
    b"BEGIN TRANSACTION": "SQL text, as the shell's .dump writes it",
    b"** This file contains an SQLite 2": "a database of SQLite 2",
    b"**sqlite": "a database of SQLite 2",
    b"version https://git-lfs": "a pointer of git-lfs",
    b"\xd9\xd5\x05\xf9": "a rollback journal",
    b"\x37\x7f\x06": "a write-ahead log",
}
_RANDOM_BITS: Final = 7.8


def _check_kind(subject: Subject) -> Iterator[Finding]:
    """Whether it is a database at all: https://sqlite.org/fileformat2.html#magic_header_string."""
    place = subject.place
    start = place.bytes.get("")
    if place.status.st_size == 0:
        if place.size("-wal") or place.size("-journal"):
            yield _EMPTY.found(
                "The file is empty, but a WAL or a journal with content lies beside it.",
                "Keep all files that begin with this name, and restore the last verified backup.",
            )
        else:
            yield _EMPTY.found(
                "The file is empty.",
                "Look whether the path is right, and restore a backup if there was data. A new"
                " database is begun by the application's migrations.",
            )
    elif start is not None and not start.startswith(MAGIC):
        kind = next((kind for begin, kind in _OTHERS.items() if start.startswith(begin)), None)
        if kind is None and _is_random(start):
            yield _ENCRYPTED.found(
                "The file begins like no database, and its bytes look random: it is encrypted, or"
                " overwritten.",
                "Open it with SQLCipher or the program that has encrypted it, and its key. For"
                " Oxlite, export it to a plain database: ATTACH 'plain.db' AS plain KEY ''; SELECT"
                " sqlcipher_export('plain');",
            )
        else:
            yield NO_DATABASE.found(
                f"The file is {kind}." if kind else "The file does not begin as a database does.",
                "Restore the last verified backup, or name the right file.",
            )


def _check_header(subject: Subject) -> Iterator[Finding]:
    """What each header must say: https://sqlite.org/fileformat2.html#the_database_header."""
    start = subject.place.bytes.get("", b"")
    if not start.startswith(MAGIC):
        return
    header = subject.place.header
    if header is None:
        wrong = "it ends before its header does"
    elif header.page_size not in {512 << power for power in range(8)}:
        wrong = f"a page size of {header.page_size}"
    elif header.fractions != (64, 32, 32):
        wrong = f"payload fractions {header.fractions} instead of (64, 32, 32)"
    elif not {header.read_version, header.write_version} <= {1, 2}:
        wrong = f"versions {header.write_version} and {header.read_version} of the format"
    else:
        return
    yield _HEADER.found(f"The header is damaged: {wrong}.", _restore(subject))


def _check_length(subject: Subject) -> Iterator[Finding]:
    """Whether all pages are there: https://sqlite.org/fileformat2.html#in_header_database_size."""
    place, header = subject.place, subject.place.header
    if header is None or header.page_size < 512 or subject.is_open_elsewhere:
        return  # who writes makes it longer, or shorter, at any moment
    if place.size("-wal") or place.size("-journal"):
        return  # the missing pages may be there
    size = place.status.st_size
    if header.is_page_count_valid and size < header.page_count * header.page_size:
        yield _TRUNCATED.found(
            f"The file has {size:,} bytes, and by its header"
            f" {header.page_count * header.page_size:,}.",
            _restore(subject),
        )
    elif size % header.page_size:
        whole = size - size % header.page_size
        yield _PARTIAL.found(
            f"The file ends with {size % header.page_size:,} bytes that are no page.",
            f"truncate --size={whole} {subject.name}",
        )


def _check_links(subject: Subject) -> Iterator[Finding]:
    """Whether it has several names: https://sqlite.org/howtocorrupt.html, 2.5."""
    count = subject.place.status.st_nlink
    if count < 2:
        return
    left = _left_by_a_restore(subject.place.path)
    for name in left:
        other = shlex.quote(str(name))
        yield _LINKS.found(
            f"{name.name} is another name of the file: a restore was killed in the midst, and"
            " has restored nothing.",
            # A restore that is still at it has two names as well, for a moment.
            f"test {subject.name} -ef {other} && rm {other}",
        )
    if count - len(left) > 1:
        yield _LINKS.found(
            f"The file has {count} names (hard links).",
            f"cp --preserve {subject.name} {subject.beside('.copy')} && mv"
            f" {subject.beside('.copy')}"
            f" {subject.name}  # while nobody has it open",
        )


def _check_permissions(subject: Subject) -> Iterator[Finding]:
    """Whether its owner can write it and beside it: https://sqlite.org/tempfiles.html."""
    place = subject.place
    mode, owner, group = place.status.st_mode, place.status.st_uid, place.status.st_gid
    if not mode & stat.S_IWUSR:
        yield _READ_ONLY.found(
            "Not even its owner may write the file.", f"chmod u+w {subject.name}"
        )
    if not may_write(place.directory, owner, group) and not _has_access_list(place.path.parent):
        folder = _shell_directory(subject)
        yield _DIRECTORY_READ_ONLY.found(
            f"The owner of the file (user {owner}) may not write in its directory.",
            f"chown {owner} {folder} && chmod u+rwx {folder}",
        )
    if mode & stat.S_IWOTH:
        yield _OPEN_TO_ALL.found("Everybody may write the file.", f"chmod o-w {subject.name}")
    if place.directory.st_mode & stat.S_IWOTH:
        is_sticky = bool(place.directory.st_mode & stat.S_ISVTX)
        yield _DIRECTORY_OPEN_TO_ALL.found(
            "Everybody may make files in its directory"
            + (", though not remove those of others." if is_sticky else ", and remove them."),
            "Move the database into a directory of its own."
            if is_sticky
            else f"chmod o-w {_shell_directory(subject)}",
            severity="hint" if is_sticky else None,
        )


def _check_sidecars(subject: Subject) -> Iterator[Finding]:
    """Whether who writes the database can write beside it: ``file/beside.rs``; measured."""
    place = subject.place
    for suffix in SIDECARS:
        found = place.sidecars.get(suffix)
        if found is None:
            continue
        name = f"{place.path.name}{suffix}"
        shell = subject.beside(suffix)
        if not stat.S_ISREG(found.st_mode):
            if suffix in OXLITES:
                continue  # a process makes do without it
            yield _SIDECAR_KIND.found(
                f"{name} is no regular file.",
                f"mv {shell} {subject.beside(suffix + '.strange')}  # while nobody has it open",
            )
        elif not _is_for_the_same(place, suffix):
            yield _SIDECAR_PERMISSIONS.found(
                f"{name} cannot be written by all who may write the database (owner"
                f" {found.st_uid}:{found.st_gid}, mode {stat.S_IMODE(found.st_mode):04o}).",
                f"chown --reference={subject.name} {shell}"
                f" && chmod --reference={subject.name} {shell}",
            )
        elif suffix == "-gate" and found.st_mode & ~place.status.st_mode & 0o022:
            yield _GATE.found(
                f"{name} may be written by more than the database (mode"
                f" {stat.S_IMODE(found.st_mode):04o}).",
                f"rm {shell}  # while nobody has the database open; the next writer makes it anew",
            )
        elif suffix == "-gate" and not may_write(found, place.status.st_uid, place.status.st_gid):
            yield _GATE.found(
                f"{name} cannot be written by the owner of the database (owner {found.st_uid}).",
                f"rm {shell}  # while nobody has the database open; the next writer makes it anew",
            )


def _check_wal_belongs(subject: Subject) -> Iterator[Finding]:
    """Whether the WAL is of this file: https://sqlite.org/howtocorrupt.html, 1.4."""
    header, start = subject.place.header, subject.place.bytes.get("-wal", b"")
    if header is None or header.is_wal or not start.startswith(_WAL_MAGIC):
        return
    if subject.place.size("-wal") > 32 and not subject.holders:
        yield _STRAY_WAL.found(
            f"{subject.place.path.name}-wal lies beside a database that has none.",
            f"mv {subject.beside('-wal')} {subject.beside('-wal.stray')}"
            f" && rm -f {subject.beside('-shm')}",
        )


def _left_by_a_restore(path: Path) -> list[Path]:
    try:
        return names_of_a_killed_restore(path)
    except OSError:  # the directory cannot be read
        return []


def _is_for_the_same(place: Place, suffix: str) -> bool:
    found = place.sidecars[suffix]
    owner, group = place.status.st_uid, place.status.st_gid
    if suffix in OXLITES:
        return True  # each process makes do without them
    if _has_access_list(place.path) or _has_access_list(place.beside(suffix)):
        return True  # it says more than the mode
    if not may_write(found, owner, group):
        return False
    # A group that shares the database.
    return not place.status.st_mode & stat.S_IWGRP or may_write(found, -1, group)


def _has_access_list(path: Path) -> bool:
    """Whether more is said of who may write there than its mode does (acl(5))."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return False


def _is_random(content: bytes) -> bool:
    """Whether there is hardly anything to compress: at most 8 bits for each byte."""
    if len(content) < 1024:
        return False
    shares = [count / len(content) for count in Counter(content).values()]
    return -sum(share * math.log2(share) for share in shares) > _RANDOM_BITS


def _restore(subject: Subject) -> str:
    return (
        "Restore the last verified backup. Without one, save what can be read:\n"
        f"sqlite3 {subject.name} .recover | sqlite3 {subject.beside('.recovered')}"
    )


def _shell_directory(subject: Subject) -> str:
    return shlex.quote(str(subject.place.path.parent))


CHECKS: Final = (
    _check_kind,
    _check_header,
    _check_length,
    _check_links,
    _check_permissions,
    _check_sidecars,
    _check_wal_belongs,
)

ILLNESSES: Final = (
    _EMPTY, NO_DATABASE, _ENCRYPTED, _HEADER, _TRUNCATED, _PARTIAL, _LINKS, _READ_ONLY,
    _DIRECTORY_READ_ONLY, _OPEN_TO_ALL, _DIRECTORY_OPEN_TO_ALL, _SIDECAR_PERMISSIONS, _SIDECAR_KIND,
    _GATE,  _STRAY_WAL,
)  # fmt: skip
