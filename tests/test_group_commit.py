"""Writes of many threads that share a COMMIT: nobody notices, but for the time it takes."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.wait import until

import oxlite
from oxlite import Database, sqlite3

THREADS = 16
WRITES = 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    with Database(path, profile="durable", timeout=30) as db:
        db.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, thread, number, UNIQUE (thread, number))"
        )
        yield db


def crowd(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run it in threads that begin together; what one raises is raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(threads)

    def run(thread: int) -> None:
        try:
            barrier.wait(60)
            work(thread)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def hold_back(db: Database) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    """While it lasts, whoever writes waits in line."""
    return db.write()


def queue_up(db: Database, calls: list[Callable[[], Any]]) -> list[Any]:
    """Make the calls in threads that stand in line in this order; what each came to.

    What is refused before it stands in line is done when the next one begins.
    """
    outcomes: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            outcomes[index] = calls[index]()
        except Exception as error:
            outcomes[index] = error

    threads = []
    with hold_back(db):
        for index in range(len(calls)):
            before = db.stats().writer_waiting
            thread = threading.Thread(target=run, args=(index,))
            threads.append(thread)
            thread.start()
            until(
                lambda thread=thread, before=before: (
                    db.stats().writer_waiting > before or not thread.is_alive()
                )
            )
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return outcomes


@pytest.mark.parametrize("durable_commit", ["group", "each"])
def test_every_write_of_every_thread_is_there_once(
    tmp_path: Path, durable_commit: Literal["group", "each"]
) -> None:
    with Database(tmp_path / "a.db", durable_commit=durable_commit, timeout=60) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, thread, number)")
        before = db.stats()
        ids: list[tuple[int, int, int]] = []

        def write(thread: int) -> None:
            for number in range(WRITES):
                result = db.execute(
                    "INSERT INTO t (thread, number) VALUES (?, ?)", (thread, number)
                )
                assert result.rowcount == 1
                assert result.lastrowid is not None
                ids.append((result.lastrowid, thread, number))

        crowd(write)
        assert sorted(db.query("SELECT id, thread, number FROM t")) == sorted(ids)
        assert len(ids) == THREADS * WRITES
        after = db.stats()
        assert after.batched_writes - before.batched_writes == THREADS * WRITES
        if durable_commit == "each":
            assert after.batches - before.batches == THREADS * WRITES
        else:
            assert after.batches - before.batches < THREADS * WRITES


def test_those_that_wait_are_committed_together_in_order(db: Database) -> None:
    before = db.stats()
    insert = "INSERT INTO t (thread, number) VALUES (?, ?) RETURNING id, number"
    calls = [lambda n=n: db.execute(insert, (0, n)) for n in range(10)]
    outcomes = queue_up(db, calls)
    assert [outcome.rows for outcome in outcomes] == [[(n + 1, n)] for n in range(10)]
    assert db.stats().batches - before.batches == 1
    assert db.stats().batched_writes - before.batched_writes == 10


def test_only_the_guilty_fail(db: Database) -> None:
    db.execute("INSERT INTO t (thread, number) VALUES (0, 0)")
    insert = "INSERT INTO t (thread, number) VALUES (?, ?)"
    outcomes = queue_up(
        db,
        [
            lambda: db.execute(insert, (1, 1)),
            lambda: db.execute(insert, (0, 0)),
            lambda: db.execute("INSERT OR ROLLBACK INTO t (thread, number) VALUES (0, 0)"),
            lambda: db.execute("INSERT INTO nowhere VALUES (1)"),
            lambda: db.execute(insert, (1,)),
            lambda: db.execute(insert, {"thread": 1}),
            lambda: db.execute("INSERT INTO t (thread) VALUES (:thread)", {"x": 1}),
            lambda: db.executemany(insert, [(2, 1), (2, 2), (2, 1)]),
            lambda: db.executemany(insert, [(3, 1), (3, 2)]),
            lambda: db.execute("INSERT INTO t (thread, number) VALUES (:a, :b)", {"a": 4, "b": 5}),
        ],
    )
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [
        oxlite.Result,
        sqlite3.IntegrityError,
        sqlite3.IntegrityError,
        sqlite3.OperationalError,
        sqlite3.ProgrammingError,
        sqlite3.ProgrammingError,
        sqlite3.ProgrammingError,
        sqlite3.IntegrityError,
        oxlite.Result,
        oxlite.Result,
    ]
    assert outcomes[1].sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    assert "uses 2, and there are 1 supplied" in str(outcomes[4])
    assert outcomes[8].rowcount == 2
    rows = db.query("SELECT thread, number FROM t ORDER BY thread, number")
    assert rows == [(0, 0), (1, 1), (3, 1), (3, 2), (4, 5)]


def test_alone_and_together_answer_the_same(db: Database) -> None:
    statements: list[tuple[str, Any]] = [
        ("INSERT INTO t (thread, number) VALUES (?, ?)", ["a", None]),
        ("INSERT INTO t (thread, number) VALUES (?, ?) RETURNING thread, number", (1.5, b"\x00b")),
        ("UPDATE t SET number = 1", ()),
        ("INSERT OR IGNORE INTO t (id, thread) VALUES (1, 2)", ()),
        ("DELETE FROM t WHERE id = 77", ()),
        ("WITH x AS (SELECT 8 AS y) INSERT INTO t (thread) SELECT y FROM x", ()),
        ("INSERT INTO t (thread) VALUES (?) RETURNING *", ("\N{SNOWMAN}",)),
        ("INSERT INTO t (thread) VALUES (?)", (2**63,)),
        ("INSERT INTO t (thread) VALUES (?)", (object(),)),
        ("INSERT INTO t (thread) VALUES (?)", (bytearray(b"x"),)),
        ("INSERT INTO t (thread) VALUES (?)", "x"),
        ("INSERT INTO t (thread) VALUES (?)", 5),
        ("INSERT INTO t (thread) VALUES (:x)", {"x": 1, "y": object()}),
        ("REPLACE INTO t (id, thread) VALUES (1, '\udc80')", ()),
        ("", ()),
        ("SELECT 1", ()),
        ("INSERT INTO t (thread) VALUES (1); SELECT 1", ()),
    ]

    def outcome(sql: str, parameters: Any) -> object:  # noqa: ANN401
        try:
            return db.execute(sql, parameters)
        except Exception as error:
            return type(error), str(error)

    alone = [outcome(sql, parameters) for sql, parameters in statements]
    rows = db.query("SELECT * FROM t")
    db.execute("DELETE FROM t")
    together = queue_up(db, [lambda s=s, p=p: outcome(s, p) for s, p in statements])
    assert together == alone
    assert db.query("SELECT * FROM t") == rows


def test_row_factories_and_what_needs_the_connection(tmp_path: Path) -> None:
    def setup(connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row

    with Database(tmp_path / "a.db", setup=setup) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
        insert = "INSERT INTO t (x) VALUES (?) RETURNING id, x AS y"
        before = db.stats()
        outcomes = queue_up(db, [lambda n=n: db.execute(insert, (n,)) for n in range(3)])
        assert [dict(outcome.rows[0]) for outcome in outcomes] == [
            {"id": n + 1, "y": n} for n in range(3)
        ]
        assert db.stats().batches - before.batches == 1

    def bytes_for_text(connection: sqlite3.Connection) -> None:
        connection.text_factory = bytes

    with Database(tmp_path / "a.db", setup=bytes_for_text) as db:
        insert = "INSERT INTO t (x) VALUES ('a') RETURNING x"
        outcomes = queue_up(db, [lambda: db.execute(insert) for _ in range(3)])
        assert [outcome.rows for outcome in outcomes] == [[(b"a",)]] * 3


def test_code_of_the_application_runs_in_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    lock = threading.RLock()
    calls: dict[int, set[int]] = {}

    def setup(connection: sqlite3.Connection) -> None:
        def double(number: int) -> int:
            with lock:
                calls.setdefault(threading.get_ident(), set()).add(number)
            if number == 3:
                raise SystemExit(3)
            return number * 2

        connection.create_function("double", 1, double)

    with Database(tmp_path / "a.db", setup=setup) as db:
        db.execute("CREATE TABLE t (x)")

        def write(number: int) -> object:
            try:
                return db.execute("INSERT INTO t VALUES (double(?))", (number,))
            except SystemExit as error:
                return error

        outcomes = queue_up(db, [lambda n=n: write(n) for n in range(6)])
        assert [type(outcome) for outcome in outcomes].count(oxlite.Result) == 5
        assert isinstance(outcomes[3], SystemExit)
        assert db.query("SELECT x FROM t") == [(0,), (2,), (4,), (8,), (10,)]
        assert sorted(map(sorted, calls.values())) == [[n] for n in range(6)]

        def with_the_lock(number: int) -> None:
            with lock:
                db.execute("INSERT INTO t VALUES (double(?))", (10 + number,))

        crowd(with_the_lock)


def test_what_runs_alone_answers_as_what_runs_together(db: Database) -> None:
    class Mapping(dict[str, object]):
        """Known by the statement alone."""

    db.execute("INSERT INTO t (id, thread) VALUES (77, 0)")
    statements = [
        "UPDATE t SET number = :x",
        "INSERT OR IGNORE INTO t (id) VALUES (77 + 0 * :x)",
        "INSERT INTO t (id) VALUES (77) ON CONFLICT DO UPDATE SET number = :x",
        "INSERT INTO t (thread) VALUES (:x) RETURNING thread",
        "DELETE FROM t WHERE thread = :x RETURNING id",
    ]
    together = [db.execute(sql, {"x": 5}) for sql in statements]
    alone = [db.execute(sql, Mapping(x=5)) for sql in statements]
    assert alone == together
    insert = "INSERT INTO t (thread) VALUES (?)"
    for sets in ([(1,), (2,)], iter([(1,), (2,)])):
        assert db.executemany(insert, sets)[:2] == (2, db.query_one("SELECT max(id) FROM t")[0])
    for nothing in ([(1,)], iter([(1,)])):
        with pytest.raises(sqlite3.ProgrammingError, match="can only execute DML"):
            db.executemany("WITH x AS (SELECT ? AS y) SELECT y FROM x", nothing)


@pytest.mark.parametrize("sql", ["BEGIN", "SAVEPOINT a", "BEGIN IMMEDIATE"])
def test_transactions_are_refused(db: Database, sql: str) -> None:
    outcomes = queue_up(
        db,
        [
            lambda: db.execute("INSERT INTO t (thread) VALUES (1)"),
            lambda: db.execute(sql),
            lambda: db.execute("INSERT INTO t (thread) VALUES (2)"),
        ],
    )
    assert isinstance(outcomes[1], sqlite3.ProgrammingError)
    assert "db.write()" in str(outcomes[1])
    assert db.query("SELECT thread FROM t ORDER BY thread") == [(1,), (2,)]


def test_what_stands_alone_is_run_alone(db: Database) -> None:
    db.execute("PRAGMA user_version = 7")
    assert db.query_one("PRAGMA user_version") == (7,)
    db.execute("CREATE INDEX i ON t (number)")
    db.execute("VACUUM")
    db.execute("ANALYZE")
    assert (
        db.executemany("INSERT INTO t (number) VALUES (?)", ((n,) for n in range(5))).rowcount == 5
    )
    assert (
        db.executemany("INSERT INTO t (number) VALUES (?)", [(n,) for n in range(2000)]).rowcount
        == 2000
    )


def test_deferred_foreign_keys_fail_only_who_violates_them(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        db.execute("CREATE TABLE p (id INTEGER PRIMARY KEY)")
        db.execute(
            "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p DEFERRABLE INITIALLY DEFERRED)"
        )
        outcomes = queue_up(
            db,
            [
                lambda: db.execute("INSERT INTO p VALUES (1)"),
                lambda: db.execute("INSERT INTO c (p) VALUES (9)"),
                lambda: db.execute("INSERT INTO c (p) VALUES (1)"),
                # Which would have mended the second one's.
                lambda: db.execute("INSERT INTO p VALUES (9)"),
            ],
        )
        assert isinstance(outcomes[1], sqlite3.IntegrityError)
        assert outcomes[1].sqlite_errorname == "SQLITE_CONSTRAINT_FOREIGNKEY"
        assert db.query("SELECT p FROM c") == [(1,)]
        assert db.query("PRAGMA foreign_key_check") == []


def test_transactions_and_requests_take_turns(db: Database) -> None:
    done: list[str] = []

    def transaction() -> None:
        with db.write() as connection:
            connection.execute("INSERT INTO t (thread) VALUES ('w')")
            done.append("write")

    def single() -> None:
        db.execute("INSERT INTO t (thread) VALUES ('e')")
        done.append("execute")

    queue_up(db, [transaction, single, transaction, single, single])
    assert db.query("SELECT thread, count(*) FROM t GROUP BY thread") == [("e", 3), ("w", 2)]
    # The batch of all three comes first, or between the two.
    assert done.index("execute") < [i for i, kind in enumerate(done) if kind == "write"][1] + 3


def test_whoever_waits_too_long_is_told_who_has_the_writer(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db", timeout=0.2) as db:
        db.execute("CREATE TABLE t (x)")
        outcomes: list[BaseException] = []

        def run() -> None:
            for call in (
                lambda: db.execute("INSERT INTO t VALUES (1)"),
                lambda: db.executemany("INSERT INTO t VALUES (?)", [(1,)]),
                lambda: db.execute("PRAGMA user_version = 1"),
            ):
                try:
                    call()
                except oxlite.LockedError as error:
                    outcomes.append(error)

        with db.write():
            thread = threading.Thread(target=run)
            thread.start()
            thread.join(60)
        assert len(outcomes) == 3
        assert all("MainThread" in str(error) for error in outcomes)
        assert db.execute("INSERT INTO t VALUES (1)").rowcount == 1
        assert db.query("SELECT count(*) FROM t") == [(1,)], "what was given up was not done"


def test_a_lock_held_elsewhere_fails_each_in_its_own_time(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Database(path, timeout=0.3) as db:
        db.execute("CREATE TABLE t (x)")
        other = oxlite.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        errors: list[BaseException] = []

        def write(_thread: int) -> None:
            with pytest.raises(oxlite.LockedError) as caught:
                db.execute("INSERT INTO t VALUES (1)")
            errors.append(caught.value)

        crowd(write, threads=8)
        assert len(errors) == 8
        other.rollback()
        db.execute("INSERT INTO t VALUES (2)")
        assert db.query("SELECT x FROM t") == [(2,)]
        other.close()


def refused_at_the_end() -> contextlib.AbstractContextManager[object]:
    """Around a block of ``write()`` that ends its transaction itself."""
    return pytest.raises(sqlite3.ProgrammingError, match="ended inside")


def test_the_lock_of_an_attached_database_is_only_for_who_writes_there(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "b.db", isolation_level=None)
    other.execute("CREATE TABLE t (x)")

    def setup(connection: sqlite3.Connection) -> None:
        connection.execute("ATTACH ? AS b", (str(tmp_path / "b.db"),))

    with Database(tmp_path / "a.db", setup=setup, timeout=30) as db:
        db.execute("CREATE TABLE main.t (x)")
        outcomes: list[object] = []

        def write(number: int) -> None:
            schema = "b" if number == 3 else "main"
            try:
                outcomes.append(db.execute(f"INSERT INTO {schema}.t VALUES (?)", (number,)))
            except oxlite.LockedError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        with refused_at_the_end(), db.write() as writer:
            writer.rollback()  # it keeps the writer, and no lock
            for index, thread in enumerate(threads):
                thread.start()
                until(lambda index=index: db.stats().writer_waiting > index)
            other.execute("BEGIN IMMEDIATE")
        for thread in threads[:3]:
            thread.join(60)
        assert [type(outcome) for outcome in outcomes[:3]] == [oxlite.Result] * 3
        other.rollback()
        for thread in threads:
            thread.join(60)
    other.close()


def test_writing_inside_a_write_is_refused(db: Database) -> None:
    with db.write():
        for call in (
            lambda: db.execute("INSERT INTO t (thread) VALUES (1)"),
            lambda: db.executemany("INSERT INTO t (thread) VALUES (?)", [(1,)]),
            lambda: db.execute("PRAGMA user_version"),
        ):
            with pytest.raises(sqlite3.ProgrammingError, match="would wait for itself"):
                call()


def test_closing_sends_those_away_that_wait(tmp_path: Path) -> None:
    db = Database(tmp_path / "a.db")
    db.execute("CREATE TABLE t (x)")
    outcomes: list[BaseException] = []

    def run() -> None:
        try:
            db.execute("INSERT INTO t VALUES (1)")
        except sqlite3.ProgrammingError as error:
            outcomes.append(error)

    thread = threading.Thread(target=run)
    with db.write() as connection:
        thread.start()
        until(lambda: db.stats().writer_waiting)
        with pytest.raises(sqlite3.OperationalError, match="still in use"):
            db.close(timeout=0.05)
        thread.join(60)
        connection.execute("INSERT INTO t VALUES (2)")
    assert len(outcomes) == 1
    assert "closed Database" in str(outcomes[0])
    with Database(tmp_path / "a.db") as again:
        assert again.query("SELECT x FROM t") == [(2,)]


def test_a_leader_closes_the_connection_of_a_closed_database(tmp_path: Path) -> None:
    is_writing, is_closed = threading.Event(), threading.Event()
    opened: list[sqlite3.Connection] = []

    def wait() -> bool:
        is_writing.set()
        return is_closed.wait(60)

    def setup(connection: sqlite3.Connection) -> None:
        opened.append(connection)
        connection.create_function("wait", 0, wait)

    db = Database(tmp_path / "a.db", setup=setup)
    db.execute("CREATE TABLE t (x)")
    [connection] = opened
    leader = threading.Thread(target=db.execute, args=("INSERT INTO t VALUES (wait())",))
    leader.start()
    assert is_writing.wait(60)
    with pytest.raises(sqlite3.OperationalError, match="closed when given back"):
        db.close(timeout=0)
    is_closed.set()
    leader.join(60)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_an_authorizer_and_a_tracer_are_not_told_of_savepoints(tmp_path: Path) -> None:
    traced: list[str] = []

    def setup(connection: sqlite3.Connection) -> None:
        deny = sqlite3.SQLITE_DENY, sqlite3.SQLITE_OK
        connection.set_authorizer(
            lambda action, *_arguments: deny[action != sqlite3.SQLITE_SAVEPOINT]
        )
        connection.set_trace_callback(traced.append)

    with Database(tmp_path / "a.db", setup=setup) as db:
        db.execute("CREATE TABLE t (x UNIQUE)")
        insert = "INSERT INTO t VALUES (?)"
        calls = [lambda n=n: db.execute(insert, (n % 3,)) for n in range(4)]
        outcomes = queue_up(db, calls)
        assert [type(outcome) for outcome in outcomes[:3]] == [oxlite.Result] * 3
        assert isinstance(outcomes[3], sqlite3.IntegrityError)
        assert not [sql for sql in traced if "oxlite" in sql]


def test_an_exit_waits_for_no_thread(tmp_path: Path) -> None:
    """A finaliser writes at the very end; the thread that has the writer goes on no more."""
    script = """
        import sys, threading, time
        import oxlite

        is_writing = threading.Event()

        def sleep():
            is_writing.set()
            time.sleep(60)

        def setup(connection):
            connection.create_function("sleep", 0, sleep)

        class Last:
            def __del__(self):
                for call in (
                    lambda: db.execute("INSERT INTO t VALUES (1)"),
                    lambda: db.execute("PRAGMA user_version = 1"),
                    lambda: db.close(timeout=3600),
                ):
                    try:
                        call()
                    except oxlite.sqlite3.OperationalError as error:
                        print(type(error).__name__)

        db = oxlite.Database(sys.argv[1], timeout=3600, setup=setup)
        db.execute("CREATE TABLE t (x)")
        threading.Thread(
            target=db.execute, args=("INSERT INTO t VALUES (sleep())",), daemon=True
        ).start()
        is_writing.wait()
        sys.modules["last"] = Last()
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout.split() == ["LockedError", "LockedError", "OperationalError"]


def test_durable_commit_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'group', 'each' or 'shared', not 'all'"):
        Database(tmp_path / "a.db", durable_commit="all")  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_in_line_withdraws_the_request(db: Database) -> None:
    """The main thread waits for a writer that another thread has."""
    is_held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with db.write():
            is_held.set()
            until(lambda: db.stats().writer_waiting)
            os.kill(os.getpid(), signal.SIGINT)
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(60)
    with pytest.raises(KeyboardInterrupt):
        db.execute("INSERT INTO t (thread) VALUES ('never')")
    release.set()
    holder.join(60)
    db.execute("INSERT INTO t (thread) VALUES ('later')")
    assert db.query("SELECT thread FROM t") == [("later",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_in_the_midst_begins_anew(db: Database, path: Path) -> None:
    with db.write() as connection:
        connection.execute("INSERT INTO t (thread) VALUES ('parent')")
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                with pytest.raises(oxlite.LockedError):
                    Database(path, timeout=0).execute("INSERT INTO t (thread) VALUES ('child')")
                status = 0
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert db.query("SELECT thread FROM t") == [("parent",)]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_that_comes_with_the_writer_does_not_lose_it(db: Database) -> None:
    for _ in range(10):
        is_held = threading.Event()

        def hold(is_held: threading.Event = is_held) -> None:
            with db.write():
                is_held.set()
                until(lambda: db.stats().writer_waiting)
                os.kill(os.getpid(), signal.SIGINT)

        holder = threading.Thread(target=hold)
        holder.start()
        assert is_held.wait(60)
        with pytest.raises(KeyboardInterrupt), db.write():
            holder.join(60)
        holder.join(60)
        # Whoever has lost the writer is refused as if he wrote inside a write; another one waits.
        assert db.execute("INSERT INTO t (thread) VALUES (1)").rowcount == 1


def test_timeouts_of_the_application_are_its_own(tmp_path: Path) -> None:
    def late(*_arguments: object) -> None:
        raise TimeoutError("of the application")

    class Late:
        def __conform__(self, _protocol: object) -> None:
            late()

    def setup(connection: sqlite3.Connection) -> None:
        connection.row_factory = late

    with Database(tmp_path / "a.db", setup=setup) as db:
        db.execute("CREATE TABLE t (x)")
        with pytest.raises(TimeoutError, match="of the application"):
            db.execute("INSERT INTO t VALUES (?)", (Late(),))
        with pytest.raises(TimeoutError, match="of the application"):
            db.execute("INSERT INTO t VALUES (1) RETURNING x")

    setups = [late, late, setup]
    with Database(tmp_path / "b.db", setup=lambda connection: setups.pop()(connection)) as db:
        db.execute("CREATE TABLE t (x)")
        with contextlib.suppress(sqlite3.ProgrammingError), db.write() as connection:
            connection.close()  # the next write opens one anew
        for write in (db.execute, lambda sql: db.executemany(sql, iter([()]))):
            with pytest.raises(TimeoutError, match="of the application"):
                write("INSERT INTO t VALUES (2)")
    assert not setups


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_signal_handler_does_not_wait_for_whom_it_interrupts(db: Database) -> None:
    raised: list[BaseException] = []
    is_held, is_over = threading.Event(), threading.Event()

    def write(_number: int, _frame: object) -> None:
        try:
            db.execute("INSERT INTO t (thread) VALUES ('handler')")
        except sqlite3.Error as error:
            raised.append(error)
        is_over.set()

    def hold() -> None:
        with db.write():
            is_held.set()
            until(lambda: db.stats().writer_waiting)
            os.kill(os.getpid(), signal.SIGINT)
            until(is_over.is_set)

    before = signal.signal(signal.SIGINT, write)
    try:
        for wait in (lambda: db.execute("INSERT INTO t (thread) VALUES (1)"), db.checkpoint):
            is_held.clear()
            is_over.clear()
            holder = threading.Thread(target=hold)
            holder.start()
            assert is_held.wait(60)
            wait()
            holder.join(60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ["would wait for itself" in str(error) for error in raised] == [True, True]
    assert db.query("SELECT thread FROM t") == [(1,)]


def test_a_write_is_counted_once(tmp_path: Path) -> None:
    def setup(connection: sqlite3.Connection) -> None:
        connection.create_function("sleep", 0, lambda: time.sleep(0.004))

    with Database(tmp_path / "a.db", setup=setup) as db:
        db.execute("CREATE TABLE t (x)")
        before = db.stats()
        queue_up(db, [lambda: db.execute("INSERT INTO t VALUES (sleep())") for _ in range(8)])
        after = db.stats()
        assert after.batches - before.batches > 1, "one transaction does not last for so long"
        assert after.batched_writes - before.batched_writes == 8
