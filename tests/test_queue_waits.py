"""Waiting in line: what ends it, and what goes on beside it.

Each scenario runs in a process of its own, with a time limit, for what goes wrong here hangs,
perhaps with the GIL held.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import oxlite

Play = Callable[[str], None]

needs_gate = pytest.mark.skipif(
    sys.platform != "linux", reason="processes stand in line on Linux alone"
)

_PRELUDE = """
import atexit, os, signal, subprocess, sys, threading, time
import oxlite

path = sys.argv[1]

def connect(**options):
    options = {"isolation_level": None, "check_same_thread": False, "timeout": 60} | options
    return oxlite.connect(path, **options)

def waiting(connection):
    '''Returns once somebody waits in line.'''
    while not connection.queue_statistics()["waiting"]:
        time.sleep(0.001)

def fails(kind, sql, connection):
    try:
        connection.execute(sql)
    except kind as error:
        return str(error)
    raise AssertionError(f"{sql} has not failed")

def soon(work, after=0.3):
    '''Has it done by another thread in a while.'''
    threading.Timer(after, work).start()

def other(*statements):
    '''A process that has executed them and has not ended.'''
    script = (
        "import sys, oxlite\\n"
        "connection = oxlite.connect(sys.argv[1], isolation_level=None, timeout=60)\\n"
        "print('in', flush=True)\\n"
        "for sql in sys.argv[2:]: connection.execute(sql)\\n"
        "print('done', flush=True)\\n"
        "sys.stdin.read()\\n"
    )
    command = [sys.executable, "-c", script, path, *statements]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.kill)
    assert process.stdout.readline() == "in\\n"
    return process

def crowd():
    '''Two processes: one has the lock, the other is the head of the queue.'''
    holder = other("BEGIN IMMEDIATE")
    assert holder.stdout.readline() == "done\\n"
    head = other("INSERT INTO t VALUES (0)")
    # It is, once somebody else comes to the gate and has to wait there.
    probe = connect(timeout=0.01)
    while not probe.queue_statistics()["queue_skips"]:
        fails(oxlite.LockedError, "INSERT INTO t VALUES (0)", probe)
    return holder, head
"""


@pytest.fixture
def play(tmp_path: Path) -> Play:
    path = tmp_path / "app.db"
    connection = oxlite.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()

    def play(scenario: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", _PRELUDE + textwrap.dedent(scenario), str(path)],
        )
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()

    return play


def test_the_main_thread_waits_beside_a_thread_that_writes_with_the_gil(play: Play) -> None:
    """Signals are looked for, which takes the GIL, with nothing locked that a writer wants."""
    play("""
        holder, connection = connect(), connect(timeout=1)
        holder.execute("BEGIN IMMEDIATE")
        ends = time.monotonic() + 2

        def write():
            while time.monotonic() < ends:
                holder.execute("INSERT INTO t VALUES (1)")
                holder.queue_statistics()
            holder.execute("COMMIT")

        writing = threading.Thread(target=write)
        writing.start()
        assert "locked" in fails(oxlite.LockedError, "INSERT INTO t VALUES (2)", connection)
        writing.join()
    """)


@pytest.mark.parametrize("where", ["lane", pytest.param("gate", marks=needs_gate)])
def test_ctrl_c_ends_the_wait(play: Play, where: str) -> None:
    others = {"lane": 'connect().execute("BEGIN IMMEDIATE").connection', "gate": "crowd()"}[where]
    play(f"""
        others = {others}
        connection = connect()
        for tenth in range(5):
            soon(lambda: os.kill(os.getpid(), signal.SIGINT), 0.2 + tenth / 50)
            fails(KeyboardInterrupt, "INSERT INTO t VALUES (1)", connection)
        assert connection.queue_statistics()["waiting"] == 0
    """)


@needs_gate
@pytest.mark.parametrize("how", ["interrupt", "statement_timeout", "timeout"])
def test_the_wait_at_the_gate_ends(play: Play, how: str) -> None:
    options, kind = {
        "interrupt": ("", "oxlite.sqlite3.OperationalError"),
        "statement_timeout": ("statement_timeout=0.3", "oxlite.StatementTimeout"),
        "timeout": ("timeout=0.3", "oxlite.LockedError"),
    }[how]
    play(f"""
        holder, head = crowd()
        connection = connect({options})
        for _ in range(3):
            if {how == "interrupt"}:
                soon(connection.interrupt)
            fails({kind}, "INSERT INTO t VALUES (1)", connection)
        statistics = connection.queue_statistics()
        assert (statistics["waiting"], statistics["process_waits"] > 0) == (0, True)
        holder.kill()
        connect().execute("INSERT INTO t VALUES (1)")
    """)


def test_an_interruption_of_nothing_does_not_end_a_later_wait(play: Play) -> None:
    play("""
        holder, connection = connect(), connect()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.interrupt()
        holder.execute("BEGIN IMMEDIATE")
        soon(holder.commit)
        connection.execute("INSERT INTO t VALUES (1)")
    """)


@needs_gate
def test_connections_that_come_and_go_need_one_thread(play: Play) -> None:
    play("""
        others = crowd()
        for _ in range(10):
            connection = connect(timeout=0.05)
            fails(oxlite.LockedError, "INSERT INTO t VALUES (1)", connection)
            connection.close()
            del connection
        threads = lambda: len(os.listdir("/proc/self/task"))
        assert threads() == 2
        for other in others:
            other.kill()
        while threads() > 1:  # it ends with its wait
            time.sleep(0.001)
    """)


@needs_gate
def test_who_times_out_behind_a_thread_at_the_gate_is_told_of_the_holder(play: Play) -> None:
    play("""
        holder, head = crowd()
        first, connection = connect(timeout=20), connect(timeout=0.3)
        write = lambda: fails(oxlite.LockedError, "INSERT INTO t VALUES (1)", first)
        threading.Thread(target=write, daemon=True).start()
        while not first.queue_statistics()["admissions"] >= 1:
            time.sleep(0.001)
        for _ in range(3):
            message = fails(oxlite.LockedError, "INSERT INTO t VALUES (1)", connection)
            assert f"held by process {holder.pid}" in message, message
    """)


def test_daemon_threads_in_line_do_not_hold_up_the_end(play: Play) -> None:
    play("""
        holder = connect()
        holder.execute("BEGIN IMMEDIATE")
        for _ in range(3):
            work = lambda: connect().execute("INSERT INTO t VALUES (1)")
            threading.Thread(target=work, daemon=True).start()
        waiting(holder)
    """)


def test_a_signal_handler_that_writes_does_not_wait_for_the_thread_it_has_stopped(
    play: Play,
) -> None:
    play("""
        holder, connection, log = connect(), connect(), connect(timeout=0.1)
        seen = []

        def handle(*_):
            seen.append(fails(oxlite.LockedError, "INSERT INTO t VALUES ('log')", log))
            seen.append(fails(oxlite.sqlite3.ProgrammingError, "SELECT 1", connection))
            holder.execute("COMMIT")
            log.execute("INSERT INTO t VALUES ('log')")

        signal.signal(signal.SIGUSR1, handle)
        holder.execute("BEGIN IMMEDIATE")
        soon(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        connection.execute("INSERT INTO t VALUES (1)")
        assert len(seen) == 2
        assert log.execute("SELECT * FROM t").fetchall() == [("log",), (1,)]
    """)


@pytest.mark.parametrize("where", ["tracer", "function", "wal hook", "log handler"])
def test_what_a_statement_calls_may_write_through_another_connection(
    play: Play, where: str
) -> None:
    """Where SQLite lets it: while the statement has no lock on the database yet, or any more."""
    prepare, sql = {
        "tracer": ("connection.set_trace_callback(write)", "INSERT INTO t VALUES (1)"),
        "function": (
            "connection.execute('CREATE TEMP TABLE u (x)');"
            "connection.create_function('write', 1, write)",
            "INSERT INTO temp.u VALUES (write(1))",
        ),
        "wal hook": (
            "connection.set_wal_hook(lambda *_: write())",
            "BEGIN IMMEDIATE; INSERT INTO t VALUES (1); COMMIT",
        ),
        "log handler": (
            "import logging, pathlib; handler = logging.Handler(); handler.emit = write;"
            "logging.getLogger('oxlite').addHandler(handler);"
            "gate = pathlib.Path(path + '-gate'); gate.unlink(missing_ok=True); gate.mkdir()",
            "INSERT INTO t VALUES (1)",
        ),
    }[where]
    play(f"""
        log, connection = connect(timeout=1), connect()
        written = []

        def write(*_):
            if not written:
                written.append(log.execute("INSERT INTO t VALUES (2)"))
            return 1

        {prepare}
        connection.executescript({sql!r})
        assert written or sys.platform != "linux"
    """)


@pytest.mark.parametrize(
    "sql",
    [
        "VACUUM INTO 'copy.db'",
        "CREATE TEMP TABLE u AS WITH RECURSIVE c (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) "
        "SELECT x FROM c",
        "INSERT INTO other.u WITH RECURSIVE c (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) "
        "SELECT x FROM c",
    ],
)
def test_who_writes_elsewhere_does_not_keep_his_place(play: Play, sql: str) -> None:
    """Nobody waits for it: the place in the queue is given up as soon as that is seen."""
    play(f"""
        os.chdir(os.path.dirname(path))
        long, connection = connect(), connect()
        long.execute("INSERT INTO t SELECT zeroblob(100000) FROM generate_series(1, 1000)"
            .replace("generate_series(1, 1000)", "pragma_function_list LIMIT 1000"))
        long.execute("ATTACH ':memory:' AS other")
        long.execute("CREATE TABLE other.u (x)")
        before = long.queue_statistics()["admissions"]
        threading.Thread(target=lambda: fails(Exception, {sql!r}, long)).start()
        while long.queue_statistics()["admissions"] == before:
            time.sleep(0.001)
        connection.execute("INSERT INTO t VALUES (1)")
        # In its midst: it has not ended by itself.
        long.interrupt()
    """)


def test_a_commit_that_waits_for_readers_has_a_timeout_of_its_own(play: Play) -> None:
    """And does not stand in a line that waits for it."""
    play("""
        os.unlink(path)
        rollback = {"profile": "stock", "busy": "gate"}
        connection, reader = connect(timeout=1, **rollback), connect(**rollback)
        connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (3)")
        time.sleep(1.1)
        rows = reader.execute("SELECT x FROM t")
        rows.fetchone()
        soon(rows.close)
        connection.execute("COMMIT")
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_forked_in_the_middle_of_a_write_comes_out_of_it(play: Play) -> None:
    """It looks at no lock that another thread of the parent may have had."""
    play("""
        ended, counter = threading.Event(), connect()

        def write():
            with_lock = connect()
            while not ended.is_set():
                with_lock.execute("INSERT INTO t VALUES (1)")
                with_lock.queue_statistics()

        writing = threading.Thread(target=write)
        writing.start()
        connection = connect()
        forked = []
        connection.create_function("fork", 0, lambda: forked.append(os.fork()))
        scripts = ["INSERT INTO t VALUES (fork())", "SELECT fork(); INSERT INTO t VALUES (1)"]
        for sql in scripts * 10:
            try:
                connection.executescript(sql)
            except BaseException:
                if forked[-1]:
                    raise
            if forked[-1] == 0:
                os._exit(0)
        for child in forked:
            assert os.waitpid(child, 0)[1] == 0
        ended.set()
        writing.join()
    """)
