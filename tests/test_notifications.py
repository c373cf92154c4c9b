"""Notifications across forks, killed processes and other libraries' transactions."""

import asyncio
import gc
import os
import signal
import sqlite3 as stdlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest
from tests.pages import is_watcher, signals_page_of
from tests.wait import LIMIT_SECONDS, until

import oxlite
import oxlite.aio


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_listens_anew(tmp_path: Path) -> None:
    script = """
import os, signal, sys
import oxlite
from oxlite import sqlite3
signal.alarm(60)
db = oxlite.Database(sys.argv[1])
listener = db.listen("orders", timeout=30)
child = os.fork()
if child == 0:
    signal.alarm(30)
    try:
        next(listener)
    except sqlite3.ProgrammingError as error:
        print("refused", "before a fork" in str(error))
    own = db.listen("orders", timeout=20)
    db.notify("orders", "from the child")
    print("child", next(own).payload, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent", next(listener).payload)
db.notify("orders", "from the parent")
print("parent", next(listener).payload)
db.close()
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "app.db")]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [
        "refused True",
        "child from the child",
        "parent from the child",
        "parent from the parent",
    ]


def test_what_a_killed_process_has_committed_arrives(tmp_path: Path) -> None:
    # It is killed in the midst of its notifications, often between a commit and its signal.
    script = """
import sys
import oxlite
db = oxlite.Database(sys.argv[1])
number = int(sys.argv[2])
while True:
    number += 1
    db.notify("orders", str(number))
    print(number, flush=True)
"""
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db, db.listen("*", timeout=LIMIT_SECONDS) as listener:
        expected = 0
        for _ in range(10):
            command = [sys.executable, "-c", script, str(path), str(expected)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as publisher:
                for _ in range(20):
                    expected += 1
                    assert next(listener).payload == str(expected)
                publisher.send_signal(signal.SIGKILL)
                publisher.wait()
            # What it has committed is there, and nothing else; acknowledged or not.
            count = db.query_one("SELECT count(*) FROM oxlite_notification")[0]
            while expected < count:
                expected += 1
                assert next(listener).payload == str(expected)
        assert expected >= 200


_LISTENER = """
import sys
import oxlite
listener = oxlite.Database(sys.argv[1]).listen("else")
print("listens", flush=True)
for note in listener:
    pass
"""


@contextmanager
def _while_whoever_watches_is_stopped(path: Path) -> Iterator[None]:
    """Another process watches the files, and does nothing: who is not woken stays asleep."""
    command = [sys.executable, "-c", _LISTENER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "listens\n"
            until(lambda: is_watcher(other.pid, signals_page_of(path)))
            other.send_signal(signal.SIGSTOP)
            yield
        finally:
            other.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
@pytest.mark.parametrize("commit", ["group", "each", "shared"])
def test_whoever_listens_is_woken_by_the_commit_itself(
    tmp_path: Path, commit: Literal["group", "each", "shared"]
) -> None:
    path = tmp_path / "app.db"
    oxlite.Database(path).close()
    with (
        _while_whoever_watches_is_stopped(path),
        oxlite.Database(path, durable_commit=commit) as db,
        db.listen("orders", "chat.*", timeout=LIMIT_SECONDS) as listener,
    ):
        for number in range(20):
            channel = ("orders", "chat.7")[number % 2]
            db.notify(channel, f"{number} alone")
            assert next(listener).payload == f"{number} alone"
            with suppress(ZeroDivisionError), db.write() as connection:
                db.notify(channel, "never", connection=connection)
                raise ZeroDivisionError
            with db.write() as connection:
                db.notify(channel, f"{number} in it", connection=connection)
                # Whoever is woken too early looks before there is anything to be found.
                time.sleep(0.002)
            assert next(listener).payload == f"{number} in it"


@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
def test_a_task_is_woken_by_the_commit_itself(tmp_path: Path) -> None:
    aio = pytest.importorskip("oxlite.aio")
    path = tmp_path / "app.db"
    oxlite.Database(path).close()

    async def main() -> None:
        async with aio.Database(path) as db:
            listener = db.listen("orders", timeout=LIMIT_SECONDS)
            for number in range(20):
                await db.notify("orders", f"{number} alone")
                assert (await anext(listener)).payload == f"{number} alone"
                async with db.write() as connection:
                    await db.notify("orders", f"{number} in it", connection=connection)
                assert (await anext(listener)).payload == f"{number} in it"

    with _while_whoever_watches_is_stopped(path):
        asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_another_one_watches_for_the_one_that_is_gone(tmp_path: Path, end: signal.Signals) -> None:
    standard = pytest.importorskip("sqlite3")
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        db.notify("orders", "makes the table")
    for number in range(5):
        command = [sys.executable, "-c", _LISTENER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "listens\n"
            until(lambda: is_watcher(other.pid, signals_page_of(path)))
            with oxlite.Database(path) as db, db.listen("*", timeout=LIMIT_SECONDS) as listener:
                other.send_signal(end)
                other.wait()
                with closing(standard.connect(path)) as outside, outside:
                    outside.execute(
                        "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', ?)",
                        (str(number),),
                    )
                assert next(listener).payload == str(number)


# Whoever is to watch next tries for a moment, then waits to be told; earlier, less is tested.
_UNTIL_IT_WAITS_SECONDS = 0.1


def _insert_by_another_program(path: Path, payload: str) -> None:
    script = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    sql = "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', ?)"
    connection.execute(sql, sys.argv[2:])
"""
    subprocess.run([sys.executable, "-c", script, str(path), payload], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
@pytest.mark.parametrize("is_in_this_process", [True, False])
def test_another_one_watches_for_the_one_that_listens_no_longer(
    tmp_path: Path, is_in_this_process: bool
) -> None:
    path = tmp_path / "app.db"
    watching = oxlite.Database(path)
    watching.listen("orders")
    with oxlite.Database(path) as notifying:
        notifying.notify("else")  # and has the page, for as long as it is open
        until(lambda: is_watcher(os.getpid(), signals_page_of(path)))
        if is_in_this_process:
            listener = notifying.listen("orders", timeout=LIMIT_SECONDS)
            time.sleep(_UNTIL_IT_WAITS_SECONDS)
            watching.close()
            _insert_by_another_program(path, "heard")
            assert next(listener).payload == "heard"
            return
        command = [sys.executable, "-c", _LISTENER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "listens\n"
            time.sleep(_UNTIL_IT_WAITS_SECONDS)
            watching.close()
            until(lambda: is_watcher(other.pid, signals_page_of(path)))
            other.kill()


def test_a_listener_that_is_killed_is_in_nobodys_way(tmp_path: Path) -> None:
    script = """
import sys
import oxlite
listener = oxlite.Database(sys.argv[1]).listen("orders")
print("listens", flush=True)
for note in listener:
    pass
"""
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        for _ in range(5):
            command = [sys.executable, "-c", script, str(path)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
                assert other.stdout is not None
                assert other.stdout.readline() == "listens\n"
                other.kill()
        with db.listen("orders", timeout=LIMIT_SECONDS) as listener:
            for number in range(200):
                db.notify("orders", str(number))
                assert next(listener).payload == str(number)


def test_it_is_part_of_a_transaction_of_sqlalchemys(tmp_path: Path) -> None:
    sa = pytest.importorskip("sqlalchemy", reason="the extra oxlite[sqlalchemy] is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    path = tmp_path / "app.db"
    engine = sa.create_engine(f"sqlite+oxlite:///{path}")
    with oxlite.Database(path) as db, db.listen("*", timeout=LIMIT_SECONDS) as listener:
        with orm.Session(engine) as session:
            db.notify("orders", "session, rolled back", connection=session)
            session.rollback()
            db.notify("orders", "session", connection=session)
            session.commit()
        with engine.begin() as connection:
            db.notify("orders", "connection", connection=connection)
        assert next(listener).payload == "session"
        assert next(listener).payload == "connection"
    engine.dispose()


def test_it_is_part_of_a_transaction_of_sqlalchemys_asyncio(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="the extra oxlite[sqlalchemy] is not installed")
    asyncio_extension = pytest.importorskip("sqlalchemy.ext.asyncio")
    aio = pytest.importorskip("oxlite.aio")

    async def main() -> None:
        path = tmp_path / "app.db"
        engine = asyncio_extension.create_async_engine(f"sqlite+oxlite_async:///{path}")
        async with aio.Database(path) as db:
            listener = db.listen("*", timeout=LIMIT_SECONDS)
            async with asyncio_extension.AsyncSession(engine) as session:
                await db.notify("orders", "rolled back", connection=session)
                await session.rollback()
                await db.notify("orders", "kept", connection=session)
                await session.commit()
            async with engine.begin() as connection:
                await db.notify("orders", "connection", connection=connection)
            assert (await anext(listener)).payload == "kept"
            assert (await anext(listener)).payload == "connection"
        await engine.dispose()

    asyncio.run(main())


def test_a_task_that_is_cancelled_while_it_waits_has_taken_nothing(tmp_path: Path) -> None:
    aio = pytest.importorskip("oxlite.aio")

    async def main() -> None:
        async with aio.Database(tmp_path / "app.db") as db:
            listener = db.listen("orders", timeout=LIMIT_SECONDS)
            for number in range(20):
                waiting = asyncio.ensure_future(anext(listener))
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            await db.notify("orders", "kept")
            assert (await anext(listener)).payload == "kept"

    asyncio.run(main())


def test_the_time_that_a_task_listens_for_counts_anew_from_each_notification(
    tmp_path: Path,
) -> None:
    aio = pytest.importorskip("oxlite.aio")

    async def main() -> None:
        async with aio.Database(tmp_path / "app.db") as db:
            # Less than the three waits together, and more than twice each of them.
            listener = db.listen("orders", timeout=2.0)
            for number in range(3):
                waiting = asyncio.ensure_future(anext(listener))
                await asyncio.sleep(0.9)
                await db.notify("orders", str(number))
                assert (await waiting).payload == str(number)

    asyncio.run(main())


def test_what_is_no_connection_is_refused(tmp_path: Path) -> None:
    with oxlite.Database(tmp_path / "app.db") as db:
        for what in (7, object()):
            with pytest.raises(TypeError, match="connection= takes a connection"):
                db.notify("orders", "x", connection=what)


def test_a_database_that_is_not_in_wal_mode_is_heard_too(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    standard = pytest.importorskip("sqlite3")
    with (
        oxlite.Database(path, profile="stock") as db,
        db.listen("orders", timeout=LIMIT_SECONDS) as listener,
    ):
        assert db.query_one("PRAGMA journal_mode") == ("delete",)
        db.notify("orders", "ours")
        assert next(listener).payload == "ours"
        with standard.connect(path) as other:
            other.execute("INSERT INTO oxlite_notification (channel) VALUES ('orders')")
        other.close()
        assert next(listener).payload is None


def test_a_listener_waits_without_keeping_a_snapshot(tmp_path: Path) -> None:
    with (
        oxlite.Database(tmp_path / "app.db") as db,
        db.listen("orders", timeout=LIMIT_SECONDS) as listener,
    ):
        db.notify("orders", "x")
        assert next(listener).payload == "x"
        # Only a listener that reads would be in the way of this.
        until(lambda: not db.checkpoint("truncate").busy)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/shm")
def test_who_shares_no_memory_with_the_others_hears_them_and_is_heard(tmp_path: Path) -> None:
    # What stands at the page's name is no page: so it is where /dev/shm cannot be used.
    script = """
import logging, os, sqlite3, sys
import oxlite
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
path = sys.argv[1]
sqlite3.connect(path).execute("PRAGMA journal_mode = wal").close()
status = os.stat(path)
page = f"/dev/shm/oxlite-signals1-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}"
os.close(os.open(page, os.O_CREAT | os.O_WRONLY))
os.chmod(page, 0o666)
try:
    db = oxlite.Database(path)
    listener = db.listen("orders", timeout=30)
    db.notify("orders", "of its own")
    print(next(listener).payload)
    outsider = sqlite3.connect(path)
    insert = "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', 'other')"
    with outsider:
        outsider.execute(insert)
    print(next(listener).payload, flush=True)
    db.close()
finally:
    os.unlink(page)
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "app.db")]
    said = subprocess.run(command, capture_output=True, text=True)
    lines = said.stdout.splitlines()
    assert lines[-2:] == ["of its own", "other"], said
    (warning,) = [line for line in lines if line.startswith("WARNING No memory is shared")]
    assert "it is no page of this user's alone" in warning


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="another user's limit is used up, so that nobody else meets it: needs root",
)
def test_where_no_file_can_be_watched_one_looks_and_says_so(tmp_path: Path) -> None:
    script = """
import ctypes, errno, logging, os, resource, sqlite3, sys, threading
import oxlite
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
path = sys.argv[1]
os.chmod(os.path.dirname(path), 0o777)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
limit = int(open("/proc/sys/fs/inotify/max_user_instances").read())
libc = ctypes.CDLL(None, use_errno=True)
os.setuid(100_000 + os.getpid() % 100_000)  # nobody else's
used = 0
while used <= limit and libc.inotify_init1(0) >= 0:
    used += 1
assert used <= limit and ctypes.get_errno() == errno.EMFILE
db = oxlite.Database(path)
listener = db.listen("orders", timeout=30)
def insert():
    with sqlite3.connect(path) as outsider:
        outsider.execute(
            "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', 'other')"
        )
threading.Timer(0.5, insert).start()
print(next(listener).payload, flush=True)
db.close()
"""
    folder = tmp_path
    while folder != folder.parent:  # pytest's own folders are its user's alone
        if folder.stat().st_mode & 0o011 != 0o011:
            folder.chmod(folder.stat().st_mode | 0o011)
        folder = folder.parent
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "app.db")]
    said = subprocess.run(command, capture_output=True, text=True)
    warning, heard = said.stdout.splitlines() or [said.stderr, ""]
    assert heard == "other", said
    assert warning.startswith("WARNING The files of ")
    assert "is looked for every 10 ms" in warning


def test_a_listener_that_is_closed_ends_the_iteration_of_who_waits(tmp_path: Path) -> None:
    with oxlite.Database(tmp_path / "app.db") as db:
        listener = db.listen("orders")
        taken: list[oxlite.Notification] = []
        waiting = threading.Thread(target=lambda: taken.extend(listener), daemon=True)
        waiting.start()
        db.notify("orders", "one")
        until(lambda: len(taken) == 1)
        listener.close()
        waiting.join(LIMIT_SECONDS)
        assert not waiting.is_alive()
        assert list(listener) == []


def test_threads_share_a_listener_and_each_notification_is_given_once(tmp_path: Path) -> None:
    with oxlite.Database(tmp_path / "app.db") as db:
        listener = db.listen("orders")
        taken: list[str] = []

        def take() -> None:
            taken.extend(str(note.payload) for note in listener)

        threads = [threading.Thread(target=take, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(500):
            db.notify("orders", str(number))
        until(lambda: len(taken) == 500)
        listener.close()
        for thread in threads:
            thread.join(LIMIT_SECONDS)
        assert sorted(map(int, taken)) == list(range(500))


def test_a_listener_of_asyncio_that_is_closed_ends_and_serves_one_task(tmp_path: Path) -> None:
    async def main() -> None:
        async with oxlite.aio.Database(tmp_path / "app.db") as db:
            listener = db.listen("orders")
            waiting = asyncio.ensure_future(anext(listener, None))
            await db.notify("orders", "one")
            first = await waiting
            assert first is not None
            assert first.payload == "one"
            waiting = asyncio.ensure_future(anext(listener, None))
            await asyncio.sleep(0)  # it has begun to wait
            with pytest.raises(RuntimeError, match="another task waits"):
                await anext(listener)
            await listener.aclose()
            assert await waiting is None

    asyncio.run(asyncio.wait_for(main(), LIMIT_SECONDS))


def test_a_loop_that_is_closed_under_a_listener_says_nothing_of_it(tmp_path: Path) -> None:
    script = """
import asyncio, sys
import oxlite.aio
async def main(path):
    db = await oxlite.aio.Database(path)
    listener = db.listen("orders")
    global waiting
    waiting = asyncio.ensure_future(anext(listener))
    for _ in range(100):
        await asyncio.sleep(0.001)
loop = asyncio.new_event_loop()
loop.run_until_complete(main(sys.argv[1]))
loop.close()
unraised = []
sys.unraisablehook = unraised.append
del waiting
import gc; gc.collect()
print("ended", unraised)
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "app.db")]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
    )
    assert said.stdout == "ended []\n"


def _copy_over(path: Path, other: Path) -> None:
    """Put the content of another database into the file, as ``.restore`` does."""
    with closing(stdlib.connect(other)) as source, closing(stdlib.connect(path)) as target:
        source.backup(target)


def test_a_database_that_is_restored_in_place_is_another_history(tmp_path: Path) -> None:
    path, other = tmp_path / "app.db", tmp_path / "other.db"
    with oxlite.Database(other) as db:
        for number in range(50):
            db.notify("orders", f"other {number}")
    with oxlite.Database(path) as db:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        for number in range(3):
            db.notify("orders", str(number))
        assert [next(listener).payload for _ in range(3)] == ["0", "1", "2"]
        # The numbers go on: nothing but the key of the history tells.
        _copy_over(path, other)
        with pytest.raises(oxlite.NotificationsLost) as caught:
            next(listener)
        anew = db.listen("orders", since=caught.value.resume_from, timeout=LIMIT_SECONDS)
        assert [next(anew).payload for _ in range(50)] == [f"other {each}" for each in range(50)]


def test_who_listens_disturbs_nobody_whose_profile_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path, profile="durable") as durable:
        listener = durable.listen("orders", timeout=LIMIT_SECONDS)
        durable.notify("orders", "one")
        position = next(listener).position
        with oxlite.Database(path, profile="web") as web, web.listen("orders"):
            web.notify("orders", "two")
            assert next(listener).payload == "two"
            again = web.listen("orders", since=position, timeout=LIMIT_SECONDS)
            assert next(again).payload == "two"


def test_one_listens_to_a_database_that_cannot_be_written_for_now(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        db.execute("CREATE TABLE t (a)")
        with closing(stdlib.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with oxlite.Database(path, timeout=0.2) as reader:
                # The table is not there, and cannot be made.
                listener = reader.listen("orders", timeout=LIMIT_SECONDS)
                other.execute("ROLLBACK")
                db.notify("orders", "x")
                assert next(listener).payload == "x"


def test_one_listens_while_somebody_writes(tmp_path: Path) -> None:
    with oxlite.Database(tmp_path / "app.db") as db:
        db.notify("orders", "before")
        with db.write() as connection:
            listener = db.listen("orders", timeout=LIMIT_SECONDS)
            db.notify("orders", "x", connection=connection)
        assert next(listener).payload == "x"


def test_other_programs_channels_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        listener = db.listen("*", timeout=LIMIT_SECONDS)
        with closing(stdlib.connect(path)) as other, other:
            other.execute("INSERT INTO oxlite_notification (channel) VALUES ('a*b')")
        assert next(listener).channel == "a*b"


def test_a_task_that_catches_up_lets_others_have_a_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with oxlite.aio.Database(tmp_path / "app.db") as db:
            await db.notify("orders", "first")
            listener = db.listen("orders", timeout=LIMIT_SECONDS)
            rows = [("orders", str(number)) for number in range(900)]
            await db.executemany(
                "INSERT INTO oxlite_notification (channel, payload) VALUES (?, ?)", rows
            )
            turns = 0

            async def others() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            await anext(listener)
            task = asyncio.ensure_future(others())
            for _ in rows[1:]:
                await anext(listener)
            task.cancel()
            assert turns >= 10

    asyncio.run(main())


def test_a_thread_that_listens_says_nothing_at_the_end_of_the_process(tmp_path: Path) -> None:
    script = """
import sys, threading, time, oxlite
db = oxlite.Database(sys.argv[1])
begun = threading.Event()
def listen():
    listener = db.listen("orders")
    begun.set()
    list(listener)
threading.Thread(target=listen, daemon=True).start()
begun.wait()
time.sleep(0.1)
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "app.db")]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stderr == ""


def test_what_follows_a_position_of_a_file_without_the_table_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        listener = db.listen("orders")
        db.notify("orders", "one")
        position = next(listener).position
    for name in path.parent.iterdir():
        name.unlink()
    with stdlib.connect(path) as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    with oxlite.Database(path) as db:
        with pytest.raises(oxlite.NotificationsLost) as caught:
            db.listen("orders", since=position)
        listener = db.listen("orders", since=caught.value.resume_from)
        db.notify("orders", "anew")
        assert next(listener).payload == "anew"


def test_a_listener_keeps_its_database_open(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    listener = oxlite.Database(path).listen("orders", timeout=LIMIT_SECONDS)
    gc.collect()
    with oxlite.Database(path) as db:
        db.notify("orders", "one")
    assert next(listener).payload == "one"
    listener.close()


def test_a_listener_of_asyncio_keeps_its_database_open(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "app.db"
        listener = (await oxlite.aio.Database(path)).listen("orders", timeout=LIMIT_SECONDS)
        async with oxlite.aio.Database(path) as db:
            await db.notify("orders", "one")
            assert (await anext(listener)).payload == "one"
            gc.collect()
            await db.notify("orders", "two")
            assert (await anext(listener)).payload == "two"
        await listener.aclose()

    asyncio.run(main())


def test_a_table_that_was_dropped_is_made_anew_and_is_another_epoch(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        for number in range(3):
            db.notify("orders", str(number))
        position, *_rest = [next(listener).position for _ in range(3)]
        db.execute("DROP TABLE oxlite_notification")
        db.notify("orders", "anew")
        with pytest.raises(oxlite.NotificationsLost) as caught:
            next(listener)
        going_on = db.listen("orders", since=caught.value.resume_from, timeout=LIMIT_SECONDS)
        assert next(going_on).payload == "anew"
        with pytest.raises(oxlite.NotificationsLost):
            db.listen("orders", since=position)


_LEAVES_A_DATABASE = {
    "closed": """
with oxlite.Database(path) as db, db.listen("*") as listener:
    db.notify("orders", "x")
    next(listener)
os._exit(0)
""",
    "left open": """
db = oxlite.Database(path)
listener = db.listen("*")
db.notify("orders", "x")
next(listener)
""",
    "left open by asyncio": """
import asyncio, oxlite.aio
async def main():
    db = oxlite.aio.Database(path)
    listener = db.listen("*")
    await db.notify("orders", "x")
    await anext(listener)
    return db, listener
kept = asyncio.run(main())
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is shared by /dev/shm on Linux")
@pytest.mark.parametrize("end", _LEAVES_A_DATABASE)
def test_a_process_that_ends_leaves_no_shared_memory(tmp_path: Path, end: str) -> None:
    path = tmp_path / "app.db"
    script = f"import os, sys\nimport oxlite\npath = sys.argv[1]\n{_LEAVES_A_DATABASE[end]}"
    for _ in range(5):
        command = [sys.executable, "-W", "ignore", "-c", script, str(path)]
        subprocess.run(command, check=True, timeout=LIMIT_SECONDS)
        assert not signals_page_of(path).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is shared by /dev/shm on Linux")
def test_a_file_that_somebody_has_given_the_name_of_a_page_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        db.execute("CREATE TABLE t (a)")
        page = signals_page_of(path)
        other = page.with_name(f"{page.name}-of-somebody")
        other.touch(mode=0o600)
        os.link(other, page)
        try:
            listener = db.listen("orders", timeout=LIMIT_SECONDS)
            db.notify("orders", "x")
            assert next(listener).payload == "x"
            assert other.stat().st_size == 0
        finally:
            page.unlink()
            other.unlink()
    assert "No memory is shared" in caplog.text
