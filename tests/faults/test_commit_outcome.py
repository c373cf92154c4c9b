"""What a caller is told when the disk fails in the middle of its COMMIT.

Each case runs in a process of its own, with faults in its extension module: see ``interposer``.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.faults.injector import ROOT, SUPPORTED, build

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="faults are injected on x86-64 Linux only")

PRELUDE = """
import errno, sys, threading
from contextlib import ExitStack
import oxlite
from oxlite import sqlite3
from tests.faults.injector import Injector

injector = Injector()
opened = []
db = oxlite.Database(sys.argv[1], profile="durable", timeout=30, setup=opened.append)
db.execute("CREATE TABLE IF NOT EXISTS t (x)")
db.execute("INSERT INTO t VALUES ('before')")
INSERT = "INSERT INTO t VALUES (?)"

def caught(call):
    try:
        call()
    except Exception as error:
        return error

def in_line(count, sql=lambda index: INSERT):
    outcomes = [None] * count
    def run(index):
        outcomes[index] = caught(lambda: db.execute(sql(index), (index,)))
    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    block = ExitStack()
    block.enter_context(db.write())
    for index, thread in enumerate(threads):
        thread.start()
        while db.stats().writer_waiting <= index:
            pass
    return block, threads, outcomes
"""


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """Built once."""
    build()


def run(tmp_path: Path, script: str) -> None:
    """Run it in a process; what it asserts must hold."""
    subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script), str(tmp_path / "app.db")],
        cwd=ROOT,
        check=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "write",
    [
        "db.execute(INSERT, ('lost?',))",
        "db.execute('INSERT INTO t VALUES (?) RETURNING x', ('lost?',))",
        "db.executemany(INSERT, [('lost?',)])",
        "db.executemany(INSERT, iter([('lost?',)]))",
        "write()",
    ],
)
def test_a_sync_that_fails_leaves_it_open(tmp_path: Path, write: str) -> None:
    run(
        tmp_path,
        f"""
        def write():
            with db.write() as connection:
                connection.execute(INSERT, ('lost?',))
        before = opened[-1]
        injector.arm("sync", 1, False, errno.EIO)
        error = caught(lambda: {write})
        assert injector.disarm() == 1
        assert type(error) is oxlite.CommitOutcomeUnknown, repr(error)
        assert isinstance(error, sqlite3.OperationalError)
        assert error.sqlite_errorname == "SQLITE_IOERR_FSYNC", error.sqlite_errorname
        assert "whether the transaction has been committed is unknown" in str(error)
        assert db.execute(INSERT, ("after",)).rowcount == 1
        assert opened[-1] is not before, "the writer is opened anew"
        assert ("after",) in db.query("SELECT x FROM t")
        assert db.query("PRAGMA integrity_check") == [("ok",)]
        """,
    )


def test_all_of_a_batch_are_told_and_the_next_one_goes_well(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        block, threads, outcomes = in_line(8)
        injector.arm("sync", 1, False, errno.EIO)
        block.close()
        for thread in threads: thread.join()
        assert injector.disarm() == 1
        assert {type(outcome) for outcome in outcomes} == {oxlite.CommitOutcomeUnknown}, outcomes
        assert db.stats().batched_writes == 1 + 8, db.stats()
        assert db.stats().batches == 2
        assert db.execute(INSERT, ("after",)).rowcount == 1
        """,
    )


def test_nobody_uses_that_connection_again(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        # Four end the transaction for all, so the first is run by itself; it meets the disk.
        db.execute("CREATE TABLE u (x CHECK (x = 0))")
        POISON = "INSERT OR ROLLBACK INTO u VALUES (?)"
        assert len(opened) == 1  # nothing has been read
        block, threads, outcomes = in_line(8, lambda index: POISON if 1 <= index <= 4 else INSERT)
        injector.arm("sync", 1, False, errno.EIO)
        block.close()
        for thread in threads: thread.join()
        assert injector.disarm() == 1
        assert type(outcomes[0]) is oxlite.CommitOutcomeUnknown, outcomes
        assert {type(outcome) for outcome in outcomes[1:5]} == {sqlite3.IntegrityError}, outcomes
        assert outcomes[5:] == [None] * 3, outcomes
        assert len(opened) == 2
        # Somebody keeps the error to himself.
        with db.write() as connection:
            connection.execute(INSERT, ("lost?",))
            injector.arm("sync", 1, False, errno.EIO)
            assert type(caught(connection.commit)) is oxlite.CommitOutcomeUnknown
            assert injector.disarm() == 1
            connection.execute("BEGIN")
        assert db.execute(INSERT, ("after",)).rowcount == 1
        assert len(opened) == 3
        """,
    )


def test_a_full_disk_is_no_open_question(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        for write in (
            lambda: db.execute(INSERT, ("never",)),
            lambda: db.executemany(INSERT, [("never",)]),
        ):
            injector.arm("write", 1, True, errno.ENOSPC)
            error = caught(write)
            assert injector.disarm() > 0
            assert type(error) is sqlite3.OperationalError, repr(error)
            assert error.sqlite_errorname == "SQLITE_FULL"
        block, threads, outcomes = in_line(4)
        injector.arm("write", 1, True, errno.ENOSPC)
        block.close()
        for thread in threads: thread.join()
        assert injector.disarm() > 0
        assert {outcome.sqlite_errorname for outcome in outcomes} == {"SQLITE_FULL"}, outcomes
        assert db.query("SELECT x FROM t") == [("before",)]
        db.execute(INSERT, ("after",))
        assert db.query("SELECT x FROM t") == [("before",), ("after",)]
        """,
    )


def test_a_page_that_cannot_be_read_is_no_open_question(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        with db.write() as connection:
            connection.executemany(INSERT, ((bytes(3000),) for _ in range(200)))
            connection.execute("CREATE INDEX i ON t (x)")
        db.close()
        db = oxlite.Database(
            sys.argv[1], profile="durable", pragmas={"mmap_size": 0}, setup=opened.append
        )
        before = opened[-1]
        injector.arm("read", 4, True, errno.ESTALE)
        error = caught(lambda: db.execute("DELETE FROM t"))
        assert injector.disarm() > 0
        assert type(error) is sqlite3.OperationalError, repr(error)
        assert db.execute("DELETE FROM t WHERE x = 'not there'").rowcount == 0
        assert opened[-1] is before
        assert db.query_one("SELECT count(*) FROM t") == (201,)
        """,
    )


def test_the_drop_in_says_what_the_standard_library_says(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        connection = sqlite3.connect(sys.argv[1])
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(INSERT, ("a",))
        injector.arm("sync", 1, False, errno.EIO)
        error = caught(connection.commit)
        assert injector.disarm() == 1
        assert type(error) is sqlite3.OperationalError, repr(error)
        """,
    )
