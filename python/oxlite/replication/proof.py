"""Proof that a replica restores: something is written, and found in what is restored elsewhere.

The table ``oxlite_replica_proof`` has one row: a token, when it was written, and when it was last
found. It is replicated with all else, so also what was restored says when it was last proved.

Invariants:
- What is restored is verified as every backup is (``oxlite.operations.verification``).
- Nothing is believed that Litestream says of itself, and nothing is asked of its socket: that is
  for who looks after it alone (``guard``).
- If nobody has written meanwhile, every row that can be read without the application is the same.
- A schema that is another one is damage only if nobody has changed the database's meanwhile.
- A store that does not answer proves nothing, and is no proof of damage either.
"""

import errno
import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

import oxlite
from oxlite import sqlite3
from oxlite.operations import VerificationFailed
from oxlite.operations.verification import (
    Contents,
    Stage,
    contents,
    quoted,
    silent,
    verified,
)
from oxlite.replication.claim import is_claimed, read_state
from oxlite.replication.errors import (
    LitestreamFailed,
    NoReplica,
    NotProved,
    ReplicationError,
    StoreUnreachable,
)
from oxlite.replication.litestream import Litestream
from oxlite.replication.replica import held
from oxlite.replication.store import Store

__all__ = ["Proof", "Undecided", "compare_rows", "last_proof", "prove"]

_TABLE: Final = "oxlite_replica_proof"
_FOUND_WITHIN_SECONDS: Final = 60.0
_LOOK_EVERY_SECONDS: Final = 1.0
_LITESTREAMS: Final = ("_litestream_lock", "_litestream_seq")
_HOURS_AT_MOST: Final = 24
_TRIES: Final = 5
_PRIMARY_CODE: Final = 0xFF
"""What of an extended code is SQLite's plain one."""

_NO_ROOM: Final = "no space left on device"
"""As Litestream says it."""

_Schema: TypeAlias = dict[str, bytes]
"""The SQL of each object, by its kind and name."""


class Undecided(ReplicationError):  # noqa: N818 - what is so, as its neighbours
    """Whether a replica is right could not be told: the database was changed all the time."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved.

    Attributes:
        database: Its file.
        store: Where the replica is.
        behind_seconds: What was committed so long before a restore began was in it. That is no more
            than was asked for.
        contents: What is in the restored copy.
        changed: Tables whose number of rows is another one than when the token had been written,
            with how many rows there were and are: they were written meanwhile.
        is_exact: Whether every row was compared: nobody has written meanwhile, and no table needs a
            function that only the application has.
        restore_seconds: How long it took to restore.
    """

    database: Path
    store: Store
    behind_seconds: float
    contents: Contents
    changed: dict[str, tuple[int | None, int | None]]
    restore_seconds: float
    is_exact: bool = False


def prove(
    litestream: Litestream,
    database: Path,
    store: Store | None = None,
    *,
    scratch: Path | None = None,
    seconds: float = _FOUND_WITHIN_SECONDS,
    stage: Stage | None = None,
) -> Proof:
    """Write something, restore the replica elsewhere, and see that it is there and all is whole.

    Args:
        litestream: The program.
        database: Its file.
        store: The replica; by default where it was last replicated to from here.
        scratch: A directory with room for the copy, which is deleted afterwards; by default the
            system's for temporary files.
        seconds: What was committed so long before a restore begins may be missing in it.
        stage: Called with what is being done.

    Raises:
        NotProved: The replica does not restore, is damaged, another database's, or too far behind.
        NoReplica: The store has nothing there.
        StoreUnreachable: The store does not answer.
        Undecided: The schema was changed in each try.
        ReplicationError: It is not known where the replica is.
        oxlite.sqlite3.Error: The database cannot be written.
        OSError: There is no room for the copy.
    """
    say = stage or silent
    path = database.resolve()
    if not path.is_file():
        raise ReplicationError(f"there is no database {path}")
    known = read_state(path)
    if store is None:
        if known is None:
            raise ReplicationError(
                f"{path} has not been replicated from here: say where its replica is"
            )
        store = Store(known.url)
    with closing(oxlite.connect(path, journal="keep", isolation_level=None)) as connection:
        for _ in range(_TRIES):
            say("writing", 0, 0)
            written = _write_token(connection)
            if known is not None and is_claimed(path):
                say("sending", 0, 0)
                _await_sent(path, written, seconds)
            with tempfile.TemporaryDirectory(prefix="oxlite-proof-", dir=scratch) as directory:
                copy = Path(directory, "restored")
                behind, took = _restore_until_found(
                    litestream, connection, store, copy, written, seconds, say
                )
                say("verifying", 0, 0)
                after = _verified(copy, store)
                if not _has_same_schema(connection, copy, store, written):
                    continue
                before = written.contents
                changed = {
                    name: (before.rows.get(name), after.rows.get(name))
                    for name in sorted(before.rows.keys() | after.rows.keys())
                    if before.rows.get(name) != after.rows.get(name) and name not in _LITESTREAMS
                }
                say("comparing", 0, 0)
                is_exact = compare_rows(connection, written.version, copy, store, before)
            _note_proof(path, written.token, behind)
            return Proof(path, store, behind, after, changed, took, is_exact)
    raise Undecided(
        f"{store.shown} restores, but whether its schema is right could not be decided: that of"
        f" {path} was changed in each of {_TRIES} tries; do it again when no migration runs"
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A token, and what was in the database right after it.

    Attributes:
        token: What is to be found.
        committed_at: When that was committed, by the clock that people see.
        committed: The same, by the clock that is never set.
        contents: What is in the database.
        version: Its ``PRAGMA data_version``.
        schema_version: Its ``PRAGMA schema_version``: each change of the schema makes it greater.
        schemas: Those that the database has had since, as far as was looked; the first one is that
            of the token's.
    """

    token: str
    committed_at: float
    committed: float
    contents: Contents
    version: int
    schema_version: int
    schemas: list[_Schema] = field(default_factory=list)

    def age(self) -> float:
        """How long ago that was, in seconds."""
        return time.monotonic() - self.committed


def _restore_until_found(
    litestream: Litestream,
    connection: sqlite3.Connection,
    store: Store,
    copy: Path,
    written: _Written,
    seconds: float,
    say: Stage,
) -> tuple[float, float]:
    """Restore until the token is there; how old it was when that restore began, how long it took.

    Raises:
        NotProved: It was not there in time, or the replica does not restore.
        NoReplica: The store has nothing there.
        StoreUnreachable: The store does not answer.
        OSError: There is no room for the copy.
    """
    while True:
        say("restoring", 0, 0)
        if (schema := _schema(connection)) not in written.schemas:
            written.schemas.append(schema)
        began = time.monotonic()
        behind = written.age()
        _restore(litestream, store, copy)
        took = time.monotonic() - began
        found = _token_in(copy)
        if found == written.token:
            if behind > seconds:
                raise NotProved(
                    f"{store.shown} restores, but what is written was found there only after"
                    f" {behind:.1f} s, and {seconds:g} s are allowed: it is too far behind, or a"
                    f" restore takes too long to tell ({took:.1f} s): allow more then (--within)"
                )
            return behind, took
        if behind > seconds:
            raise NotProved(_why_missing(store, found, behind, took))
        _remove(copy)
        time.sleep(_LOOK_EVERY_SECONDS)


def _await_sent(database: Path, written: _Written, seconds: float) -> None:
    """Wait until who looks after it says that all is sent that was committed before the token.

    If that does not come to be in the time that the token has, the restore shows what is there.
    """
    while written.age() < seconds and is_claimed(database):
        state = read_state(database)
        if state is not None and (state.sent_at or 0.0) > written.committed_at:
            return
        time.sleep(_LOOK_EVERY_SECONDS / 10)


def compare_rows(
    connection: sqlite3.Connection, version: int, copy: Path, store: Store, before: Contents
) -> bool:
    """See that every row is the same, if nobody has written meanwhile.

    A replica that lacks what was written in its midst may be whole by all other checks. A table is
    left out whose columns need a function that only the application has.

    Args:
        connection: To the database.
        version: Its ``PRAGMA data_version`` when ``before`` was looked at.
        copy: What was restored.
        store: Where the replica is.
        before: What is in the database.

    Returns:
        Whether nobody has written, and no table was left out.

    Raises:
        NotProved: A table has other rows.
    """
    is_all = True
    with closing(sqlite3.connect(copy)) as restored:
        for name, rows in before.rows.items():
            if name in _LITESTREAMS:
                continue
            same = None if rows is None else _has_same_rows(connection, restored, name)
            if _version(connection) != version:
                return False
            if same is False:
                raise NotProved(
                    f"{store.shown} restores, but {name} has other rows than in the database"
                )
            is_all &= bool(same)
    return is_all


def _has_same_rows(
    connection: sqlite3.Connection, restored: sqlite3.Connection, table: str
) -> bool | None:
    """Whether both have the same rows; ``None`` where only the application can read them."""
    try:
        return _digest(connection, table) == _digest(restored, table)
    except sqlite3.OperationalError as error:
        # A lock or a disk that fails has a code of its own; this one is said of a statement that
        # cannot be prepared: it needs a function, or somebody has dropped the table meanwhile.
        if (error.sqlite_errorcode & _PRIMARY_CODE) != sqlite3.SQLITE_ERROR:
            raise
        return None


def _digest(connection: sqlite3.Connection, table: str) -> bytes:
    found = hashlib.blake2b()
    with _with_raw_text(connection):
        # By no index: it may have another order, or be what is damaged.
        for row in connection.execute(f"SELECT * FROM {quoted(table)} NOT INDEXED"):
            found.update(repr(row).encode())
    return found.digest()


@contextmanager
def _with_raw_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text as its bytes: SQLite takes any for text. Unlike those of a blob they are an array."""
    before = connection.text_factory
    connection.text_factory = bytearray
    try:
        yield
    finally:
        connection.text_factory = before


def _version(connection: sqlite3.Connection) -> int:
    """A number that is another one after another connection's commit."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def last_proof(database: Path) -> tuple[float, float] | None:
    """When a restore was last proved, in seconds since 1970, and how far behind it was then.

    Raises:
        oxlite.sqlite3.Error: The database cannot be read.
    """
    # Who may write removes the WAL when he closes it as the last one, and all is sent anew then.
    uri = f"file:{quote(os.fsencode(database.absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        try:
            row = connection.execute(
                f"SELECT found_at, behind_seconds FROM {_TABLE} WHERE found_at IS NOT NULL"
            ).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return None
            raise
    return None if row is None else (float(row[0]), float(row[1]))


def _write_token(connection: sqlite3.Connection) -> _Written:
    """Write a token; what is in the database right after it is looked at in one transaction."""
    token = secrets.token_hex(16)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {_TABLE} (id INTEGER PRIMARY KEY CHECK (id = 1),"
        " token TEXT NOT NULL, written_at REAL NOT NULL, found_at REAL, behind_seconds REAL)"
    )
    connection.execute(
        f"INSERT INTO {_TABLE} (id, token, written_at) VALUES (1, ?, ?)"
        " ON CONFLICT DO UPDATE SET token = excluded.token, written_at = excluded.written_at",
        (token, time.time()),
    )
    connection.execute("COMMIT")
    committed_at, committed = time.time(), time.monotonic()
    connection.execute("BEGIN")
    try:
        return _Written(
            token,
            committed_at,
            committed,
            contents(connection),
            _version(connection),
            _schema_version(connection),
            [_schema(connection)],
        )
    finally:
        connection.execute("ROLLBACK")


def _note_proof(database: Path, token: str, behind: float) -> None:
    with closing(oxlite.connect(database, journal="keep", isolation_level=None)) as connection:
        connection.execute(
            f"UPDATE {_TABLE} SET found_at = ?, behind_seconds = ? WHERE token = ?",
            (time.time(), behind, token),
        )


def _restore(litestream: Litestream, store: Store, copy: Path) -> None:
    if held(litestream, store) is None:
        raise NoReplica(f"{store.shown} holds no replica")
    try:
        litestream.run(
            ["restore", "-o", str(copy), "-json", store.url],
            seconds=_HOURS_AT_MOST * 3600.0,
            what=f"restore what is at {store.shown}",
        )
    except StoreUnreachable:
        raise
    except LitestreamFailed as error:
        if _NO_ROOM in str(error).lower():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(copy.parent)) from None
        held(litestream, store)  # if it does not answer any more, that is the reason
        raise NotProved(f"{store.shown} does not restore: {error}") from None


def _token_in(copy: Path) -> str | None:
    try:
        with closing(sqlite3.connect(copy)) as connection:
            row = connection.execute(f"SELECT token FROM {_TABLE}").fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _why_missing(store: Store, found: str | None, behind: float, took: float) -> str:
    when = f"{behind:.1f} s before a restore began that took {took:.1f} s"
    if found is None:
        return (
            f"{store.shown} restores, but has never had what is written to prove it (the last time"
            f" {when}): it is another database's, or nothing is sent (oxlite replicate status)"
        )
    return (
        f"{store.shown} restores, but what was written {when} is not in it: nothing is sent, or"
        " another database's replica is there (oxlite replicate status)"
    )


def _verified(copy: Path, store: Store) -> Contents:
    try:
        return verified(copy)
    except VerificationFailed as error:
        raise NotProved(f"{store.shown} restores, but is damaged: {error}") from None


def _has_same_schema(
    connection: sqlite3.Connection, copy: Path, store: Store, written: _Written
) -> bool:
    """Whether a copy has a schema that the database was seen to have since the token was written.

    If it has not, and the database's was changed meanwhile, it may have had that one in between:
    nothing is known then.

    Raises:
        NotProved: It has another one, and the database's was not changed meanwhile.
    """
    with closing(sqlite3.connect(copy)) as restored:
        there = _schema(restored)
    here = _schema(connection)
    first = written.schemas[0]
    if there == here or there in written.schemas:
        return True
    if _schema_version(connection) != written.schema_version or here != first:
        return False
    names = sorted(here.keys() ^ there.keys())
    names += sorted(name for name in here.keys() & there.keys() if here[name] != there[name])
    raise NotProved(f"{store.shown} restores, but has another schema: {', '.join(names[:10])}")


def _schema(connection: sqlite3.Connection) -> _Schema:
    with _with_raw_text(connection):
        rows = connection.execute(
            "SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema"
        ).fetchall()
    found = {bytes(name).decode(errors="backslashreplace"): bytes(sql) for name, sql in rows}
    return {name: sql for name, sql in found.items() if name.partition(" ")[2] not in _LITESTREAMS}


def _schema_version(connection: sqlite3.Connection) -> int:
    """A number that is another one after each change of the schema, undone or not."""
    return int(connection.execute("PRAGMA schema_version").fetchone()[0])


def _remove(copy: Path) -> None:
    for path in copy.parent.iterdir():
        path.unlink()
