"""Which database is replicated to which place, and what a place has of one."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from oxlite import harmless
from oxlite.operations.files import MAGIC, litestream_directory, name_bytes_in
from oxlite.replication.errors import LitestreamFailed, ReplicationError, StoreUnreachable
from oxlite.replication.litestream import Litestream
from oxlite.replication.store import Store, store_of

__all__ = ["ANSWERS_WITHIN_SECONDS", "Held", "Replica", "held", "refuse_lacking", "replicas_of"]

_WHOLE: Final = 9
"""Litestream's level of whole copies."""

_MEANS_ANOTHER: Final = re.compile(r"[?#]|%[0-9A-Fa-f]{2}")
"""Litestream (0.5.17) puts a path into a URI as it is, and would open, and write, another file."""

_KEPT: Final = re.compile(r"\.before-\d")
"""In the name of what a restore has kept (``oxlite.operations.restore``)."""

ANSWERS_WITHIN_SECONDS: Final = 30.0
"""How long a store is waited for."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A database and where its replica is.

    Attributes:
        database: Its file, resolved. It need not be there.
        store: The place of its replica.
    """

    database: Path
    store: Store


@dataclass(frozen=True, slots=True)
class Held:
    """What a place has of a database.

    Attributes:
        last_transaction: The number of its last transaction, as Litestream counts.
        last_at: When that was read from the database, in whole seconds.
        first_at: When the first that is kept was, in whole seconds.
        newest_at: The latest such time of any file there.
        files: Of how many files it is made.
        size: Of them all, in bytes.
        single: Size and time of each file that has one transaction as it was sent, by its number.
        spans: Level, first and last transaction of each file.
    """

    last_transaction: int
    last_at: datetime
    first_at: datetime
    newest_at: datetime
    files: int
    size: int
    single: dict[int, tuple[int, datetime]] = field(default_factory=dict, repr=False)
    spans: Sequence[tuple[int, int, int]] = field(default=(), repr=False)

    @property
    def gap(self) -> int | None:
        """The number of a transaction that a restore lacks, though later ones are there.

        It begins with the newest whole copy, or with the first transaction of all, and goes on by
        any file that leads further (Litestream 0.5.17, ``CalcRestorePlan``).
        """
        reached = max((last for level, _first, last in self.spans if level == _WHOLE), default=0)
        parts = sorted((first, last) for level, first, last in self.spans if level != _WHOLE)
        for first, last in parts:
            if first > reached + 1:
                return reached + 1
            reached = max(reached, last)
        return None

    @property
    def ahead(self) -> int | None:
        """The number of a transaction that a whole copy reaches, though it was not sent by itself.

        Litestream sends whole copies as soon as it has made them (0.5.17).
        """
        sent = max(self.single, default=0)
        return self.last_transaction if self.last_transaction > sent else None


def replicas_of(
    databases: Sequence[Path], to: str, *, directory: Path | None = None
) -> list[Replica]:
    """Which databases are replicated where.

    Args:
        databases: Their files. One of them is replicated to ``to`` itself, several below it, each
            by its file's name.
        to: A URL that Litestream takes, or a directory.
        directory: All databases that are in it now are meant as well, each below ``to``; but for
            those that restores have kept.

    Raises:
        ReplicationError: There is none, two would have one place, ``to`` is no place, or one has a
            path by which Litestream would open another file.
    """
    store = store_of(to)
    every = [path.resolve() for path in databases]
    if directory is not None:
        if not directory.is_dir():
            raise ReplicationError(f"{directory} is no directory")
        every += [path.resolve() for path in sorted(directory.iterdir()) if _is_meant(path)]
    unique = list(dict.fromkeys(every))
    if not unique:
        raise ReplicationError(
            "there is nothing to replicate: name a database, or a directory that has some (one that"
            " is to be restored if it is missing has to be named)"
        )
    for path in unique:
        _refuse_path(path)
        if path.exists() and not path.is_file():
            raise ReplicationError(f"{path} is no file")
        if path.exists() and not (_is_database(path) or path.stat().st_size == 0):
            raise ReplicationError(f"{path} is no database")
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise ReplicationError(f"{path} cannot be read and written by this user: it must be")
        if not path.parent.is_dir():
            raise ReplicationError(f"there is no directory {path.parent}")
        most = name_bytes_in(path.parent, litestream_directory(Path("x")).name[:-1])
        if len(os.fsencode(path.name)) > most:
            raise ReplicationError(
                f"{path.name} is too long a name: what Litestream lays beside a database leaves"
                f" {most} bytes for it"
            )
    if len(unique) == 1 and directory is None:
        return [Replica(unique[0], store)]
    replicas = [Replica(path, store.below(path.name)) for path in unique]
    seen: dict[str, Path] = {}
    for replica in replicas:
        other = seen.setdefault(replica.store.place, replica.database)
        if other != replica.database:
            raise ReplicationError(
                f"{other} and {replica.database} would have one place, {replica.store.shown}:"
                " replicate them by two commands, each to a place of its own"
            )
    return replicas


def held(
    litestream: Litestream, store: Store, *, seconds: float = ANSWERS_WITHIN_SECONDS
) -> Held | None:
    """What a place has of a database; ``None`` if the store says that it has nothing there.

    Raises:
        StoreUnreachable: The store does not say. That is not "nothing".
    """
    refuse_lacking(store)
    what = f"look what is at {store.shown}"
    try:
        printed, _logged = litestream.run(
            ["ltx", "-level", "all", "-json", store.url], seconds=seconds, what=what
        )
        files, single, spans = [], {}, []
        for one in json.loads(printed):
            transaction, size = int(one["max_txid"], 16), int(one["size"])
            at = datetime.fromisoformat(one["timestamp"]).astimezone(UTC)
            files.append((transaction, at, size))
            spans.append((int(one["level"]), int(one["min_txid"], 16), transaction))
            if one["level"] == 0:
                single[transaction] = (size, at)
    except StoreUnreachable:
        raise
    except LitestreamFailed as error:
        raise StoreUnreachable(str(error)) from None
    except (ValueError, KeyError, TypeError):
        raise StoreUnreachable(
            f"Litestream could not {what}: what it says is not understood"
        ) from None
    if not files:
        return None
    last_transaction, last_at, _size = max(files)
    times = [at for _transaction, at, _size in files]
    return Held(
        last_transaction,
        last_at,
        min(times),
        max(times),
        len(files),
        sum(size for *_rest, size in files),
        single,
        spans,
    )


def refuse_lacking(store: Store) -> None:
    """See that a directory can be there, if the place is one.

    Raises:
        StoreUnreachable: What it is to be in is not there.
    """
    lacking = store.lacking()
    if lacking is not None:
        raise StoreUnreachable(
            f"there is no directory {lacking}: if it is on a volume, mount that; else make it"
        )


def _refuse_path(path: Path) -> None:
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ReplicationError(
            f"{harmless(text)} is no UTF-8, and Litestream is told of paths as text: rename it"
        ) from None
    found = _MEANS_ANOTHER.search(text)
    if found is not None:
        raise ReplicationError(
            f"{text} has {found[0]!r} in it, by which Litestream would open another file: rename"
            " it, or move it into another directory"
        )


def _is_meant(path: Path) -> bool:
    return _KEPT.search(path.name) is None and _is_database(path)


def _is_database(path: Path) -> bool:
    """Whether it is a file that begins as a database does.

    Raises:
        ReplicationError: It cannot be read.
    """
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        raise ReplicationError(f"{harmless(str(path))} cannot be read") from None
