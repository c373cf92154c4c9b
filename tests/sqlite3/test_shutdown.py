"""The end of the interpreter, and of objects while an exception is on its way.

Something is still open, running or waiting. Every program is a process of its own that must end by
itself, with status 0 and nothing to complain of.
"""

import contextlib
import sqlite3 as standard
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wait import until

_LIMIT = """
import faulthandler
faulthandler.dump_traceback_later({seconds}, exit=True)
import atexit, gc, sys, threading, time, types, warnings
warnings.simplefilter("ignore", ResourceWarning)
import oxlite
from oxlite import sqlite3

path = sys.argv[1]
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) "
COUNT += "SELECT count(*) FROM n"
FOR_EVER = COUNT.replace("LIMIT %d", "")

class Window:
    def __init__(self): self.sum = 0
    def step(self, a): self.sum += a
    def inverse(self, a): self.sum -= a
    def value(self): return self.sum
    def finalize(self): return sum(i for i in [self.sum])

def connect(**options):
    connection = oxlite.connect(path, check_same_thread=False, **options)
    connection.execute("CREATE TABLE IF NOT EXISTS t(a)")
    connection.create_window_function("window", 1, Window)
    connection.create_function("f", 1, lambda a: a)
    connection.create_collation("c", lambda a, b: (a > b) - (a < b))
    connection.set_rollback_hook(lambda: sum(i for i in range(3)))
    connection.set_commit_hook(lambda: sum(i for i in [0]))
    connection.set_update_hook(lambda *change: sum(i for i in range(3)))
    connection.set_trace_callback(lambda sql: sql.upper())
    connection.set_authorizer(lambda *question: sum(i for i in [0]))
    connection.set_progress_handler(lambda: sum(i for i in [0]), 1000)
    connection.row_factory = lambda cursor, row: row
    return connection

def running(connection):
    sql = "SELECT window(a) OVER (ORDER BY a ROWS 1 PRECEDING) FROM (VALUES (1), (2), (3)) AS v(a)"
    cursor = connection.cursor()
    cursor.execute(sql.replace("v(a)", "v").replace("(a)", "(column1)").replace(" a ", " column1 "))
    cursor.fetchone()
    return cursor

def inserting(connection):
    return connection.execute("INSERT INTO t VALUES (1), (2) RETURNING a")

def blob(connection):
    connection.execute("INSERT INTO t VALUES (zeroblob(9))")
    (row,) = connection.execute("SELECT max(rowid) FROM t").fetchone()
    connection.commit()
    return connection.blobopen("t", "a", row)
"""


@pytest.fixture
def ends(path: Path) -> Callable[..., str]:
    """Runs a program to its end; returns what it printed."""

    def run(source: str, seconds: int = 20) -> str:
        done = subprocess.run(
            [sys.executable, "-c", _LIMIT.format(seconds=seconds) + source, str(path)],
            capture_output=True,
            text=True,
            timeout=seconds + 30,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    return run


OPEN: dict[str, str] = {
    "connection": "kept = connect()",
    "transaction": "kept = connect(); kept.execute('INSERT INTO t VALUES (1)')",
    "always in a transaction": "kept = connect(autocommit=False); kept.set_rollback_hook(None)",
    "statement": "kept = running(connect())",
    "writing statement": "kept = inserting(connect(isolation_level=None))",
    "blob": "kept = blob(connect())",
    "called": "kept = connect()('SELECT 1')",
    "dump": "kept = connect().iterdump(); next(kept)",
    "closed": "kept = running(connect()); kept.connection.close()",
}
PLACES: dict[str, str] = {
    "global": "",
    "module": "sys.modules['m'] = types.ModuleType('m'); sys.modules['m'].kept = kept; del kept",
    "sys": "sys.kept = kept; del kept",
    "cycle": "cycle = [kept]; cycle.append(cycle); del kept, cycle; gc.disable()",
    "closure": "connection = getattr(kept, 'connection', kept)\n"
    "try: connection.create_function('g', 0, lambda: kept)\n"
    "except (AttributeError, sqlite3.ProgrammingError): pass",
    "thread-local": "local = threading.local(); local.kept = kept; del kept",
    "at exit": "atexit.register(lambda kept=kept: None); del kept",
    "finaliser": "class Last:\n    def __init__(self, kept): self.kept = kept\n"
    "    def __del__(self): del self.kept\nlast = Last(kept); del kept",
    "a thread that has ended": "thread = threading.Thread(target=lambda kept: None, args=(kept,))\n"
    "thread.start(); thread.join(); thread.kept = kept; del kept",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("open_", OPEN.values(), ids=OPEN.keys())
def test_with_something_open(ends: Callable[..., str], open_: str, place: str) -> None:
    ends(f"{open_}\n{place}\nprint('end')")


def test_a_callback_after_the_end(ends: Callable[..., str]) -> None:
    """Closing rolls back; the hook has no interpreter any more to run in."""
    ends("""
sys.modules["m"] = types.ModuleType("m")
sys.modules["m"].kept = connect(autocommit=False)
""")


USES: dict[str, str] = {
    "close": "connection.close()",
    "commit": "connection.execute('INSERT INTO t VALUES (1)'); connection.commit()",
    "fetch": "connection.execute('SELECT * FROM t').fetchall()",
    "open": "sqlite3.connect(path).execute('SELECT * FROM t').fetchall()",
    "backup": "connection.backup(sqlite3.connect(':memory:'))",
}


@pytest.mark.parametrize(
    ("use", "when"),
    [
        pytest.param(source, when, id=f"{name}, {when}")
        for name, source in USES.items()
        for when in ("at exit", "finaliser")
    ],
)
def test_used_at_the_end(ends: Callable[..., str], use: str, when: str) -> None:
    """The file is whole, and has what was committed at the last moment."""
    printed = ends(f"""
connection = connect()
connection.execute("INSERT INTO t VALUES ('first')")
connection.commit()

def use(connection=connection, sqlite3=sqlite3, path=path, print=print):
    {use}
    print("used", flush=True)

if {when!r} == "at exit":
    atexit.register(use)
else:
    class Last:
        def __del__(self, use=use): use()
    sys.modules["m"] = types.ModuleType("m")
    sys.modules["m"].last = Last()
    del Last
""")
    assert printed == "used\n"


WORKS: dict[str, str] = {
    "computing": "connection.execute(FOR_EVER)",
    "reading rows": "for row in connection.execute(FOR_EVER.replace('count(*)', 'i')): pass",
    "fetching all": "connection.execute(COUNT.replace('count(*)', 'i') % 3000000).fetchall()",
    "waiting": "connection.execute('BEGIN IMMEDIATE')",
    "writing": "while True: connection.execute('INSERT INTO u VALUES (1)')",
    "opening": "while True: open_plainly().close()",
    "waiting for the connection": "held.execute('SELECT 1')",
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
@pytest.mark.parametrize("main", ["", "connection.interrupt()", "sys.exit()", "connection = None"])
def test_with_a_daemon_thread_at_work(ends: Callable[..., str], work: str, main: str) -> None:
    ends(f"""
def open_plainly(**options):
    return oxlite.connect(path, check_same_thread=False, isolation_level=None, **options)

connection = open_plainly(busy="fair", timeout=3600)
connection.execute("CREATE TABLE u(a)")
other = open_plainly()
if "BEGIN" in {work!r}:
    other.execute("BEGIN IMMEDIATE")
held = sqlite3.connect(":memory:", check_same_thread=False)
begun = threading.Event()

def hold():
    begun.set()
    held.execute(FOR_EVER).fetchall()

def work(connection=connection):
    begun.set()
    try:
        {work}
    except sqlite3.Error:
        pass

if "held" in {work!r}:
    threading.Thread(target=hold, daemon=True).start()
    begun.wait()
threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.05)
{main}
""")


_OWN = """
class Path:
    def __fspath__(self): return slow(":memory:")

class Whole:
    def __index__(self): return slow(1)

class Adapted:
    def __conform__(self, protocol): return slow(1)

class Going:
    def __del__(self): slow()

class Mapping(dict):
    def __missing__(self, key): return slow(1)

class Sequence:
    def __len__(self): return 1
    def __getitem__(self, index): return slow(1)

class Sum:
    step = inverse = value = finalize = lambda *arguments: None

class Own(sqlite3.Connection):
    def __init__(self, *arguments, **options): super().__init__(*arguments, **options); slow()

class Factory(sqlite3.Cursor):
    def __init__(self, connection): super().__init__(connection); slow()

"""
_ROW = "c.execute('INSERT INTO t VALUES (1)')"
_SUM = "Sum.{method} = slow; c.create_window_function('s', 1, Sum);"
_SUM += (
    " c.execute('SELECT s(column1) OVER (ROWS 1 PRECEDING) FROM (VALUES (1), (2), (3))').fetchall()"
)
CALLS: dict[str, str] = {
    "function": "c.create_function('f', 1, slow); c.execute('SELECT f(1)').fetchall()",
    "aggregate's class": "c.create_aggregate('s', 1, slow); c.execute('SELECT s(1)').fetchall()",
    **{
        f"aggregate's {method}": _SUM.format(method=method)
        for method in ("step", "inverse", "value", "finalize")
    },
    "collation": "c.create_collation('c', slow); "
    "c.execute('SELECT char(97) > char(98) COLLATE c').fetchall()",
    "authorizer": "c.set_authorizer(slow); c.execute('SELECT 1')",
    "progress handler": "c.set_progress_handler(slow, 1); c.execute(FOR_EVER)",
    "trace": "c.set_trace_callback(slow); c.execute('SELECT 1')",
    "busy handler": "one, two = (oxlite.connect(path, isolation_level=None, busy_handler=slow) "
    "for _ in range(2)); one.execute('BEGIN IMMEDIATE'); two.execute('BEGIN IMMEDIATE')",
    "update hook": f"c.set_update_hook(slow); {_ROW}",
    "preupdate hook": f"c.set_preupdate_hook(slow); {_ROW}",
    "commit hook": f"c.set_commit_hook(slow); {_ROW}; c.commit()",
    "rollback hook": f"c.set_rollback_hook(slow); {_ROW}; c.rollback()",
    "WAL hook": "c = oxlite.connect(path); c.set_wal_hook(slow); c.execute('CREATE TABLE t(a)')",
    "row factory": "c.row_factory = slow; c.execute('SELECT 1').fetchall()",
    "row factory of a cursor": "k = c.execute('SELECT 1'); k.row_factory = slow; next(k)",
    "text factory": "c.text_factory = slow; c.execute('SELECT 1, char(97)').fetchall()",
    "converter": "sqlite3.register_converter('slow', slow); "
    "c = sqlite3.connect(':memory:', detect_types=sqlite3.PARSE_DECLTYPES); "
    "c.execute('CREATE TABLE t(a slow)'); c.execute('INSERT INTO t VALUES (1)'); "
    "c.execute('SELECT * FROM t').fetchall()",
    "adapter": "sqlite3.register_adapter(complex, slow); c.execute('SELECT ?', (1j,))",
    "__conform__": "c.execute('SELECT ?', (Adapted(),))",
    "parameters": "c.executemany('INSERT INTO t VALUES (?)', (slow(i, (i,)) for i in range(9)))",
    "mapping": "c.execute('SELECT :a', Mapping())",
    "sequence": "c.execute('SELECT ?', Sequence())",
    "path": "sqlite3.connect(Path())",
    "connection factory": "sqlite3.connect(':memory:', factory=Own)",
    "cursor factory": "c.cursor(Factory)",
    "argument": "c.execute('SELECT 1').fetchmany(Whole())",
    "finaliser of a factory": "c.row_factory = Going(); c.row_factory = None",
    "finaliser of a callback": "c.set_trace_callback(Going()); c.set_trace_callback(None)",
    "finaliser of a function": "c.create_function('f', 0, Going()); c.create_function('f', 0, None)"
    "; c.close()",
    "finaliser of a parameter": "c.executemany('INSERT INTO t VALUES (?)', iter([Going()]))",
    "conflict handler": "c.execute('CREATE TABLE p(a PRIMARY KEY)'); s = c.create_session(); "
    "s.attach(); c.execute('INSERT INTO p VALUES (1)'); changes = s.changeset(); s.close(); "
    "c.apply_changeset(changes, on_conflict=slow)",
    "progress of a backup": f"{_ROW}; c.commit(); "
    "c.backup(sqlite3.connect(':memory:'), progress=slow)",
    "unraisable hook": "sys.unraisablehook = slow; sqlite3.enable_callback_tracebacks(True); "
    "c.create_function('f', 0, lambda: 1 / 0); c.execute('SELECT f()')",
    "audit hook": "sys.addaudithook(lambda event, _: event.startswith('sqlite3') and slow()); "
    "sqlite3.connect(':memory:')",
    "log": "import logging; logging.getLogger('oxlite').addFilter(slow); "
    "sqlite3.connect(path).execute('CREATE TABLE t(a)'); oxlite.connect(path)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_with_a_daemon_thread_in_code_of_the_applications(
    ends: Callable[..., str], call: str
) -> None:
    """The interpreter, about to end, stops the thread when it wants to go on.

    Before Python 3.14 it does so by unwinding the thread's stack.
    """
    ends(f"""
{_OWN}
class Last:
    def __del__(self, sleep=time.sleep): sleep(0.6)

begun = threading.Event()

def slow(*arguments):
    begun.set()
    time.sleep(0.3)
    return arguments[-1]

def work():
    c = sqlite3.connect(":memory:")
    c.execute("CREATE TABLE t(a)")
    {call}

sys.modules["m"] = types.ModuleType("m")
sys.modules["m"].last = Last()
del Last
threading.Thread(target=work, daemon=True).start()
assert begun.wait(10)
time.sleep(0.05)
""")


@pytest.mark.skipif(sys.platform != "linux", reason="what runs at the C library's exit is glibc's")
def test_what_executemany_has_lent_to_sqlite_outlives_the_interpreter(path: Path) -> None:
    """A thread goes on in SQLite until it wants the GIL, and reads text and blobs in place.

    That its references keep them is not a matter of course for literals, which may be immortal.
    """
    source = """
import ctypes, sys, threading, time
from oxlite import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
connection.execute("CREATE TABLE u(a, b, c)")
slow = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT count(*) FROM n"

def work():
    sets = [("literal", "a literal with spaces", b"bytes")] * 64
    connection.executemany(f"INSERT INTO u SELECT ?, ?, ? FROM ({slow})", sets)

threading.Thread(target=work, daemon=True).start()
other = sqlite3.connect(sys.argv[1])
while not other.execute("SELECT count(*) FROM u").fetchone()[0]:
    time.sleep(0.001)
# Called in the other order once the interpreter has ended: who reads our output hears of it.
library = ctypes.CDLL(None)
for function, argument in ((library.pause, None), (library.close, 1)):
    library.__cxa_atexit(ctypes.cast(function, ctypes.c_void_p), ctypes.c_void_p(argument), None)
"""
    command = [sys.executable, "-c", source, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read() == b""
            assert process.poll() is None
            with contextlib.closing(standard.connect(path)) as connection:

                def count() -> int:
                    (count,) = connection.execute("SELECT count(*) FROM u").fetchone()
                    return int(count)

                before = count()
                until(lambda: count() > before + 2)
                rows = set(connection.execute("SELECT * FROM u"))
        finally:
            process.kill()
    assert rows == {("literal", "a literal with spaces", b"bytes")}


HELD: dict[str, str] = {
    "reading statement": "running(connection)",
    "called": "connection('SELECT 2')",
    "blob": "blob(connection)",
    "writing statement": "inserting(connection)",
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD.keys())
def test_letting_go_of_what_belongs_to_a_connection_in_use(
    ends: Callable[..., str], held: str
) -> None:
    """The thread that uses it is stopped by the interpreter when it is about to go on."""
    ends(
        f"""
connection = connect(isolation_level=None)
connection.set_progress_handler(None, 0)
sys.modules["m"] = types.ModuleType("m")
sys.modules["m"].kept = {held}
threading.Thread(target=lambda: connection.execute(COUNT % 8000000), daemon=True).start()
time.sleep(0.1)
""",
        seconds=8,
    )


def test_threads_that_are_waited_for(ends: Callable[..., str]) -> None:
    """The interpreter joins threads that are no daemons before it ends."""
    printed = ends("""
connection = connect()

def work():
    time.sleep(0.1)
    print(connection.execute(COUNT % 300000).fetchone(), flush=True)

threading.Thread(target=work).start()
""")
    assert printed == "(300000,)\n"


def test_an_exception_that_nobody_catches(path: Path) -> None:
    source = _LIMIT.format(seconds=20) + "kept = [running(connect()), inserting(connect())]; 1 / 0"
    done = subprocess.run(
        [sys.executable, "-c", source, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


_LET_GO = """
def fail():
    raise ZeroDivisionError("mine")

for _ in range(20):
    try:
        [{make}, fail()]
    except ZeroDivisionError as error:
        assert error.args == ("mine",) and error.__context__ is None
print("end")
"""
LET_GO: dict[str, str] = {
    "cursor": "connect().cursor()",
    "rows": "connect().execute('SELECT 1').fetchall()",
    "called": "connect()('SELECT 1')",
    "callback": "with_finaliser()",
    "statement": "running(connect())",
    "writing statement": "inserting(connect(isolation_level=None))",
    "blob": "blob(connect())",
    "transaction": "in_transaction()",
}


@pytest.mark.parametrize("make", LET_GO.values(), ids=LET_GO.keys())
def test_let_go_while_an_exception_is_on_its_way(ends: Callable[..., str], make: str) -> None:
    """What is let go while a list is being made is let go with the exception set.

    From Python 3.13 on the connections are kept, since each would be warned of: see below.
    """
    source = """
class Finaliser:
    def __call__(self, *_): pass
    def __del__(self): sum(i for i in range(3))

kept = []
if sys.version_info >= (3, 13):
    def connect(connect=connect, **options):
        kept.append(connect(**options))
        return kept[-1]

def with_finaliser():
    connection = connect()
    connection.set_commit_hook(Finaliser())
    connection.create_function("finaliser", 0, Finaliser())
    cursor = connection.cursor()
    cursor.row_factory = Finaliser()
    return cursor

def in_transaction():
    connection = connect()
    connection.execute("INSERT INTO t VALUES (1)")
    if kept:
        connection.rollback()
    return connection
"""
    assert ends(source + _LET_GO.format(make=make)) == "end\n"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="warned of since Python 3.13")
@pytest.mark.parametrize("action", ["ignore", "default", "error"])
def test_an_unclosed_connection_while_an_exception_is_on_its_way(
    child: Callable[..., str], action: str
) -> None:
    source = f"""
import warnings
from oxlite import sqlite3
warnings.simplefilter({action!r}, ResourceWarning)
""" + _LET_GO.format(make="sqlite3.connect(':memory:')")
    assert child(source) == "end\n"
