"""``PRAGMA count_changes``, by which a statement that is kept comes to have a row."""

import contextlib
import sqlite3 as standard
from pathlib import Path
from types import ModuleType

import pytest

from oxlite import sqlite3

INSERT = "INSERT INTO t VALUES (?)"


def outcome(driver: ModuleType, path: Path, sql: str, *, is_refused: bool) -> list[object]:
    """What a kept statement comes to, with text as its parameter, once the pragma is on."""
    connection = driver.connect(path, isolation_level=None)
    with contextlib.closing(connection):
        connection.executescript("""
            PRAGMA foreign_keys = ON;
            CREATE TABLE p (i TEXT PRIMARY KEY);
            CREATE TABLE t (a TEXT REFERENCES p DEFERRABLE INITIALLY DEFERRED);
            INSERT INTO p VALUES ('there');
        """)
        connection.execute(sql, ("there",))
        connection.execute("PRAGMA count_changes = ON")
        told: list[object] = []
        try:
            cursor = connection.execute(sql, ("nowhere" if is_refused else "there",))
            told += [cursor.fetchall(), cursor.rowcount]
        except driver.Error as error:
            told += [type(error).__name__, str(error)]
        told += [connection.in_transaction]
        connection.execute("PRAGMA count_changes = OFF")
        told += connection.execute("SELECT count(*) FROM t").fetchall()
    return told


@pytest.mark.parametrize("sql", [INSERT, "UPDATE p SET i = ? WHERE 0", "DELETE FROM t WHERE a = ?"])
@pytest.mark.parametrize("is_refused", [False, True])
def test_its_row_and_its_failure_are_told(tmp_path: Path, sql: str, is_refused: bool) -> None:
    expected = outcome(standard, tmp_path / "standard.db", sql, is_refused=is_refused)
    assert outcome(sqlite3, tmp_path / "ours.db", sql, is_refused=is_refused) == expected
    if sql == INSERT:
        assert expected[0] == ("IntegrityError" if is_refused else [(1,)])
