"""What is written last, after both sides were compared: however it is written, it arrives."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.promotion.conftest import Place, file_of, once, promote_file

from oxlite import sqlite3

CASES = {
    "keys that differ in case alone": (
        "CREATE TABLE t (k TEXT PRIMARY KEY COLLATE NOCASE, v INT);"
        "INSERT INTO t VALUES ('abc', 1), ('def', 2)",
        ("UPDATE t SET k = 'ABC' WHERE v = 1", "REPLACE INTO t VALUES ('DEF', 3)"),
    ),
    "such keys without a rowid": (
        "CREATE TABLE t (k TEXT COLLATE NOCASE, v INT, PRIMARY KEY (k)) WITHOUT ROWID;"
        "INSERT INTO t VALUES ('abc', 1), ('def', 2)",
        ("UPDATE t SET k = 'ABC' WHERE v = 1", "REPLACE INTO t VALUES ('DEF', 3)"),
    ),
    "a unique index with a collation of its own": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);"
        "CREATE UNIQUE INDEX t_v ON t (v COLLATE NOCASE); INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        ("REPLACE INTO t VALUES (9, 'A')", "UPDATE OR REPLACE t SET v = 'B' WHERE id = 9"),
    ),
    "1 and 1.0": (
        "CREATE TABLE t (k PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2), ('a', 3)",
        ("UPDATE t SET k = 1.0 WHERE v = 1", "REPLACE INTO t VALUES (2.0, 4)"),
    ),
    "unique values that move": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u INT UNIQUE);"
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        ("UPDATE t SET u = NULL WHERE id = 1", "UPDATE t SET u = 1 WHERE id = 2",
         "UPDATE t SET u = 2 WHERE id = 1", "REPLACE INTO t VALUES (7, 3)",
         "UPDATE OR REPLACE t SET id = 2 WHERE id = 7"),
    ),
    "an upsert": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u INT UNIQUE, v); INSERT INTO t VALUES (1, 1, 1)",
        ("INSERT INTO t VALUES (5, 1, 2) ON CONFLICT (u) DO UPDATE SET v = excluded.v",
         "INSERT OR IGNORE INTO t VALUES (6, 1, 3)"),
    ),
    "cascades": (
        "CREATE TABLE p (id INTEGER PRIMARY KEY, u INT UNIQUE);"
        "CREATE TABLE t (id INTEGER PRIMARY KEY, p INT REFERENCES p ON DELETE CASCADE"
        " ON UPDATE CASCADE, q INT REFERENCES p (u) ON DELETE SET NULL);"
        "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3), (4, 4);"
        "INSERT INTO t VALUES (1, 1, 3), (2, 2, 4), (3, 3, 3), (4, 4, NULL)",
        ("PRAGMA foreign_keys = ON", "REPLACE INTO p VALUES (1, 9)",
         "UPDATE p SET id = 20 WHERE id = 2", "DELETE FROM p WHERE id = 3"),
    ),
    "savepoints that are rolled back": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)",
        ("BEGIN", "SAVEPOINT s", "DELETE FROM t", "ROLLBACK TO s", "UPDATE t SET v = 3", "COMMIT",
         "BEGIN", "DELETE FROM t", "ROLLBACK"),
    ),
    "all rows deleted": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)",
        ("DELETE FROM t", "INSERT INTO t VALUES (1, 7)"),
    ),
    "no key at all": (
        "CREATE TABLE t (v INT, w TEXT); INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b')",
        ("DELETE FROM t WHERE rowid = 1", "UPDATE t SET rowid = 9 WHERE v = 2",
         "INSERT INTO t VALUES (1, 'a')"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_arrives(case: str, tmp_path: Path, place: Place) -> None:
    script, statements = CASES[case]
    path = file_of(tmp_path, script)

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for sql in statements:
                connection.execute(sql)

    promote_file(path, place, cut_over=True, tell=once("cut-over", write))
    with closing(sqlite3.connect(path)) as connection:
        here = connection.execute("SELECT * FROM t").fetchall()
    there = place.rows("SELECT * FROM t")
    if case == "1 and 1.0":  # they are texts there
        here = [(str(key), value) for key, value in here]
    assert sorted(there, key=repr) == sorted(here, key=repr)
