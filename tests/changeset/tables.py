"""Databases with the tables ``t`` and ``w``, and what many tests of changesets ask of them."""

from collections.abc import Iterator
from typing import Any

from oxlite import sqlite3
from oxlite.changeset import Change

SCHEMA = """
    CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE);
    CREATE TABLE w(x TEXT, y, z, PRIMARY KEY(z, x)) WITHOUT ROWID;
"""
ROWS = "INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20)"


class Database(sqlite3.Connection):
    """A connection that can be part of any cycle."""


def make(script: str = "", **options: object) -> Database:
    """A database in memory with the tables ``t`` and ``w``."""
    connection = Database(":memory:", **{"isolation_level": None, **options})
    connection.executescript(SCHEMA + script)
    return connection


def recorded(connection: sqlite3.Connection, script: str) -> bytes:
    """The changeset of what a script does."""
    with connection.create_session() as session:
        connection.executescript(script)
        return session.changeset()


def content(connection: sqlite3.Connection, table: str = "t") -> list[Any]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def only(changes: Iterator[Change]) -> Change:
    (change,) = changes
    return change


CHANGES = """
    INSERT INTO t VALUES (3, 3.5, NULL), (4, x'00ff', 40);
    UPDATE t SET a = 'uno' WHERE id = 1;
    DELETE FROM t WHERE id = 2;
    INSERT INTO w VALUES ('k', 1, 2);
"""


MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
    " INSERT INTO t SELECT i, i, i FROM n"
)
