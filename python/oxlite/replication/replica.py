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

__all__ = [
    "ANSWERS_WITHIN_SECONDS",
    "Held",
    "Replica",
    "Span",
    "held",
    "refuse_lacking",
    "refuse_path",
    "replicas_of",
]

ANSWERS_WITHIN_SECONDS: Final = 30.0
"""How long a store is waited for."""

_WHOLE_LEVEL: Final = 9
"""Of whole copies (Litestream's ``SnapshotLevel``)."""

_READ_AS_URI: Final = re.compile(r"[?#]|%[0-9A-Fa-f]{2}")
_KEPT: Final = re.compile(r"\.before-\d{8}T\d{6}Z(-\d+)?$")
"""How ``oxlite.operations.restore`` names what it has replaced (``partial.timed_path``)."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A database and where its replica is.

    Attributes:
        database: Its file, resolved. It need not be there.
        store: The place of its replica.
    """

    database: Path
    store: Store


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """What one file of a place has.

    Attributes:
        level: 0 if it is one transaction as it was sent, 9 if it is a whole copy; in between it was
            put together of those of the level below.
        first: The number of its first transaction.
        last: That of its last.
    """

    level: int
    first: int
    last: int


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
        spans: What each file has.
    """

    last_transaction: int
    last_at: datetime
    first_at: datetime
    newest_at: datetime
    files: int
    size: int
    single: dict[int, tuple[int, datetime]] = field(default_factory=dict, repr=False)
    spans: tuple[Span, ...] = field(default=(), repr=False)

    @property
    def ahead(self) -> int | None:
        """The number of a transaction that a whole copy reaches, though it was not sent by itself.

        Litestream sends whole copies as soon as it has made them (0.5.17).
        """
        sent = max(self.single, default=0)
        return self.last_transaction if self.last_transaction > sent else None

    @property
    def gap(self) -> int | None:
        """The first transaction that a restore could not reach, though a later one is there.

        ``None`` if all is whole. A restore goes as Litestream's does (0.5.17: ``CalcRestorePlan``):
        it begins with the newest whole copy, or with nothing, and goes on with the file that
        reaches furthest of those that begin no later than right after what it has. It takes no
        older whole copy. What is in the files is not looked at.
        """
        whole = [(span.first, span.last) for span in self.spans if span.level == _WHOLE_LEVEL]
        reached = max(whole)[1] if whole else 0
        # By its first transaction a file that is passed over has to be looked at once only.
        left = sorted((span.first, span.last) for span in self.spans if span.level != _WHOLE_LEVEL)
        for first, last in left:
            if first > reached + 1:
                return reached + 1
            reached = max(reached, last)
        return None


def replicas_of(
    databases: Sequence[Path], to: str, *, directory: Path | None = None
) -> list[Replica]:
    """Which databases are replicated where.

    Args:
        databases: Their files. One of them is replicated to ``to`` itself, several below it, each
            by its file's name.
        to: A URL that Litestream takes, or a directory.
        directory: All databases that are in it now are meant as well, each below ``to``. What a
            restore has kept there (``NAME.before-TIME``) is none.

    Raises:
        ReplicationError: There is none, one is no database, Litestream cannot open one of such a
            path, two would have one place, or ``to`` is no place.
    """
    store = store_of(to)
    every = [path.resolve() for path in databases]
    if directory is not None:
        if not directory.is_dir():
            raise ReplicationError(f"{directory} is no directory")
        every += [path.resolve() for path in sorted(directory.iterdir()) if _is_database(path)]
    unique = list(dict.fromkeys(every))
    if not unique:
        raise ReplicationError(
            "there is nothing to replicate: name a database, or a directory that has some now. One"
            " that is missing is restored only if it is named; or bring it back by oxlite restore"
            " --from URL/NAME"
        )
    for path in unique:
        refuse_path(path)
        _refuse_file(path)
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
        # The levels are listed from the lowest on, and nothing is deleted before what replaces it
        # is there, on a higher one: so a list that is made meanwhile has no gap either.
        for one in json.loads(printed):
            transaction, size = int(one["max_txid"], 16), int(one["size"])
            at = datetime.fromisoformat(one["timestamp"]).astimezone(UTC)
            files.append((transaction, at, size))
            spans.append(Span(int(one["level"]), int(one["min_txid"], 16), transaction))
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
        tuple(sorted(spans)),
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


def refuse_path(path: Path) -> None:
    """See that Litestream opens the file that is meant.

    It puts the path as it is into a URI (0.5.17), in which some characters are no part of a path:
    it would open another file, and write to it. And its configuration is text.

    Args:
        path: Of a database, absolute and resolved.

    Raises:
        ReplicationError: It would not.
    """
    shown = harmless(str(path))
    try:
        os.fsencode(path).decode()
    except UnicodeDecodeError:
        raise ReplicationError(
            f"{shown} has bytes in it that are not UTF-8, and Litestream is told paths as text:"
            " rename the file, or the directory that has them"
        ) from None
    found = _READ_AS_URI.search(str(path))
    if found is not None:
        raise ReplicationError(
            f"{shown} has {found[0]} in it, and Litestream would open another file: it reads ?, #,"
            " and % before two hexadecimal digits as in a URL; rename the file, or the directory"
            " that has it in its name"
        )


def _refuse_file(path: Path) -> None:
    """See that a file that is there is a database, or may become one, and that it can be written.

    Raises:
        ReplicationError: It is none, or cannot be.
    """
    shown = harmless(str(path))
    if not path.exists():
        return
    if not path.is_file():
        raise ReplicationError(f"{shown} is no file")
    if not os.access(path, os.R_OK | os.W_OK):
        raise ReplicationError(
            f"{shown} cannot be read and written by this user: replicate as the application's user,"
            " or give this one the rights to it"
        )
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
    if begin not in (b"", MAGIC):
        raise ReplicationError(
            f"{shown} is no database: name another file, or move this one away if a database is to"
            " be made or restored there"
        )


def _is_database(path: Path) -> bool:
    """Whether it is a file that begins as a database does; one that cannot be read is none."""
    try:
        if path.is_symlink() or not path.is_file() or _KEPT.search(path.name):
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        raise ReplicationError(f"{harmless(str(path))} cannot be read") from None
