"""Signals while a statement works or waits: Ctrl-C, and handlers of the application's own.

Every program is a process of its own, which the test signals as a terminal would.
"""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_PREAMBLE = """
import faulthandler, os, signal, sys, threading, time
faulthandler.dump_traceback_later(30, exit=True)
# Whoever runs the tests may have interrupts ignored, and children inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)
import oxlite
from oxlite import sqlite3

path = sys.argv[1]
FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
ROW_AND_THEN_NONE = FOR_EVER.replace("count(*) FROM n", "i FROM n WHERE i <= 1")

def locked(profile="web", how="IMMEDIATE"):
    holder = oxlite.connect(path, profile=profile, isolation_level=None, check_same_thread=False)
    holder.execute("CREATE TABLE IF NOT EXISTS t(a)")
    holder.execute("BEGIN " + how)
    return holder

def ready():
    print("ready", flush=True)
"""


@pytest.fixture
def signalled(path: Path) -> Callable[..., list[str]]:
    """Runs a program, signals it when it says that it is ready; returns the lines after that."""

    def run(source: str, number: int = signal.SIGINT, status: int = 0) -> list[str]:
        command = [sys.executable, "-c", _PREAMBLE + source, str(path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            if first == "ready\n":
                process.send_signal(number)
            output, errors = process.communicate(timeout=60)
        assert (first, process.returncode) == ("ready\n", status), first + output + errors
        return output.splitlines()

    return run


_ENDED = """
holder = None
connection = None

def act():
    {act}

{before}
threading.Timer(0.1, ready).start()
try:
    act()
    print("ended by itself")
except KeyboardInterrupt as error:
    print("KeyboardInterrupt", error.args)
if holder:
    holder.rollback()
    holder.close()
print(connection.execute("SELECT 'goes on'").fetchone())
connection.close()
"""

MEMORY = "connection = sqlite3.connect(':memory:')"
WAITING = "holder = locked(); connection = oxlite.connect(path, timeout=3600)"

ACTS: dict[str, tuple[str, str]] = {
    "execute": (MEMORY, "connection.execute(FOR_EVER)"),
    "fetchone": (MEMORY, "connection.execute(ROW_AND_THEN_NONE).fetchone()"),
    "fetchall": (MEMORY, "connection.execute(ROW_AND_THEN_NONE).fetchall()"),
    "iterate": (MEMORY, "list(connection.execute(ROW_AND_THEN_NONE))"),
    "executescript": (MEMORY, "connection.executescript('SELECT 1;' + FOR_EVER)"),
    "executemany": (
        MEMORY + "; connection.execute('CREATE TABLE t(a)')",
        "connection.executemany('INSERT INTO t SELECT ? FROM (' + FOR_EVER + ')', [(1,)])",
    ),
    "create an index": (
        MEMORY,
        "connection.execute('CREATE TABLE t AS ' + FOR_EVER.replace('count(*)', 'i'))",
    ),
    "with a statement timeout": (
        "connection = oxlite.connect(':memory:', statement_timeout=3600)",
        "connection.execute(FOR_EVER)",
    ),
    "waiting to write": (WAITING, "connection.execute('INSERT INTO t VALUES (1)')"),
    "waiting to begin": (WAITING, "connection.execute('BEGIN IMMEDIATE')"),
    "waiting in a script": (WAITING, "connection.executescript('INSERT INTO t VALUES (1)')"),
    "waiting with parameters": (
        WAITING,
        "connection.executemany('INSERT INTO t VALUES (?)', [(1,), (2,)])",
    ),
    "waiting to prepare": (
        "connection = oxlite.connect(path, profile='stock', busy='fair', timeout=3600);"
        "holder = locked('stock', 'EXCLUSIVE')",
        "connection.execute('SELECT * FROM t')",
    ),
    "waiting to commit": (
        "connection = oxlite.connect(path, profile='stock', busy='fair', timeout=3600);"
        "connection.execute('CREATE TABLE t(a)'); connection.execute('INSERT INTO t VALUES (1)');"
        "connection.commit(); connection.execute('INSERT INTO t VALUES (2)');"
        "holder = oxlite.connect(path, profile='stock', isolation_level=None);"
        "holder.execute('BEGIN'); holder.execute('SELECT * FROM t').fetchall()",
        "connection.commit()",
    ),
}


@pytest.mark.parametrize(("before", "act"), ACTS.values(), ids=ACTS.keys())
def test_ctrl_c_ends(signalled: Callable[..., list[str]], before: str, act: str) -> None:
    lines = signalled(_ENDED.format(before=before, act=act))
    assert lines == ["KeyboardInterrupt ()", "('goes on',)"]


def test_ctrl_c_ends_opening(signalled: Callable[..., list[str]]) -> None:
    """Turning the file to WAL waits for the lock."""
    assert signalled("""
holder = locked("stock", "EXCLUSIVE")
threading.Timer(0.1, ready).start()
try:
    oxlite.connect(path, timeout=3600)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
holder.close()
oxlite.connect(path).close()
""") == ["KeyboardInterrupt"]


def test_a_handler_of_ones_own_runs_in_the_middle(signalled: Callable[..., list[str]]) -> None:
    """Whatever it raises ends the statement, and nothing else does."""
    assert signalled(
        """
connection = sqlite3.connect(":memory:")
calls = []

class Enough(Exception):
    pass

def handler(number, frame):
    calls.append(number)
    if len(calls) == 3:
        raise Enough(calls)
    threading.Timer(0.05, os.kill, [os.getpid(), number]).start()

signal.signal(signal.SIGUSR1, handler)
threading.Timer(0.1, ready).start()
try:
    connection.execute(FOR_EVER)
except Enough as error:
    print(len(error.args[0]))
print(connection.execute("SELECT 1").fetchone())
connection.close()
""",
        signal.SIGUSR1,
    ) == ["3", "(1,)"]


def test_a_handler_that_does_not_raise_changes_nothing(
    signalled: Callable[..., list[str]],
) -> None:
    assert signalled(
        """
connection = sqlite3.connect(":memory:")
calls = []
signal.signal(signal.SIGUSR1, lambda number, frame: calls.append(number))
threading.Timer(0.1, ready).start()
while not calls:
    print_count = connection.execute(
        FOR_EVER.replace("FROM n)", "FROM n WHERE i < 300000)")
    ).fetchone()
print(print_count, len(calls))
connection.close()
""",
        signal.SIGUSR1,
    ) == ["(300000,) 1"]


def test_a_handler_may_interrupt(signalled: Callable[..., list[str]]) -> None:
    assert signalled("""
connection = sqlite3.connect(":memory:")
signal.signal(signal.SIGINT, lambda number, frame: connection.interrupt())
threading.Timer(0.1, ready).start()
try:
    connection.execute(FOR_EVER)
except sqlite3.OperationalError as error:
    print(error)
connection.close()
""") == ["interrupted"]


def test_ctrl_c_while_another_thread_works(signalled: Callable[..., list[str]]) -> None:
    """It is the main thread's alone: the other one's statement goes on to its end."""
    assert signalled("""
outcome = []

def work():
    connection = sqlite3.connect(":memory:")
    sql = FOR_EVER.replace("FROM n)", "FROM n WHERE i < 2000000)")
    outcome.append(connection.execute(sql).fetchone())
    connection.close()

thread = threading.Thread(target=work)
thread.start()
threading.Timer(0.05, ready).start()
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
thread.join()
print(outcome)
""") == ["KeyboardInterrupt", "[(2000000,)]"]


def test_ctrl_c_while_another_thread_has_the_connection(
    signalled: Callable[..., list[str]],
) -> None:
    """Whoever waits for the connection itself gets it first; the exception comes right after."""
    assert signalled("""
connection = sqlite3.connect(":memory:", check_same_thread=False)
begun = threading.Event()
sql = FOR_EVER.replace("FROM n)", "FROM n WHERE i < 2000000)")
connection.create_function("begun", 0, begun.set)
thread = threading.Thread(target=lambda: connection.execute("SELECT begun(), (" + sql + ")"))
thread.start()
begun.wait()
threading.Timer(0.05, ready).start()
try:
    connection.execute("SELECT 1").fetchone()
    time.sleep(60)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
thread.join()
connection.close()
""") == ["KeyboardInterrupt"]


def test_the_default_action_ends_the_process(signalled: Callable[..., list[str]]) -> None:
    source = """
signal.signal(signal.SIGINT, signal.SIG_DFL)
connection = sqlite3.connect(":memory:")
threading.Timer(0.1, ready).start()
connection.execute(FOR_EVER)
"""
    assert signalled(source, status=-signal.SIGINT) == []


def test_ctrl_c_that_nobody_catches(signalled: Callable[..., list[str]]) -> None:
    source = """
connection = sqlite3.connect(":memory:")
threading.Timer(0.1, ready).start()
connection.execute(FOR_EVER)
"""
    assert signalled(source, status=-signal.SIGINT) == []


def test_it_does_not_matter_which_thread_imports(signalled: Callable[..., list[str]]) -> None:
    """The main thread is Python's main thread."""
    source = """
import subprocess
source = '''
import threading, sys
thread = threading.Thread(target=lambda: __import__("oxlite"))
thread.start()
thread.join()
from oxlite import sqlite3
import os, signal
threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
connection = sqlite3.connect(":memory:")
try:
    connection.execute(sys.argv[1])
except KeyboardInterrupt:
    print("KeyboardInterrupt")
connection.close()
'''
signal.signal(signal.SIGINT, lambda number, frame: None)
ready()
done = subprocess.run([sys.executable, "-c", source, FOR_EVER], timeout=30, capture_output=True)
print(done.stdout.decode().strip(), done.returncode)
"""
    assert signalled(source) == ["KeyboardInterrupt 0"]


@pytest.mark.parametrize(
    ("before", "act"),
    [
        (
            "holder = locked(); connection = oxlite.connect("
            "path, busy_handler=lambda calls: not time.sleep(0.01))",
            "connection.execute('BEGIN IMMEDIATE')",
        ),
        (
            MEMORY + "; connection.set_progress_handler(lambda: time.sleep(0.01), 1000)",
            "connection.execute(FOR_EVER)",
        ),
    ],
    ids=["busy", "progress"],
)
def test_ctrl_c_in_a_callback(signalled: Callable[..., list[str]], before: str, act: str) -> None:
    """There it is raised by Python itself. It is nothing to drop like an error of the callback."""
    lines = signalled(_ENDED.format(before=before, act=act))
    assert lines == ["KeyboardInterrupt ()", "('goes on',)"]


def test_ctrl_c_when_the_statement_ends_well_all_the_same(
    signalled: Callable[..., list[str]],
) -> None:
    """A checkpoint that may not wait any longer says so in a row."""
    before = (
        "connection = oxlite.connect(path, timeout=3600, isolation_level=None);"
        "connection.executescript('CREATE TABLE t(a); INSERT INTO t VALUES (1)');"
        "holder = oxlite.connect(path, isolation_level=None);"
        "holder.execute('BEGIN'); holder.execute('SELECT * FROM t').fetchall();"
        "connection.execute('INSERT INTO t VALUES (2)')"
    )
    act = "connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchall()"
    lines = signalled(_ENDED.format(before=before, act=act))
    assert lines == ["KeyboardInterrupt ()", "('goes on',)"]


def test_a_handler_in_the_middle_of_a_statement_cannot_use_its_connection(
    signalled: Callable[..., list[str]],
) -> None:
    """With the standard library it runs when the statement has ended, which nothing ends sooner."""
    assert signalled(
        """
connection, other = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
seen = []

def handle(*_):
    seen.append(connection.in_transaction)
    seen.append(other.execute("SELECT 1").fetchone())
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError as error:
        seen.append(str(error))

signal.signal(signal.SIGUSR1, handle)
threading.Timer(0.1, ready).start()
connection.execute(FOR_EVER.replace("FROM n)", "FROM n WHERE i < 10000000)")).fetchone()
print(*seen, sep="\\n")
connection.close()
""",
        signal.SIGUSR1,
    ) == [
        "False",
        "(1,)",
        "A signal handler that runs in the middle of a statement cannot use the connection of the "
        "statement.",
    ]


def test_every_signal_of_many(signalled: Callable[..., list[str]]) -> None:
    """Statement after statement is ended, and each ends with one exception."""
    assert signalled(
        """
connection = sqlite3.connect(":memory:")

class Alarm(Exception):
    pass

def handler(number, frame):
    raise Alarm

signal.signal(signal.SIGALRM, handler)
signal.signal(signal.SIGUSR1, lambda number, frame: None)
ready()
ended = 0
for _ in range(10):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        connection.execute(FOR_EVER)
    except Alarm:
        ended += 1
    assert connection.execute("SELECT ?", (ended,)).fetchone() == (ended,)
print(ended)
connection.close()
""",
        signal.SIGUSR1,
    ) == ["10"]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python has it since 3.14")
def test_what_a_debugger_runs_in_the_middle_of_a_statement(tmp_path: Path) -> None:
    """It is as a signal handler is: it comes at once, and other connections are there for it."""
    script = tmp_path / "script.py"
    script.write_text("""
import __main__
from oxlite import sqlite3
print(sqlite3.connect(":memory:").execute("SELECT 1").fetchone())
try:
    __main__.connection.execute("SELECT 2")
except sqlite3.ProgrammingError as error:
    print(error)
__main__.connection.interrupt()
""")
    code = """
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
print("begins", flush=True)
try:
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    ).fetchone()
except sqlite3.OperationalError as error:
    print(error)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begins\n"
            try:
                sys.remote_exec(process.pid, script)
            except (PermissionError, RuntimeError) as error:
                pytest.skip(f"a process cannot be debugged here: {error}")
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    first, second, third = output.splitlines()
    assert (first, third) == ("(1,)", "interrupted")
    assert "in the middle of a statement cannot use the connection" in second
