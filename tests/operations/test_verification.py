"""Whether a copy is whole: opened as a stranger's file, and any that SQLite takes has to pass."""

import sqlite3 as standard
from contextlib import closing
from pathlib import Path

import pytest

from oxlite import sqlite3
from oxlite.operations import VerificationFailed, backup, restore
from oxlite.operations.online_copy import opened_to_read
from oxlite.operations.verification import opened_untrusted, verified


def made(path: Path, script: str) -> Path:
    with closing(standard.connect(path, isolation_level=None)) as connection:
        connection.create_function("known", 1, lambda value: value, deterministic=True)
        connection.create_collation("own", lambda one, other: (one > other) - (one < other))
        connection.executescript(script)
    return path


LARGE = f"""
CREATE TABLE wide({", ".join(f"c{n}" for n in range(2000))});
CREATE TABLE deep(a CHECK ({" + ".join(["a"] * 900)} IS NOT 5));
CREATE TABLE long(a CHECK (a IS NOT '{"x" * 200_000}'));
INSERT INTO long VALUES (zeroblob(17000000));
"""


def test_what_sqlite_takes_is_verified_backed_up_and_restored(tmp_path: Path) -> None:
    database = made(tmp_path / "large.db", LARGE)
    assert verified(database).rows == {"wide": 0, "deep": 0, "long": 1}
    backup(database, tmp_path / "copy.db")
    restored = restore(tmp_path / "copy.db", tmp_path / "again.db")
    assert restored.contents.rows["long"] == 1


def test_what_could_not_be_checked_is_told(tmp_path: Path) -> None:
    database = made(
        tmp_path / "own.db",
        """CREATE TABLE a(x); CREATE INDEX h ON a(known(x));
        CREATE TABLE b(x); CREATE INDEX i ON b(x COLLATE own);
        CREATE TABLE c(x); CREATE VIEW v AS SELECT known(x) FROM a;
        CREATE TRIGGER r AFTER INSERT ON c BEGIN SELECT known(1); END;
        INSERT INTO a VALUES (1); INSERT INTO b VALUES ('y'); INSERT INTO c VALUES (2);""",
    )
    contents = verified(database)
    assert contents.rows == {"a": 1, "b": 1, "c": 1}
    assert contents.unchecked == ["a", "b"]


@pytest.mark.parametrize("door", ["verification", "online copy"])
def test_it_is_opened_with_the_profile_and_sqlites_limits(tmp_path: Path, door: str) -> None:
    database = made(tmp_path / "app.db", "CREATE TABLE t(a); CREATE VIEW v AS SELECT * FROM t")
    open_it = opened_to_read if door == "online copy" else lambda path: opened_untrusted(str(path))
    with closing(open_it(database)) as connection, closing(sqlite3.connect(":memory:")) as plain:
        assert connection.profile == "untrusted"
        for name in ("LENGTH", "COLUMN", "EXPR_DEPTH", "VDBE_OP", "SQL_LENGTH", "FUNCTION_ARG"):
            limit = getattr(sqlite3, f"SQLITE_LIMIT_{name}")
            assert connection.getlimit(limit) == plain.getlimit(limit), name
        assert connection.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED) == 0
        with pytest.raises(sqlite3.OperationalError, match="prohibited"):
            connection.execute("SELECT * FROM v")
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM t")


def test_a_damaged_cell_is_found(tmp_path: Path) -> None:
    database = made(
        tmp_path / "app.db",
        "PRAGMA page_size = 4096; CREATE TABLE t(a); INSERT INTO t VALUES ('abc')",
    )
    content = bytearray(database.read_bytes())
    content[4096 + int.from_bytes(content[4104:4106], "big")] = 100
    database.write_bytes(content)
    with pytest.raises(VerificationFailed, match=r"damaged|malformed"):
        verified(database)
