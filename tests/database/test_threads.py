"""``oxlite.Database``: what threads, signals and forks do to it."""

import contextlib
import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.wait import until

from oxlite import Database, sqlite3

Start = Callable[[Callable[[], object]], threading.Thread]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "app.db", readers=2, timeout=10) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)")
        yield db


def test_an_unused_database_is_collected(tmp_path: Path) -> None:
    def used() -> weakref.ref[Database]:
        known: dict[str, Database] = {}
        db = Database(
            tmp_path / "app.db",
            setup=lambda connection: setattr(connection, "row_factory", lambda *_: known),
        )
        known["db"] = db
        db.query("SELECT 1")
        return weakref.ref(db)

    reference = used()
    gc.collect()
    assert reference() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_opens_connections_of_its_own(db: Database) -> None:
    db.query("SELECT 1")
    with db.write() as connection:
        connection.execute("INSERT INTO t (x) VALUES ('parent')")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert db.query("SELECT * FROM t") == []
                db.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    child = os.fork()
    if child == 0:
        status = 1
        try:
            db.execute("INSERT INTO t (x) VALUES ('child')")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert db.query("SELECT x FROM t ORDER BY id") == [("parent",), ("child",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("block", ["read", "write"])
def test_a_child_may_leave_the_block_it_was_forked_in(db: Database, block: str) -> None:
    child = -1
    status = 1
    try:
        with contextlib.suppress(sqlite3.ProgrammingError), getattr(db, block)() as connection:
            connection.execute("SELECT * FROM t").fetchall()
            child = os.fork()
        if child == 0:
            before = db.stats()
            assert (before.readers_idle, before.readers_lent) == (2, 0)
            assert db.query("SELECT count(*) FROM t") == [(0,)]
            assert db.stats().readers_idle == 2
            db.close()
            status = 0
    finally:
        if child == 0:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert db.execute("INSERT INTO t (x) VALUES ('parent')").rowcount == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("block", ["read", "write"])
def test_a_child_does_nothing_with_what_its_parent_has_borrowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    closed: list[sqlite3.Connection] = []

    class Noted(sqlite3.Connection):
        def close(self) -> None:
            closed.append(self)
            super().close()

    connect = sqlite3.connect
    with_notes = {"factory": Noted}
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, **(o | with_notes)))
    with Database(tmp_path / "app.db") as db:
        child = -1
        try:
            with contextlib.suppress(sqlite3.ProgrammingError), getattr(db, block)() as connection:
                connection.execute("SELECT 1").fetchall()
                child = os.fork()
        finally:
            if child == 0:
                os._exit(len(closed))
        assert os.waitpid(child, 0)[1] == 0
        assert db.query("SELECT 1") == [(1,)]
    assert len(closed) == 2, "a reader and the writer, by the parent"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_that_comes_with_a_reader_does_not_lose_it(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db", readers=1, timeout=60) as db:
        for _ in range(10):
            begun = threading.Event()

            def hold(begun: threading.Event = begun) -> None:
                with db.read():
                    begun.set()
                    until(lambda: db.stats().readers_waiting)
                    os.kill(os.getpid(), signal.SIGINT)

            holder = threading.Thread(target=hold)
            holder.start()
            begun.wait(60)
            with pytest.raises(KeyboardInterrupt), db.read():
                holder.join(60)
            holder.join(60)
            assert db.stats().readers_lent == 0
        assert db.query_one("SELECT 1") == (1,)
