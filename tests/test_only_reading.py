"""What is lent for reading, or refuses writes for a time, only reads, whatever one executes."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

import oxlite
from oxlite import aio, sqlite3
from oxlite.connection import refuse_writes

Act = Callable[[sqlite3.Connection, Path], object]

QUERY_ONLY_OFF = [
    "PRAGMA query_only = OFF",
    "PRAGMA query_only = 0",
    "pragma main.Query_Only(no)",
    "/* a */ PRAGMA -- b\n query_only = 'false'",
    "PRAGMA query_only = ''",
    "PRAGMA query_only = 2",
    "EXPLAIN PRAGMA query_only = OFF",
]

LOCKS = [
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA main.locking_mode = exclusive",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode(OFF)",
]

WRITES = [
    "INSERT INTO t VALUES (2)",
    "DELETE FROM t RETURNING x",
    "DROP TABLE t",
    "CREATE TEMP TABLE u (x)",
    "BEGIN IMMEDIATE",
    "BEGIN EXCLUSIVE",
    "VACUUM",
    "VACUUM INTO 'into.db'",
    "ANALYZE",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 7",
    "PRAGMA schema_version = 7",
    "PRAGMA incremental_vacuum",
]


def _execute(*statements: str) -> Act:
    def act(connection: sqlite3.Connection, _: Path) -> None:
        for sql in statements:
            connection.execute(sql).fetchall()

    return act


def _script(connection: sqlite3.Connection, _: Path) -> None:
    connection.executescript("PRAGMA query_only = OFF; INSERT INTO t VALUES (2)")


def _authorizer(connection: sqlite3.Connection, _: Path) -> None:
    connection.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
    connection.set_authorizer(None)
    connection.execute("PRAGMA query_only = OFF")


def _attached(connection: sqlite3.Connection, folder: Path) -> None:
    connection.execute("ATTACH ? AS other", (str(folder / "other.db"),))
    connection.execute("INSERT INTO other.t VALUES (2)")


def _schema(connection: sqlite3.Connection, _: Path) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = ''")


def _backup(connection: sqlite3.Connection, _: Path) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as source:
        source.execute("CREATE TABLE u (x)")
        source.backup(connection)


def _deserialize(connection: sqlite3.Connection, _: Path) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as source:
        source.execute("CREATE TABLE u (x)")
        connection.deserialize(source.serialize())


def _blob(connection: sqlite3.Connection, _: Path) -> None:
    connection.blobopen("t", "x", 1)


def _reset(connection: sqlite3.Connection, _: Path) -> None:
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_RESET_DATABASE, True)


OTHER_WAYS: list[Act] = [
    _script,
    _authorizer,
    _attached,
    _schema,
    _backup,
    _deserialize,
    _blob,
    _reset,
]

ACTS = [
    *(pytest.param(_execute(sql), id=sql) for sql in QUERY_ONLY_OFF + LOCKS + WRITES),
    *(pytest.param(act, id=act.__name__) for act in OTHER_WAYS),
]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("app.db", "other.db"):
        with contextlib.closing(oxlite.connect(tmp_path / name)) as connection:
            connection.execute("CREATE TABLE t (x)")
            connection.execute("INSERT INTO t VALUES (x'00')")
            connection.commit()
    return tmp_path / "app.db"


def digests(path: Path) -> dict[str, str]:
    """What the files hold; not the memory in which readers note what they read.

    Nor is an empty one counted, which is what SQLite makes of a name to attach.
    """
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.parent.iterdir()
        if not file.name.endswith("-shm") and file.stat().st_size
    }


def check(error: sqlite3.OperationalError) -> None:
    assert str(error).startswith("attempt to write a readonly database")
    assert error.sqlite_errorname == "SQLITE_READONLY"
    assert any("db.write()" in note for note in error.__notes__)


@pytest.mark.parametrize("act", ACTS)
def test_nothing_within_a_loan_has_it_write(path: Path, act: Act) -> None:
    with oxlite.Database(path, readers=1, timeout=1) as db:
        db.execute("UPDATE t SET x = x'01'")
        before = digests(path)
        # In the block's transaction VACUUM and others are refused for that.
        with pytest.raises(sqlite3.OperationalError) as caught, db.read() as connection:  # noqa: PT012
            connection.rollback()
            act(connection, path.parent)
        check(caught.value)
        assert digests(path) == before
        # Nor whoever comes next: it is the same connection.
        with db.read() as connection:
            assert connection.execute("SELECT x FROM t").fetchall() == [(b"\x01",)]
            assert connection.execute("PRAGMA query_only").fetchone() == (1,)
            assert connection.execute("PRAGMA locking_mode").fetchone() == ("normal",)
        with pytest.raises(
            sqlite3.OperationalError, match=r"^attempt to write a readonly database\n"
        ):
            db.query("INSERT INTO t VALUES (3)")
        db.execute("INSERT INTO t VALUES (4)")


@pytest.mark.parametrize("was_query_only", [False, True])
@pytest.mark.parametrize("act", ACTS)
def test_nothing_has_it_write_until_it_may_again(
    path: Path, act: Act, was_query_only: bool
) -> None:
    with contextlib.closing(oxlite.connect(path, timeout=1)) as connection:
        connection.execute(f"PRAGMA query_only = {was_query_only:d}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        before = digests(path)
        refuse_writes(connection, True)
        with pytest.raises(sqlite3.OperationalError, match="readonly database") as caught:
            act(connection, path.parent)
        assert caught.value.sqlite_errorname == "SQLITE_READONLY"
        assert digests(path) == before
        connection.rollback()
        refuse_writes(connection, False)
        assert connection.execute("PRAGMA query_only").fetchone() == (was_query_only,)
        assert connection.execute("PRAGMA locking_mode").fetchone() == ("normal",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.execute("PRAGMA query_only = OFF")
        connection.execute("INSERT INTO t VALUES (4)")
        connection.commit()


@pytest.mark.parametrize("sql", QUERY_ONLY_OFF + LOCKS + WRITES)
def test_nothing_within_a_loan_of_asyncios_has_it_write(path: Path, sql: str) -> None:
    async def run() -> None:
        async with aio.Database(path, readers=1, timeout=1) as db:
            await db.execute("UPDATE t SET x = x'01'")
            before = digests(path)
            with pytest.raises(sqlite3.OperationalError) as caught:  # noqa: PT012
                async with db.read() as connection:
                    await connection.rollback()
                    await connection.execute(sql)
            check(caught.value)
            assert digests(path) == before
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                await db.query("INSERT INTO t VALUES (3)")
            await db.execute("INSERT INTO t VALUES (4)")

    asyncio.run(run())


def test_a_set_up_may_write_and_its_cached_statements_cannot_later(path: Path) -> None:
    statements = [
        "PRAGMA query_only = OFF",
        "INSERT INTO t VALUES (5)",
        "PRAGMA locking_mode = NORMAL",
    ]

    def set_up(connection: sqlite3.Connection) -> None:
        for sql in statements:
            connection.execute(sql)

    with oxlite.Database(path, readers=1, setup=set_up) as db:
        for sql in statements[:2]:
            with pytest.raises(sqlite3.OperationalError) as caught:
                db.query(sql)
            check(caught.value)
        with db.read() as connection:
            connection.execute(statements[2])


def test_a_reader_that_would_write_does_not_wait_for_who_does(path: Path) -> None:
    with oxlite.Database(path, readers=1, timeout=60) as db, db.write() as writer:
        writer.execute("INSERT INTO t VALUES (6)")
        with pytest.raises(sqlite3.OperationalError, match="readonly"), db.read() as connection:
            connection.execute("INSERT INTO t VALUES (7)")


def test_what_a_reader_may_do(path: Path) -> None:
    asked = []
    with oxlite.Database(path, readers=1) as db, db.read() as connection:
        for sql in [
            "PRAGMA query_only = ON",
            "PRAGMA query_only",
            "PRAGMA journal_mode",
            "PRAGMA locking_mode = NORMAL",
            "PRAGMA cache_size = 100",
            "PRAGMA table_info(t)",
            "SAVEPOINT s",
            "RELEASE s",
            "SELECT query_only FROM pragma_query_only",
        ]:
            connection.execute(sql).fetchall()
        connection.set_authorizer(lambda *found: asked.append(found) or sqlite3.SQLITE_OK)
        connection.execute("SELECT x FROM t").fetchall()
        connection.set_authorizer(None)
        connection.rollback()
        assert connection.execute("PRAGMA wal_checkpoint").fetchone()[0] == 0
    assert asked


def test_a_database_in_wal_mode_that_nobody_has_open_can_be_read(path: Path) -> None:
    """A connection that opens the file for reading alone could not recover its log."""
    with oxlite.Database(path, readers=1) as db, contextlib.closing(oxlite.connect(path)) as kept:
        db.execute("INSERT INTO t VALUES (8)")
        log = path.with_name("app.db-wal").read_bytes()
        content = path.read_bytes()
        kept.execute("SELECT 1 FROM t")
    path.write_bytes(content)
    path.with_name("app.db-wal").write_bytes(log)
    with oxlite.Database(path, readers=1) as db:
        assert (8,) in db.query("SELECT x FROM t")
