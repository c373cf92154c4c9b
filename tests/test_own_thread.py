"""A thread that would wait for a transaction which only it can end is refused at once, and told so.

The timeout is so long that who waited for it would be stopped by the test's own.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy
from tests.wait import until

import oxlite
import oxlite.aio

FOR_EVER = 1000.0

TEXT = "held by this thread itself, through another connection"

Connect = Callable[..., oxlite.Connection]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with an empty table ``t(a)``."""
    path = tmp_path / "app.db"
    connection = oxlite.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    return path


@pytest.fixture
def connect(path: Path) -> Iterator[Connect]:
    """``oxlite.connect`` to it, waiting for ever; closed after the test."""
    connections: list[oxlite.Connection] = []

    def connect(**options: object) -> oxlite.Connection:
        options = {"isolation_level": None, "timeout": FOR_EVER} | options
        connections.append(oxlite.connect(path, **options))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


@pytest.mark.parametrize(
    "sql", ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (2)", "CREATE TABLE u(a)", "VACUUM"]
)
def test_by_another_connection(connect: Connect, sql: str) -> None:
    one, other = connect(), connect()
    one.execute("BEGIN IMMEDIATE")
    one.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(oxlite.LockedError, match=f"{TEXT}.*INSERT INTO t VALUES .1.; .*commit it"):
        other.execute(sql)
    one.execute("COMMIT")
    other.execute(sql)


def test_by_a_transaction_that_has_done_nothing_yet(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("BEGIN IMMEDIATE")
    with pytest.raises(oxlite.LockedError, match=TEXT):
        other.execute("BEGIN IMMEDIATE")


def test_by_a_transaction_that_has_read_before(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN")
    assert other.execute("SELECT * FROM t").fetchall() == []
    with pytest.raises(oxlite.LockedError, match=TEXT):
        other.execute("INSERT INTO t VALUES (1)")


def test_what_needs_another_lock_goes_on(connect: Connect, tmp_path: Path) -> None:
    one, other = connect(), connect()
    other.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
    other.execute("CREATE TABLE other.u(a)")
    one.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TEMP TABLE v(a)")
    other.execute("INSERT INTO v VALUES (1)")
    other.execute("INSERT INTO other.u VALUES (1)")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_another_thread_waits(connect: Connect, path: Path) -> None:
    one = connect()
    one.execute("BEGIN IMMEDIATE")
    is_done = threading.Event()

    def write() -> None:
        other = oxlite.connect(path, isolation_level=None, timeout=FOR_EVER)
        other.execute("INSERT INTO t VALUES (1)")
        other.close()
        is_done.set()

    thread = threading.Thread(target=write)
    thread.start()
    until(lambda: one.queue_statistics()["waiting"])
    assert not is_done.is_set()
    one.execute("COMMIT")
    thread.join()
    assert is_done.is_set()


def test_the_thread_that_it_was_handed_to_has_it_and_the_one_before_does_not(
    connect: Connect, path: Path
) -> None:
    one = connect()
    one.execute("BEGIN IMMEDIATE")
    has_it, may_end = threading.Event(), threading.Event()
    refusals: list[str] = []

    def write() -> None:
        options = {"isolation_level": None, "timeout": FOR_EVER}
        mine, other = oxlite.connect(path, **options), oxlite.connect(path, **options)
        mine.execute("BEGIN IMMEDIATE")
        has_it.set()
        assert may_end.wait(60)
        try:
            other.execute("INSERT INTO t VALUES (1)")
        except oxlite.LockedError as error:
            refusals.append(str(error))
        mine.execute("COMMIT")
        mine.close()
        other.close()

    thread = threading.Thread(target=write)
    thread.start()
    until(lambda: one.queue_statistics()["waiting"])
    one.execute("COMMIT")
    assert has_it.wait(60)
    try:
        with pytest.raises(oxlite.LockedError, match="held by this process") as caught:
            connect(timeout=0.05).execute("INSERT INTO t VALUES (2)")
    finally:
        may_end.set()
        thread.join(60)
    assert TEXT not in str(caught.value)
    assert [TEXT in refusal for refusal in refusals] == [True]


def test_who_may_be_ended_by_another_thread_is_waited_for(connect: Connect) -> None:
    """With ``check_same_thread=False`` the transaction may be handed on."""
    one, other = connect(check_same_thread=False), connect()
    one.execute("BEGIN IMMEDIATE")

    def end() -> None:
        until(lambda: one.queue_statistics()["waiting"])
        one.execute("COMMIT")

    ending = threading.Thread(target=end)
    ending.start()
    other.execute("INSERT INTO t VALUES (1)")
    ending.join()


def test_who_has_waited_for_a_connection_that_any_thread_may_end_is_told_whose_it_is(
    connect: Connect,
) -> None:
    one, other = connect(check_same_thread=False), connect(timeout=0.05)
    one.execute("BEGIN IMMEDIATE")
    one.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(oxlite.LockedError, match="held by this process") as caught:
        other.execute("INSERT INTO t VALUES (2)")
    assert TEXT not in str(caught.value)
    assert caught.value.holder is not None
    assert caught.value.holder["thread_id"] == threading.get_native_id()


def test_a_database_inside_a_connections_transaction(connect: Connect, path: Path) -> None:
    connection = connect()
    with oxlite.Database(path, timeout=FOR_EVER) as database:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(oxlite.LockedError, match=TEXT):
            database.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(oxlite.LockedError, match=TEXT), database.write():
            pass
        connection.execute("COMMIT")
        database.execute("INSERT INTO t VALUES (1)")


def test_a_connection_inside_a_databases_block(connect: Connect, path: Path) -> None:
    connection = connect()
    with oxlite.Database(path, timeout=FOR_EVER) as database:
        with (
            database.write(),
            pytest.raises(oxlite.LockedError, match=TEXT),
        ):
            connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO t VALUES (1)")
        # The writer is anybody's again.
        with oxlite.Database(path, timeout=FOR_EVER) as another, another.write() as its_writer:
            its_writer.execute("INSERT INTO t VALUES (2)")


def test_two_databases(path: Path) -> None:
    with (
        oxlite.Database(path, timeout=FOR_EVER) as one,
        oxlite.Database(path, timeout=FOR_EVER) as other,
        one.write(),
        pytest.raises(oxlite.LockedError, match=TEXT),
    ):
        other.execute("INSERT INTO t VALUES (1)")


def test_a_task_that_has_the_writer(path: Path) -> None:
    async def run() -> None:
        async with oxlite.aio.Database(path, timeout=FOR_EVER) as database:
            async with database.write() as connection:
                await connection.execute("INSERT INTO t VALUES (1)")
                for call in [
                    lambda: database.execute("INSERT INTO t VALUES (2)"),
                    lambda: database.executemany("INSERT INTO t VALUES (?)", [(2,)]),
                    lambda: database.execute("CREATE TABLE u(a)"),
                    lambda: database.write().__aenter__(),
                ]:
                    with pytest.raises(oxlite.sqlite3.ProgrammingError, match="wait for itself"):
                        await call()
                # Another task waits, and has it when the block has ended.
                other = asyncio.create_task(database.execute("INSERT INTO t VALUES (3)"))
                await asyncio.sleep(0)
            await other
            await database.execute("INSERT INTO t VALUES (4)")
            assert await database.query("SELECT a FROM t") == [(1,), (3,), (4,)]

    asyncio.run(run())


def test_a_task_that_was_cancelled_in_its_block_writes_again_at_once(path: Path) -> None:
    """The writer comes back a little later, and the task waits for it as any other."""

    async def run() -> None:
        async with oxlite.aio.Database(path, timeout=FOR_EVER) as database:
            for number in range(50):
                try:
                    async with asyncio.timeout(0.002), database.write() as connection:
                        await connection.execute("INSERT INTO t VALUES (-1)")
                        await asyncio.sleep(FOR_EVER)
                except TimeoutError:
                    await database.execute("INSERT INTO t VALUES (?)", (number,))
            assert await database.query("SELECT a FROM t") == [(number,) for number in range(50)]

    asyncio.run(run())


def test_tasks_that_contend_are_not_told_that_they_wait_for_themselves(path: Path) -> None:
    """Their native threads are anybody's."""

    async def run() -> None:
        async with (
            oxlite.aio.connect(path, timeout=0.05) as one,
            oxlite.aio.connect(path, timeout=0.05) as other,
        ):
            await one.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(oxlite.LockedError) as caught:
                await other.execute("INSERT INTO t VALUES (2)")
            assert TEXT not in str(caught.value)

    asyncio.run(run())


def test_sqlalchemys_connections_where_each_is_one_threads(path: Path) -> None:
    engine = sqlalchemy.create_engine(
        f"sqlite+oxlite:///{path}",
        connect_args={"timeout": FOR_EVER, "check_same_thread": True},
    )
    insert = sqlalchemy.text("INSERT INTO t VALUES (1)")
    with engine.connect() as one, engine.connect() as other:
        one.execute(insert)
        with pytest.raises(sqlalchemy.exc.OperationalError, match=TEXT):
            other.execute(insert)
    engine.dispose()
