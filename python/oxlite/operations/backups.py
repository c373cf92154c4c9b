"""Backups: made, listed, and the old ones deleted.

Invariants:
- A backup has its name when it is whole, verified and synced; what is killed before leaves none.
- The last one that is what was verified is never deleted here.
"""

import os
import socket
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial as bound
from pathlib import Path
from typing import Final

from oxlite import sqlite3
from oxlite.operations import compression
from oxlite.operations.errors import OperationsError, VerificationFailed
from oxlite.operations.files import MAGIC, SIDECARS, SQLITES, beside, refuse_long_name
from oxlite.operations.manifest import (
    MANIFEST_SUFFIX,
    Manifest,
    manifest_path,
    put_in_order,
    read_manifest,
    remove_if_orphan,
    write_manifest,
)
from oxlite.operations.niceness import NICE, nicely
from oxlite.operations.online_copy import copy_online
from oxlite.operations.partial import (
    Partial,
    alone_in,
    remove_abandoned,
    sync_directory,
    timed_path,
)
from oxlite.operations.verification import Stage, digest, silent, verified

__all__ = ["Backup", "backup", "backups_in", "backups_of", "prune", "prune_each"]

_SUFFIX: Final = ".db"


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that is whole.

    Attributes:
        path: Its file.
        manifest: What is known of it.
    """

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """Its file's, without what they all end with."""
        return self.path.name.removesuffix(compression.SUFFIX).removesuffix(_SUFFIX)

    @property
    def looks_whole(self) -> bool:
        """Whether its file has the size that it had, and begins as one of its kind: what is cheap.

        Bytes that have changed since are not seen; ``is_proved`` and ``restore`` compare all of it.
        """
        begin = MAGIC if self.manifest.compression is None else compression.MAGIC
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                return size == self.manifest.size and file.read(len(begin)) in (begin, b"")
        except OSError:
            return False

    def is_proved(self) -> bool:
        """Whether its file is what was verified, by its checksum: all of it is read."""
        try:
            return self.looks_whole and digest(self.path) == self.manifest.sha256
        except OSError:
            return False


def backup(
    database: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    compress: bool = False,
    bytes_per_second: float | None = None,
    nice: int = NICE,
    host: str | None = None,
    stage: Stage | None = None,
) -> Backup:
    """Copy a database that others use meanwhile, and verify the copy.

    Args:
        database: The database.
        target: The file of the backup, which is not there; or a directory, where it is named by the
            database and the time.
        compress: Whether it is compressed (Zstandard).
        bytes_per_second: How fast it is copied at the most, as long as the WAL allows it.
        nice: By how much it gives way to others who want the processor (Linux): see nice(2).
        host: The host that the database is on, for the manifest; by default what this machine
            calls itself. Where that is another name each time, as in a container, say one.
        stage: Called with what is being done, in a thread of its own.

    Returns:
        The backup. Its manifest, with the SHA-256, is beside it: ``NAME.json``.

    Raises:
        OperationsError: There is no such database, or the target's name is taken, too long, or one
            that is no backup's.
        VerificationFailed: The copy is damaged, as the database is then.
        oxlite.sqlite3.Error: The database cannot be read.
        OSError: The backup cannot be written.
    """
    if os.fspath(target).endswith(os.sep) and not os.path.isdir(target):  # noqa: PTH112 - a text
        raise OperationsError(f"there is no directory {target}")
    make = bound(
        _made, Path(database), Path(target), compress, bytes_per_second, _host(host), stage
    )
    return nicely(make, nice)


def _made(
    source: Path,
    given: Path,
    compress: bool,
    bytes_per_second: float | None,
    host: str,
    stage: Stage | None,
) -> Backup:
    directory = given if os.path.isdir(given) else given.parent  # noqa: PTH112 - a name may be too long
    if not directory.is_dir():
        raise OperationsError(f"there is no directory {directory}")
    remove_abandoned(directory)
    if given is not directory:
        with alone_in(directory):
            remove_if_orphan(given)
        _refuse_name(given)
        _refuse_if_taken(given)
    say = stage or silent
    like = directory / source.name
    with Partial(like) as whole:
        pages = whole.beside("pages") if compress else whole.path
        copied = copy_online(
            source,
            pages,
            bytes_per_second=bytes_per_second,
            progress=bound(say, "copying"),
        )
        say("verifying", 0, 0)
        contents = verified(pages)
        if contents.rows != copied.rows:
            raise VerificationFailed(f"the copy of {source} has not the rows that it had")
        if compress:
            say("compressing", 0, 0)
            compression.compress(pages, whole.path)
        manifest = Manifest(
            sequence=0,
            created_at=copied.at,
            verified_at=datetime.now(UTC),
            source=str(source.resolve()),
            size=whole.path.stat().st_size,
            sha256=digest(whole.path),
            compression="zstd" if compress else None,
            contents=contents,
            sqlite_version=sqlite3.sqlite_version,
            host=host,
        )
        whole.take_rights(source)
        whole.sync()
        with alone_in(directory):
            sequence = put_in_order(directory)
            final = given
            if given is directory:
                end = f"{_SUFFIX}{compression.SUFFIX if compress else ''}"
                final = timed_path(directory, source.stem.lstrip(".") or "backup", "-", end)
            _refuse_if_taken(final)
            manifest = replace(manifest, sequence=sequence)
            write_manifest(final, manifest)
            try:
                whole.finish(final)
            except OSError:
                manifest_path(final).unlink(missing_ok=True)
                raise
    return Backup(final, manifest)


def _refuse_name(final: Path) -> None:
    """Refuse a name under which it would not be found, or be taken for something else."""
    refuse_long_name(final)
    name = final.name
    if name.startswith("."):
        raise OperationsError(f"{name} is hidden: a backup of that name would not be listed")
    if name.endswith(MANIFEST_SUFFIX):
        raise OperationsError(
            f"{name} is the name of a manifest, which lies beside a backup: name it"
            f" {name.removesuffix(MANIFEST_SUFFIX)}{_SUFFIX}, for example"
        )
    if name.endswith(SIDECARS):
        raise OperationsError(f"{name} is the name of what lies beside a database: take another")


def _refuse_if_taken(final: Path) -> None:
    # A WAL or a journal of another file would be written into it by whoever opens it.
    for taken in (final, manifest_path(final), *beside(final, SQLITES)):
        if os.path.lexists(taken):
            raise OperationsError(f"{taken} exists: a backup takes nothing's place")


def backups_in(directory: str | os.PathLike[str]) -> list[Backup]:
    """The backups of a directory, the first first.

    Raises:
        OSError: It cannot be read.
    """
    found = []
    for path in Path(directory).iterdir():
        if path.name.startswith(".") or path.suffix == MANIFEST_SUFFIX:
            continue
        try:
            manifest = read_manifest(path)
        except (OperationsError, OSError):
            continue
        if manifest is not None and path.is_file():
            found.append(Backup(path, manifest))
    return sorted(found, key=lambda one: (one.manifest.sequence, one.path.name))


def backups_of(
    database: str | os.PathLike[str], directory: str | os.PathLike[str], host: str | None = None
) -> list[Backup]:
    """The backups of a database of this host in a directory, the first first.

    Args:
        database: The database.
        directory: Their directory, which other databases and other hosts may share.
        host: The host that the database is on, if it is not what this machine calls itself.

    Raises:
        OSError: The directory cannot be read.
    """
    wanted = (_host(host), str(Path(database).resolve()))
    return [one for one in backups_in(directory) if _source(one) == wanted]


def prune(
    directory: str | os.PathLike[str],
    *,
    database: str | os.PathLike[str] | None = None,
    host: str | None = None,
    keep: int | None = None,
    keep_for: timedelta | None = None,
) -> list[Backup]:
    """Delete old backups of a directory.

    Of each database of each host one is kept if it is among the last ``keep``, or younger than
    ``keep_for``; and the last one that is what was verified, by its checksum, in any case. Where
    none is, none is deleted.

    Args:
        directory: Their directory.
        database: Only those of this one, on one host. Backups that do not say of which host they
            are, as those of the first versions, stay.
        host: The host of that database; by default what this machine calls itself.
        keep: How many are kept.
        keep_for: For how long.

    Returns:
        Those that were deleted.

    Raises:
        ValueError: Nothing is said, or less than nothing.
        OSError: The directory cannot be read, or one cannot be deleted.
    """
    find = bound(backups_in, directory)
    if database is not None:
        find = bound(backups_of, database, directory, host)
    return prune_each(Path(directory), find, _source, keep, keep_for)


def prune_each(
    directory: Path,
    find: Callable[[], list[Backup]],
    rotation: Callable[[Backup], Hashable],
    keep: int | None,
    keep_for: timedelta | None,
) -> list[Backup]:
    """Delete old ones of those that are found: of each rotation some are kept, see ``prune``."""
    if keep is None and keep_for is None:
        raise ValueError("say how many are kept, or for how long")
    if (keep is not None and keep < 0) or (keep_for is not None and keep_for < timedelta(0)):
        raise ValueError("what is kept is not less than nothing")
    remove_abandoned(directory)
    with alone_in(directory):
        put_in_order(directory)
        rotations: dict[Hashable, list[Backup]] = {}
        for one in find():
            rotations.setdefault(rotation(one), []).append(one)
        old = [one for found in rotations.values() for one in _old(found, keep, keep_for)]
        for one in old:
            # A backup without a manifest would stay for ever; a manifest alone is an orphan.
            for path in (one.path, manifest_path(one.path), *beside(one.path)):
                path.unlink(missing_ok=True)
        if old:
            sync_directory(directory)
    return old


def _host(given: str | None) -> str:
    return given or socket.gethostname()


def _source(one: Backup) -> tuple[str | None, str]:
    """What it is a backup of: a path says little where hosts share a directory."""
    return one.manifest.host, one.manifest.source


def _old(found: list[Backup], keep: int | None, keep_for: timedelta | None) -> list[Backup]:
    kept = set(_last(found, keep or 0))
    if keep_for is not None:
        now = datetime.now(UTC)
        kept |= {one.path for one in found if now - one.manifest.created_at < keep_for}
    if all(one.path in kept for one in found):
        return []
    # What is kept by its number or age may have been damaged meanwhile.
    proved = next((one for one in reversed(found) if one.is_proved()), None)
    if proved is None:
        return []
    return [one for one in found if one.path not in kept | {proved.path}]


def _last(found: list[Backup], count: int) -> Iterable[Path]:
    return [one.path for one in found[len(found) - min(count, len(found)) :]]
