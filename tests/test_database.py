"""``oxlite.Database``: readers and one writer of a database, shared by all threads."""

import contextlib
import gc
import os
import re
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import oxlite
from oxlite import Database, sqlite3

Start = Callable[[Callable[[], object]], threading.Thread]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "app.db", readers=2, timeout=10) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)")
        yield db


@pytest.fixture
def start() -> Iterator[Start]:
    """Runs something in a thread; what it raises is raised after the test."""
    threads: list[threading.Thread] = []
    errors: list[BaseException] = []

    def start(work: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.001)


def test_a_write_request_answers_row_count_row_id_and_rows(db: Database) -> None:
    assert db.execute("INSERT INTO t (x) VALUES (?)", ("a",)) == (1, 1, [])
    result = db.execute("INSERT INTO t (x) VALUES (:b), ('c') RETURNING id, x", {"b": "b"})
    assert result.rows == [(2, "b"), (3, "c")]
    assert (result.rowcount, result.lastrowid) == (2, 3)
    assert db.execute("SELECT count(*) FROM t") == (-1, None, [(3,)])
    assert db.executemany("INSERT INTO t (x) VALUES (?)", iter([("d",), ("e",)])).rowcount == 2


def test_queries_see_what_was_written(db: Database) -> None:
    db.execute("INSERT INTO t (x) VALUES ('a'), ('b')")
    assert db.query("SELECT x FROM t WHERE x > ?", ("",)) == [("a",), ("b",)]
    assert db.query_one("SELECT x FROM t WHERE x = :x", {"x": "b"}) == ("b",)
    assert db.query_one("SELECT x FROM t WHERE x = 'c'") is None


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (x) VALUES (1)",
        "INSERT INTO t (x) VALUES (1) RETURNING x",
        "DELETE FROM t",
        "CREATE TABLE u (x)",
    ],
)
def test_a_reader_does_not_write(db: Database, sql: str) -> None:
    for refused in (lambda: db.query(sql), lambda: db.query_one(sql)):
        with pytest.raises(sqlite3.OperationalError) as caught:
            refused()
        assert "db.execute()" in caught.value.__notes__[0]
    with pytest.raises(sqlite3.OperationalError) as caught, db.read() as connection:
        connection.execute(sql)
    assert "db.write()" in caught.value.__notes__[0]
    assert db.query("SELECT name FROM sqlite_schema WHERE type = 'table'") == [("t",)]


def test_other_errors_of_a_query_have_no_such_note(db: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table") as caught:
        db.query("SELECT * FROM missing")
    assert not getattr(caught.value, "__notes__", [])


def test_a_read_scope_is_one_snapshot(db: Database) -> None:
    with db.read() as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
        db.execute("INSERT INTO t (x) VALUES (1)")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
        assert db.query("SELECT count(*) FROM t") == [(1,)], "another reader, another snapshot"
    assert db.query("SELECT count(*) FROM t") == [(1,)]


def test_a_write_scope_commits_or_rolls_back(db: Database) -> None:
    with db.write() as connection:
        assert connection.in_transaction
        connection.execute("INSERT INTO t (x) VALUES (1)")
        assert db.query("SELECT * FROM t") == []
    assert db.query("SELECT x FROM t") == [(1,)]

    class ShoppingError(Exception):
        pass

    def fail() -> None:
        with db.write() as connection:
            connection.execute("DELETE FROM t")
            raise ShoppingError

    with pytest.raises(ShoppingError):
        fail()
    assert db.query("SELECT x FROM t") == [(1,)]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "INSERT OR ROLLBACK INTO t VALUES (1, 1)"])
def test_a_write_scope_whose_transaction_was_ended_says_so(db: Database, end: str) -> None:
    db.execute("INSERT INTO t VALUES (1, 1)")

    def write() -> None:
        with db.write() as connection, contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(end)

    with pytest.raises(sqlite3.ProgrammingError, match=r"ended inside db\.write"):
        write()
    db.execute("INSERT INTO t VALUES (2, 2)")


def test_a_commit_that_fails_rolls_back(db: Database) -> None:
    db.execute("CREATE TABLE child (t REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(sqlite3.IntegrityError), db.write() as connection:
        connection.execute("INSERT INTO child VALUES (7)")
    assert db.query("SELECT * FROM child") == []
    db.execute("INSERT INTO t (x) VALUES (1)")


def test_a_failed_write_request_changes_nothing(db: Database) -> None:
    db.execute("INSERT INTO t (x) VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO t (x) VALUES (2), (1)")
    with pytest.raises(sqlite3.IntegrityError):
        db.executemany("INSERT INTO t (x) VALUES (?)", [(2,), (1,)])
    with pytest.raises(ZeroDivisionError):
        db.executemany("INSERT INTO t (x) VALUES (?)", ((1 / 0,) for _ in range(2)))
    with pytest.raises(sqlite3.ProgrammingError, match=r"needs db\.write"):
        db.execute("BEGIN")
    with pytest.raises(sqlite3.OperationalError):
        db.execute("COMMIT")
    assert db.query("SELECT x FROM t") == [(1,)]


def test_a_thread_does_not_wait_for_itself(db: Database) -> None:
    with db.write():
        with pytest.raises(sqlite3.ProgrammingError, match=r"inside db\.write"):
            db.execute("DELETE FROM t")
        with pytest.raises(sqlite3.ProgrammingError, match=r"inside db\.write"), db.write():
            pass
        assert db.query("SELECT * FROM t") == []
    with db.read(), db.read():
        with pytest.raises(sqlite3.ProgrammingError, match="more than 2 readers"):
            db.query("SELECT 1")
        db.execute("INSERT INTO t (x) VALUES (1)")


def test_waiting_in_vain_names_the_thread(tmp_path: Path, start: Start) -> None:
    db = Database(tmp_path / "app.db", readers=1, timeout=0.1)
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with db.read(), db.write():
            begun.set()
            end.wait(30)

    thread = start(hold)
    begun.wait(30)
    held = re.escape(f"by thread '{thread.name}' for")
    with pytest.raises(oxlite.PoolTimeout, match=held):
        db.query("SELECT 1")
    with pytest.raises(oxlite.LockedError, match=held) as caught:
        db.execute("CREATE TABLE t (x)")
    assert caught.value.sqlite_errorname == "SQLITE_BUSY"
    assert db.stats()[:4] == (0, 1, 0, 0)
    end.set()
    thread.join(30)
    db.execute("CREATE TABLE t (x)")
    db.close()


def test_many_threads_read_and_write(db: Database, start: Start) -> None:
    def work() -> None:
        for _ in range(50):
            db.execute("INSERT INTO t (x) VALUES (hex(randomblob(16)))")
            with db.write() as connection:
                connection.execute("INSERT INTO t (x) VALUES (hex(randomblob(16)))")
            assert db.query_one("SELECT count(*) >= 2 FROM t") == (1,)
            with db.read() as connection:
                first = connection.execute("SELECT count(*) FROM t").fetchone()
                assert connection.execute("SELECT count(*) FROM t").fetchone() == first

    for thread in [start(work) for _ in range(8)]:
        thread.join(60)
    assert db.query_one("SELECT count(*) FROM t") == (800,)
    assert db.stats()[:4] == (2, 0, 0, 0)


def test_every_connection_is_set_up(tmp_path: Path) -> None:
    seen = []

    def set_up(connection: oxlite.Connection) -> None:
        seen.append(connection)
        connection.create_function("twice", 1, lambda x: 2 * x)
        connection.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
        connection.row_factory = sqlite3.Row

    with Database(tmp_path / "app.db", readers=2, setup=set_up) as db:
        assert db.query_one("SELECT twice(3) AS n")["n"] == 6
        db.execute("CREATE TABLE other.t AS SELECT twice(4) AS n")
        with db.read() as first:
            assert first.execute("SELECT n FROM other.t").fetchone()["n"] == 8
            assert tuple(db.query("SELECT twice(5)")[0]) == (10,)
    assert len(set(seen)) == 3


def test_a_set_up_that_fails_is_tried_again(tmp_path: Path) -> None:
    fails = [True]

    def set_up(connection: oxlite.Connection) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        if fails.pop():
            raise LookupError

    with pytest.raises(LookupError):
        Database(tmp_path / "app.db", setup=set_up)
    fails += [False, True, False]
    with Database(tmp_path / "app.db", readers=1, setup=set_up) as db:
        with pytest.raises(LookupError):
            db.query("SELECT 1")
        assert db.query("SELECT 1") == [(1,)]


def test_a_connection_that_comes_back_spoilt_is_replaced(db: Database) -> None:
    for spoil in ["close", "begin"]:
        with db.read() as connection:
            connection.rollback()
            if spoil == "close":
                connection.close()
            else:
                connection.execute("BEGIN")
        assert db.query("SELECT count(*) FROM t") == [(0,)]
    with pytest.raises(sqlite3.ProgrammingError), db.write() as connection:
        connection.close()
    assert db.execute("INSERT INTO t (x) VALUES (1)").rowcount == 1


@pytest.mark.parametrize("path", [":memory:", "", b":memory:"])
def test_a_database_in_memory_is_refused(path: str | bytes) -> None:
    with pytest.raises(ValueError, match="needs a file"):
        Database(path)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="readers must be at least 1, not 0"):
        Database(tmp_path / "app.db", readers=0)
    with pytest.raises(ValueError, match="unknown profile 'wab'; did you mean 'web'"):
        Database(tmp_path / "app.db", profile="wab")
    assert not list(tmp_path.iterdir())
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        Database(tmp_path / "missing" / "app.db")


@pytest.mark.parametrize("profile", ["stock", "durable"])
def test_any_profile_will_do(tmp_path: Path, profile: str) -> None:
    with Database(os.fsencode(tmp_path / "app.db"), profile) as db:
        db.execute("CREATE TABLE t (x)")
        assert db.query("SELECT * FROM t") == []
        assert db.stats().passes == 1


def test_it_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Database("app.db") as db:
        db.execute("CREATE TABLE t (x)")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        assert db.query("SELECT * FROM t") == []


def test_closing_refuses_further_use(tmp_path: Path) -> None:
    db = Database(tmp_path / "app.db")
    db.query("SELECT 1")
    db.close()
    db.close()
    for use in (lambda: db.query("SELECT 1"), lambda: db.execute("SELECT 1"), db.stats):
        with pytest.raises(sqlite3.ProgrammingError, match="closed Database"):
            use()
    assert not (tmp_path / "app.db-wal").exists(), "the last connection is closed"


def test_closing_waits_for_what_is_in_use(tmp_path: Path, start: Start) -> None:
    db = Database(tmp_path / "app.db")
    db.execute("CREATE TABLE t (x)")
    begun = threading.Event()

    def work() -> None:
        with db.write() as connection:
            begun.set()
            time.sleep(0.2)
            connection.execute("INSERT INTO t VALUES (1)")

    start(work)
    begun.wait(30)
    db.close(timeout=30)
    with Database(tmp_path / "app.db") as again:
        assert again.query("SELECT x FROM t") == [(1,)]


def test_closing_interrupts_in_the_end(tmp_path: Path) -> None:
    db = Database(tmp_path / "app.db")
    endless = (
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    )
    caught: list[BaseException] = []

    def work() -> None:
        try:
            db.query(endless)
        except sqlite3.OperationalError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: db.stats().readers_lent)
    db.close(timeout=0.1)
    thread.join(30)
    assert [str(error) for error in caught] == ["interrupted"]


def test_closing_tells_who_keeps_a_connection(tmp_path: Path) -> None:
    db = Database(tmp_path / "app.db")
    with (
        db.read() as connection,
        pytest.raises(
            sqlite3.OperationalError, match=r"still in use .*: readers by thread 'MainThread'"
        ),
    ):
        db.close(timeout=0)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_closing_sends_away_those_who_wait(tmp_path: Path, start: Start) -> None:
    db = Database(tmp_path / "app.db", readers=1, timeout=60)
    refused: list[BaseException] = []

    def wait() -> None:
        try:
            db.query("SELECT 1")
        except sqlite3.ProgrammingError as error:
            refused.append(error)

    def close() -> None:
        db.close(timeout=30)

    with db.read():
        waiting = start(wait)
        until(lambda: db.stats().readers_waiting)
        closing = start(close)
        waiting.join(30)
    closing.join(30)
    assert len(refused) == 1


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


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_that_comes_with_a_reader_does_not_lose_it(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db", readers=1, timeout=60) as db:
        for _ in range(10):
            begun = threading.Event()

            def hold(begun: threading.Event = begun) -> None:
                with db.read():
                    begun.set()
                    while not db.stats().readers_waiting:
                        time.sleep(0.001)
                    os.kill(os.getpid(), signal.SIGINT)

            holder = threading.Thread(target=hold)
            holder.start()
            begun.wait(60)
            with pytest.raises(KeyboardInterrupt), db.read():
                holder.join(60)
            holder.join(60)
            assert db.stats().readers_lent == 0
        assert db.query_one("SELECT 1") == (1,)


def test_a_query_left_in_the_middle_keeps_no_snapshot(tmp_path: Path) -> None:
    with Database(tmp_path / "app.db", readers=1) as db:
        db.execute("CREATE TABLE t (x)")
        db.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(100)])
        with db.read() as connection:
            reading = connection.execute("SELECT x FROM t")
            assert reading.fetchone() == (0,)
        with db.write() as connection:
            on_writer = connection.execute("SELECT x FROM t")
            assert on_writer.fetchone() == (0,)
        with sqlite3.connect(tmp_path / "app.db") as other:
            other.execute("DELETE FROM t")
        other.close()
        assert db.query("SELECT * FROM t") == []
        db.execute("INSERT INTO t VALUES (1)")
        with (  # noqa: PT012
            pytest.raises(sqlite3.ProgrammingError, match="ended inside"),
            db.write() as connection,
        ):
            connection.commit()
            returned = connection.execute("INSERT INTO t VALUES (2), (3) RETURNING x")
        assert db.execute("DELETE FROM t WHERE x = 1").rowcount == 1
        del reading, on_writer, returned


def _change_all(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    connection.isolation_level = "EXCLUSIVE"


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_borrower_sets_ends_with_its_block(tmp_path: Path, fails: bool) -> None:
    def set_up(connection: sqlite3.Connection) -> None:
        connection.row_factory = lambda cursor, row: [*row]

    with Database(tmp_path / "app.db", readers=1, setup=set_up) as db:
        db.execute("CREATE TABLE t (x)")
        for borrow in (db.read, db.write):
            with contextlib.suppress(ZeroDivisionError), borrow() as connection:
                _change_all(connection)
                if fails:
                    raise ZeroDivisionError
            with borrow() as again:
                assert again is connection
                assert again.isolation_level is None
                assert again.execute("SELECT 'a'").fetchall() == [["a"]]
        assert db.query("SELECT 'a'") == [["a"]]
        assert db.execute("INSERT INTO t VALUES ('a') RETURNING x").rows == [["a"]]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            db.query("INSERT INTO t VALUES ('b')")


@pytest.mark.parametrize("sql", ["BEGIN", "-- a\n/* b */ savepoint s", "COMMIT", "ROLLBACK"])
def test_a_query_begins_and_ends_no_transaction(db: Database, sql: str) -> None:
    for query in (db.query, db.query_one):
        with pytest.raises(sqlite3.Error) as raised:
            query(sql)
        if sql not in {"COMMIT", "ROLLBACK"}:
            assert isinstance(raised.value, sqlite3.ProgrammingError)
            assert "db.read()" in str(raised.value)
    assert db.query("SELECT x FROM t") == []
    assert db.query_one("SELECT x FROM t") is None
