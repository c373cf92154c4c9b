"""Notifications across forks, killed processes and other libraries' transactions."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wait import LIMIT_SECONDS, until

import oxlite


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
