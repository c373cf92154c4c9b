"""Nobody begins the WAL anew before Litestream has read it; and it does not grow without end."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.operations.databases import numbers
from tests.replication.conftest import Run, Start, add

import oxlite
from oxlite import sqlite3
from oxlite.file_locks import FileLock
from oxlite.replication import LitestreamFailed
from oxlite.replication.claim import state_path
from oxlite.replication.generation import Wal, continues, has_unread, wal_of
from oxlite.replication.guard import WAL_LIMIT_BYTES, Guard

_FILLING = "INSERT INTO t VALUES (?, zeroblob(3000))"


def _wal(database: Path) -> Wal:
    wal = wal_of(database)
    assert wal is not None
    return wal


def _nobody() -> None:
    raise AssertionError("asked, and nobody is there")


@pytest.fixture
def guard(database: Path) -> Iterator[Guard]:
    guard = Guard(database, _nobody)
    yield guard
    guard.let_go()


@pytest.fixture
def other_program(database: Path) -> Iterator[sqlite3.Connection]:
    """One of the standard library's kind: it makes a checkpoint where the WAL has 1,000 pages."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        yield connection


def test_what_was_read_is_compared_with_the_wal_there_is(
    database: Path, store: Path, start: Start
) -> None:
    replicator = start(database, "--to", store)
    add(database, 1001)
    replicator.end()
    assert continues(database, _wal(database).bytes, is_kept=False)
    with closing(oxlite.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO t VALUES (1002, NULL)")
        connection.commit()
        assert not continues(database, _wal(database).bytes, is_kept=False)


def test_what_was_not_read_and_may_be_overwritten_does_not_continue(
    database: Path, store: Path, start: Start
) -> None:
    with closing(oxlite.connect(database, isolation_level=None)) as connection:
        replicator = start(database, "--to", store)
        replicator.end()
        connection.execute("INSERT INTO t VALUES (1001, NULL)")
        assert continues(database, _wal(database).bytes, is_kept=True)
        assert not continues(database, _wal(database).bytes, is_kept=False)


def test_another_program_does_not_begin_the_wal_anew(
    database: Path, guard: Guard, other_program: sqlite3.Connection
) -> None:
    other_program.execute("INSERT INTO t VALUES (1001, NULL)")
    guard.hold()
    first = _wal(database)
    for number in range(1100, 3400):
        other_program.execute(_FILLING, (number,))
    assert _wal(database).salts == first.salts  # without it two checkpoints would have
    assert not guard.look(reads=False)
    guard.let_go()
    for number in range(3400, 3403):
        other_program.execute(_FILLING, (number,))
    assert _wal(database).salts != first.salts


def test_what_was_overwritten_unread_is_seen(
    database: Path,
    store: Path,
    start: Start,
    guard: Guard,
    other_program: sqlite3.Connection,
) -> None:
    replicator = start(database, "--to", store)
    replicator.end()
    for number in range(1001, 1010):
        other_program.execute(_FILLING, (number,))
    guard.hold()
    guard.let_go()
    other_program.execute("PRAGMA wal_checkpoint(RESTART)")
    other_program.execute("INSERT INTO t VALUES (9999, NULL)")
    assert guard.look(reads=False)
    assert not guard.look(reads=False)  # it is said once


def test_what_litestream_has_read_may_be_overwritten(
    database: Path, store: Path, start: Start
) -> None:
    replicator = start(database, "--to", store)
    for number in range(1001, 1010):
        add(database, number)
    replicator.end()
    with closing(oxlite.connect(database, isolation_level=None)) as connection:
        connection.execute("SELECT * FROM t").fetchone()
        before = _wal(database)
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO t VALUES (9999, NULL)")
        now = _wal(database)
        assert now.follows(before)
        assert not has_unread(database, before, now)
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO t VALUES (10000, NULL)")
        assert has_unread(database, before, _wal(database))  # of the one between nothing is known


def _leave_behind(database: Path, folder: Path) -> None:
    """What a writer leaves who is killed when his frames are in the WAL, and not in its index."""
    folder.mkdir()
    for ending in ("", "-wal"):
        shutil.copy(f"{database}{ending}", folder / f"app.db{ending}")
    before = _wal(database).bytes
    with closing(oxlite.connect(folder / "app.db", journal="keep")) as connection:
        connection.execute("UPDATE other SET y = 2, filling = zeroblob(2000000)")
        connection.commit()
        frames = Path(folder / "app.db-wal").read_bytes()[before : _wal(folder / "app.db").bytes]
    with Path(f"{database}-wal").open("r+b") as wal:
        wal.seek(before)
        wal.write(frames)


@pytest.mark.parametrize("pause_seconds", [0.0, 1.5], ids=["unread", "read"])
def test_what_was_never_committed_is_not_in_the_replica(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run, pause_seconds: float
) -> None:
    with closing(oxlite.connect(database)) as connection:
        connection.execute("CREATE TABLE other (y, filling)")
        connection.execute("INSERT INTO other VALUES (1, zeroblob(100))")
        connection.commit()
    replicator = start(database, "--to", store)
    with oxlite.Database(database) as db:
        for number in range(2000, 2400):
            db.execute(_FILLING, (number,))
        _leave_behind(database, tmp_path / "copy")
        first, ends = _wal(database).salts, time.monotonic() + 30
        time.sleep(pause_seconds)
        number = 3000
        while _wal(database).salts == first and time.monotonic() < ends:
            db.execute(_FILLING, (number := number + 1,))
            time.sleep(0.001)
        for number in range(10_000, 10_500):
            db.execute(_FILLING, (number,))
    assert replicator.end() == 0
    there = numbers(database)
    done = run("restore", "--from", store, tmp_path / "restored.db")
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path / "restored.db") == there, replicator.said
    with closing(oxlite.connect(tmp_path / "restored.db")) as restored:
        assert restored.execute("SELECT y FROM other").fetchall() == [(1,)]


def test_without_a_litestream_the_wal_is_cut_at_its_limit(
    database: Path, guard: Guard, other_program: sqlite3.Connection
) -> None:
    other_program.execute("INSERT INTO t VALUES (1001, NULL)")
    guard.hold()
    other_program.execute("INSERT INTO t VALUES (1002, zeroblob(?))", (WAL_LIMIT_BYTES,))
    assert _wal(database).bytes > WAL_LIMIT_BYTES
    assert guard.look(reads=False)  # all is to be sent anew
    assert Path(f"{database}-wal").stat().st_size == 0


def test_a_litestream_that_does_not_answer_holds_writers_up_less_and_less(
    database: Path, other_program: sqlite3.Connection
) -> None:
    asked: list[float] = []

    def nothing(_seconds: float) -> None:
        asked.append(time.monotonic())
        raise LitestreamFailed("frozen")

    guard = Guard(database, nothing)
    other_program.execute(_FILLING, (1001,))
    guard.hold()
    for number in range(1002, 3000):
        other_program.execute(_FILLING, (number,))
    ends = time.monotonic() + 4
    while time.monotonic() < ends:
        assert not guard.look(reads=True)
        time.sleep(0.01)
    guard.let_go()
    assert 1 <= len(asked) <= 2
    assert not other_program.in_transaction


def test_readers_that_overlap_do_not_keep_the_wal(
    database: Path, store: Path, start: Start
) -> None:
    replicator = start(database, "--to", store)
    is_over = threading.Event()

    def read() -> None:
        with closing(oxlite.connect(database, isolation_level=None)) as connection:
            while not is_over.is_set():
                connection.execute("BEGIN")
                connection.execute("SELECT * FROM t LIMIT 1").fetchone()
                time.sleep(0.01)
                connection.execute("COMMIT")

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        with oxlite.Database(database) as db:
            db.execute("INSERT INTO t VALUES (1001, NULL)")
            first, number, ends = _wal(database).salts, 2000, time.monotonic() + 30
            while _wal(database).salts == first and time.monotonic() < ends:
                db.execute(_FILLING, (number := number + 1,))
            assert _wal(database).salts != first
            assert db.stats().checkpoints == 0
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
    replicator.end()


def test_oxlite_makes_no_checkpoints_while_somebody_replicates(database: Path) -> None:
    lock = FileLock(str(state_path(database)), 0)
    assert lock.try_acquire()
    with oxlite.Database(database) as db:
        first = _wal_after_a_write(db, database)
        for number in range(2000, 4500):
            db.execute(_FILLING, (number,))
        assert db.stats().checkpoints == db.stats().checkpoints_incomplete == 0
        assert _wal(database).salts == first.salts
        lock.release()
        for number in range(4500, 7000):
            db.execute(_FILLING, (number,))
        assert db.stats().checkpoints > 0
        assert _wal(database).salts != first.salts


def _wal_after_a_write(db: oxlite.Database, database: Path) -> Wal:
    db.execute("INSERT INTO t VALUES (1001, NULL)")
    return _wal(database)


_WRITER = """
import sys, time, oxlite
connection = oxlite.connect(sys.argv[1], isolation_level=None, timeout=10)
print("ready", flush=True)
while True:
    connection.execute("UPDATE t SET filling = NULL WHERE id = 1")
"""


@pytest.fixture
def writers(database: Path) -> Iterator[None]:
    """Two processes that write without a pause."""
    command = [sys.executable, "-c", _WRITER, str(database)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.usefixtures("writers")
def test_who_knows_of_no_queue_gets_the_lock_at_its_head(database: Path) -> None:
    with (
        closing(oxlite.connect(database)) as in_line,
        closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as stranger,
    ):

        def tries() -> int:
            for number in range(1, 1000):
                with suppress(sqlite3.OperationalError):
                    stranger.execute("INSERT INTO t VALUES (NULL, NULL)")
                    return number
                time.sleep(0.001)
            raise AssertionError("never")

        assert in_line.give_way(tries) < 50
        assert not in_line.in_transaction


def test_what_is_raised_at_the_head_is_raised(database: Path) -> None:
    def fail() -> None:
        raise LookupError("no")

    work: list[Callable[[], object]] = [fail]
    with closing(oxlite.connect(database)) as connection:
        with pytest.raises(LookupError, match="no"):
            connection.give_way(work[0])
        connection.execute("INSERT INTO t VALUES (NULL, NULL)")
        connection.commit()
        with pytest.raises(TypeError):
            connection.give_way(3)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.give_way(fail)
