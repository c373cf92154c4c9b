"""A forked child uses nothing of its parent's connections, and opens its own.

Each scenario runs in a process of its own, with a time limit, for what goes wrong here hangs. (The
limit is an alarm: faulthandler's is itself not made for forks.) They stand in one file for the
prelude that they share.
"""

import os
import platform
import signal
import sqlite3 as standard
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

needs_file_locks = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"},
    reason="elsewhere a child must not open a file that its parent had open",
)

REFUSAL = (
    "This connection was opened before a fork, in the parent process; it cannot be used here. "
    "Open a new one in this process."
)

_PRELUDE = f"""
import gc, os, signal, sys, threading, time, traceback, warnings
import sqlite3 as standard
from oxlite import sqlite3

signal.alarm(60)
path = sys.argv[1]
REFUSAL = {REFUSAL!r}

def connect(**options):
    options = {{"isolation_level": None, "check_same_thread": False}} | options
    return sqlite3.connect(path, **options)

def in_child(work):
    '''Has a forked child do something, and waits until it is well done.'''
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(30)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0

def refused(use):
    '''Whether the connection is refused because of the fork.'''
    try:
        use()
    except sqlite3.ProgrammingError as error:
        assert str(error) == REFUSAL, error
        return True
    return False

"""

Run = Callable[[str], str]


@pytest.fixture(params=["delete", "wal"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database with three rows, in each journal mode."""
    path = tmp_path / "app.db"
    connection = standard.connect(path)
    connection.execute(f"PRAGMA journal_mode = {request.param}")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def run(path: Path, tmp_path: Path) -> Run:
    """Runs a script that finds the database in `path`; what it prints."""

    def run(script: str) -> str:
        file = tmp_path / "script.py"
        file.write_text(_PRELUDE + textwrap.dedent(script))
        # Newer Pythons warn of forks beside threads, which is what some of these are about.
        command = [sys.executable, "-W", "ignore::DeprecationWarning", str(file), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run


def rows(path: Path) -> int:
    connection = standard.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (number,) = connection.execute("SELECT count(*) FROM t").fetchone()
    connection.close()
    return int(number)


def test_no_lock_outlives_its_holder_through_a_child(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(
        _PRELUDE
        + textwrap.dedent(
            """
            connection = connect()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t VALUES (4)")
            if os.fork() == 0:
                signal.alarm(30)
                print(os.getpid(), flush=True)
                sys.stdin.read()
                os._exit(0)
            time.sleep(60)
            """
        )
    )
    parent = subprocess.Popen(
        [sys.executable, str(file), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    outsider = standard.connect(path, timeout=0, isolation_level=None)
    try:
        with pytest.raises(standard.OperationalError, match="locked"):
            outsider.execute("BEGIN IMMEDIATE")
        parent.kill()
        parent.wait()
        os.kill(child, 0)  # it is still there
        outsider.execute("BEGIN IMMEDIATE")
        outsider.execute("INSERT INTO t VALUES (5)")
        outsider.execute("COMMIT")
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdin.close()
        parent.stdout.close()
        outsider.close()
    assert rows(path) == 4


def test_every_method_of_an_inherited_connection_is_refused(run: Run) -> None:
    run(
        """
        connection = connect()
        other = sqlite3.connect(":memory:")
        cursor = connection.execute("SELECT x FROM t")
        cursor.fetchone()
        row = connection.execute("INSERT INTO t VALUES (zeroblob(9))").lastrowid
        blob = connection.blobopen("t", "x", row)
        session = connection.create_session()

        def work():
            nothing = lambda *_: None
            uses = [
                lambda: connection.execute("SELECT 1"),
                lambda: connection.executemany("INSERT INTO t VALUES (?)", [(1,)]),
                lambda: connection.executescript("SELECT 1"),
                connection.commit,
                connection.rollback,
                connection.close,
                lambda: connection.cursor().execute("SELECT 1"),
                lambda: connection.create_function("f", 0, nothing),
                lambda: connection.create_aggregate("f", 0, object),
                lambda: connection.create_window_function("f", 0, object),
                lambda: connection.create_collation("c", nothing),
                lambda: connection.set_authorizer(nothing),
                lambda: connection.set_progress_handler(nothing, 1),
                lambda: connection.set_trace_callback(nothing),
                lambda: connection.backup(other),
                lambda: other.backup(connection),
                lambda: list(connection.iterdump()),
                lambda: connection.blobopen("t", "x", row),
                lambda: connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH),
                lambda: connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1000),
                lambda: connection.getconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_FKEY),
                lambda: connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_FKEY, True),
                lambda: connection.enable_load_extension(False),
                lambda: connection.load_extension("nothing"),
                lambda: connection.serialize(),
                lambda: connection.deserialize(b""),
                lambda: connection.create_session(),
                lambda: connection.in_transaction,
                lambda: connection.total_changes,
                lambda: connection.__enter__(),
                lambda: connection.__exit__(None, None, None),
                lambda: cursor.execute("SELECT 1"),
                lambda: cursor.executemany("INSERT INTO t VALUES (?)", [(1,)]),
                lambda: cursor.executescript("SELECT 1"),
                lambda: cursor.fetchone(),
                lambda: cursor.fetchmany(),
                lambda: cursor.fetchall(),
                lambda: next(cursor),
                lambda: cursor.close(),
                lambda: blob.read(),
                lambda: blob.write(b"1"),
                lambda: blob.seek(0),
                lambda: blob.tell(),
                lambda: blob.close(),
                lambda: blob[0],
                lambda: len(blob),
                lambda: session.changeset(),
            ]
            for number, use in enumerate(uses):
                assert refused(use), (number, use)
            try:
                connection.interrupt()
            except sqlite3.ProgrammingError:
                pass
            else:
                raise AssertionError("interrupt")

        in_child(work)
        # And in the parent all is as it was.
        blob.close()
        assert len(cursor.fetchall()) >= 2
        connection.execute("INSERT INTO t VALUES (5)")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (5,)
        assert len(session.changeset()) == 0
        session.close()
        connection.close()
        other.close()
        """
    )


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_what_the_child_drops_does_not_touch_the_parent(run: Run, path: Path, end: str) -> None:
    run(
        f"""
        connection = connect()
        connection.execute("PRAGMA cache_size = 1")
        connection.create_function("f", 1, lambda x: x)
        connection.set_trace_callback(lambda sql: None)
        connection.execute("BEGIN IMMEDIATE")
        # More than the cache holds, so that the journal and the file are in use.
        connection.execute(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 997) "
            "INSERT INTO t SELECT f(randomblob(500)) FROM c"
        )
        reading = connection.execute("SELECT x FROM t")
        reading.fetchone()
        writing = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING x")
        writing.fetchone()
        blob = connection.blobopen("t", "x", 10)
        session = connection.create_session()
        session.attach()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            warnings.simplefilter("error")
            del reading, writing, blob, session, connection
            gc.collect()
            {end}
        assert os.waitpid(child, 0)[1] == 0
        assert not reading.fetchone() is None
        writing.fetchall()
        blob.close()
        connection.execute("COMMIT")
        session.close()
        connection.close()
        """
    )
    assert rows(path) == 1002


def test_a_rollback_stays_possible_after_the_childs_end(run: Run, path: Path) -> None:
    run(
        """
        connection = connect()
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 997) "
            "INSERT INTO t SELECT randomblob(500) FROM c"
        )
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            del connection
            gc.collect()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        connection.execute("ROLLBACK")
        connection.close()
        """
    )
    assert rows(path) == 3


@needs_file_locks
def test_a_connection_that_another_thread_is_using_is_refused_at_once(run: Run, path: Path) -> None:
    run(
        """
        connection = connect()
        entered, stop = threading.Event(), threading.Event()

        def wait(x):
            entered.set()
            stop.wait(0.001)
            return x

        connection.create_function("wait", 1, wait)

        def use():
            connection.execute(
                "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
                "INSERT INTO t SELECT wait(x) FROM c LIMIT 3000"
            )

        user = threading.Thread(target=use)
        user.start()
        entered.wait()

        def work():
            assert refused(lambda: connection.execute("SELECT 1"))
            assert refused(connection.close)
            own = sqlite3.connect(path)
            assert own.execute("SELECT count(*) FROM t").fetchone() == (3,)
            own.close()

        for _ in range(20):
            in_child(work)
        stop.set()
        user.join()
        connection.close()
        """
    )
    assert rows(path) == 3003


@needs_file_locks
def test_a_child_of_busy_threads_opens_connections(run: Run, path: Path) -> None:
    run(
        """
        stop = threading.Event()
        kept = connect()

        def use():
            while not stop.is_set():
                own = connect(timeout=60)
                own.execute("SELECT count(*) FROM t").fetchone()
                own.close()

        users = [threading.Thread(target=use) for _ in range(4)]
        for user in users:
            user.start()

        def work():
            assert refused(lambda: kept.execute("SELECT 1"))
            own = connect(timeout=60)
            own.execute("INSERT INTO t VALUES (4)")
            own.close()

        for _ in range(50):
            in_child(work)
        stop.set()
        for user in users:
            user.join()
        kept.close()
        """
    )
    assert rows(path) == 53


@needs_file_locks
@pytest.mark.parametrize("path", ["wal"], indirect=True)
def test_threads_of_a_child_wait_in_line_as_the_parents_do(run: Run, path: Path) -> None:
    # What the parent's waiting threads are known by is of no use in the child, whose threads have
    # their stacks at the same addresses.
    run(
        """
        import oxlite
        stop = threading.Event()

        def write(count=None):
            own = oxlite.connect(path, isolation_level=None, timeout=60)
            while count != 0 and not stop.is_set():
                own.execute("INSERT INTO t VALUES (5)")
                count = count and count - 1
            own.close()

        def begin(*arguments):
            writers = [threading.Thread(target=write, args=arguments) for _ in range(3)]
            for writer in writers:
                writer.start()
            return writers

        def work():
            for writer in begin(10):
                writer.join()

        writers = begin()
        for _ in range(200):
            in_child(work)
        stop.set()
        for writer in writers:
            writer.join()
        """
    )
    assert rows(path) >= 3 + 200 * 30


@needs_file_locks
@pytest.mark.parametrize("path", ["wal"], indirect=True)
def test_a_child_that_holds_the_lock_is_named_by_its_own_numbers(run: Run, path: Path) -> None:
    run(
        """
        import oxlite

        def open_one(**options):
            return oxlite.connect(path, isolation_level=None, **options)

        def hold():
            own, other = open_one(), open_one(timeout=0)
            own.execute("BEGIN IMMEDIATE")
            own.execute("UPDATE t SET x = x")
            try:
                other.execute("INSERT INTO t VALUES (2)")
            except oxlite.LockedError as error:
                numbers = error.holder["process_id"], error.holder["thread_id"]
                assert numbers == (os.getpid(), threading.get_native_id()), error
            else:
                raise AssertionError("it was not locked")
            own.execute("ROLLBACK")

        hold()
        in_child(hold)
        """
    )


@needs_file_locks
def test_a_childs_own_connection_has_locks_of_its_own(run: Run, path: Path) -> None:
    run(
        """
        def writes(connection):
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except standard.OperationalError as error:
                assert "locked" in str(error), error
                return False
            connection.execute("ROLLBACK")
            return True

        stranger = standard.connect(path)
        is_wal = stranger.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        stranger.close()
        inherited = connect()
        reading = inherited.execute("SELECT x FROM t")
        reading.fetchone()
        said, heard = os.pipe()
        goes_on, go_on = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            own = connect()
            rows = own.execute("SELECT x FROM t")
            rows.fetchone()
            os.write(heard, b"1")
            os.read(goes_on, 1)
            if is_wal:
                own.execute("BEGIN IMMEDIATE")
                own.execute("INSERT INTO t VALUES (4)")
                os.write(heard, b"1")
                os.read(goes_on, 1)
                own.execute("COMMIT")
            rows.fetchall()
            own.execute("INSERT INTO t VALUES (5)")
            own.close()
            os._exit(0)
        os.read(said, 1)
        reading.fetchall()
        inherited.close()
        # Now the child's are all the locks there are.
        stranger = standard.connect(path, timeout=0, isolation_level=None)
        if is_wal:
            os.write(go_on, b"1")
            os.read(said, 1)
        assert not writes(stranger)
        stranger.close()
        os.write(go_on, b"1")
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert rows(path) in {4, 5}


@needs_file_locks
def test_the_parents_last_close_leaves_the_child_its_wal(run: Run, path: Path) -> None:
    run(
        """
        inherited = connect()
        inherited.execute("INSERT INTO t VALUES (4)")
        said, heard = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            own = connect()
            own.execute("INSERT INTO t VALUES (5)")
            os.write(heard, b"1")
            time.sleep(0.2)
            while os.getppid() != 1 and not os.path.exists(path + ".closed"):
                time.sleep(0.001)
            own.execute("INSERT INTO t VALUES (6)")
            os._exit(0)
        os.read(said, 1)
        inherited.close()
        open(path + ".closed", "w").close()
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert rows(path) == 6


@needs_file_locks
def test_the_childs_shared_cache_is_not_the_parents(run: Run, path: Path) -> None:
    run(
        """
        uri = f"file:{path}?cache=shared"
        inherited = sqlite3.connect(uri, uri=True, isolation_level=None)
        inherited.execute("BEGIN")
        inherited.execute("SELECT * FROM t").fetchall()

        def work():
            assert refused(lambda: inherited.execute("SELECT 1"))
            own = sqlite3.connect(uri, uri=True, isolation_level=None)
            twin = sqlite3.connect(uri, uri=True, isolation_level=None)
            own.execute("CREATE TEMP TABLE u (x)")
            assert twin.execute("SELECT count(*) FROM t").fetchone() == (3,)
            own.close()
            twin.close()

        in_child(work)
        inherited.execute("COMMIT")
        inherited.execute("INSERT INTO t VALUES (4)")
        inherited.close()
        """
    )
    assert rows(path) == 4


def test_a_fork_inside_a_callback_does_not_write_the_parents_file(run: Run, path: Path) -> None:
    run(
        """
        connection = connect()
        connection.execute("PRAGMA cache_size = 1")
        forked = []

        def fork():
            forked.append(os.fork())
            signal.alarm(30)
            if forked[0] != 0:
                assert os.waitpid(forked[0], 0)[1] == 0
            return 4

        connection.create_function("fork", 0, fork)
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("INSERT INTO t SELECT fork()")
            connection.execute(
                "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 996) "
                "INSERT INTO t SELECT randomblob(500) FROM c"
            )
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            assert forked == [0], (forked, error)
            assert refused(lambda: connection.execute("COMMIT"))
            os._exit(0)
        assert forked[0] != 0, "the child has committed"
        connection.close()
        """
    )
    assert rows(path) == 1000


def test_a_statement_that_a_callback_forks_cannot_commit_in_the_child(run: Run, path: Path) -> None:
    run(
        """
        connection = connect()
        connection.execute("PRAGMA cache_size = 1")
        forked = []

        def fork(x):
            if x == 500:
                forked.append(os.fork())
                signal.alarm(30)
                if forked[0] != 0:
                    assert os.waitpid(forked[0], 0)[1] == 0
            return x

        connection.create_function("fork", 1, fork)
        try:
            connection.execute(
                "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 997) "
                "INSERT INTO t SELECT fork(x) || hex(randomblob(200)) FROM c"
            )
        except sqlite3.Error as error:
            assert forked == [0], error
            os._exit(0)
        assert forked[0] != 0, "the child has committed"
        connection.close()
        """
    )
    assert rows(path) == 1000


@needs_file_locks
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_started_by_multiprocessing_work(run: Run, path: Path, method: str) -> None:
    run(
        f"""
        import multiprocessing

        def add(path, times):
            own = sqlite3.connect(path, timeout=60, isolation_level=None)
            for _ in range(times):
                own.execute("INSERT INTO t VALUES (4)")
            own.close()

        if __name__ == "__main__":
            connection = connect()
            connection.execute("INSERT INTO t VALUES (4)")
            context = multiprocessing.get_context({method!r})
            children = [context.Process(target=add, args=(path, 20)) for _ in range(3)]
            for child in children:
                child.start()
            add(path, 20)
            for child in children:
                child.join()
                assert child.exitcode == 0
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (84,)
            connection.close()
        """
    )
    assert rows(path) == 84


@needs_file_locks
def test_a_grandchild_is_a_child(run: Run, path: Path) -> None:
    run(
        """
        connection = connect()
        connection.execute("SELECT * FROM t").fetchall()

        def work():
            own = connect()
            own.execute("INSERT INTO t VALUES (4)")

            def work_again():
                assert refused(lambda: connection.execute("SELECT 1"))
                assert refused(lambda: own.execute("SELECT 1"))
                third = connect()
                third.execute("INSERT INTO t VALUES (5)")
                third.close()

            in_child(work_again)
            own.execute("INSERT INTO t VALUES (6)")
            own.close()

        in_child(work)
        connection.execute("INSERT INTO t VALUES (7)")
        connection.close()
        """
    )
    assert rows(path) == 7
