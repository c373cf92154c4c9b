#!/usr/bin/env python3
"""What each wheel must do on the interpreter that it is for, where nothing else is installed.

    python smoke.py [--list]

It needs the standard library alone, and works in the directory where it is started. A line is
printed for each check that has passed; the first that fails ends it with its traceback. Run by
`scripts/wheels.py` and, on the installed package, by `tests/wheels/test_smoke.py`.
"""

import asyncio
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import metadata

CHECKS: list[Callable[[], None]] = []
# Generous, since an emulated processor is some ten times slower.
PATIENCE_SECONDS = 120


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Makes a function one of the checks, in their order."""
    CHECKS.append(function)
    return function


@check
def it_is_the_version_that_was_installed() -> None:
    import oxlite

    assert oxlite.__version__ == metadata.version("oxlite")
    assert oxlite.sqlite_version >= "3.54"


@check
def sqlite_has_its_options() -> None:
    from oxlite import sqlite3

    connection = sqlite3.connect(":memory:")
    options = {option for (option,) in connection.execute("PRAGMA compile_options")}
    assert {"THREADSAFE=2", "ENABLE_FTS5", "ENABLE_RTREE", "DEFAULT_MEMSTATUS=0"} <= options
    connection.execute("CREATE VIRTUAL TABLE page USING fts5(text)")
    connection.execute("INSERT INTO page VALUES ('plain words')")
    assert connection.execute("SELECT count(*) FROM page('words')").fetchone() == (1,)
    assert connection.execute("SELECT json_extract('[1, 2]', '$[1]'), sqrt(4)").fetchone() == (2, 2)
    connection.close()


@check
def values_come_back_as_they_went() -> None:
    from oxlite import sqlite3

    values = [
        None,
        -(2**63),
        2**63 - 1,
        0.1,
        math.inf,
        "Grüße, 世界 \U0001f40d",
        b"\0\xff",
        "x" * 100_000,
    ]
    connection = sqlite3.connect(":memory:")
    marks = ", ".join("?" * len(values))
    assert connection.execute(f"SELECT {marks}", values).fetchone() == tuple(values)
    connection.close()


@check
def a_profile_is_applied() -> None:
    import oxlite

    connection = oxlite.connect("profile.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    connection.close()


@check
def what_is_committed_is_there_for_another_program() -> None:
    import oxlite

    with oxlite.connect("other.db") as connection:
        connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)")
        connection.executemany("INSERT INTO note(text) VALUES (?)", ((str(n),) for n in range(100)))
    told = (
        "from oxlite import sqlite3\n"
        "print(*sqlite3.connect('other.db').execute('SELECT count(*) FROM note'))"
    )
    assert _output(told) == "(100,)"
    connection.close()


@check
def errors_are_of_pep_249() -> None:
    from oxlite import sqlite3

    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO note VALUES (1)")
    try:
        connection.execute("INSERT INTO note VALUES (1)")
    except sqlite3.IntegrityError as error:
        name = error.sqlite_errorname
    else:
        name = "none"
    assert name == "SQLITE_CONSTRAINT_PRIMARYKEY", name
    connection.close()


@check
def callbacks_are_called_and_may_raise() -> None:
    from oxlite import sqlite3

    connection = sqlite3.connect(":memory:")
    connection.create_function("double", 1, lambda number: 2 * number)
    connection.create_function("fail", 0, lambda: 1 / 0)
    assert connection.execute("SELECT double(21)").fetchone() == (42,)
    try:
        connection.execute("SELECT fail()").fetchall()
    except sqlite3.OperationalError:
        pass
    else:
        raise AssertionError("an exception was lost")
    connection.close()


@check
def a_deep_expression_fits_the_stack_of_a_thread() -> None:
    """Where a C library gives threads little of it, as musl does."""
    from oxlite import sqlite3

    found: list[object] = []

    def evaluate() -> None:
        connection = sqlite3.connect(":memory:")
        found.append(connection.execute("SELECT " + "(" * 90 + "1" + ")" * 90).fetchone())
        found.append(connection.execute("SELECT " + "1 + " * 900 + "1").fetchone())
        connection.close()

    _in_threads([evaluate])
    assert found == [(1,), (901,)]


@check
def threads_write_through_one_database() -> None:
    import oxlite

    with oxlite.Database("threads.db") as db:
        db.execute("CREATE TABLE note(text TEXT)")

        def write() -> None:
            for number in range(50):
                db.execute("INSERT INTO note VALUES (?)", (str(number),))

        _in_threads([write] * 4)
        assert db.query("SELECT count(*) FROM note")[0] == (200,)


@check
def processes_queue() -> None:
    import oxlite

    with oxlite.connect("processes.db") as connection:
        connection.execute("CREATE TABLE note(text TEXT)")
    connection.close()
    program = """
import oxlite
connection = oxlite.connect("processes.db")
for number in range(50):
    with connection:
        connection.execute("INSERT INTO note VALUES (?)", (str(number),))
"""
    _in_processes(program, 3)
    connection = oxlite.connect("processes.db")
    assert connection.execute("SELECT count(*) FROM note").fetchone() == (150,)
    connection.close()


@check
def processes_share_their_syncs() -> None:
    import oxlite

    options = 'profile="durable", durable_commit="shared"'
    program = f"""
import oxlite
connection = oxlite.connect("shared.db", {options})
with connection:
    connection.execute("CREATE TABLE IF NOT EXISTS note(text TEXT)")
for number in range(20):
    with connection:
        connection.execute("INSERT INTO note VALUES (?)", (str(number),))
"""
    _in_processes(program, 3)
    connection = oxlite.connect("shared.db", profile="durable", durable_commit="shared")
    assert connection.execute("SELECT count(*) FROM note").fetchone() == (60,)
    connection.close()


@check
def a_commit_wakes_who_listens_in_another_process() -> None:
    import oxlite

    with oxlite.Database("signals.db") as db:
        listener = subprocess.Popen(
            [
                *(sys.executable, "-c"),
                "import oxlite\n"
                "with oxlite.Database('signals.db') as db, db.listen('news') as listener:\n"
                "    print('ready', flush=True)\n"
                "    print(next(listener).json())",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        db.notify("news", {"id": 7})
        assert listener.communicate(timeout=PATIENCE_SECONDS)[0] == "{'id': 7}\n"


@check
def an_event_loop_waits() -> None:
    import oxlite.aio

    async def work() -> None:
        async with oxlite.aio.Database("loop.db") as db:
            await db.execute("CREATE TABLE note(text TEXT)")
            writes = (db.execute("INSERT INTO note VALUES ('a')") for _ in range(50))
            await asyncio.gather(*writes)
            assert (await db.query("SELECT count(*) FROM note"))[0] == (50,)

    asyncio.run(work())


@check
def a_statement_ends_at_its_deadline() -> None:
    import oxlite

    connection = oxlite.connect(":memory:", profile="stock", statement_timeout=0.1)
    endless = (
        "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    )
    try:
        connection.execute(endless).fetchall()
    except oxlite.StatementTimeout:
        pass
    else:
        raise AssertionError("an endless statement has ended")
    connection.close()


@check
def a_forked_child_has_connections_of_its_own() -> None:
    import oxlite

    connection = oxlite.connect("fork.db")
    with connection:
        connection.execute("CREATE TABLE note(text TEXT)")
    child = multiprocessing.get_context("fork").Process(target=_write_in_a_child)
    child.start()
    child.join(PATIENCE_SECONDS)
    assert child.exitcode == 0
    assert connection.execute("SELECT count(*) FROM note").fetchone() == (1,)
    connection.close()


def _write_in_a_child() -> None:
    import oxlite

    with oxlite.connect("fork.db") as connection:
        connection.execute("INSERT INTO note VALUES ('from a child')")


@check
def a_process_that_is_killed_frees_its_place() -> None:
    import oxlite

    holder = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import oxlite, time\n"
            "connection = oxlite.connect('killed.db')\n"
            "connection.execute('CREATE TABLE note(text TEXT)')\n"
            "connection.execute('BEGIN IMMEDIATE')\n"
            "print('held', flush=True)\n"
            "time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with oxlite.connect("killed.db", timeout=PATIENCE_SECONDS) as connection:
        connection.execute("INSERT INTO note VALUES ('after it')")
    connection.close()


@check
def a_cache_keeps_values() -> None:
    from oxlite.cache import Cache

    with Cache("cache.db", size=1 << 20) as cache:
        cache.set("greeting", {"text": "hello"}, timeout=60)
        assert cache.get("greeting") == {"text": "hello"}
        cache.set("count", 41)
        assert cache.incr("count") == 42


@check
def a_task_is_run_by_a_worker() -> None:
    import oxlite
    from oxlite.tasks import Queue

    with oxlite.Database("tasks.db") as db:
        queue = Queue(db)

        @queue.task
        def double(number: int) -> int:
            return 2 * number

        enqueued = double.enqueue(21)
        with queue.worker():
            assert enqueued.wait(PATIENCE_SECONDS)
        assert enqueued.return_value == 42


@check
def a_backup_is_a_database() -> None:
    from oxlite import sqlite3
    from oxlite.operations import backup

    connection = sqlite3.connect("source.db")
    connection.execute("CREATE TABLE note AS SELECT 1 AS id")
    connection.commit()
    backup("source.db", "copy.db")
    copy = sqlite3.connect("copy.db")
    assert copy.execute("SELECT id FROM note").fetchone() == (1,)
    copy.close()
    connection.close()


@check
def changesets_are_read() -> None:
    import oxlite

    connection = oxlite.connect(":memory:", profile="stock")
    connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)")
    with connection.create_session() as session:
        connection.execute("INSERT INTO note VALUES (1, 'hello')")
        assert len(session.changeset()) > 0
    connection.close()


@check
def a_daemon_thread_does_not_keep_the_interpreter() -> None:
    program = """
import threading, time
import oxlite
db = oxlite.Database("daemon.db")
db.execute("CREATE TABLE note(text TEXT)")
def write():
    while True:
        db.execute("INSERT INTO note VALUES ('x')")
threading.Thread(target=write, daemon=True).start()
time.sleep(0.2)
"""
    _in_processes(program, 1)


@check
def the_command_line_says_what_it_needs() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "oxlite.cli", "env"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    if ended.returncode != 0:
        assert "pip install 'oxlite[cli]'" in ended.stderr, ended.stderr


def _output(program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return ended.stdout.strip()


def _in_processes(program: str, count: int) -> None:
    """Runs a program in several processes at a time, and waits until all have ended well."""
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    assert [process.wait(PATIENCE_SECONDS) for process in running] == [0] * count


def _in_threads(functions: list[Callable[[], None]]) -> None:
    """Runs functions in threads; an exception in one is raised here."""
    failed: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def main() -> None:
    """Runs the checks, or lists them."""
    if not __debug__:
        sys.exit("Assertions are switched off (-O, PYTHONOPTIMIZE): nothing would be checked")
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        if "--list" not in sys.argv:
            function()
        print(name, flush=True)


if __name__ == "__main__":
    if os.name == "posix":
        # One that hangs is to say where.
        import faulthandler

        faulthandler.dump_traceback_later(10 * PATIENCE_SECONDS, exit=True)
    main()
