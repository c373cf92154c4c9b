"""Notifications where others do their worst: with tables, files, locks, memory and descriptors."""

import os
import resource
import sqlite3 as stdlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from tests.pages import is_watcher, signals_page_of
from tests.wait import LIMIT_SECONDS, until

import oxlite
from oxlite import sqlite3

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")

_UNTIL_IT_WAITS_SECONDS = 4.0
"""A watcher that has just come tries a few times before it waits."""


def by_another_program(path: Path, *statements: str) -> None:
    with closing(stdlib.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def insert_by_another_program(path: Path, payload: str) -> None:
    insert = "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', '{}')"
    by_another_program(path, insert.format(payload))


@contextmanager
def another(script: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """A process that has said its first line."""
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def no_descriptor_free() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_notification_goes_to_the_main_database_and_to_no_attached_one(tmp_path: Path) -> None:
    attached = tmp_path / "other.db"
    oxlite.Database(attached).notify("orders", "there already")
    with oxlite.Database(tmp_path / "app.db") as db:
        connection = oxlite.connect(tmp_path / "app.db")
        connection.execute("ATTACH ? AS other", (str(attached),))
        connection.execute("CREATE TEMP TABLE oxlite_notification (id, channel, payload)")
        with db.listen("orders", timeout=LIMIT_SECONDS) as listener:
            with connection:
                connection.execute("BEGIN")
                db.notify("orders", "here", connection=connection)
            assert next(listener).payload == "here"
        count = "SELECT count(*) FROM other.oxlite_notification"
        assert connection.execute(count).fetchone() == (1,)
        connection.close()


def test_a_process_without_a_free_descriptor_hears_on(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db, db.listen("orders", timeout=LIMIT_SECONDS) as listener:
        db.notify("orders", "one")
        position = next(listener).position
        with another(_NOTIFIES, path) as process, no_descriptor_free():
            assert process.stdin is not None
            process.stdin.write("two\n")
            process.stdin.flush()
            assert next(listener).payload == "two"
        going_on = db.listen("orders", since=position, timeout=LIMIT_SECONDS)
        assert next(going_on).payload == "two"


_NOTIFIES = """
import sys, oxlite
db = oxlite.Database(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    db.notify("orders", line.strip())
"""


@pytest.mark.parametrize("timeout", [0.1, 5.0])
def test_what_is_committed_by_one_who_keeps_the_file_for_himself_is_heard_when_he_goes(
    tmp_path: Path, timeout: float
) -> None:
    path = tmp_path / "app.db"
    by_another_program(path, "CREATE TABLE made (a)")
    with oxlite.Database(path, journal="keep", timeout=timeout) as db:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        with closing(stdlib.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("INSERT INTO oxlite_notification (channel) VALUES ('orders')")
            time.sleep(2.5)  # longer than the watcher looks again at short intervals
        assert next(listener).channel == "orders"


def test_listening_is_refused_in_time_where_another_program_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    by_another_program(path, "CREATE TABLE made (a)")
    with oxlite.Database(path, journal="keep", timeout=0.2) as db:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        with closing(stdlib.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(oxlite.LockedError, match="locked"):
                db.listen("else")
        db.notify("orders", "heard")
        assert next(listener).payload == "heard"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE oxlite_notification_epoch",
        "DELETE FROM oxlite_notification_epoch",
        "ALTER TABLE oxlite_notification RENAME COLUMN channel TO other",
    ],
)
def test_tables_that_somebody_has_altered_end_whoever_listens(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db, db.listen("orders", timeout=LIMIT_SECONDS) as listener:
        db.notify("orders", "before")
        next(listener)
        by_another_program(path, statement)
        with pytest.raises(sqlite3.Error, match=r"oxlite_notification_epoch|no such column"):
            next(listener)


def test_a_signal_handler_may_close_the_database_that_its_thread_begins_to_listen_to(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.db"
    by_another_program(path, "CREATE TABLE made (a)")
    script = """
import signal, sys, threading, os, oxlite
db = oxlite.Database(sys.argv[1], journal="keep", timeout=30)
db.listen("orders", timeout=0)
signal.signal(signal.SIGTERM, lambda *_: db.close())
print("ready", flush=True)
sys.stdin.readline()
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
try:
    db.listen("orders")
except oxlite.sqlite3.ProgrammingError as error:
    print("refused", error, flush=True)
"""
    with another(script, path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with closing(stdlib.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith("refused Cannot operate on a closed")
            assert process.wait(LIMIT_SECONDS) == 0


_LISTENS = """
import sys, oxlite
listener = oxlite.Database(sys.argv[1]).listen("orders")
print("listens", flush=True)
for note in listener:
    print(note.payload, flush=True)
"""


@pytest.mark.parametrize("how", ["the page has no name", "no descriptor is free"])
def test_whoever_watches_no_longer_tells_the_others_by_what_he_has_open(
    tmp_path: Path, how: str
) -> None:
    path = tmp_path / "app.db"
    watching = oxlite.Database(path)
    watching.listen("orders")
    page = signals_page_of(path)
    until(lambda: is_watcher(os.getpid(), page))
    with oxlite.Database(path) as notifying, another(_LISTENS, path) as process:
        assert process.stdout is not None
        notifying.notify("else")  # and has the page, for as long as it is open
        time.sleep(_UNTIL_IT_WAITS_SECONDS)
        if how == "no descriptor is free":
            with no_descriptor_free():
                watching.close()
        else:
            page.unlink()
            watching.close()
        time.sleep(_UNTIL_IT_WAITS_SECONDS)
        insert_by_another_program(path, "heard")
        assert process.stdout.readline() == "heard\n"


def test_a_page_that_another_program_has_overwritten_hangs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    script = """
import os, sys, oxlite
db = oxlite.Database(sys.argv[1])
listener = db.listen("orders", timeout=0.5)
print("listens", flush=True)
sys.stdin.readline()
for note in listener: pass
with db.listen("orders", timeout=60) as anew:
    db.notify("orders", "anew")
    print([note.payload for note in (next(anew),)], flush=True)
db.close()
print("closed", flush=True)
"""
    with another(script, path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        page = signals_page_of(path)
        with page.open("r+b") as file:
            file.write(bytes(page.stat().st_size))
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "['anew']\n"
        assert process.stdout.readline() == "closed\n"
        assert process.wait(LIMIT_SECONDS) == 0


def test_an_event_loop_that_listens_in_a_daemon_thread_ends_with_the_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.db"
    script = """
import asyncio, sys, threading, time, oxlite.aio
listens = threading.Event()
async def main():
    async with oxlite.aio.Database(sys.argv[1]) as db, db.listen("orders") as listener:
        listens.set()
        async for note in listener:
            pass
threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
listens.wait()
time.sleep(0.3)
"""
    for _ in range(3):
        command = [sys.executable, "-W", "ignore", "-c", script, str(path)]
        subprocess.run(command, check=True, timeout=LIMIT_SECONDS)
        assert not signals_page_of(path).exists()


def test_a_closed_database_gives_its_place_back_though_its_listener_is_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.db"
    kept = []
    for _ in range(3):
        databases = [oxlite.Database(path, readers=1) for _ in range(50)]
        kept += [database.listen("orders") for database in databases]
        for database in databases:
            database.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed Database"):
        next(kept[0])


def test_whoever_empties_the_latest_numbers_ends_listeners_that_can_go_on(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db, db.listen("orders", timeout=LIMIT_SECONDS) as listener:
        for number in range(5):
            db.notify("orders", str(number))
            next(listener)
        by_another_program(path, "DELETE FROM sqlite_sequence")
        fresh = db.listen("orders", timeout=LIMIT_SECONDS)
        db.notify("orders", "next")
        assert next(fresh).payload == "next"
        assert next(listener).payload == "next"


def test_the_largest_number_is_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        db.notify("orders", "first")
        insert = "INSERT INTO oxlite_notification (id, channel) VALUES (9223372036854775807, 'a')"
        by_another_program(path, insert)
        db.listen("orders").close()


def test_a_database_in_utf_16_has_the_same_limits(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    by_another_program(path, "PRAGMA encoding = 'UTF-16'", "CREATE TABLE made (a)")
    with oxlite.Database(path) as db, db.listen("*", timeout=LIMIT_SECONDS) as listener:
        db.notify("x" * 255, "y" * (1 << 20))
        note = next(listener)
        assert (note.channel, note.payload) == ("x" * 255, "y" * (1 << 20))
        with pytest.raises(ValueError, match="255 bytes"):
            db.notify("x" * 256)


def test_a_listener_that_is_behind_and_one_that_is_not_are_given_all(tmp_path: Path) -> None:
    with oxlite.Database(tmp_path / "app.db") as db:
        behind = db.listen("orders", timeout=LIMIT_SECONDS)
        with db.write() as connection:
            for number in range(5_000):
                db.notify("orders", str(number), connection=connection)
        idle = db.listen("orders", timeout=LIMIT_SECONDS)
        assert [next(behind).payload for _ in range(5_000)] == [str(n) for n in range(5_000)]
        db.notify("orders", "last")
        assert (next(behind).payload, next(idle).payload) == ("last", "last")


def test_ten_thousand_channels(tmp_path: Path) -> None:
    with oxlite.Database(tmp_path / "app.db") as db:
        channels = [f"channel.{number}" for number in range(10_000)]
        with db.listen(*channels, timeout=LIMIT_SECONDS) as listener:
            with db.write() as connection:
                for channel in channels:
                    db.notify(channel, connection=connection)
                db.notify("another", connection=connection)
            assert [next(listener).channel for _ in channels] == channels
