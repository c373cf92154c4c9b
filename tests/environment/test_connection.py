"""A connection describes itself, and reading leaves it as it was."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite.environment import CONFIGURATION_PRAGMAS, SCANNING_PRAGMAS, connection_report

Opener = Callable[[Path], Any]
RowFactory = Any


def test_the_39_pragmas_are_named_once_and_in_order() -> None:
    assert len(CONFIGURATION_PRAGMAS) == 39
    assert list(CONFIGURATION_PRAGMAS) == sorted(set(CONFIGURATION_PRAGMAS))
    assert set(CONFIGURATION_PRAGMAS) >= SCANNING_PRAGMAS


def test_pragmas_that_act_when_queried_are_not_among_them() -> None:
    acting = {"incremental_vacuum", "optimize", "shrink_memory", "wal_checkpoint"}
    assert acting.isdisjoint(CONFIGURATION_PRAGMAS)


def test_the_report_is_of_this_connection(open_connection: Opener, database: Path) -> None:
    connection = open_connection(database)
    for setting in ("cache_size = 123", "synchronous = OFF", "foreign_keys = ON"):
        list(connection.execute(f"PRAGMA {setting}"))
    report = connection_report(connection)
    pragmas = report["pragmas"]
    assert pragmas["cache_size"] == 123
    assert pragmas["synchronous"] == 0
    assert pragmas["foreign_keys"] == 1
    assert pragmas["journal_mode"] == "delete"
    other = connection_report(open_connection(database))["pragmas"]
    assert (other["cache_size"], other["foreign_keys"]) != (123, 1)


def test_the_library_is_named(open_connection: Opener, database: Path) -> None:
    report = connection_report(open_connection(database))
    assert report["sqlite_version"].startswith("3.")
    assert report["sqlite_source_id"][:2] == "20"
    assert report["threadsafe_mode"] in {"single-thread", "multi-thread", "serialized"}
    assert report["sqlcipher"] is False
    assert report["sqlcipher_version"] is None
    assert report["compile_options"] == sorted(report["compile_options"])
    assert any(option.startswith("COMPILER=") for option in report["compile_options"])


def test_json_holds_the_report(open_connection: Opener, database: Path) -> None:
    report = connection_report(open_connection(database), check=True)
    assert json.loads(json.dumps(report)) == report


def test_scans_run_only_when_asked(open_connection: Opener, database: Path) -> None:
    connection = open_connection(database)
    report = connection_report(connection)
    assert report["pragmas"].keys() == set(CONFIGURATION_PRAGMAS) - SCANNING_PRAGMAS
    assert report["pragmas_not_read"].keys() == SCANNING_PRAGMAS
    report = connection_report(connection, check=True)
    assert report["pragmas"].keys() == set(CONFIGURATION_PRAGMAS)
    assert report["pragmas_not_read"] == {}
    assert report["pragmas"]["integrity_check"] == ["ok"]
    assert report["pragmas"]["quick_check"] == ["ok"]


def test_a_failed_scan_reports_its_lines(open_connection: Opener, tmp_path: Path) -> None:
    connection = open_connection(tmp_path / "bad.db")
    for statement in (
        "CREATE TABLE t(x CHECK (x > 0))",
        "PRAGMA ignore_check_constraints = ON",
        "INSERT INTO t VALUES (-1), (-2)",
        "PRAGMA ignore_check_constraints = OFF",
    ):
        list(connection.execute(statement))
    lines = connection_report(connection, check=True)["pragmas"]["integrity_check"]
    assert lines == ["CHECK constraint failed in t"] * 2


def test_nothing_is_left_open(open_connection: Opener, database: Path) -> None:
    connection = open_connection(database)
    connection_report(connection, check=True)
    assert not connection.in_transaction
    # A read lock would block the first (of the same library: POSIX locks do not stand between
    # two libraries in one process), an open statement the second.
    other = open_connection(database)
    list(other.execute("PRAGMA busy_timeout = 0"))
    list(other.execute("BEGIN EXCLUSIVE"))
    list(other.execute("ROLLBACK"))
    list(connection.execute("VACUUM"))


def test_an_open_transaction_stays_open(open_connection: Opener, database: Path) -> None:
    connection = open_connection(database)
    list(connection.execute("BEGIN"))
    list(connection.execute("INSERT INTO t VALUES (2)"))
    connection_report(connection, check=True)
    assert connection.in_transaction
    list(connection.execute("ROLLBACK"))
    assert [row[0] for row in connection.execute("SELECT x FROM t")] == [1]


def test_no_setting_changes(open_connection: Opener, wal_database: Path) -> None:
    connection = open_connection(wal_database)
    assert connection_report(connection, check=True) == connection_report(connection, check=True)


def test_the_file_does_not_change(
    open_connection: Opener, database: Path, fingerprint: Callable[[Path], Any]
) -> None:
    before = fingerprint(database)
    connection = open_connection(database)
    connection_report(connection, check=True)
    connection.close()
    assert fingerprint(database) == before


def test_an_empty_file_stays_empty(open_connection: Opener, tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    connection = open_connection(path)
    connection_report(connection, check=True)
    connection.close()
    assert path.stat().st_size == 0


@pytest.mark.parametrize(
    "row_factory",
    [sqlite3.Row, lambda cursor, row: {"v": row[0]}, lambda cursor, row: object()],
    ids=["Row", "dict", "opaque"],
)
def test_row_and_text_factories_do_not_matter(row_factory: RowFactory) -> None:
    connection = sqlite3.connect(":memory:")
    plain = connection_report(connection)
    connection.row_factory = row_factory
    connection.text_factory = bytes
    assert connection_report(connection) == plain
    assert connection.row_factory is row_factory
    connection.close()


def test_a_connection_with_execute_alone_will_do() -> None:
    class Bare:
        def __init__(self) -> None:
            self.inner = sqlite3.connect(":memory:")

        def execute(self, sql: str, /) -> list[Any]:
            return self.inner.execute(sql).fetchall()

    connection = Bare()
    assert connection_report(connection)["pragmas"]["journal_mode"] == "memory"
    connection.inner.close()


def test_what_a_build_leaves_out_is_none() -> None:
    class Silent:
        def execute(self, sql: str, /) -> list[tuple[str]]:
            return [("x",)] if sql.startswith("SELECT") else []

    report = connection_report(Silent())
    assert report["threadsafe_mode"] is None
    assert report["compile_options"] == []
    assert set(report["pragmas"].values()) == {None}


def test_a_closed_connection_raises_the_drivers_error() -> None:
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection_report(connection)
