"""The GIL: a thread that waits for a lock or computes for long lets the others run.

Each test would end in a deadlock, hence in a time limit, if it did not: the thread that the first
one waits for needs the GIL to go on.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

_WAIT = """
import sys, threading, time
import oxlite
from oxlite import sqlite3

TIMEOUT_SECONDS = 10
what, path = sys.argv[1:]
if what.startswith("unread "):
    # A reader keeps a commit out.
    holder = sqlite3.connect(path, check_same_thread=False)
    holder.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    held = holder.execute("SELECT a FROM t")
    release = held.close
else:
    # A writer keeps another writer out.
    holder = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    holder.executescript("CREATE TABLE t(a); BEGIN IMMEDIATE; INSERT INTO t VALUES (0)")
    release = holder.commit
waiting = threading.Event()
released = []

def execute(**options):
    def run():
        connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, **options)
        connection.execute("SELECT 1")
        waiting.set()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
    return run

def executemany():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS)
    waiting.set()
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    connection.commit()

def executescript():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS)
    waiting.set()
    connection.executescript("INSERT INTO t VALUES (1)")

def explicit():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    waiting.set()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")

def kept():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    connection.execute("BEGIN")
    for _ in range(3):
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    connection.execute("COMMIT")
    connection.execute("BEGIN")
    waiting.set()
    connection.executemany("INSERT INTO t VALUES (?)", [(1,)])
    connection.execute("COMMIT")

def connect():
    waiting.set()
    oxlite.connect(path, timeout=TIMEOUT_SECONDS)

def commit():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS)
    connection.execute("INSERT INTO t VALUES (1)")
    waiting.set()
    connection.commit()

def block():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS)
    with connection:
        connection.execute("INSERT INTO t VALUES (1)")
        waiting.set()

def fetch():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    cursor = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING a")
    waiting.set()
    assert cursor.fetchall() == [(1,), (2,)]

def fetchone():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    cursor = connection.execute("INSERT INTO t VALUES (1) RETURNING a")
    waiting.set()
    assert cursor.fetchone() == (1,)

def close():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    cursor = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING a")
    waiting.set()
    cursor.close()

def drop():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    cursor = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING a")
    waiting.set()
    begun = time.monotonic()
    del cursor
    # What a drop cannot raise it can only waste: the whole timeout, with nothing written.
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (5,)

def leave():
    connection = sqlite3.connect(path, timeout=TIMEOUT_SECONDS)
    connection.execute("INSERT INTO t VALUES (1)")
    waiting.set()
    connection.isolation_level = None

waits = {
    "execute": execute(),
    "execute, immediate": execute(isolation_level="IMMEDIATE"),
    "execute, no level": execute(isolation_level=None),
    "execute, fair": execute(busy="fair"),
    "executemany": executemany,
    "executescript": executescript,
    "explicit BEGIN": explicit,
    "kept statements": kept,
    "connect": connect,
    "unread commit": commit,
    "unread with": block,
    "unread fetchall": fetch,
    "unread fetchone": fetchone,
    "unread close": close,
    "unread drop": drop,
    "unread isolation_level": leave,
}
failures = []

def run():
    try:
        waits[what]()
    except BaseException as error:
        failures.append(f"{type(error).__name__}: {error}")

thread = threading.Thread(target=run)
thread.start()
waiting.wait()
time.sleep(0.1)  # so that it really waits; were this too short, the test would pass too easily
release()
thread.join()
if failures:
    sys.exit(failures[0])
"""


@pytest.mark.parametrize(
    "what",
    [
        "execute",
        "execute, immediate",
        "execute, no level",
        "execute, fair",
        "executemany",
        "executescript",
        "explicit BEGIN",
        "kept statements",
        "connect",
        "unread commit",
        "unread with",
        "unread fetchall",
        "unread fetchone",
        "unread close",
        "unread drop",
        "unread isolation_level",
    ],
)
def test_a_thread_that_waits_for_a_lock_lets_its_holder_go_on(
    child: Callable[..., str], path: Path, what: str
) -> None:
    child(_WAIT, what, path, seconds=30)


_INTERRUPT = """
import sys, threading, time
from oxlite import sqlite3

NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
connection = sqlite3.connect(":memory:", check_same_thread=False)
connection.execute("CREATE TABLE t(a)")
cursor = connection.cursor()
ready, over = threading.Event(), threading.Event()
outcome = []

def execute():
    ready.set()
    cursor.execute(f"{NUMBERS} SELECT count(*) FROM c")

def fetchone():
    cursor.execute(f"{NUMBERS} SELECT n FROM c WHERE n < 3")
    ready.set()
    while True:
        cursor.fetchone()

def fetchall():
    cursor.execute(f"{NUMBERS} SELECT n FROM c WHERE n % 1000000 = 1")
    ready.set()
    cursor.fetchall()

def iterate():
    cursor.row_factory = sqlite3.Row
    cursor.execute(f"{NUMBERS} SELECT n FROM c WHERE n < 3")
    ready.set()
    for _ in cursor:
        pass

def executemany():
    ready.set()
    cursor.executemany(f"INSERT INTO t {NUMBERS} SELECT ? FROM c WHERE n < 0", [(1,), (2,)])

def many_sets():
    def parameter_sets():
        yield (1,)
        yield (2,)
        ready.set()
        while True:
            yield (3,)
    cursor.executemany(
        "INSERT INTO t SELECT a FROM (SELECT ? AS a) WHERE a < 3 OR "
        f"({NUMBERS} SELECT count(*) FROM c)", parameter_sets()
    )

def executescript():
    ready.set()
    cursor.executescript(f"SELECT 1; {NUMBERS} SELECT count(*) FROM c; SELECT 2")

def run():
    try:
        globals()[sys.argv[1]]()
    except sqlite3.OperationalError as error:
        outcome.append((str(error), error.sqlite_errorname))
    except BaseException as error:
        outcome.append(repr(error))
    over.set()

thread = threading.Thread(target=run)
thread.start()
ready.wait()
while not over.wait(0.01):
    connection.interrupt()  # again and again: it does nothing before the statement runs
thread.join()
assert outcome == [("interrupted", "SQLITE_INTERRUPT")], outcome
assert connection.execute("SELECT 'still works'").fetchone() == ("still works",)
connection.rollback()
"""


@pytest.mark.parametrize(
    "call",
    ["execute", "fetchone", "fetchall", "iterate", "executemany", "many_sets", "executescript"],
)
def test_a_statement_that_runs_for_ever_can_be_interrupted(
    child: Callable[..., str], call: str
) -> None:
    child(_INTERRUPT, call)


_EXIT = """
import sys, threading, time
from oxlite import sqlite3

what, path = sys.argv[1:]
holder = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
holder.executescript("CREATE TABLE t(a); BEGIN IMMEDIATE")
started = threading.Event()

def wait():
    connection = sqlite3.connect(path, timeout=1)
    started.set()
    connection.execute("INSERT INTO t VALUES (1)")

def compute():
    started.set()
    sqlite3.connect(":memory:").execute(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 2000000)"
        "SELECT count(*) FROM c"
    )

threading.Thread(target={"wait": wait, "compute": compute}[what], daemon=True).start()
started.wait()
time.sleep(0.05)
print("end")
"""


@pytest.mark.parametrize("what", ["wait", "compute"])
def test_the_interpreter_ends_while_a_daemon_thread_is_in_sqlite(
    child: Callable[..., str], path: Path, what: str
) -> None:
    assert child(_EXIT, what, path) == "end\n"


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python has such pools since 3.14")
def test_a_pool_of_interpreters_is_refused() -> None:
    code = """
from concurrent.futures import InterpreterPoolExecutor
from oxlite import sqlite3

with InterpreterPoolExecutor(1) as pool:
    print(type(pool.submit(__import__, "oxlite").exception()).__name__)
assert sqlite3.connect(":memory:").execute("SELECT 1").fetchone() == (1,)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ImportError\n", "")


NEEDS_THE_GIL = "Oxlite needs the GIL, which this Python was told to do without: start it without"


def imported(*options: str, before: str = "", **variables: str) -> tuple[str, str]:
    """What a new process of this Python prints that imports Oxlite, and what it complains of."""
    code = f"""
import sys
{before}
try:
    import oxlite
except ImportError as error:
    print(error)
else:
    print(oxlite.sqlite3.connect(":memory:").execute("SELECT 1").fetchone(), sys._is_gil_enabled())
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment | variables,
    )
    return done.stdout, done.stderr


def test_an_interpreter_that_says_it_has_no_gil_is_refused() -> None:
    """Every Python can say so; the one that means it is tested below."""
    output, errors = imported(before="sys._is_gil_enabled = lambda: False", PYTHON_GIL="1")
    assert output.startswith(NEEDS_THE_GIL)
    assert errors == ""


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"),
    reason="this Python always has the GIL: scripts/test_interpreters.sh looks for python3.14t",
)
def test_an_interpreter_without_the_gil_turns_it_on_or_is_refused() -> None:
    output, errors = imported()
    assert output == "(1,) True\n"
    assert "RuntimeWarning: The global interpreter lock (GIL) has been enabled" in errors
    assert imported("-X", "gil=1") == imported(PYTHON_GIL="1") == ("(1,) True\n", "")
    for output, errors in (imported("-X", "gil=0"), imported(PYTHON_GIL="0")):
        assert output.startswith(NEEDS_THE_GIL)
        assert errors == ""


def test_a_subinterpreter_is_refused_and_the_main_one_goes_on() -> None:
    code = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters
from oxlite import sqlite3

script = '''
try:
    import oxlite
except ImportError as error:
    text = str(error)
    assert "main interpreter" in text or "does not support loading in subinterpreters" in text, text
else:
    raise AssertionError("it was imported")
'''
for _ in range(2):
    other = interpreters.create()
    failure = interpreters.run_string(other, script)
    interpreters.destroy(other)
    assert failure is None, failure
assert sqlite3.connect(":memory:").execute("SELECT 1").fetchone() == (1,)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
