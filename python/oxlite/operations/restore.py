"""A backup in the place of a database.

Invariants:
- What takes the place was verified before, and is synced.
- While somebody has the database open it takes nobody's place, but with ``live``.
- Of what was there nothing is lost: it has another name, ``NAME.before-TIME``.
- Nothing that belongs to the old file is beside the new one: a WAL or journal of another database
  would be written into it.
"""

import fcntl
import math
import os
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import oxlite
from oxlite import sqlite3
from oxlite.operations import compression
from oxlite.operations.backups import backup as make_backup
from oxlite.operations.backups import backups_in
from oxlite.operations.errors import DatabaseInUse, OperationsError, VerificationFailed
from oxlite.operations.files import MAGIC, WITH_ROWS, beside, refuse_long_name
from oxlite.operations.holders import look_for_holders
from oxlite.operations.manifest import MANIFEST_SUFFIX, Manifest, manifest_path, read_manifest
from oxlite.operations.online_copy import copy_online
from oxlite.operations.partial import (
    Partial,
    before_time,
    remove_abandoned,
    sync_directory,
    timed_path,
)
from oxlite.operations.verification import Contents, Stage, digest, silent, verified

__all__ = [
    "Restored",
    "names_of_a_killed_restore",
    "put_in_place",
    "refuse_if_open",
    "refuse_target",
    "restore",
]

_PENDING_BYTE: Final = 0x40000000
_LOCK_BYTES: Final = 512
"""What SQLite locks of a database's file (https://sqlite.org/src/file/src/os.h)."""

_HEADER_BYTES: Final = 100
_KEPT: Final = ".before-"
_STANDS_STILL_SECONDS: Final = 60.0
_LIVE_PAGES_AT_ONCE: Final = 1024


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored.

    Attributes:
        path: The database.
        contents: What is in it.
        kept_as: What was there before; ``None`` if nothing was.
        was_proved: Whether the backup had a manifest, whose checksum it has.
    """

    path: Path
    contents: Contents
    kept_as: Path | None
    was_proved: bool


def restore(
    backup: str | os.PathLike[str],
    database: str | os.PathLike[str],
    *,
    live: bool = False,
    stage: Stage | None = None,
) -> Restored:
    """Put a backup in the place of a database.

    Args:
        backup: What ``backup`` or ``create`` has made; or any SQLite database, which is copied
            online.
        database: What it becomes. What is there is kept under another name.
        live: Whether it may be in use: what is in the backup is written into it then, in one
            transaction. What others commit between the copy that is kept and that is lost.
        stage: Called with what is being done.

    Raises:
        OperationsError: There is no such backup, no such directory, or its name is too long.
        VerificationFailed: The backup is damaged, or not what its manifest says.
        DatabaseInUse: Somebody has the database open, and ``live`` was not said.
        oxlite.sqlite3.Error: With ``live``: the database cannot be written.
        OSError: The file cannot be written.
    """
    source, target = Path(backup), Path(database).resolve()
    if source.is_dir():
        raise OperationsError(f"{source} is a directory: name a backup in it{_last_in(source)}")
    if source.name.endswith(MANIFEST_SUFFIX):
        of = source.with_name(source.name.removesuffix(MANIFEST_SUFFIX))
        if of.is_file():
            raise OperationsError(f"{source} is the manifest of a backup: name that, {of}")
    if not source.is_file():
        raise OperationsError(f"there is no backup {source}")
    if not source.stat().st_size:
        raise VerificationFailed(f"{source} is empty")
    refuse_target(target)
    if target.exists() and source.samefile(target):
        raise OperationsError(f"{source} is the database itself")
    manifest = read_manifest(source)
    with Partial(target) as partial:
        _copy(source, partial.path, manifest, stage or silent)
        return put_in_place(
            partial,
            target,
            what=str(source),
            rights_of=source,
            manifest=manifest,
            live=live,
            stage=stage,
        )


def refuse_target(target: Path) -> None:
    """See that a database can be restored to a path, before any work; and remove what is abandoned.

    Args:
        target: What it becomes, resolved.

    Raises:
        OperationsError: Its name is too long, there is no such directory, or it is no file.
        OSError: Its directory cannot be read.
    """
    refuse_long_name(target)
    if not target.parent.is_dir():
        raise OperationsError(f"there is no directory {target.parent}")
    if target.exists() and not target.is_file():
        raise OperationsError(f"{target} is no file")
    remove_abandoned(target.parent)


def put_in_place(
    partial: Partial,
    target: Path,
    *,
    what: str,
    rights_of: Path | None = None,
    manifest: Manifest | None = None,
    live: bool = False,
    stage: Stage | None = None,
) -> Restored:
    """Verify a database that is nobody else's yet, and put it in the place of another.

    Every restore ends so, wherever the copy has come from.

    Args:
        partial: The copy.
        target: What it becomes, resolved. What is there is kept under another name.
        what: Where the copy comes from, for errors.
        rights_of: The file whose permissions it has if nothing is there; by default it keeps its
            own.
        manifest: What is to be in it.
        live: As for ``restore``.
        stage: Called with what is being done.

    Raises:
        VerificationFailed: It is damaged, or not what its manifest says.
        DatabaseInUse: Somebody has the database open, and ``live`` was not said.
        oxlite.sqlite3.Error: With ``live``: the database cannot be written.
        OSError: The file cannot be written.
    """
    say = stage or silent
    like = target if target.exists() else rights_of
    if like is not None:
        partial.take_rights(like)
    say("verifying", 0, 0)
    contents = verified(partial.path)
    if manifest is not None and not contents.is_same(manifest.contents):
        raise VerificationFailed(f"{what} has not in it what its manifest says")
    if live and target.exists():
        kept: Path | None = _written_live(partial.path, target, say)
    else:
        kept = _take_name(partial, target)
    return Restored(target, contents, kept, manifest is not None)


def _last_in(directory: Path) -> str:
    found = backups_in(directory)
    return f", the last is {found[-1].path}" if found else ""


def _copy(source: Path, target: Path, manifest: Manifest | None, say: Stage) -> None:
    """Copy what is in a backup."""
    is_compressed = source.suffix == compression.SUFFIX
    if manifest is not None:
        is_compressed = manifest.compression is not None
    if manifest is None and not is_compressed:
        # It may be any database, and in use.
        copy_online(source, target, progress=lambda done, of: say("copying", done, of))
        return
    say("comparing", 0, 0)
    if manifest is not None and digest(source) != manifest.sha256:
        raise VerificationFailed(f"{source} is not what it was: its checksum is another one")
    say("copying", 0, 0)
    if is_compressed:
        compression.decompress(source, target)
    else:
        shutil.copyfile(source, target)


def _take_name(partial: Partial, target: Path) -> Path | None:
    """Give it the name of the database, which nobody has open."""
    partial.sync()
    refuse_if_open(target)
    if not target.exists():
        # Somebody has moved or deleted it: what it had beside it may be all that is left of it.
        kept = timed_path(target.parent, target.name, _KEPT)
        _move_sidecars(target, kept)
        partial.finish(target)
        return None
    _write_back(target)
    with _locked(target):
        refuse_if_open(target, but=os.getpid())
        _refuse_if_unwritten(target)
        for name in names_of_a_killed_restore(target):
            name.unlink()
        kept = timed_path(target.parent, target.name, _KEPT)
        try:
            os.link(target, kept)
        except OSError:  # a file system without hard links
            with Partial(kept) as copy:
                shutil.copy2(target, copy.path)
                copy.finish(kept)
        _move_sidecars(target, kept)
        sync_directory(target.parent)
        partial.replace(target)
    return kept


def names_of_a_killed_restore(database: Path) -> list[Path]:
    """Names beside a database, for its own file, under which a restore has meant to keep it.

    For a moment the old file has both names. Who is killed in that moment leaves both, and nothing
    was restored. Whoever opened it by the second one would see no WAL or journal of the first.
    A name that has a WAL or a journal of its own is left out: somebody has used it.

    Args:
        database: Its path, resolved.

    Raises:
        OSError: Its directory cannot be read.
    """
    own = database.stat()
    if own.st_nlink == 1:
        return []
    begin = before_time(database.parent, database.name, _KEPT)
    return [
        path
        for path in sorted(database.parent.iterdir())
        if path.name.startswith(begin)
        and os.path.samestat(path.lstat(), own)
        and not any(map(_size, beside(path, WITH_ROWS)))
    ]


def refuse_if_open(target: Path, but: int | None = None) -> None:
    """Refuse to take the place of a database that somebody has open.

    Args:
        target: Its path, resolved.
        but: A process that may.

    Raises:
        DatabaseInUse: Somebody has; the message says who.
    """
    holders = look_for_holders(target, with_libraries=False, look_for_seconds=math.inf) or ()
    found = [one.label for one in holders if one.process_id != but]
    if found:
        raise DatabaseInUse(
            f"{target} is open in {', '.join(found)}: end that first, or restore into the open"
            " database with --live"
        )


def _write_back(target: Path) -> None:
    """Have all that is committed in the file itself; a database that is damaged stays as it is.

    It has no WAL then: who opens it from now on, and waits for our locks, finds afterwards that his
    file has another name, and writes nothing (SQLITE_READONLY_DBMOVED).
    """
    with suppress(sqlite3.Error), closing(sqlite3.connect(target, timeout=5.0)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()


def _refuse_if_unwritten(target: Path) -> None:
    """Refuse while a database that can be read has a WAL or a journal: its rows may be there."""
    with target.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(MAGIC):
        return
    if any(map(_size, beside(target, WITH_ROWS))) or header[18:20] == b"\2\2":
        raise DatabaseInUse(
            f"{target} is in use, or could not be written back: try again when nobody uses it, or"
            " restore into the open database with --live"
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """All of SQLite's locks of a database: nobody reads or writes it meanwhile.

    Raises:
        DatabaseInUse: Somebody has one of them.
    """
    descriptor = os.open(target, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, _PENDING_BYTE, _LOCK_BYTES, 0)
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
            else:
                flags = fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(descriptor, flags, _LOCK_BYTES, _PENDING_BYTE)
        except OSError:
            raise DatabaseInUse(
                f"somebody uses {target}, who cannot be seen from here: end that first, or restore"
                " into the open database with --live"
            ) from None
        if not os.path.samestat(os.fstat(descriptor), target.stat()):
            raise DatabaseInUse(f"{target} was replaced meanwhile: try again")
        yield
    finally:
        os.close(descriptor)


def _move_sidecars(target: Path, kept: Path) -> None:
    """Nothing that belongs to the old file stays beside the new one; what has rows is kept."""
    for left, name in zip(beside(target, WITH_ROWS), beside(kept, WITH_ROWS), strict=True):
        with suppress(FileNotFoundError):
            left.rename(name)
    Path(f"{target}-shm").unlink(missing_ok=True)


def _written_live(verified_copy: Path, target: Path, say: Stage) -> Path:
    """Write it into the database, which may be in use."""
    with (
        closing(sqlite3.connect(verified_copy)) as source,
        closing(oxlite.connect(target, journal="keep", timeout=1.0)) as into,
    ):
        sizes = [one.execute("PRAGMA page_size").fetchone()[0] for one in (source, into)]
        if len(set(sizes)) > 1:
            raise OperationsError(
                f"a database in use keeps its page size, {sizes[1]} bytes, and the backup has"
                f" {sizes[0]}: restore without --live"
            )
        kept = make_backup(
            target,
            timed_path(target.parent, target.name, _KEPT),
            stage=lambda *_said: say("keeping", 0, 0),
        ).path
        # It is no backup that somebody has asked for, and is not to be pruned as one.
        manifest_path(kept).unlink()
        moved = (-1, time.monotonic())

        def note(_code: int, left: int, pages: int) -> None:
            nonlocal moved
            say("writing", pages - left, pages)
            if left != moved[0]:
                moved = (left, time.monotonic())
            elif time.monotonic() - moved[1] > _STANDS_STILL_SECONDS:
                raise DatabaseInUse(
                    f"somebody has had {target} to write for {_STANDS_STILL_SECONDS:g} s: nothing"
                    f" was restored; a copy of it is {kept}"
                )

        source.backup(into, pages=_LIVE_PAGES_AT_ONCE, progress=note)
    return kept
