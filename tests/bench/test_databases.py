"""Databases that scenarios start from: new each time, from the same bytes, and read when sound."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from oxlite.bench import VerificationError
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.databases import Databases, rows_of_file
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.scenarios.scenario import Scenario

SCENARIO = Scenario("stdlib", build="own")
ROWS = [(number, bytes(100)) for number in range(200)]


def fill(connection: Connection, driver: Driver) -> None:
    connection.execute(f"CREATE TABLE t(id INTEGER PRIMARY KEY, b {driver.bytes_type})", ())
    connection.executemany("INSERT INTO t VALUES(?, ?)", ROWS)


def test_each_is_new_and_from_the_same_bytes(tmp_path: Path) -> None:
    with scratch(tmp_path, keep=False) as place, PostgresServer(place) as server:
        databases = Databases(place, "lab", fill, server)
        first = databases.start(SCENARIO, "wal")
        begun = first.path.read_bytes()
        with closing(sqlite3.connect(first.path)) as connection, connection:
            connection.execute("DELETE FROM t")
        assert first.rows("SELECT * FROM t") == []
        second = databases.start(SCENARIO, "wal")
        assert second.path.read_bytes() == begun
        assert [entry.name for entry in second.directory.iterdir()] == ["lab.db"]
        assert second.rows("SELECT * FROM t") == ROWS
        assert databases.start(SCENARIO, "rollback").path.read_bytes() != begun
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        fill(connection, DRIVERS.get("stdlib"))
        connection.execute("CREATE INDEX i ON t(b)")
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name='i'").fetchone()
    sound = path.read_bytes()
    # An index of other entries than the table has.
    path.write_bytes(sound[: (root - 1) * page] + b"\n" + bytes(page - 1) + sound[root * page :])
    with pytest.raises(VerificationError, match="the database is damaged: "):
        rows_of_file(path, "SELECT * FROM t")
    path.write_bytes(bytes(range(256)) * 64)
    with pytest.raises(VerificationError, match="the database cannot be read: file is not"):
        rows_of_file(path, "SELECT * FROM t")
