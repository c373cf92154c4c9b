"""Proof that a replica restores: something is written, and found in what is restored elsewhere.

The table ``oxlite_replica_proof`` has one row: a token, when it was written, and when it was last
found. It is replicated with all else, so also what was restored says when it was last proved.

Invariants:
- What is restored is verified as every backup is (``oxlite.operations.verification``).
- Nothing is believed that Litestream says of itself, and nothing is asked of its socket: that is
  for who looks after it alone (``guard``).
- If nobody has written meanwhile, every row is the same in both.
- A store that does not answer proves nothing, and is no proof of damage either.
"""

import hashlib
import os
import secrets
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import oxlite
from oxlite import sqlite3
from oxlite.operations import VerificationFailed
from oxlite.operations.verification import (
    Contents,
    Stage,
    contents,
    lacks_a_function,
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

__all__ = ["Proof", "compare_rows", "last_proof", "prove"]

_TABLE: Final = "oxlite_replica_proof"
_FOUND_WITHIN_SECONDS: Final = 60.0
_LOOK_EVERY_SECONDS: Final = 1.0
_LITESTREAMS: Final = ("_litestream_lock", "_litestream_seq")
_HOURS_AT_MOST: Final = 24


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved.

    Attributes:
        database: Its file.
        store: Where the replica is.
        behind_seconds: What was committed so long before a restore began was in it.
        contents: What is in the restored copy.
        changed: Tables whose number of rows is another one than when the token had been written,
            with how many rows there were and are: they were written meanwhile.
        is_exact: Whether nobody has written meanwhile, so that every row was compared.
        restore_seconds: How long it took to restore.
    """

    database: Path
    store: Store
    behind_seconds: float
    contents: Contents
    changed: dict[str, tuple[int | None, int | None]]
    restore_seconds: float
    is_exact: bool = False


class _Schema(NamedTuple):
    """What a database has, by kind and name; the version counts its changes."""

    version: int
    items: dict[str, str]


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
        seconds: How long after it has been written it may be missing in the replica.
        stage: Called with what is being done.

    Raises:
        NotProved: The replica does not restore, is damaged, another database's, or too far behind.
        StoreUnreachable: The store does not answer.
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
    say("writing", 0, 0)
    with closing(oxlite.connect(path, journal="keep", isolation_level=None)) as connection:
        token, committed_at, before, version, schema = _write_token(connection)
        ends = time.monotonic() + seconds
        if known is not None and is_claimed(path):
            say("sending", 0, 0)
            _await_sent(path, committed_at, ends)
        with tempfile.TemporaryDirectory(prefix="oxlite-proof-", dir=scratch) as directory:
            copy = Path(directory, "restored")
            while True:
                say("restoring", 0, 0)
                began = time.monotonic()
                behind = max(0.0, time.time() - committed_at)
                _restore(litestream, store, copy)
                took = time.monotonic() - began
                found = _token_in(copy)
                if found == token and began <= ends + _LOOK_EVERY_SECONDS:
                    break
                if found == token or time.monotonic() > ends:
                    if found == token:
                        raise NotProved(_why_late(store, behind, seconds))
                    raise NotProved(_why_missing(store, found, seconds))
                _remove(copy)
                time.sleep(_LOOK_EVERY_SECONDS)
            say("verifying", 0, 0)
            after = _verified(copy, store)
            _compare_schemas(schema, path, copy, store)
            changed = {
                name: (before.rows.get(name), after.rows.get(name))
                for name in sorted(before.rows.keys() | after.rows.keys())
                if before.rows.get(name) != after.rows.get(name) and name not in _LITESTREAMS
            }
            say("comparing", 0, 0)
            is_exact = compare_rows(connection, version, copy, store, before)
    _note_proof(path, token, behind)
    return Proof(path, store, behind, after, changed, took, is_exact)


def _await_sent(database: Path, moment: float, ends: float) -> None:
    """Wait until who looks after it says that all is sent that was committed before a moment.

    If that does not come to be, the restore shows what is there.
    """
    while time.monotonic() < ends and is_claimed(database):
        state = read_state(database)
        if state is not None and (state.sent_at or 0.0) > moment:
            return
        time.sleep(_LOOK_EVERY_SECONDS / 10)


def compare_rows(
    connection: sqlite3.Connection, version: int, copy: Path, store: Store, before: Contents
) -> bool:
    """See that every row is the same, if nobody has written meanwhile.

    A replica that lacks what was written in its midst may be whole by all other checks.

    Args:
        connection: To the database.
        version: Its ``PRAGMA data_version`` when ``before`` was looked at.
        copy: What was restored.
        store: Where the replica is.
        before: What is in the database.

    Returns:
        Whether nobody has written, and every table could be read: one may have columns that need a
        function of the application's.

    Raises:
        NotProved: A table has other rows.
    """
    is_whole = True
    with closing(sqlite3.connect(copy)) as restored:
        connection.text_factory = restored.text_factory = bytes  # a text need not be Unicode
        for name, rows in before.rows.items():
            if name in _LITESTREAMS or rows is None:
                continue
            try:
                same = _digest(connection, name) == _digest(restored, name)
            except sqlite3.OperationalError as error:
                if not lacks_a_function(error):
                    raise
                is_whole = False
                continue
            if _version(connection) != version:
                return False
            if not same:
                raise NotProved(
                    f"{store.shown} restores, but {name} has other rows than in the database"
                )
    return is_whole


def _digest(connection: sqlite3.Connection, table: str) -> bytes:
    found = hashlib.blake2b()
    for row in connection.execute(f"SELECT * FROM {quoted(table)}"):
        found.update(repr(row).encode(errors="surrogatepass"))
    return found.digest()


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


def _write_token(
    connection: sqlite3.Connection,
) -> tuple[str, float, Contents, int, _Schema]:
    """Write a token; when that was, what is in the database right after, and its schema then."""
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
    committed_at = time.time()
    connection.execute("BEGIN")
    before = contents(connection)
    version = _version(connection)
    schema = _schema(connection)
    connection.execute("ROLLBACK")
    return token, committed_at, before, version, schema


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
        held(litestream, store)  # if it does not answer any more, that is the reason
        raise NotProved(f"{store.shown} does not restore: {error}") from None


def _token_in(copy: Path) -> str | None:
    try:
        with closing(sqlite3.connect(copy)) as connection:
            row = connection.execute(f"SELECT token FROM {_TABLE}").fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _why_missing(store: Store, found: str | None, seconds: float) -> str:
    if found is None:
        return (
            f"{store.shown} restores, but has never had what is written to prove it: it is another"
            f" database's, or nothing has been sent for {seconds:g} s"
        )
    return (
        f"{store.shown} restores, but what was written {seconds:g} s ago is not in it: nothing is"
        " sent, or another database's replica is there (oxlite replicate status)"
    )


def _why_late(store: Store, behind: float, seconds: float) -> str:
    return (
        f"{store.shown} restores, but is {behind:.0f} s behind, and may be {seconds:g} s: see"
        " oxlite replicate status"
    )


def _verified(copy: Path, store: Store) -> Contents:
    try:
        return verified(copy)
    except VerificationFailed as error:
        raise NotProved(f"{store.shown} restores, but is damaged: {error}") from None


def _compare_schemas(then: _Schema, database: Path, copy: Path, store: Store) -> None:
    """See that the copy has the schema of the token, unless that was changed meanwhile.

    It may be of any moment between then.
    """
    there, now = _read_schema(copy), _read_schema(database)
    if now.version != then.version:
        return
    names = sorted(there.items.keys() ^ then.items.keys())
    both = there.items.keys() & then.items.keys()
    names += sorted(name for name in both if there.items[name] != then.items[name])
    if names:
        raise NotProved(f"{store.shown} restores, but has another schema: {', '.join(names[:10])}")


def _read_schema(path: Path) -> _Schema:
    with closing(oxlite.connect(path, journal="keep")) as connection:
        return _schema(connection)


def _schema(connection: sqlite3.Connection) -> _Schema:
    rows = connection.execute("SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema")
    items = {name: sql for name, sql in rows if name.partition(" ")[2] not in _LITESTREAMS}
    return _Schema(connection.execute("PRAGMA schema_version").fetchone()[0], items)


def _remove(copy: Path) -> None:
    for path in copy.parent.iterdir():
        path.unlink()
