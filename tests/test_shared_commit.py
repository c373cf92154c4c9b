"""Commits that share their syncs, within one process: what is asked for, refused and counted."""

import os
import sqlite3 as standard
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pages import page_of, remove_page_of

import oxlite

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes share memory in this way on Linux alone"
)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "app.db"
    with oxlite.connect(path) as connection:
        connection.execute("CREATE TABLE t (x PRIMARY KEY)")
    connection.close()
    remove_page_of(path)
    yield path
    remove_page_of(path)


@pytest.fixture
def connection(path: Path) -> Iterator[oxlite.Connection]:
    connection = shared(path)
    yield connection
    connection.close()


def shared(path: Path, **options: Any) -> oxlite.Connection:  # noqa: ANN401 - of any kind
    return oxlite.connect(path, durable_commit="shared", isolation_level=None, **options)


def counted(connection: oxlite.Connection) -> dict[str, Any]:
    statistics = connection.shared_commit_statistics()
    assert statistics is not None
    return dict(statistics)


def commits(connection: oxlite.Connection) -> int:
    return int(counted(connection)["commits"])


def test_what_is_not_asked_for_is_not_there(path: Path) -> None:
    connection = oxlite.connect(path)
    assert connection.shared_commit_statistics() is None
    assert not page_of(path).exists()
    connection.close()


def test_it_commits_at_normal_and_syncs_by_itself(connection: oxlite.Connection) -> None:
    settings = {name: effective for name, _, effective, _ in connection.settings}
    assert settings["synchronous"] == "NORMAL"
    connection.execute("INSERT INTO t VALUES (1)")
    assert counted(connection) == {
        "shared_commit_unavailable": None,
        "commits": 1,
        "syncs_led": 1,
        "syncs_beside": 0,
        "answered_by_others": 0,
        "commits_of_all": 1,
        "leaders_lost": 0,
        "poisoned": None,
    }


# How a transaction can end, and how many tickets that draws.
ENDS = {
    "by itself": ["INSERT INTO t VALUES (1)"],
    "and changes nothing": ["INSERT OR IGNORE INTO t SELECT 1 WHERE 0"],
    "by COMMIT": ["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"],
    "by END": ["BEGIN IMMEDIATE", "end"],
    "by RELEASE": ["SAVEPOINT a", "INSERT INTO t VALUES (1)", "RELEASE a"],
    "in a schema": ["CREATE TABLE IF NOT EXISTS t (x)"],
    "in a pragma": ["PRAGMA user_version = 3"],
    "by VACUUM": ["VACUUM"],
}


@pytest.mark.parametrize("end", ENDS)
def test_every_commit_waits(connection: oxlite.Connection, end: str) -> None:
    *before, last = ENDS[end]
    for sql in before:
        connection.execute(sql)
    assert commits(connection) == 0
    connection.execute(last)
    assert commits(connection) >= 1
    assert counted(connection)["syncs_led"] == commits(connection)


def test_a_transaction_that_is_rolled_back_or_only_reads_does_not(
    connection: oxlite.Connection,
) -> None:
    connection.execute("SELECT * FROM t").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM t").fetchall()
    connection.execute("ROLLBACK")
    assert commits(connection) == 0


def test_a_statement_that_is_stopped_commits(connection: oxlite.Connection) -> None:
    cursor = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING x")
    assert cursor.fetchone() == (1,)
    assert commits(connection) == 0
    cursor.close()
    assert commits(connection) == 1
    cursor = connection.execute("INSERT INTO t VALUES (3), (4) RETURNING x")
    cursor.fetchone()
    del cursor
    connection.execute("SELECT 1").fetchall()
    assert commits(connection) == 2


def test_what_commits_without_a_statement(connection: oxlite.Connection) -> None:
    connection.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, x)")
    connection.execute("INSERT INTO b VALUES (1, zeroblob(10))")
    before = commits(connection)
    with connection.blobopen("b", "x", 1) as blob:
        blob.write(b"1234")
    assert commits(connection) == before + 1
    connection.executescript("BEGIN; INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2)")
    assert commits(connection) == before + 3
    connection.executemany("INSERT INTO t VALUES (?)", [(3,), (4,)])
    assert commits(connection) == before + 5, "each by itself, without a transaction"


def test_the_methods_of_a_connection(path: Path) -> None:
    connection = oxlite.connect(path, durable_commit="shared")
    with connection:
        connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("INSERT INTO t VALUES (2)")
    assert commits(connection) == 1
    connection.commit()
    assert commits(connection) == 2
    connection.close()


def test_threads_of_a_process_share_a_sync(path: Path) -> None:
    """Whatever the order, nobody waits in vain and everybody is counted."""
    connections = [shared(path, check_same_thread=False) for _ in range(4)]

    def write(number: int) -> None:
        for count in range(50):
            connections[number].execute("INSERT INTO t VALUES (?)", (number * 1000 + count,))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statistics = counted(connections[0])
    assert statistics["commits"] == statistics["commits_of_all"] == 200
    assert statistics["syncs_led"] + statistics["answered_by_others"] == 200
    for connection in connections:
        connection.close()


def test_a_database_for_a_whole_process(path: Path) -> None:
    with oxlite.Database(path, durable_commit="shared") as database:
        threads = [
            threading.Thread(target=database.execute, args=("INSERT INTO t VALUES (?)", (number,)))
            for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with database.write() as connection:
            connection.execute("DELETE FROM t WHERE x > 9")
        assert database.query_one("SELECT count(*) FROM t") == (10,)
        statistics = database.stats()
    assert 2 <= statistics.shared_commits <= 21
    assert statistics.shared_syncs >= 1
    assert statistics.shared_commit_unavailable is None
    assert statistics.sync_failed is None


def test_a_batch_fails_request_by_request(path: Path) -> None:
    with oxlite.Database(path, durable_commit="shared") as database:
        database.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(oxlite.sqlite3.IntegrityError):
            database.execute("INSERT INTO t VALUES (1)")
        assert database.executemany("INSERT INTO t VALUES (?)", [(2,), (3,)]).rowcount == 2


REFUSED: dict[str, dict[str, Any]] = {
    "sets the pragma 'synchronous' by itself": {"pragmas": {"synchronous": "FULL"}},
    "needs journal_mode = wal": {"pragmas": {"journal_mode": "DELETE"}},
    "needs locking_mode = normal": {"pragmas": {"locking_mode": "EXCLUSIVE"}},
    "needs the profile 'web' or 'durable'": {"profile": "cache"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_it_cannot_go_with_is_refused(tmp_path: Path, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shared(tmp_path / "new.db", **REFUSED[message])
    assert not (tmp_path / "new.db").exists()


def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a database in a file"):
        oxlite.connect(":memory:", durable_commit="shared")
    with pytest.raises(oxlite.sqlite3.OperationalError, match="needs a database in a file"):
        oxlite.connect("file::memory:", uri=True, durable_commit="shared")
    with pytest.raises(ValueError, match="did you mean 'shared'"):
        oxlite.connect(":memory:", durable_commit="share")  # type: ignore[arg-type]


def test_another_journal_mode_that_is_kept_is_refused(tmp_path: Path) -> None:
    other = standard.connect(tmp_path / "old.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(oxlite.sqlite3.OperationalError, match="WAL"):
        shared(tmp_path / "old.db", journal="keep")


def test_a_backup_over_it_is_refused(connection: oxlite.Connection) -> None:
    source = oxlite.connect(":memory:")
    with pytest.raises(oxlite.sqlite3.Error, match="cannot be the target of a backup"):
        source.backup(connection)
    source.close()


def test_attached_databases_sync_by_themselves(
    connection: oxlite.Connection, tmp_path: Path
) -> None:
    connection.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
    assert connection.execute("PRAGMA other.synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA main.synchronous").fetchone() == (1,)


def test_nothing_is_left_behind(path: Path) -> None:
    connections = [shared(path) for _ in range(2)]
    for connection in connections:
        assert page_of(path).stat().st_mode & 0o777 == 0o600
        connection.close()
    assert not page_of(path).exists()
    assert not Path(f"{path}-wal").exists()


def alone(path: Path) -> str:
    """Opens it, writes, and tells why syncs are not shared."""
    connection = shared(path)
    settings = {name: effective for name, _, effective, _ in connection.settings}
    assert settings["synchronous"] == "FULL"
    connection.execute("INSERT INTO t VALUES (1)")
    reason = counted(connection)["shared_commit_unavailable"]
    connection.close()
    return str(reason)


def test_without_a_page_each_commit_is_synced_by_itself(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page_of(path).mkdir()
    try:
        assert "no shared memory" in alone(path)
    finally:
        page_of(path).rmdir()
    assert "Each is synced by itself (synchronous=FULL)" in caplog.text


@pytest.mark.parametrize("kind", ["link", "open to others", "too long", "another's"])
def test_a_page_that_may_be_anothers_is_not_used(path: Path, kind: str, tmp_path: Path) -> None:
    page = page_of(path)
    if kind == "link":
        (tmp_path / "target").write_bytes(b"")
        page.symlink_to(tmp_path / "target")
    else:
        page.write_bytes(b"\0" * (8192 if kind == "too long" else 4096))
        page.chmod(0o666 if kind == "open to others" else 0o600)
    if kind == "another's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(page, 12345, 12345)
    try:
        assert "no shared memory" in alone(path)
    finally:
        page.unlink()


def test_garbage_in_the_page_is_not_believed(path: Path) -> None:
    """Whoever comes first begins anew; what looks like poison has the database checked."""
    page_of(path).write_bytes(os.urandom(4096))
    page_of(path).chmod(0o600)
    connection = shared(path)
    connection.execute("INSERT INTO t VALUES (1)")
    statistics = counted(connection)
    connection.close()
    assert statistics["commits_of_all"] == 1
    assert statistics["poisoned"] is None


def test_the_first_one_cuts_the_log(path: Path) -> None:
    """So that what a crash has taken back cannot come back with the next commit."""
    code = "import oxlite, os, sys; c = oxlite.connect(sys.argv[1], isolation_level=None)"
    code += "; c.execute('INSERT INTO t VALUES (7)'); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert Path(f"{path}-wal").stat().st_size > 0
    connection = shared(path)
    assert Path(f"{path}-wal").stat().st_size == 0
    assert connection.execute("SELECT x FROM t").fetchall() == [(7,)]
    connection.close()


def test_a_removed_page_makes_two_groups(path: Path) -> None:
    first = shared(path)
    first.execute("INSERT INTO t VALUES (1)")
    page_of(path).unlink()
    code = """
import oxlite, sys
c = oxlite.connect(sys.argv[1], isolation_level=None, durable_commit="shared")
c.execute("INSERT INTO t VALUES (2)")
print(c.shared_commit_statistics()["commits_of_all"])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, path], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "1\n"
    first.execute("INSERT INTO t VALUES (3)")
    assert counted(first)["commits_of_all"] == 2
    first.close()


def test_a_log_that_was_removed_stops_everything(path: Path) -> None:
    """Its frames are in no file any more; what was acknowledged before is gone already."""
    connection = shared(path)
    connection.execute("INSERT INTO t VALUES (1)")
    Path(f"{path}-wal").unlink()
    with pytest.raises(oxlite.CommitOutcomeUnknown, match="removed or replaced"):
        connection.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(oxlite.SyncFailedError, match="Stop all processes"):
        connection.execute("INSERT INTO t VALUES (3)")
    connection.close()


def test_a_forked_child_comes_in_by_itself(path: Path) -> None:
    connection = shared(path)
    connection.execute("INSERT INTO t VALUES (1)")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = shared(path)
            own.execute("INSERT INTO t VALUES (2)")
            code = 0 if counted(own)["commits_of_all"] == 2 else 2
            own.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    connection.execute("INSERT INTO t VALUES (3)")
    assert counted(connection)["commits_of_all"] == 3
    connection.close()
    assert not page_of(path).exists()
