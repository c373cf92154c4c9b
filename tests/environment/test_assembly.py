"""The report of a database by its path: complete, and without a trace."""

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite.environment import ReportError, checks_passed, inspect_database, report

Fingerprint = Callable[[Path], Any]


def test_the_parts_of_a_report(tmp_path: Path) -> None:
    connection = sqlite3.connect(":memory:")
    made = report(connection, tmp_path, driver="stdlib 3.11", fsync=False)
    connection.close()
    assert made["schema"] == "oxlite.environment/1"
    assert made["driver"] == "stdlib 3.11"
    assert made["profile"] is None
    assert made["fsync"] == {"measured": False, "reason": "not asked"}
    assert made.keys() == {"schema", "driver", "connection", "profile", "machine", "fsync"}
    assert json.loads(json.dumps(made)) == made


def test_the_profile_of_a_connection_is_included(tmp_path: Path) -> None:
    class Profiled(sqlite3.Connection):
        profile = "web"
        settings = (("synchronous", "NORMAL", "NORMAL", None), ("mmap_size", "1", "", "no file"))

    connection = Profiled(":memory:")
    made = report(connection, tmp_path, driver="x", fsync=False)
    connection.close()
    assert made["profile"]["name"] == "web"
    assert made["profile"]["settings"][1] == {
        "name": "mmap_size", "requested": "1", "effective": "", "skipped": "no file",
    }  # fmt: skip


def test_a_file_is_opened_with_the_web_profile(database: Path) -> None:
    made = inspect_database(database, fsync=False)
    assert made["database"]["name"] == "app.db"
    assert made["profile"]["name"] == "web"
    assert made["connection"]["pragmas"]["foreign_keys"] == 1
    assert made["connection"]["pragmas"]["synchronous"] == 1
    skipped = {one["name"]: one["skipped"] for one in made["profile"]["settings"]}
    assert skipped["journal_mode"]
    assert skipped["synchronous"] is None
    assert any("delete" in note and "WAL" in note for note in made["database"]["notes"])


def test_a_wal_file_with_sqlites_own_settings_needs_no_note(wal_database: Path) -> None:
    made = inspect_database(wal_database, profile="stock", fsync=False)
    assert made["database"]["notes"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="processes share syncs on Linux alone")
def test_processes_that_share_their_syncs_are_seen(wal_database: Path) -> None:
    assert inspect_database(wal_database, fsync=False)["shared_commit"] is None
    connection = oxlite.connect(wal_database, durable_commit="shared", isolation_level=None)
    connection.execute("INSERT INTO t VALUES (1)")
    made = inspect_database(wal_database, fsync=False)
    connection.close()
    assert made["shared_commit"] == {
        "members": 1, "commits": 1, "commits_durable": 1, "syncs_led": 1, "leaders_lost": 0,
        "poisoned": None,
    }  # fmt: skip
    assert not any("share" in note for note in made["database"]["notes"])
    assert json.loads(json.dumps(made)) == made
    assert inspect_database(wal_database, fsync=False)["shared_commit"] is None


@pytest.mark.skipif(sys.platform != "linux", reason="processes share syncs on Linux alone")
def test_a_failed_sync_is_noted_and_left_to_be_checked(wal_database: Path) -> None:
    connection = oxlite.connect(wal_database, durable_commit="shared", isolation_level=None)
    connection.execute("INSERT INTO t VALUES (1)")
    wal_database.with_name("wal.db-wal").unlink()
    with pytest.raises(oxlite.CommitOutcomeUnknown):
        connection.execute("INSERT INTO t VALUES (2)")
    for members in (1, 0):
        made = inspect_database(wal_database, fsync=False)
        assert made["shared_commit"]["members"] == members
        assert "removed or replaced" in made["shared_commit"]["poisoned"]
        assert any("Nothing is committed" in note for note in made["database"]["notes"])
        connection.close()
    # The first one that opens it again checks it, and takes the page along.
    oxlite.connect(wal_database, durable_commit="shared").close()
    assert inspect_database(wal_database, fsync=False)["shared_commit"] is None


def test_a_busy_timeout_that_misleads_is_explained(wal_database: Path) -> None:
    made = inspect_database(wal_database, fsync=False)
    assert made["profile"]["busy"] == "gate"
    assert made["profile"]["timeout_seconds"] == 5.0
    assert made["connection"]["pragmas"]["busy_timeout"] == 0
    assert any("up to 5 s" in note for note in made["database"]["notes"])


def test_without_a_file_sqlites_own_settings_are_shown() -> None:
    made = inspect_database(fsync=False)
    assert made["profile"]["name"] == "stock"
    assert made["profile"]["settings"] == []
    assert made["profile"]["busy"] == "backoff"
    assert made["database"]["name"] == ":memory:"
    assert made["connection"]["pragmas"]["foreign_keys"] == 0


def test_what_cannot_apply_in_memory_is_listed() -> None:
    settings = inspect_database(profile="web", fsync=False)["profile"]["settings"]
    assert {one["name"] for one in settings if one["skipped"]} >= {"journal_mode", "mmap_size"}


@pytest.mark.parametrize("profile", ["stock", "web", "durable", "cache"])
@pytest.mark.parametrize("state", ["database", "wal_database", "crashed_wal_database"])
def test_a_database_is_left_as_it_was(
    request: pytest.FixtureRequest, state: str, profile: str, fingerprint: Fingerprint
) -> None:
    database: Path = request.getfixturevalue(state)
    before = fingerprint(database)
    made = inspect_database(database, profile=profile, check=True)
    assert fingerprint(database) == before
    assert checks_passed(made) is True


def test_a_log_that_a_crash_left_is_read(crashed_wal_database: Path) -> None:
    made = inspect_database(crashed_wal_database, fsync=False)
    assert made["database"]["access"] == "read-only"
    assert made["connection"]["pragmas"]["journal_mode"] == "wal"


def test_the_settings_do_not_depend_on_the_access(database: Path) -> None:
    writing = inspect_database(database, fsync=False)
    database.with_name("app.db-journal").touch()
    reading = inspect_database(database, fsync=False)
    assert (writing["database"]["access"], reading["database"]["access"]) == (
        "read-write", "read-only",
    )  # fmt: skip
    assert reading["connection"] == writing["connection"]
    assert reading["profile"] == writing["profile"]


def test_an_interrupted_transaction_is_not_rolled_back(
    hot_journal_database: Path, fingerprint: Fingerprint
) -> None:
    before = fingerprint(hot_journal_database)
    with pytest.raises(ReportError, match=r"app\.db.*recovered"):
        inspect_database(hot_journal_database, fsync=False)
    assert fingerprint(hot_journal_database) == before


def test_a_link_is_followed_to_the_files_beside_its_target(
    crashed_wal_database: Path, tmp_path: Path, fingerprint: Fingerprint
) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(crashed_wal_database)
    crashed_wal_database.with_name("wal.db-shm").unlink()
    made = inspect_database(link, fsync=False)
    assert made["database"]["access"] == "read-only"
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]


def test_a_name_that_is_special_in_a_uri(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=memory#%41&c.db"
    sqlite3.connect(path).execute("CREATE TABLE t(x)").connection.close()
    made = inspect_database(path, fsync=False)
    assert made["database"]["name"] == path.name
    assert made["connection"]["pragmas"]["page_count"] == 2


def test_an_empty_file_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    inspect_database(path, check=True, fsync=False)
    assert path.stat().st_size == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"none\.db: No such file or directory"):
        inspect_database(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [(".", "Is a directory"), ("loop", "[Ll]oop|Too many levels"), ("text/x", "Not a directory"),
     ("pipe", "not a regular file"), ("text", "not a database"), ("x" * 300, "too long"),
     ("nul\0", "null")],
)  # fmt: skip
def test_what_is_no_database_is_named(tmp_path: Path, name: str, message: str) -> None:
    import os

    (tmp_path / "text").write_text("certainly no database " * 100)
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ReportError, match=message) as raised:
        inspect_database(tmp_path / name, fsync=False)
    assert "\n" not in str(raised.value)


def test_a_corrupt_schema_is_an_error(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[100:108] = b"\xff" * 8
    database.write_bytes(content)
    with pytest.raises(ReportError, match=r"malformed.*app\.db"):
        inspect_database(database, fsync=False)


def test_an_unknown_profile_is_an_error(database: Path) -> None:
    with pytest.raises(ReportError, match="unknown profile 'wep'"):
        inspect_database(database, profile="wep")


def test_a_locked_database_is_an_error(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = oxlite.connect
    monkeypatch.setattr(oxlite, "connect", lambda *a, **k: connect(*a, timeout=0, **k))
    # The same library must hold the lock: POSIX locks do not stand between two in one process.
    holder = connect(database, isolation_level=None, journal="keep")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ReportError, match=r"app\.db: .*locked"):
        inspect_database(database, fsync=False)
    holder.close()


@pytest.mark.parametrize(
    ("pragmas", "passed"),
    [({}, None), ({"quick_check": ["ok"], "integrity_check": ["ok"]}, True),
     ({"quick_check": ["ok"], "integrity_check": ["row 1 missing"]}, False)],
)  # fmt: skip
def test_checks_passed(pragmas: dict[str, list[str]], passed: bool | None) -> None:
    assert checks_passed({"connection": {"pragmas": pragmas}}) is passed
