"""The write-ahead log kept in bounds: checkpoints by themselves and on demand, and who is named."""

import contextlib
import itertools
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.injector import SUPPORTED, build
from tests.wait import until

import oxlite
from oxlite import Connection, Database, sqlite3

# A frame is a page and its header.
FRAME = 4096 + 24
# What is kept of the log without anybody in the way: a checkpoint, and commits that come before its
# second half.
SHORT = 1100 * FRAME
LIMIT = 6 << 20

Connect = Callable[..., Connection]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


@pytest.fixture
def connect(path: Path) -> Iterator[Connect]:
    """Opens connections in autocommit mode, which are closed after the test."""
    with contextlib.ExitStack() as stack:

        def connect(database: Path = path, **options: Any) -> Connection:  # noqa: ANN401 - as connect has them
            pragmas = {"journal_size_limit": LIMIT} | options.pop("pragmas", {})
            connection = oxlite.connect(database, isolation_level=None, pragmas=pragmas, **options)
            return stack.enter_context(contextlib.closing(connection))

        yield connect


@pytest.fixture
def writer(connect: Connect) -> Connection:
    connection = connect()
    connection.execute("CREATE TABLE t (x)")
    return connection


def write(connection: Connection, commits: int, table: str = "t") -> None:
    """Commits that add a frame or two each."""
    for _ in range(commits):
        connection.execute(f"INSERT INTO {table} VALUES (zeroblob(3000))")


def size_of_log(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def statistics(connection: Connection) -> dict[str, Any]:
    found = connection.wal_statistics()
    assert found is not None
    return dict(found)


def checkpoint_threshold(connection: Connection) -> int:
    value: int = connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0]
    return value


@contextlib.contextmanager
def reader_in_another_process(path: Path, driver: str = "oxlite") -> Iterator[int]:
    """A process in the middle of the rows of a query; its number."""
    script = (
        f"import sys, {driver} as driver; c = driver.connect(sys.argv[1]);"
        " k = c.execute('SELECT * FROM t'); k.fetchone(); print('reading', flush=True);"
        " sys.stdin.readline()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "reading\n"
        yield process.pid
        process.stdin.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "oxlite"]


def warned(writer: Connection, caplog: pytest.LogCaptureFixture, what: str) -> str:
    """Write until a warning says so.

    A reader in the midst of a step has some milliseconds to answer, and other processes are looked
    for a quarter of a second: on a machine under load the next warning may be the one.
    """
    ends = time.monotonic() + 60
    while True:
        before = warnings(caplog)
        for told in before:
            if what in told:
                return told
        assert time.monotonic() < ends, before
        write(writer, 10 if before else 100)


def test_the_log_stays_short_by_itself(writer: Connection, path: Path) -> None:
    write(writer, 5000)
    assert size_of_log(path) <= SHORT
    found = statistics(writer)
    assert found["checkpoints"] >= 4
    assert found["checkpoints_incomplete"] == found["checkpoint_errors"] == 0
    assert found["frames"] <= 1100


def test_transactions_of_several_statements_keep_it_short_too(connect: Connect, path: Path) -> None:
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        for _ in range(400):
            write(connection, 10)
            connection.commit()
        assert size_of_log(path) <= SHORT
    writer = connect()
    for _ in range(400):
        writer.executescript("BEGIN; " + "INSERT INTO t VALUES (zeroblob(3000));" * 10 + " END")
    assert size_of_log(path) <= SHORT


def test_returning_and_many_keep_it_short_too(writer: Connection, path: Path) -> None:
    for _ in range(3000):
        assert writer.execute("INSERT INTO t VALUES (zeroblob(3000)) RETURNING 1").fetchall()
    assert size_of_log(path) <= SHORT
    for _ in range(300):
        writer.executemany("INSERT INTO t VALUES (zeroblob(?))", [(3000,)] * 10)
    assert size_of_log(path) <= SHORT


def test_threads_keep_it_short_together(writer: Connection, connect: Connect, path: Path) -> None:
    connections = [connect(check_same_thread=False) for _ in range(4)]
    threads = [
        threading.Thread(target=write, args=(connection, 1500)) for connection in connections
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert size_of_log(path) <= 3 * SHORT
    assert statistics(writer)["checkpoint_errors"] == 0
    assert writer.execute("SELECT count(*) FROM t").fetchone() == (6000,)


def test_processes_keep_it_short_together(writer: Connection, path: Path) -> None:
    script = (
        "import sys, oxlite; c = oxlite.connect(sys.argv[1], isolation_level=None)\n"
        "for _ in range(4000): c.execute('INSERT INTO t VALUES (zeroblob(3000))')"
    )
    command = [sys.executable, "-c", script, str(path)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(110) for process in processes] == [0] * 4
    # Some two frames for each commit have been written; how many before the log was begun anew
    # depends on who has the processors. Left to itself, it would have all of them.
    assert size_of_log(path) <= 16_000 * FRAME
    assert writer.execute("SELECT count(*) FROM t").fetchone() == (16000,)
    # Who writes next, with nobody beside, finds it long and makes it short.
    write(writer, 1500)
    assert size_of_log(path) <= 3 * SHORT


def test_a_reader_is_named_and_not_met_at_every_commit(
    writer: Connection, connect: Connect, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(writer, 10)
    cursor = connect().execute("SELECT * FROM t -- slow")
    cursor.fetchone()
    warned(writer, caplog, "is read")
    write(writer, 6000)
    found = statistics(writer)
    assert size_of_log(path) > LIMIT
    assert found["frames"] >= 6000
    # One for each thousand frames, at most; and writers are not kept out for one who stays.
    assert 1 <= found["checkpoints_incomplete"] <= found["frames"] // 1000
    assert found["checkpoint_waits"] == 0
    assert found["readers_named"] == 1
    (told,) = warnings(caplog)
    assert f"{path}-wal has grown to" in told
    assert "beyond its limit of 6.0 MiB" in told
    thread = threading.get_native_id()
    assert re.search(rf"thread {thread} of this process, for \d+\.\d s, with: SELECT .* slow", told)

    cursor.close()
    write(writer, 5000)
    assert size_of_log(path) <= LIMIT
    assert statistics(writer)["checkpoint_errors"] == 0


def test_a_transaction_that_reads_is_named(
    writer: Connection, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    reader = connect()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM t").fetchall()
    warned(writer, caplog, "in a transaction")


def test_a_reader_in_the_middle_of_a_step_is_named(
    writer: Connection, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    reader = connect(check_same_thread=False)
    begun = threading.Event()
    reader.create_function("begun", 0, begun.set)
    endless = (
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        " SELECT max(c.x) FROM t, c WHERE c.x > 1 OR begun() IS NULL"
    )
    write(writer, 10)

    def read() -> None:
        with contextlib.suppress(sqlite3.OperationalError):
            reader.execute(endless).fetchall()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert begun.wait(60)
        told = warned(writer, caplog, f"thread {thread.native_id} of this process")
    finally:
        reader.interrupt()
        thread.join()
    assert "with: WITH RECURSIVE" in told


@pytest.mark.skipif(sys.platform != "linux", reason="other processes are seen in /proc")
@pytest.mark.parametrize("driver", ["oxlite", "sqlite3"])
def test_another_process_is_named(
    writer: Connection, path: Path, driver: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(writer, 10)
    with reader_in_another_process(path, driver) as process_id:
        what = f"process {process_id} ({sys.executable} -c import sys, {driver}"
        assert "of this process" not in warned(writer, caplog, what)


@pytest.mark.skipif(sys.platform != "linux", reason="locks are seen in /proc")
def test_a_connection_of_the_drop_in_is_told_of(
    writer: Connection, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(writer, 10)
    with contextlib.closing(sqlite3.connect(path)) as outsider:
        cursor = outsider.execute("SELECT * FROM t")
        cursor.fetchone()
        warned(writer, caplog, "another connection of this process")
        cursor.close()


def test_a_cursor_of_the_writer_itself_is_named(
    writer: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    write(writer, 10)
    cursor = writer.execute("SELECT * FROM t")
    cursor.fetchone()
    warned(writer, caplog, "is read")
    found = statistics(writer)
    assert found["checkpoint_errors"] == 0
    assert found["checkpoints_incomplete"] <= found["frames"] // 1000 + 2
    assert "with: SELECT * FROM t" in warnings(caplog)[0]
    cursor.close()


def test_logging_may_use_the_database(writer: Connection, connect: Connect, path: Path) -> None:
    other = connect()
    write(writer, 10)
    cursor = connect().execute("SELECT * FROM t")
    cursor.fetchone()
    handled = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            for connection in (writer, other):
                connection.execute("INSERT INTO t VALUES (?)", (record.getMessage(),))
            handled.append(record)

    handler = Handler()
    logging.getLogger("oxlite").addHandler(handler)
    try:
        ends = time.monotonic() + 60
        while not handled:
            assert time.monotonic() < ends
            write(writer, 100)
    finally:
        logging.getLogger("oxlite").removeHandler(handler)
    assert len(handled) == 1
    assert writer.execute("SELECT count(*) FROM t WHERE x LIKE '%-wal%'").fetchone() == (2,)


class Relay:
    """Two readers that take turns, so that one of them always has a snapshot."""

    def __init__(self, connect: Connect) -> None:
        self.readers = [connect(), connect()]
        self.cursors = [reader.execute("SELECT * FROM t") for reader in self.readers]
        self.pass_on()

    def pass_on(self) -> None:
        """Both begin anew, one after the other."""
        for number, reader in enumerate(self.readers):
            self.cursors[number].close()
            self.cursors[number] = reader.execute("SELECT * FROM t")
            self.cursors[number].fetchone()

    def end(self) -> None:
        for cursor in self.cursors:
            cursor.close()


def test_a_log_is_begun_anew_beside_readers_with_no_gap_between_them(
    connect: Connect, path: Path
) -> None:
    writer = connect(check_same_thread=False, timeout=60)
    writer.execute("CREATE TABLE t (x)")
    write(writer, 10)
    relay = Relay(connect)
    frames = 0
    is_over = threading.Event()

    def write_until_it_is_begun_anew() -> None:
        nonlocal frames
        while not is_over.is_set():
            write(writer, 10)
            before, frames = frames, statistics(writer)["frames"]
            if frames < before and before * FRAME > LIMIT:
                is_over.set()

    thread = threading.Thread(target=write_until_it_is_begun_anew)
    thread.start()
    try:
        # Neither goes before it has been there for longer than the end of a checkpoint waits.
        ends = time.monotonic() + 60
        while not is_over.wait(0.015):
            assert time.monotonic() < ends
            relay.pass_on()
    finally:
        is_over.set()
        thread.join()
    relay.end()
    found = statistics(writer)
    assert found["checkpoint_waits"] >= 1
    assert found["checkpoint_errors"] == 0


@pytest.mark.parametrize("busy", ["gate", "fair", "backoff", "none"])
def test_readers_are_waited_for_in_vain_rarely_and_not_for_long(
    path: Path, connect: Connect, busy: str
) -> None:
    """They take turns in the thread that writes, and so none goes while it waits."""
    writer = connect(busy=busy, timeout=1000)
    writer.execute("CREATE TABLE t (x)")
    write(writer, 10)
    before = writer.execute("PRAGMA busy_timeout").fetchone()
    relay = Relay(connect)
    ends = time.monotonic() + 60
    for turn in itertools.count():
        relay.pass_on()
        write(writer, 20)
        if turn >= 400 and statistics(writer)["checkpoint_waits"]:
            break
        assert time.monotonic() < ends
    found = statistics(writer)
    # One at each doubling of the pause, at most, of a test that ends within a minute.
    assert 1 <= found["checkpoint_waits"] <= 9
    assert found["checkpoint_errors"] == 0
    assert found["checkpoints_incomplete"] + found["checkpoints"] <= found["frames"] // 100
    assert writer.execute("PRAGMA busy_timeout").fetchone() == before
    relay.end()
    write(writer, 3000)
    assert size_of_log(path) <= LIMIT


def test_nobody_is_waited_for_while_the_log_is_within_its_limit(connect: Connect) -> None:
    writer = connect(pragmas={"journal_size_limit": 64 << 20})
    writer.execute("CREATE TABLE t (x)")
    write(writer, 10)
    relay = Relay(connect)
    for _ in range(200):
        relay.pass_on()
        write(writer, 20)
    relay.end()
    found = statistics(writer)
    assert found["checkpoints_incomplete"] >= 1
    assert found["checkpoint_waits"] == 0


def test_who_waits_for_readers_is_named_to_other_writers(connect: Connect) -> None:
    writer = connect(check_same_thread=False)
    writer.execute("CREATE TABLE t (x)")
    write(writer, 10)
    relay = Relay(connect)
    # It makes no checkpoints itself.
    impatient = connect(timeout=0, pragmas={"wal_autocheckpoint": 0})
    told = threading.Event()

    def write_until_they_are_waited_for() -> None:
        ends = time.monotonic() + 60
        while not told.is_set() and time.monotonic() < ends:
            write(writer, 1)

    thread = threading.Thread(target=write_until_they_are_waited_for)
    thread.start()
    try:
        while not told.is_set() and thread.is_alive():
            relay.pass_on()
            try:
                write(impatient, 1)
            except oxlite.LockedError as error:
                if "PRAGMA wal_checkpoint" in str(error):
                    told.set()
    finally:
        told.set()
        thread.join()
        relay.end()
    assert statistics(writer)["checkpoint_waits"] >= 1


def test_neither_tracer_nor_authorizer_hears_of_it(writer: Connection, connect: Connect) -> None:
    traced: list[str] = []
    asked: list[int] = []

    def authorize(action: int, *_: object) -> int:
        asked.append(action)
        return sqlite3.SQLITE_OK

    writer.set_trace_callback(traced.append)
    writer.set_authorizer(authorize)
    write(writer, 3000)
    assert statistics(writer)["checkpoints"] >= 3
    assert {sql.partition(" ")[0] for sql in traced} == {"INSERT"}
    assert sqlite3.SQLITE_PRAGMA not in asked


def test_the_log_of_an_attached_database_is_kept_too(writer: Connection, tmp_path: Path) -> None:
    writer.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
    writer.execute("PRAGMA other.journal_mode = WAL")
    writer.execute("CREATE TABLE other.u (x)")
    write(writer, 5000, "other.u")
    assert size_of_log(tmp_path / "other.db") <= SHORT
    writer.execute("DETACH other")
    write(writer, 2000)


def test_an_explicit_setting_is_honoured(connect: Connect, path: Path) -> None:
    writer = connect(pragmas={"wal_autocheckpoint": 0})
    writer.execute("CREATE TABLE t (x)")
    write(writer, 2500)
    assert size_of_log(path) > 2000 * FRAME
    assert statistics(writer)["checkpoints"] == 0
    assert checkpoint_threshold(writer) == 0


def test_a_setting_later_on_is_honoured(writer: Connection, path: Path) -> None:
    write(writer, 100)
    writer.execute("PRAGMA wal_autocheckpoint = 50")
    write(writer, 2000)
    assert checkpoint_threshold(writer) == 50
    assert statistics(writer)["checkpoints"] == 0
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    write(writer, 2000)
    assert size_of_log(path) > 2000 * FRAME


def test_a_wal_hook_takes_its_place_until_it_is_removed(writer: Connection, path: Path) -> None:
    told: list[int] = []
    writer.set_wal_hook(lambda _, pages: told.append(pages))
    write(writer, 2500)
    assert size_of_log(path) > 2000 * FRAME
    assert len(told) == 2500
    assert statistics(writer)["checkpoints"] == 0
    writer.set_wal_hook(None)
    write(writer, 2500)
    assert len(told) == 2500
    assert statistics(writer)["checkpoints"] > 0
    assert statistics(writer)["frames"] <= 1100


def test_the_drop_in_keeps_sqlites_behaviour(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        assert checkpoint_threshold(connection) == 1000
        assert connection.wal_statistics() is None
        write(connection, 2500)
        assert size_of_log(path) <= SHORT
        assert connection.checkpoint("truncate") == (False, 0, 0)


def test_other_profiles_and_databases(tmp_path: Path) -> None:
    with contextlib.closing(oxlite.connect(":memory:", isolation_level=None)) as memory:
        memory.execute("CREATE TABLE t (x)")
        write(memory, 1200)
        assert memory.wal_statistics() is None
        assert memory.checkpoint("truncate") == (False, -1, -1)
    path = tmp_path / "rollback.db"
    sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close()
    rollback = oxlite.connect(path, journal="keep", isolation_level=None)
    write(rollback, 1200)
    assert statistics(rollback)["frames"] == 0
    assert rollback.checkpoint("full") == (False, -1, -1)
    rollback.execute("PRAGMA journal_mode = WAL")
    write(rollback, 1200)
    assert statistics(rollback)["checkpoints"] > 0
    rollback.close()
    with pytest.raises(sqlite3.ProgrammingError):
        rollback.checkpoint()


@pytest.mark.parametrize("locking", ["EXCLUSIVE", "NORMAL"])
def test_exclusive_locking(connect: Connect, path: Path, locking: str) -> None:
    writer = connect(pragmas={"locking_mode": locking})
    writer.execute("CREATE TABLE t (x)")
    write(writer, 3000)
    assert size_of_log(path) <= SHORT


def test_a_connection_that_only_reads_is_watched(
    writer: Connection, connect: Connect, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(writer, 10)
    reader = oxlite.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    cursor = reader.execute("SELECT * FROM t -- only reads")
    cursor.fetchone()
    warned(writer, caplog, "only reads")
    assert statistics(reader)["frames"] == statistics(writer)["frames"]
    reader.close()


def test_checkpoints_on_demand(writer: Connection, connect: Connect, path: Path) -> None:
    write(writer, 20)
    busy, log, checkpointed = writer.checkpoint()
    assert (busy, log) == (False, checkpointed)
    assert log >= 20
    write(writer, 1)
    assert writer.checkpoint("full", timeout=0)[0] is False
    assert writer.checkpoint("restart", timeout=5)[0] is False
    assert writer.checkpoint("truncate") == (False, 0, 0)
    assert size_of_log(path) == 0
    assert statistics(writer)["checkpoints"] == 4
    for mode in ("passiv", "", "FULL"):
        with pytest.raises(ValueError, match="unknown checkpoint mode"):
            writer.checkpoint(mode)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.OperationalError, match="unknown database: other"):
        writer.checkpoint(name="other")
    with pytest.raises(ValueError, match="NaN"):
        writer.checkpoint(timeout=float("nan"))
    with pytest.raises(ValueError, match="null"):
        writer.checkpoint(name="a\0b")


def test_a_checkpoint_that_somebody_is_in_the_way_of(writer: Connection, connect: Connect) -> None:
    impatient = connect(timeout=0)
    write(writer, 5)
    cursor = connect().execute("SELECT * FROM t")
    cursor.fetchone()
    write(writer, 5)
    busy, log, checkpointed = impatient.checkpoint("truncate")
    assert busy
    assert 0 < checkpointed < log
    cursor.close()
    assert impatient.checkpoint("truncate") == (False, 0, 0)
    writer.execute("BEGIN IMMEDIATE")
    write(writer, 1)
    assert impatient.checkpoint("full")[0] is True
    with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
        writer.checkpoint()
    assert caught.value.sqlite_errorname == "SQLITE_LOCKED"
    writer.execute("COMMIT")
    assert impatient.checkpoint("full")[0] is False


def test_a_checkpoint_waits_in_line(writer: Connection, connect: Connect) -> None:
    other = connect(check_same_thread=False, timeout=60)
    writer.execute("BEGIN IMMEDIATE")
    write(writer, 1)
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(other.checkpoint("truncate")))
    thread.start()
    until(lambda: (queue := writer.queue_statistics()) is None or queue["waiting"])
    assert not done
    writer.execute("COMMIT")
    thread.join()
    assert done == [(False, 0, 0)]


def test_a_checkpoint_inside_a_function_is_refused(writer: Connection) -> None:
    caught: list[str] = []

    def function() -> None:
        try:
            writer.checkpoint("full")
        except sqlite3.OperationalError as error:
            caught.append(str(error))

    writer.create_function("f", 0, function)
    writer.execute("SELECT f() FROM sqlite_schema").fetchall()
    assert caught == ["database table is locked"]


@pytest.mark.parametrize("busy", ["gate", "fair", "backoff"])
def test_a_checkpoint_keeps_writers_waiting_for_its_own_time_only(
    connect: Connect, busy: str
) -> None:
    writer = connect(busy=busy, timeout=1000)
    writer.execute("CREATE TABLE t (x)")
    write(writer, 5)
    before = writer.execute("PRAGMA busy_timeout").fetchone()
    cursor = connect().execute("SELECT * FROM t")
    cursor.fetchone()
    write(writer, 5)
    assert writer.checkpoint("truncate", timeout=0.01)[0] is True
    assert writer.execute("PRAGMA busy_timeout").fetchone() == before
    cursor.close()


def test_who_waits_for_a_checkpoint_is_told_so(writer: Connection, connect: Connect) -> None:
    write(writer, 5)
    impatient = connect(timeout=0)
    reader = connect()
    cursor = reader.execute("SELECT * FROM t")
    cursor.fetchone()
    write(writer, 5)
    other = connect(check_same_thread=False, timeout=60)
    ended: list[str] = []

    def restart() -> None:
        try:
            other.checkpoint("restart", timeout=60)
        except sqlite3.OperationalError as error:
            ended.append(str(error))

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        caught: list[oxlite.LockedError] = []
        ends = time.monotonic() + 30
        while not caught:
            assert time.monotonic() < ends
            try:
                write(impatient, 1)
            except oxlite.LockedError as error:
                caught.append(error)
        assert "PRAGMA wal_checkpoint" in str(caught[0])
    finally:
        other.interrupt()
        thread.join()
    assert ended == ["interrupted"]
    cursor.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_keeps_the_log_by_itself(writer: Connection, path: Path) -> None:
    write(writer, 700)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert writer.wal_statistics() is None
            with pytest.raises(sqlite3.ProgrammingError, match="fork"):
                writer.checkpoint()
            own = oxlite.connect(path, isolation_level=None)
            assert statistics(own)["frames"] == 0
            write(own, 2500)
            assert statistics(own)["checkpoints"] > 0
            assert size_of_log(path) <= SHORT
            own.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    write(writer, 2500)
    assert size_of_log(path) <= SHORT


_FAILING = """
import logging, sys
from tests.faults.injector import Injector
import errno, oxlite

logging.basicConfig(format="%(message)s", stream=sys.stdout)
injector = Injector()
connection = oxlite.connect(sys.argv[1], isolation_level=None)
connection.execute("CREATE TABLE t (x)")
injector.arm(sys.argv[2], 1, True, getattr(errno, sys.argv[3]))
for _ in range(2500):
    connection.execute("INSERT INTO t VALUES (1)")
print(injector.disarm() > 0, connection.wal_statistics())
for _ in range(2500):
    connection.execute("INSERT INTO t VALUES (1)")
print(connection.execute("SELECT count(*) FROM t").fetchone(), connection.wal_statistics())
"""


@pytest.mark.skipif(not SUPPORTED, reason="faults are injected on x86-64 Linux only")
def test_a_failed_checkpoint_is_told_and_fails_no_commit(path: Path) -> None:
    """A commit that is not synced does not meet the disk's failure; its checkpoint does."""
    build()
    done = subprocess.run(
        [sys.executable, "-c", _FAILING, path, "sync", "EIO"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    assert done.stderr == ""
    told, failed, after = done.stdout.splitlines()
    assert told.startswith(
        f"A checkpoint of {path} has failed: disk I/O error (SQLITE_IOERR_FSYNC)"
    )
    assert failed.startswith("True {")
    assert "'checkpoints': 0" in failed
    assert "'checkpoint_errors': 2" in failed  # not one for each of the 1500 commits beyond
    assert "'last_error': 'disk I/O error (SQLITE_IOERR_FSYNC)'" in failed
    assert after.startswith("(5000,) {")
    assert "'checkpoint_errors': 2" in after
    assert "'checkpoints': 0" not in after


def test_a_database_tells_of_its_log(path: Path) -> None:
    with Database(path, pragmas={"journal_size_limit": LIMIT}) as db:
        db.execute("CREATE TABLE t (x)")
        for _ in range(2500):
            db.execute("INSERT INTO t VALUES (zeroblob(3000))")
        found = db.stats()
        assert found.checkpoints >= 2
        assert 0 < found.wal_frames <= 1100
        assert found.checkpoints_incomplete == found.checkpoint_errors == 0
        assert found.checkpoint_error is None
        assert size_of_log(path) <= SHORT
        outcome = db.checkpoint("truncate")
        assert outcome == (False, 0, 0)
        assert not outcome.busy
        assert db.checkpoint().log == 0
        with pytest.raises(ValueError, match="did you mean 'truncate'"):
            db.checkpoint("truncated")  # type: ignore[arg-type]
        with db.write(), pytest.raises(sqlite3.ProgrammingError):
            db.checkpoint()
    with pytest.raises(sqlite3.ProgrammingError):
        db.checkpoint()


def test_a_database_of_another_profile_tells_nothing(path: Path) -> None:
    with Database(path, "stock") as db:
        db.execute("CREATE TABLE t (x)")
        stats = db.stats()
        assert (stats.wal_frames, stats.checkpoints, stats.checkpoint_error) == (0, 0, None)
        assert db.checkpoint() == (False, -1, -1)


def planner_statistics(path: Path) -> int:
    with contextlib.closing(oxlite.connect(path)) as connection:
        query = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'"
        count: int = connection.execute(query).fetchone()[0]
        return count and connection.execute("SELECT count(*) FROM sqlite_stat1").fetchone()[0]


def fill(db: Database) -> None:
    db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name)")
    db.execute("CREATE INDEX item_name ON item (name)")
    db.executemany("INSERT INTO item (name) VALUES (?)", [(str(n % 7),) for n in range(1000)])


def test_closing_leaves_statistics_for_the_planner(path: Path) -> None:
    with Database(path) as db:
        fill(db)
    assert planner_statistics(path) == 1


def test_without_a_write_nothing_is_analysed(path: Path) -> None:
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name UNIQUE)")
    with Database(path) as db:
        db.query("SELECT * FROM item WHERE name = 'a'")
    assert planner_statistics(path) == 0


def test_a_lock_or_a_refusal_does_not_keep_it_from_closing(path: Path, connect: Connect) -> None:
    other = connect(timeout=0)
    with Database(path, timeout=1000) as db:
        fill(db)
        other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    assert planner_statistics(path) == 0
    refuse: list[bool] = []

    def authorize(action: int, *_: object) -> int:
        refused = refuse and action == sqlite3.SQLITE_PRAGMA
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    with Database(path, setup=lambda c: c.set_authorizer(authorize)) as db:
        db.execute("INSERT INTO item (name) VALUES (1)")
        refuse.append(True)
    assert planner_statistics(path) == 0


def test_a_process_that_runs_for_long_has_it_done_now_and_then(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(path) as db:
        fill(db)
        assert not db.query("SELECT * FROM sqlite_schema WHERE name = 'sqlite_stat1'")
        now = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: now() + 3601)
        # The clock is looked at now and then only.
        for number in range(1000):
            db.execute("INSERT INTO item (name) VALUES (?)", (f"x{number}",))
        assert db.query("SELECT tbl, idx FROM sqlite_stat1") == [("item", "item_name")]


def test_the_drop_in_analyses_nothing_by_itself(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name UNIQUE)")
        connection.executemany("INSERT INTO item (name) VALUES (?)", [(n,) for n in range(1000)])
        connection.commit()
    assert planner_statistics(path) == 0
