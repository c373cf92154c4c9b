"""Connections that outlive requests: the next one finds nothing of what was done before."""

from pathlib import Path

import pytest
from tests.django.test_backend import run

CLOSE = """
import gc, time, threading
from oxlite import sqlite3
from oxlite.django.sqlite3.parked import parked_connections

def inside():
    connection.ensure_connection()
    return connection.connection

def waiting():
    return len(parked_connections)

connection.close()  # migrations have set pragmas
assert waiting() == 0
Group.objects.create(name="a")
connection.close()
assert waiting() == 1
"""


def ran(path: Path, script: str, options: str = "{}") -> str:
    return run(path, CLOSE + script, options)


def test_the_next_one_gets_the_database_and_an_object_of_its_own(tmp_path: Path) -> None:
    said = ran(
        tmp_path / "app.db",
        """
first = inside()
cursor = first.execute("SELECT 1 UNION ALL SELECT 2")
iterator = Group.objects.iterator()
next(iterator)
opened = []
real, oxlite.connect = oxlite.connect, lambda *a, **k: opened.append(1) or real(*a, **k)
connection.close()
second = inside()
print(first is second, len(opened), waiting())
for attempt in (
    lambda: first.execute("SELECT 1"), cursor.fetchone, lambda: next(iterator), first.commit,
    first.interrupt, lambda: first.total_changes, lambda: first.in_transaction,
    first.cursor, lambda: first.create_function("f", 0, lambda: 1), lambda: first.backup(second),
):
    try:
        print(attempt(), end=" ")
    except Exception as error:
        print(type(error).__name__, end=" ")
first.close()
del first, cursor, iterator
gc.collect()
print(Group.objects.count())
""",
    )
    first, second = said.splitlines()
    assert first == "False 0 0"
    *refused, count = second.split()
    assert count == "1"
    assert refused == ["ProgrammingError"] * 10


CHANGES = {
    "a pragma": 'inside().execute("PRAGMA case_sensitive_like = 1")',
    "a pragma again": 'inside().execute("PRAGMA cache_size = -77")',
    "a script": 'inside().executescript("PRAGMA foreign_keys = 0")',
    "an explained pragma": 'inside().execute("EXPLAIN PRAGMA foreign_keys = 0")',
    "an attached database": "inside().execute(\"ATTACH ':memory:' AS b\")",
    "a temporary table": 'inside().execute("CREATE TEMP TABLE b (x)")',
    "a temporary trigger": 'inside().execute("CREATE TEMP TRIGGER g AFTER INSERT ON auth_group'
    ' BEGIN SELECT 1; END")',
    "a function": 'inside().create_function("f", 0, lambda: 1)',
    "a collation": 'inside().create_collation("c", lambda a, b: 0)',
    "an authorizer": "inside().set_authorizer(lambda *a: 0)",
    "a tracer": "inside().set_trace_callback(print)",
    "a progress handler": "inside().set_progress_handler(lambda: 0, 1000)",
    "a limit": "inside().setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)",
    "a switch": "inside().setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)",
    "extensions": "inside().enable_load_extension(True)",
    "an open session": "kept = inside().create_session()",
    "an open blob": 'inside().execute("CREATE TABLE b (x)"); inside().execute("INSERT INTO b'
    ' VALUES (zeroblob(9))"); kept = inside().blobopen("b", "x", 1)',
    "an error": """
try:
    connection.cursor().execute("SELECT * FROM nothing")
except Exception:
    pass
""",
    "a transaction": "connection.set_autocommit(False); transaction.atomic().__enter__()",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_cannot_be_undone_closes_it(tmp_path: Path, change: str) -> None:
    said = ran(tmp_path / "app.db", f"{change}\nconnection.close()\nprint(waiting())")
    assert said == "0"


RESETS = {
    "an open transaction": 'inside().execute("BEGIN IMMEDIATE"); inside().execute("DELETE FROM'
    ' auth_group")',
    "an open read": 'kept = inside().execute("SELECT 1 UNION SELECT 2"); kept.fetchone()',
    "query_only": 'inside().execute("PRAGMA query_only = 1")',
    "a row factory": "inside().row_factory = lambda c, r: None",
    "a text factory": "inside().text_factory = bytes",
    "an isolation level": 'inside().isolation_level = "EXCLUSIVE"',
    "the statement timeout": "inside().statement_timeout = 0.001",
    "a row id": "Group.objects.create(name='rolled').delete()",
    "introspection": "connection.introspection.get_table_description(connection.cursor(),"
    " 'auth_group')",
    "a read-only request": "\nwith read_only():\n    Group.objects.count()\n",
}


@pytest.mark.parametrize("change", RESETS.values(), ids=RESETS)
def test_what_can_be_undone_is(tmp_path: Path, change: str) -> None:
    said = ran(
        tmp_path / "app.db",
        f"""
{change}
connection.close()
assert waiting() == 1
fresh = inside()
print(fresh.in_transaction, fresh.row_factory, fresh.text_factory.__name__, fresh.isolation_level,
      fresh.statement_timeout, fresh.execute("SELECT last_insert_rowid()").fetchone()[0],
      fresh.execute("PRAGMA query_only").fetchone()[0])
Group.objects.create(name="b")
print(*Group.objects.order_by("name").values_list("name", flat=True))
""",
    )
    assert said.splitlines() == ["False None str None None 0 0", "a b"]


def test_receivers_of_connection_created_are_called_for_each(tmp_path: Path) -> None:
    said = run(
        tmp_path / "app.db",
        """
from django.db.backends.signals import connection_created
from oxlite.django.sqlite3.parked import parked_connections
calls = []

def prepare(connection, **kwargs):
    calls.append(1)
    number = len(calls)
    connection.connection.create_function("number", 0, lambda: number)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA cache_size = -1234")

connection.close()
connection_created.connect(prepare)
for _ in range(3):
    with connection.cursor() as cursor:
        cursor.execute("SELECT number()")
        print(cursor.fetchone()[0], len(parked_connections), end=" ")
    connection.close()
""",
    )
    assert said.split() == ["1", "0", "2", "0", "3", "0"]


def test_a_database_that_was_replaced_is_opened(tmp_path: Path) -> None:
    said = ran(
        tmp_path / "app.db",
        """
os.rename(sys.argv[1], sys.argv[1] + ".old")
for ending in ("-wal", "-shm"):
    if os.path.exists(sys.argv[1] + ending):
        os.remove(sys.argv[1] + ending)
call_command("migrate", verbosity=0)
print(Group.objects.count())
""",
    )
    assert said == "0"


@pytest.mark.parametrize("options", ["{'pool': False}", "{'pool': {'max_size': 0}}"])
def test_it_can_be_switched_off(tmp_path: Path, options: str) -> None:
    said = run(
        tmp_path / "app.db",
        """
from oxlite.django.sqlite3.parked import parked_connections
connection.close()
print(len(parked_connections))
""",
        options,
    )
    assert said == "0"


def test_the_idle_end(tmp_path: Path) -> None:
    said = ran(
        tmp_path / "app.db",
        """
ends = time.monotonic() + 20
while (waiting() or os.path.exists(sys.argv[1] + "-wal")) and time.monotonic() < ends:
    time.sleep(0.05)
print(waiting(), os.path.exists(sys.argv[1] + "-wal"))
""",
        "{'pool': {'max_idle': 0.3}}",
    )
    assert said == "0 False"


def test_no_more_than_the_size_wait(tmp_path: Path) -> None:
    said = ran(
        tmp_path / "app.db",
        """
barrier = threading.Barrier(8, timeout=20)

def work():
    Group.objects.count()
    barrier.wait()
    connection.close()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(waiting())
connection.close_pool()
print(waiting())
""",
        "{'pool': {'max_size': 3}}",
    )
    assert said.split() == ["3", "0"]


def test_a_forked_child_has_none_of_them(tmp_path: Path) -> None:
    said = ran(
        tmp_path / "app.db",
        """
child = os.fork()
if not child:
    before = waiting()
    count = Group.objects.count()
    connection.close()
    os._exit(0 if (before, count, waiting()) == (0, 1, 1) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), waiting(), Group.objects.count())
""",
    )
    assert said == "0 1 1"


@pytest.mark.parametrize("value", ["3", "{'size': 3}", "{'max_idle': -1}", "{'max_size': True}"])
def test_other_values_are_refused(tmp_path: Path, value: str) -> None:
    said = run(tmp_path / "app.db", "", f"{{'pool': {value}}}")
    assert "OPTIONS']['pool'] must be True, False, or" in said


def test_who_is_interrupted_is_not_the_next_one(tmp_path: Path) -> None:
    said = ran(
        tmp_path / "app.db",
        """
first = inside()
is_over = threading.Event()

def interrupt():
    while not is_over.is_set():
        try:
            first.interrupt()
        except sqlite3.ProgrammingError:
            pass

connection.close()
thread = threading.Thread(target=interrupt)
thread.start()
for _ in range(2000):
    Group.objects.count()
is_over.set()
thread.join()
print("well")
""",
    )
    assert said == "well"
