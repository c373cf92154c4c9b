"""Sessions go in any order, in any thread, and take nothing with them.

Whatever may hang or abort the interpreter runs in a process of its own.
"""

import gc
import itertools
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.changeset.tables import ROWS, SCHEMA, Database, make, recorded

from oxlite import changeset, sqlite3


@pytest.mark.parametrize("how", ["attribute", "factory", "callback"])
def test_cycles_are_collected(how: str) -> None:
    def cycle() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        connection = make()
        session = connection.create_session()
        match how:
            case "attribute":
                connection.session = session  # type: ignore[attr-defined]
            case "factory":
                connection.row_factory = lambda *_: session
            case "callback":
                connection.set_update_hook(lambda *_: session)
        return weakref.ref(connection), weakref.ref(session)

    references = cycle()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize("order", list(itertools.permutations(["close", "session", "connection"])))
def test_everything_goes_in_any_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    path = tmp_path / "test.db"
    things: dict[str, Any] = {"connection": sqlite3.connect(path)}
    things["connection"].executescript(SCHEMA + ROWS)
    close = things["connection"].close
    things["session"] = things["connection"].create_session()
    things["connection"].execute("UPDATE t SET a = 'x'")
    for what in order:
        if what == "close":
            close()
            del close
        else:
            del things[what]
        gc.collect()
    check = sqlite3.connect(path, timeout=0, isolation_level=None)
    check.execute("DROP TABLE t")  # fails while anything still writes
    check.close()


def in_child(source: str, seconds: int = 60) -> None:
    limit = f"import faulthandler; faulthandler.dump_traceback_later({seconds}, exit=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + source],
        capture_output=True,
        text=True,
        timeout=seconds + 30,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_share_a_connection_with_sessions() -> None:
    """Recording, reading, applying, closing and dropping, all at once."""
    in_child(
        """
import random, threading
from oxlite import changeset, sqlite3

connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
connection.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)")
shared, errors = [], []

def work(seed):
    chance = random.Random(seed)
    for step in range(150):
        try:
            match chance.randrange(7):
                case 0:
                    shared.append(connection.create_session())
                case 1 if shared:
                    list(changeset.read(chance.choice(shared).changeset()))
                case 2 if shared:
                    chance.choice(shared).close()
                case 3 if shared:
                    shared.pop()
                case 4 if shared:
                    changes = chance.choice(shared).patchset()
                    connection.apply_changeset(
                        changes,
                        filter=lambda table: True,
                        on_conflict=lambda conflict: chance.choice(["omit", "abort"]),
                    )
                case _:
                    connection.execute(
                        "INSERT OR REPLACE INTO t VALUES (?, ?, ?)",
                        (chance.randrange(50), seed, "x" * chance.randrange(100)),
                    )
        except IndexError:
            pass
        except sqlite3.ProgrammingError as error:
            assert "closed session" in str(error), error
        except sqlite3.OperationalError as error:
            assert "nothing has been applied" in str(error), error
        except BaseException as error:
            errors.append(error)
            raise

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
shared.clear()
connection.set_preupdate_hook(lambda *_: None)
connection.close()
"""
    )


def test_a_session_is_dropped_in_any_thread_while_its_connection_is_in_use() -> None:
    in_child(
        """
import gc, threading
from oxlite import sqlite3

connection = sqlite3.connect(":memory:", isolation_level=None)
connection.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
stop = threading.Event()
handed = []

def drop():
    while not stop.is_set():
        if handed:
            handed.pop()
        gc.collect(0)

threads = [threading.Thread(target=drop) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(300):
    session = connection.create_session()
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(None, n) for n in range(20)])
    assert not session.is_empty
    handed.append(session)
    session = [session]
    session.append(session)  # a cycle that some thread's collector finds
    del session
    connection.execute("DELETE FROM t")
stop.set()
for thread in threads:
    thread.join()
handed.clear()
gc.collect()
connection.set_preupdate_hook(lambda *_: None)
"""
    )


def test_the_interpreter_ends_with_sessions_open() -> None:
    in_child(
        """
from oxlite import changeset, sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY)")
session = connection.create_session()
connection.execute("INSERT INTO t VALUES (1)")
reading = changeset.read(session.changeset())
connection.row_factory = lambda *_: (session, reading)

class Late:
    def __del__(self, session=session):
        assert session.changeset()

late = Late()
"""
    )


def test_other_threads_go_on_while_a_changeset_is_recorded_and_applied() -> None:
    """With a switch interval of an hour they do only if the GIL is let go."""
    in_child(
        """
import sys, threading
from oxlite import sqlite3

def make():
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY)")
    return connection

source, target = make(), make()
steps, done = [], threading.Event()

def count():
    while not done.wait(0.001):
        steps.append(1)

session = source.create_session()
source.execute(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    " INSERT INTO t SELECT i FROM n"
)
sys.setswitchinterval(3600)
thread = threading.Thread(target=count)
thread.start()
counts = [len(steps)]
changes = session.changeset()
counts.append(len(steps))
target.apply_changeset(changes)
counts.append(len(steps))
done.set()
thread.join()
assert counts[0] < counts[1] < counts[2], counts
"""
    )


def test_nothing_is_leaked(source: Database, target: Database) -> None:
    def work() -> int:
        for number in range(100):
            changes = recorded(source, f"UPDATE t SET a = 'text {number}' WHERE id = 1")
            target.apply_changeset(changes, on_conflict=lambda conflict: "replace")
            list(changeset.read(changes))
            with pytest.raises(KeyError):
                target.apply_changeset(
                    changeset.invert(recorded(source, "DELETE FROM t WHERE id = 2")),
                    on_conflict=lambda conflict: {}["x"],
                )
            source.execute("INSERT INTO t VALUES (2, 'two', 20)")
        gc.collect()
        return len(gc.get_objects())

    work()
    before = work()
    assert work() - before < 50
