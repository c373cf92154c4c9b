"""The profile ``untrusted``: the file of a stranger is read, not changed, and runs nothing.

Each file is made by the standard library's SQLite, as a stranger would: nothing here asks Oxlite to
make one. What is in force is read by plain pragmas, limits and switches, never from what the driver
says of itself; that is then held against it.
"""

import asyncio
import os
import re
import shutil
import sqlite3 as standard
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.operations.doctor.healthy import of_django

import oxlite
from oxlite import aio, sqlite3

PRAGMAS = {
    "trusted_schema": 0,
    "foreign_keys": 0,
    "mmap_size": 0,
    "cell_size_check": 1,
    "query_only": 1,
    "journal_mode": "delete",
}
SWITCHES = {
    "SQLITE_DBCONFIG_DEFENSIVE": True,
    "SQLITE_DBCONFIG_WRITABLE_SCHEMA": False,
    "SQLITE_DBCONFIG_ENABLE_TRIGGER": False,
    "SQLITE_DBCONFIG_ENABLE_VIEW": False,
    "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False,
    "SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION": False,
    "SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE": False,
    "SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE": False,
    "SQLITE_DBCONFIG_DQS_DML": False,
    "SQLITE_DBCONFIG_DQS_DDL": False,
    "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE": False,  # there is no WAL
}
LIMITS = {
    "SQLITE_LIMIT_LENGTH": 16_000_000,
    "SQLITE_LIMIT_SQL_LENGTH": 100_000,
    "SQLITE_LIMIT_COLUMN": 1_000,
    "SQLITE_LIMIT_EXPR_DEPTH": 100,
    "SQLITE_LIMIT_COMPOUND_SELECT": 50,
    "SQLITE_LIMIT_VDBE_OP": 1_000_000,
    "SQLITE_LIMIT_FUNCTION_ARG": 100,
    "SQLITE_LIMIT_ATTACHED": 0,
    "SQLITE_LIMIT_LIKE_PATTERN_LENGTH": 1_000,
    "SQLITE_LIMIT_VARIABLE_NUMBER": 1_000,
    "SQLITE_LIMIT_TRIGGER_DEPTH": 10,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a stranger's file is to lie, alone in its folder."""
    (tmp_path / "upload").mkdir()
    return tmp_path / "upload" / "theirs.db"


@pytest.fixture
def opened() -> Iterator[Callable[..., sqlite3.Connection]]:
    """Opens with the profile, and closes what it has opened after the test."""
    connections: list[sqlite3.Connection] = []

    def connect(database: str | Path, **options: object) -> sqlite3.Connection:
        connections.append(oxlite.connect(database, profile="untrusted", **options))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


Opened = Callable[..., sqlite3.Connection]


def made(path: Path, script: str) -> Path:
    """A file as the standard library's SQLite makes it, with a function of the stranger's."""
    with closing(standard.connect(path, isolation_level=None)) as connection:
        connection.create_function("effect", 1, lambda value: value, deterministic=True)
        connection.executescript(script)
    return path


def folder(path: Path) -> dict[str, tuple[bytes, int]]:
    """All that lies beside a file, itself among them: what is in it, and when it was written."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()
    }


TABLE = "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y');"
ROWS = [(1, "x"), (2, "y")]


# What is in force.


def test_it_is_in_force(opened: Opened, path: Path) -> None:
    connection = opened(made(path, TABLE))
    for name, value in PRAGMAS.items():
        assert (name, connection.execute(f"PRAGMA {name}").fetchone()) == (name, (value,))
    for name, is_on in SWITCHES.items():
        assert (name, connection.getconfig(getattr(sqlite3, name))) == (name, is_on)
    for name, limit in LIMITS.items():
        assert (name, connection.getlimit(getattr(sqlite3, name))) == (name, limit)
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute('SELECT "no column"')


def test_what_it_says_of_itself_is_that(opened: Opened, path: Path) -> None:
    connection = opened(made(path, TABLE))
    assert connection.profile == "untrusted"
    said = oxlite.profiles()["untrusted"]
    wal = "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"
    no_wal = "there is no WAL beside the database"
    assert connection.settings == tuple(
        (name, str(value), "OFF" if name == wal else str(value), no_wal if name == wal else None)
        for name, value in said.items()
    )
    words = {False: "OFF", True: "ON"}
    promised = {**{name: words[is_on] for name, is_on in SWITCHES.items()}, **LIMITS}
    promised[wal] = "ON"
    assert {name: said[name] for name in said if name.startswith("SQLITE_")} == promised


def test_other_pragmas_can_be_asked_for_and_limits_are_told_apart(
    opened: Opened, path: Path
) -> None:
    made(path, TABLE)
    connection = opened(path, pragmas={"cache_size": -4000, "foreign_keys": True})
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    with pytest.raises(ValueError, match=r"is a limit.*connection\.setlimit"):
        opened(path, pragmas={"SQLITE_LIMIT_LENGTH": 5})
    with pytest.raises(ValueError, match=r"is a switch.*connection\.setconfig"):
        opened(path, pragmas={"SQLITE_DBCONFIG_DEFENSIVE": False})
    with pytest.raises(ValueError, match="durable_commit"):
        opened(path, durable_commit="shared")


# Healthy files.


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_healthy_file_of_djangos_with_full_text_search_is_read(
    opened: Opened, path: Path, mode: str
) -> None:
    with ExitStack() as stack:
        of_django(path, stack)
    made(
        path,
        f"""PRAGMA journal_mode = {mode};
        CREATE VIRTUAL TABLE search USING fts5(body, tokenize='porter');
        INSERT INTO search VALUES ('running far'), ('standing still');
        CREATE VIRTUAL TABLE older USING fts4(body);
        INSERT INTO older VALUES ('running far');
        CREATE VIRTUAL TABLE place USING rtree(id, x0, x1);
        INSERT INTO place VALUES (1, 0, 5);""",
    )
    before = folder(path)
    connection = opened(path)
    assert connection.execute("SELECT username FROM auth_user").fetchall() == [("ann",)]
    found = connection.execute("SELECT body FROM search WHERE search MATCH 'run'").fetchall()
    assert found == [("running far",)]
    found = connection.execute("SELECT body FROM older WHERE older MATCH 'running'").fetchall()
    assert found == [("running far",)]
    assert connection.execute("SELECT id FROM place WHERE x1 > 3").fetchall() == [(1,)]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert folder(path) == before


def test_it_goes_through_every_door(path: Path) -> None:
    made(path, TABLE)
    before = folder(path)
    denied = "the profile untrusted writes nothing"
    with oxlite.Database(path, profile="untrusted") as database:
        assert database.query("SELECT * FROM t") == ROWS
        with pytest.raises(sqlite3.OperationalError, match=denied):
            database.execute("DELETE FROM t")

    async def read() -> None:
        async with aio.Database(path, profile="untrusted") as database:
            assert await database.query("SELECT * FROM t") == ROWS
            with pytest.raises(sqlite3.OperationalError, match=denied):
                await database.execute("DELETE FROM t")
        async with aio.connect(path, profile="untrusted") as connection:
            cursor = await connection.execute("SELECT * FROM t")
            assert await cursor.fetchall() == ROWS

    asyncio.run(read())
    with closing(sqlite3.connect(path, profile="untrusted")) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == ROWS
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import OperationalError

    engine = create_engine(f"sqlite+oxlite:///{path}?profile=untrusted")
    with engine.connect() as borrowed:
        assert borrowed.execute(text("SELECT * FROM t")).fetchall() == ROWS
        with pytest.raises(OperationalError, match=denied):
            borrowed.execute(text("DELETE FROM t"))
    engine.dispose()
    assert folder(path) == before


DJANGO = """
import sys
import django
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "oxlite.django.sqlite3", "NAME": sys.argv[1],
                                          "OPTIONS": {"profile": "untrusted"}}})
django.setup()
from django.db import OperationalError, connection, transaction
connection.ensure_connection()
for setting in connection.connection.settings:
    pragma = setting.name if not setting.name.startswith("SQLITE") else None
    if pragma and str(connection.connection.execute(f"PRAGMA {pragma}").fetchone()[0]) != {
            "ON": "1", "OFF": "0"}.get(setting.requested, setting.requested):
        print(pragma, "is not in force")
import oxlite.sqlite3 as sqlite3
print([name for name, value in __import__("oxlite").profiles()["untrusted"].items()
       if name.startswith("SQLITE_DBCONFIG_") and not name.endswith("CKPT_ON_CLOSE")
       and connection.connection.getconfig(getattr(sqlite3, name)) != (value == "ON")])
with transaction.atomic(), connection.cursor() as cursor:
    print(cursor.execute("SELECT * FROM t").fetchall())
try:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM t")
except OperationalError as error:
    print(error)
"""


def test_it_goes_through_djangos_door(path: Path) -> None:
    before = folder(made(path, TABLE))
    command = [sys.executable, "-c", DJANGO, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.startswith(
        f"[]\n{ROWS}\nattempt to write a readonly database; the profile untrusted"
    )
    assert folder(path) == before


def test_bytes_in_memory(opened: Opened, path: Path) -> None:
    made(path, TABLE + "CREATE VIEW v AS SELECT * FROM t;")
    connection = opened(":memory:")
    connection.deserialize(path.read_bytes())
    assert connection.execute("SELECT * FROM t").fetchall() == ROWS
    with pytest.raises(sqlite3.OperationalError, match="prohibited"):
        connection.execute("SELECT * FROM v")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM t")


# Nothing of what it contains is run.


@pytest.mark.parametrize("is_deterministic", [True, False])
@pytest.mark.parametrize(
    ("schema", "statements"),
    [
        ("CREATE TABLE t(a); CREATE VIEW v AS SELECT effect(a) FROM t", ["SELECT * FROM v"]),
        (
            "CREATE TABLE t(a); CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT effect(1); END",
            ["INSERT INTO t VALUES (1)"],
        ),
        ("CREATE TABLE t(a, b AS (effect(a)))", ["SELECT a, b FROM t", "SELECT * FROM t"]),
        ("CREATE TABLE t(a, b AS (effect(a)) STORED)", ["INSERT INTO t(a) VALUES (1)"]),
        ("CREATE TABLE t(a CHECK (effect(a) IS NOT NULL))", ["INSERT INTO t VALUES (1)"]),
        ("CREATE TABLE t(a, b DEFAULT (effect(1)))", ["INSERT INTO t(a) VALUES (1)"]),
        ("CREATE TABLE t(a); CREATE INDEX i ON t(effect(a))", ["INSERT INTO t(a) VALUES (1)"]),
        (
            "CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE effect(a)",
            ["INSERT INTO t(a) VALUES (1)", "PRAGMA integrity_check"],
        ),
    ],
)
def test_no_function_of_the_application_is_called_by_it(
    opened: Opened, path: Path, schema: str, statements: list[str], is_deterministic: bool
) -> None:
    made(path, schema + "; INSERT INTO t(a) VALUES (7)")
    called: list[object] = []
    refusals: list[str] = []
    # Even where the application has asked to write.
    connection = opened(path, isolation_level=None, pragmas={"query_only": False})
    connection.create_function("effect", 1, called.append, deterministic=is_deterministic)
    for statement in [*statements, "SELECT a FROM t", "PRAGMA quick_check"]:
        try:
            connection.execute(statement).fetchall()
        except sqlite3.DatabaseError as error:
            refusals.append(str(error))
    said = re.compile(r"(unsafe use of effect\(\)|prohibited); .*untrusted")
    assert [refusal for refusal in refusals if not said.search(refusal)] == []
    assert called == []
    connection.execute("SELECT effect(5)")
    assert called == [5]  # the application's own SQL calls it
    connection.create_function("effect", 1, None)
    assert (7,) in connection.execute("SELECT a FROM t").fetchall()


@pytest.mark.parametrize(
    "expression",
    ["load_extension('x')", "fts3_tokenizer('simple', x'00')", "readfile('/etc/passwd')"],
)
def test_no_function_of_sqlites_that_does_harm_is_called_by_it(
    opened: Opened, path: Path, expression: str
) -> None:
    made(path, TABLE)
    with closing(standard.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = f"CREATE TABLE t(a, b, c AS ({expression}))"
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 't'", (sql,))
    connection = opened(path)
    with pytest.raises(sqlite3.DatabaseError, match=r"unsafe use of \w+\(\); .*untrusted|unknown"):
        connection.execute("SELECT c FROM t").fetchall()


def test_no_view_of_its_own_is_run(opened: Opened, path: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    texts = [f"CREATE VIEW bomb AS {endless}", "CREATE VIEW v AS SELECT * FROM t"]
    texts += [
        f"CREATE VIEW w{n + 1} AS SELECT 1 AS a FROM {f'w{n} AS x, w{n} AS y' if n else 't'}"
        for n in range(40)
    ]
    made(path, TABLE + ";".join(texts))
    connection = opened(path, statement_timeout=60)
    for name in ("v", "w40"):
        with pytest.raises(
            sqlite3.OperationalError,
            match=rf'access to view "({name}|w1)" prohibited; .*untrusted.*sqlite_schema',
        ):
            connection.execute(f"SELECT * FROM {name}")
    # Of a common table expression SQLite says another thing.
    with pytest.raises(
        sqlite3.OperationalError, match=r"main\.n; .*view.*untrusted.*sqlite_schema"
    ):
        connection.execute("SELECT * FROM bomb")
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'view'").fetchall()
    assert found == [(text,) for text in texts]


def test_views_and_triggers_of_ones_own_are_run(opened: Opened, path: Path) -> None:
    trigger = "CREATE TRIGGER theirs AFTER INSERT ON t BEGIN UPDATE t SET b = 'theirs'; END;"
    made(path, TABLE + trigger)
    connection = opened(path, pragmas={"query_only": False}, isolation_level=None)
    connection.execute("CREATE TEMP VIEW ours AS SELECT a FROM t")
    assert connection.execute("SELECT * FROM ours").fetchall() == [(1,), (2,)]
    connection.execute("CREATE TEMP TABLE seen(a)")
    connection.execute(
        "CREATE TEMP TRIGGER own AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (new.a); END"
    )
    connection.execute("INSERT INTO t VALUES (3, 'z')")
    assert connection.execute("SELECT * FROM seen").fetchall() == [(3,)]
    assert connection.execute("SELECT * FROM t").fetchall() == [*ROWS, (3, "z")]


def test_no_foreign_key_of_its_own_deletes_rows(opened: Opened, path: Path) -> None:
    made(
        path,
        "CREATE TABLE p(a PRIMARY KEY); INSERT INTO p VALUES (1);"
        "CREATE TABLE c(a REFERENCES p ON DELETE CASCADE); INSERT INTO c VALUES (1)",
    )
    connection = opened(path, pragmas={"query_only": False}, isolation_level=None)
    connection.execute("DELETE FROM p")
    assert connection.execute("SELECT * FROM c").fetchall() == [(1,)]


# Its schema and its shadow tables stay as they are, also for who writes.


def test_the_schema_and_shadow_tables_cannot_be_written(opened: Opened, path: Path) -> None:
    made(path, TABLE + "CREATE VIRTUAL TABLE search USING fts5(body)")
    connection = opened(path, pragmas={"query_only": False}, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    with pytest.raises(sqlite3.OperationalError, match="may not be modified"):
        connection.execute("UPDATE sqlite_schema SET sql = 'x'")
    with pytest.raises(sqlite3.OperationalError, match="may not be modified"):
        connection.execute("DELETE FROM search_data")
    with pytest.raises(sqlite3.OperationalError, match="may not be dropped"):
        connection.execute("DROP TABLE search_data")
    connection.execute("INSERT INTO search VALUES ('through its table')")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (3, 'z')",
        "CREATE TEMP TABLE other(a)",
        "DROP TABLE t",
        "ANALYZE",
        "PRAGMA user_version = 3",
        "PRAGMA journal_mode = wal",
        "PRAGMA query_only = OFF",
        "BEGIN IMMEDIATE",
    ],
)
def test_no_statement_writes(opened: Opened, path: Path, statement: str) -> None:
    before = folder(made(path, TABLE))
    connection = opened(path, isolation_level=None)
    with pytest.raises(
        sqlite3.OperationalError, match=r'readonly.*untrusted writes nothing, unless .*"query_only"'
    ):
        connection.execute(statement)
    connection.execute("PRAGMA optimize")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.blobopen("t", "b", 1).write(b"z")
    with closing(sqlite3.connect(":memory:")) as other, pytest.raises(sqlite3.OperationalError):
        other.backup(connection)
    connection.close()
    assert folder(path) == before


def test_no_other_file_is_made_or_opened(opened: Opened, path: Path) -> None:
    before = folder(made(path, TABLE))
    connection = opened(path, isolation_level=None)
    for statement in ("ATTACH 'other.db' AS other", f"VACUUM INTO '{path}.copy'", "VACUUM"):
        with pytest.raises(sqlite3.OperationalError, match=r"attached|readonly"):
            connection.execute(statement)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connection.execute(f"ATTACH '{path}.other' AS other")  # it is not made
    connection.close()
    assert folder(path) == before


# What is damaged, and what is too large.


def test_a_cell_that_does_not_fit_its_page_is_found(opened: Opened, path: Path) -> None:
    made(path, "PRAGMA page_size = 4096; CREATE TABLE t(a); INSERT INTO t VALUES ('abc')")
    content = bytearray(path.read_bytes())
    cell = 4096 + int.from_bytes(content[4096 + 8 : 4096 + 10], "big")
    assert content[cell + 4 : cell + 7] == b"abc"
    content[cell] = 100  # bytes, of which the page has no more than seven
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)  # not looked at
    connection = opened(path)
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        connection.execute("SELECT count(*) FROM t").fetchone()


RAISED = r"; the profile untrusted has lowered {0}: .*setlimit\(sqlite3\.{0}, …\) raises it"


def test_a_value_that_is_too_long_is_refused_and_the_limit_is_named(
    opened: Opened, path: Path
) -> None:
    made(path, "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(16000001)), (zeroblob(15999000))")
    connection = opened(path)
    refused = "string or blob too big" + RAISED.format("SQLITE_LIMIT_LENGTH")
    with pytest.raises(sqlite3.DataError, match=refused):
        connection.execute("SELECT a FROM t WHERE rowid = 1").fetchone()
    (value,) = connection.execute("SELECT a FROM t WHERE rowid = 2").fetchone()
    assert len(value) == 15_999_000
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 17_000_000)
    (value,) = connection.execute("SELECT a FROM t WHERE rowid = 1").fetchone()
    assert len(value) == 16_000_001


def test_a_function_of_its_own_makes_nothing_larger(opened: Opened, path: Path) -> None:
    made(path, TABLE)
    with closing(standard.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = "CREATE TABLE t(a, b, c AS (hex(zeroblob(900000000))))"
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 't'", (sql,))
    with pytest.raises(sqlite3.DataError, match=RAISED.format("SQLITE_LIMIT_LENGTH")):
        opened(path).execute("SELECT c FROM t").fetchall()


@pytest.mark.parametrize(
    ("schema", "limit"),
    [
        (
            f"CREATE TABLE t({', '.join(f'c{n}' for n in range(1_001))})",
            "SQLITE_LIMIT_COLUMN",
        ),
        (f"CREATE TABLE t(a CHECK ({' + '.join(['a'] * 150)}))", "SQLITE_LIMIT_EXPR_DEPTH"),
        (f"CREATE TABLE t(a CHECK (max({', '.join(['a'] * 101)})))", "SQLITE_LIMIT_FUNCTION_ARG"),
    ],
)
def test_a_schema_that_is_too_large_is_refused_and_the_limit_is_named(
    opened: Opened, path: Path, schema: str, limit: str
) -> None:
    made(path, schema)
    connection = opened(path)
    with pytest.raises(sqlite3.DatabaseError, match=RAISED.format(limit)):
        connection.execute("SELECT * FROM t")
    connection.setlimit(getattr(sqlite3, limit), 2_000)
    assert connection.execute("SELECT * FROM t").fetchall() == []


def test_sql_that_is_too_large_is_refused_and_the_limit_is_named(
    opened: Opened, path: Path
) -> None:
    connection = opened(made(path, TABLE))
    long = f"SELECT '{'x' * 100_000}'"
    for run in (connection.execute, connection.executescript):
        with pytest.raises(sqlite3.DataError, match=RAISED.format("SQLITE_LIMIT_SQL_LENGTH")):
            run(long)
    for statement, limit in (
        ("SELECT ?1001", "SQLITE_LIMIT_VARIABLE_NUMBER"),
        (f"SELECT 1 LIKE '{'x' * 1001}'", "SQLITE_LIMIT_LIKE_PATTERN_LENGTH"),
        (" UNION ALL ".join(["SELECT 1 WHERE 0"] * 51), "SQLITE_LIMIT_COMPOUND_SELECT"),
        ("ATTACH '' AS other", "SQLITE_LIMIT_ATTACHED"),
    ):
        with pytest.raises(sqlite3.OperationalError, match=RAISED.format(limit)):
            connection.execute(statement).fetchall()


def test_a_statement_that_becomes_too_large_is_refused_and_the_limit_is_named(
    opened: Opened, path: Path
) -> None:
    connection = opened(made(path, TABLE))
    connection.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, 40)
    with pytest.raises(MemoryError, match=RAISED.format("SQLITE_LIMIT_VDBE_OP")):
        connection.execute("PRAGMA integrity_check")


# Opening changes nothing.


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_opening_changes_no_byte_and_leaves_nothing_behind(
    opened: Opened, path: Path, mode: str
) -> None:
    made(path, f"PRAGMA journal_mode = {mode}; {TABLE} UPDATE t SET b = b;")
    before = folder(path)
    connection = opened(path)
    assert connection.execute("SELECT * FROM t").fetchall() == ROWS
    connection.close()
    assert folder(path) == before
    with oxlite.Database(path, profile="untrusted", readers=3) as database:
        assert database.query("SELECT * FROM t") == ROWS
    assert folder(path) == before


def test_a_wal_that_came_with_it_is_read_and_stays(
    opened: Opened, path: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source.db"
    with closing(standard.connect(source)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.executescript(TABLE)
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
    before = folder(path)
    connection = opened(path)
    assert connection.execute("SELECT * FROM t").fetchall() == ROWS
    assert connection.settings[10] == ("SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE", "ON", "ON", None)
    for checkpoint in ("PRAGMA wal_checkpoint", "PRAGMA main.Wal_Checkpoint(TRUNCATE)"):
        with pytest.raises(sqlite3.OperationalError, match="only reads"):
            connection.execute(checkpoint)
    for mode in ("passive", "truncate"):
        with pytest.raises(sqlite3.OperationalError, match="only reads"):
            connection.checkpoint(mode)
    connection.close()
    after = folder(path)
    after.pop(f"{path.name}-shm")  # as SQLite has it, where the WAL is not taken in
    assert after == before
    with oxlite.Database(path, profile="untrusted") as database:
        assert database.query("SELECT * FROM t") == ROWS
        with pytest.raises(sqlite3.OperationalError, match="only reads"):
            database.checkpoint()
    after = folder(path)
    after.pop(f"{path.name}-shm")
    assert after == before


KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE t SET b = 'half'")
connection.executemany("INSERT INTO t VALUES (?, zeroblob(3000))", [(n,) for n in range(100)])
os._exit(0)
"""


@pytest.mark.parametrize("uri", ["{}", "file:{}", "file:{}?mode=rw", "file:{}?mode=ro"])
def test_a_hot_journal_is_not_rolled_back(opened: Opened, path: Path, uri: str) -> None:
    made(path, TABLE)
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True, timeout=60)
    before = folder(path)
    assert f"{path.name}-journal" in before
    with pytest.raises(
        sqlite3.OperationalError, match=r"in the midst of a change.*-journal.*open a copy of both"
    ) as raised:
        opened(uri.format(path), uri=True)
    assert str(raised.value).endswith("or move the journal away")
    assert raised.value.sqlite_errorname == "SQLITE_READONLY_ROLLBACK"
    assert folder(path) == before
    copy = path.with_name("copy.db")
    for suffix in ("", "-journal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    with closing(oxlite.connect(copy, journal="keep")) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == ROWS


def test_a_journal_whose_writer_lives_is_none_of_that(opened: Opened, path: Path) -> None:
    made(path, TABLE)
    with closing(standard.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE t SET b = 'unfinished'")
        connection = opened(path)
        assert connection.execute("SELECT * FROM t").fetchall() == ROWS
        connection.close()
        writer.execute("COMMIT")
    assert opened(path).execute("SELECT b FROM t").fetchall() == [("unfinished",)] * 2


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_beside_it_is_not_opened(
    opened: Opened, path: Path, tmp_path: Path, suffix: str, kind: str
) -> None:
    made(path, TABLE)
    (tmp_path / "secret").write_bytes(b"not theirs")
    beside = path.with_name(path.name + suffix)
    if kind == "pipe":
        os.mkfifo(beside)
    elif kind == "link":
        beside.symlink_to(tmp_path / "secret")
    else:
        beside.mkdir()
    with pytest.raises(
        sqlite3.OperationalError, match=rf"{suffix}' is no regular file; move it away$"
    ):
        opened(path)
    assert (tmp_path / "secret").read_bytes() == b"not theirs"


# What cannot be read.


@pytest.mark.parametrize("content", [os.urandom(8192), b"SQLite format 2\0" * 512, b"\x89PNG" * 99])
def test_what_is_no_database_is_told_at_once(opened: Opened, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    before = folder(path)
    with pytest.raises(
        sqlite3.DatabaseError, match=r"not a database: '.*theirs\.db'; it is encrypted, cut off, or"
    ):
        opened(path)
    assert folder(path) == before


def test_a_missing_file_is_not_made(opened: Opened, path: Path) -> None:
    for name, uri in ((str(path), False), (f"file:{path}", True)):
        with pytest.raises(sqlite3.OperationalError, match=r"theirs\.db' does not exist"):
            opened(name, uri=uri)
    with pytest.raises(sqlite3.OperationalError, match="is a directory"):
        opened(path.parent)
    os.mkfifo(path.parent.with_name("pipe"))
    with pytest.raises(sqlite3.OperationalError, match="pipe' is no regular file"):
        opened(path.parent.with_name("pipe"))
    with pytest.raises(ValueError, match="allow_no_locking"):
        opened(f"file:{path}?immutable=1", uri=True)
    assert folder(path) == {}


def test_an_empty_file_has_no_tables(opened: Opened, path: Path) -> None:
    path.touch()
    assert opened(path).execute("SELECT * FROM sqlite_schema").fetchall() == []
    assert path.stat().st_size == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may make files everywhere")
def test_a_wal_file_where_nothing_can_be_made(opened: Opened, path: Path) -> None:
    made(path, "PRAGMA journal_mode = wal;" + TABLE)
    path.parent.chmod(0o500)
    try:
        with pytest.raises(sqlite3.OperationalError, match="copy it to a directory"):
            opened(path)
    finally:
        path.parent.chmod(0o700)
