"""Waiting for locks: busy policies, time limits, the implicit BEGIN, many openings at once."""

import concurrent.futures
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import oxlite
from oxlite import sqlite3

Opened = Callable[..., sqlite3.Connection]
PROFILES = ["stock", "web", "durable", "cache"]


def journal_mode(connection: sqlite3.Connection) -> object:
    return connection.execute("PRAGMA journal_mode").fetchone()[0]


def test_the_first_write_takes_the_write_lock_and_reading_does_not(
    opened: Opened, path: Path
) -> None:
    one, two = (opened(path, timeout=0) for _ in range(2))
    one.execute("CREATE TABLE t(a)")

    def may_write() -> bool:
        try:
            two.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        two.rollback()
        return True

    assert one.execute("SELECT * FROM t").fetchall() == []
    assert may_write()
    one.execute("INSERT INTO t VALUES (1)")
    assert not may_write()
    one.commit()
    assert may_write()


def test_the_implicit_begin_waits_rather_than_the_statement(opened: Opened, path: Path) -> None:
    """What fails beside another writer is BEGIN IMMEDIATE, so no transaction is left open."""
    one, two = (opened(path, timeout=0) for _ in range(2))
    one.execute("CREATE TABLE t(a)")
    one.execute("BEGIN IMMEDIATE")
    assert refused(two) < 20
    assert not two.in_transaction
    two.isolation_level = "DEFERRED"
    assert refused(two) < 20
    assert two.in_transaction


def test_a_write_after_a_read_sees_the_newest_commit(opened: Opened, path: Path) -> None:
    """The usual cause of 'database is locked' at once: a snapshot that is too old to write."""
    one, two = (opened(path, timeout=0) for _ in range(2))
    one.execute("CREATE TABLE t(a)")
    assert one.execute("SELECT count(*) FROM t").fetchone() == (0,)
    two.execute("INSERT INTO t VALUES (1)")
    two.commit()
    one.execute("INSERT INTO t SELECT count(*) + 1 FROM t")
    one.commit()
    assert two.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]


_WRITE_LOCK = """
import sys
from oxlite import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
connection.close()
print("released", flush=True)
"""


@pytest.fixture
def locked(path: Path) -> Iterator[Callable[[], None]]:
    """Another process holds the write lock; the value releases it."""
    sqlite3.connect(path).executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(a)")
    with subprocess.Popen(
        [sys.executable, "-c", _WRITE_LOCK, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"

        def release() -> None:
            process.stdin.write("go\n")
            process.stdin.flush()

        try:
            yield release
        finally:
            process.stdin.close()
            process.wait(30)


def refused(connection: sqlite3.Connection) -> float:
    """How long, in seconds, a write waited before it was refused."""
    begun = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match=r"^database is locked\b") as caught:
        connection.execute("INSERT INTO t VALUES (1)")
    assert caught.value.sqlite_errorname == "SQLITE_BUSY"
    return time.monotonic() - begun


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize("profile", PROFILES)
def test_busy_none_fails_at_once(opened: Opened, path: Path, profile: str) -> None:
    connection = opened(path, profile=profile, busy="none", timeout=60)
    assert refused(connection) < 20


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize("busy", ["fair", "backoff", None])
@pytest.mark.parametrize("profile", ["stock", "web"])
def test_a_wait_ends_with_the_timeout(
    opened: Opened, path: Path, profile: str, busy: str | None
) -> None:
    connection = opened(path, profile=profile, busy=busy, timeout=0.3)
    assert refused(connection) >= 0.25
    assert refused(connection) >= 0.25  # each wait has the whole timeout


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize("busy", ["fair", "backoff", "none"])
def test_a_timeout_of_zero_fails_at_once(opened: Opened, path: Path, busy: str) -> None:
    assert refused(opened(path, busy=busy, timeout=0)) < 20
    assert refused(opened(path, busy=busy, timeout=-5)) < 20


@pytest.mark.parametrize("busy", ["fair", "backoff", None])
def test_a_lock_that_is_released_is_taken(
    opened: Opened, path: Path, locked: Callable[[], None], busy: str | None
) -> None:
    connection = opened(path, busy=busy, timeout=60)
    timer = threading.Timer(0.2, locked)
    timer.start()
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    timer.join()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.fixture
def written(existing: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is writing to a file in a rollback journal mode."""
    connection = sqlite3.connect(existing, check_same_thread=False, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


@pytest.mark.usefixtures("written")
def test_opening_with_busy_none_fails_at_once(existing: Path) -> None:
    """Turning the file to WAL needs it alone; who does not wait for locks does not wait here."""
    begun = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught:
        oxlite.connect(existing, busy="none", timeout=4)
    assert time.monotonic() - begun < 3
    assert caught.value.sqlite_errorname == "SQLITE_BUSY"


@pytest.mark.usefixtures("written")
def test_opening_gives_up_with_the_timeout(existing: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match=r"database is locked.*journal_mode"):
        oxlite.connect(existing, timeout=0.3)
    assert 0.25 <= time.monotonic() - begun < 20
    assert journal_mode(sqlite3.connect(existing)) == "delete"


def test_opening_waits_for_a_writer(
    opened: Opened, existing: Path, written: sqlite3.Connection
) -> None:
    timer = threading.Timer(0.2, lambda: written.execute("COMMIT"))
    timer.start()
    connection = opened(existing, timeout=60)
    timer.join()
    assert journal_mode(connection) == "wal"


_OPEN_TOGETHER = """
import sys
import oxlite
for line in sys.stdin:
    profile, path = line.split()
    connection = oxlite.connect(path, profile=profile, timeout=60)
    connection.execute("CREATE TABLE IF NOT EXISTS t(pid)")
    connection.execute("INSERT INTO t VALUES (?)", (id(connection),))
    connection.commit()
    print(connection.execute("PRAGMA journal_mode").fetchone()[0], flush=True)
    connection.close()
"""


def open_together(*files: tuple[str, Path]) -> list[str]:
    """Has 12 processes open each file with a profile at once; returns what each of them logged."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _OPEN_TOGETHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(12)
    ]
    try:
        for profile, path in files:
            for process in processes:
                process.stdin.write(f"{profile} {path}\n")
                process.stdin.flush()
            assert [process.stdout.readline() for process in processes] == ["wal\n"] * 12
    finally:
        ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    assert [status for _, _, status in ended] == [0] * 12
    return [errors for _, errors, _ in ended]


def test_many_processes_open_one_new_file_at_once(tmp_path: Path) -> None:
    """All succeed, and nobody says that a file which had no journal mode has changed it."""
    profiles = ["web", "web", "web", "durable", "cache"]
    files = [(profile, tmp_path / f"{number}.db") for number, profile in enumerate(profiles)]
    logged = open_together(*files)
    for _, path in files:
        check = sqlite3.connect(path)
        assert check.execute("SELECT count(*) FROM t").fetchone() == (12,)
        check.close()
    assert logged == [""] * 12


def test_many_processes_turn_one_existing_file_to_wal(tmp_path: Path) -> None:
    """All succeed, and it is said; by more than one if they met in the middle of it."""
    files = []
    for number in range(3):
        path = tmp_path / f"{number}.db"
        connection = sqlite3.connect(path)
        connection.executescript("CREATE TABLE t(pid); INSERT INTO t VALUES (1)")
        connection.close()
        files.append(("web", path))
    logged = "".join(open_together(*files))
    for _, path in files:
        check = sqlite3.connect(path)
        assert check.execute("SELECT count(*) FROM t").fetchone() == (13,)
        check.close()
        assert logged.count(f"The journal mode of {path} was DELETE and is now WAL") >= 1


def test_many_threads_open_one_new_file_at_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def work(path: Path) -> object:
        barrier.wait(60)
        connection = oxlite.connect(path, timeout=60)
        mode = journal_mode(connection)
        connection.close()
        return mode

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for number in range(5):
            modes = pool.map(work, [tmp_path / f"{number}.db"] * 8)
            assert list(modes) == ["wal"] * 8
