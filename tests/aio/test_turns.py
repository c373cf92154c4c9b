"""What takes a turn on a connection, when, and what becomes of it when nobody waits."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import Child, Run
from tests.wait import LIMIT_SECONDS, loop_until

from oxlite import aio, sqlite3
from oxlite.aio import Connection, Cursor, Database
from oxlite.aio.connection import ConnectionClosedError

OF_A_CONNECTION: dict[str, Callable[[Connection], Awaitable[object]]] = {
    "backup": lambda connection: connection.backup(sqlite3.connect(":memory:")),
    "commit": lambda connection: connection.commit(),
    "create_aggregate": lambda connection: connection.create_aggregate("f", 1, None),
    "create_collation": lambda connection: connection.create_collation("c", None),
    "create_function": lambda connection: connection.create_function("f", 1, None),
    "cursor": lambda connection: connection.cursor(),
    "enable_load_extension": lambda connection: connection.enable_load_extension(False),
    "execute": lambda connection: connection.execute("INSERT INTO t VALUES (1)"),
    "execute_fetchall": lambda connection: connection.execute_fetchall("INSERT INTO t VALUES (1)"),
    "execute_insert": lambda connection: connection.execute_insert("INSERT INTO t VALUES (1)"),
    "executemany": lambda connection: connection.executemany("INSERT INTO t VALUES (?)", [(1,)]),
    "executescript": lambda connection: connection.executescript("INSERT INTO t VALUES (1)"),
    "interrupt": lambda connection: connection.interrupt(),
    "iterdump": lambda connection: anext(connection.iterdump()),  # type: ignore[arg-type]
    "load_extension": lambda connection: connection.load_extension("x"),
    "rollback": lambda connection: connection.rollback(),
    "run_sync": lambda connection: connection.run_sync(lambda driver: driver.commit()),
    "set_authorizer": lambda connection: connection.set_authorizer(None),
    "set_progress_handler": lambda connection: connection.set_progress_handler(None, 1),
    "set_trace_callback": lambda connection: connection.set_trace_callback(None),
}
OF_A_CURSOR: dict[str, Callable[[Cursor], Awaitable[object]]] = {
    "close": lambda cursor: cursor.close(),
    "execute": lambda cursor: cursor.execute("INSERT INTO t VALUES (1)"),
    "executemany": lambda cursor: cursor.executemany("INSERT INTO t VALUES (?)", [(1,)]),
    "executescript": lambda cursor: cursor.executescript("INSERT INTO t VALUES (1)"),
    "fetchall": lambda cursor: cursor.fetchall(),
    "fetchmany": lambda cursor: cursor.fetchmany(),
    "fetchone": lambda cursor: cursor.fetchone(),
}


def test_all_methods_are_known_here() -> None:
    for cls, known in ((Connection, OF_A_CONNECTION), (Cursor, OF_A_CURSOR)):
        methods = {
            name for name, value in vars(cls).items() if name[0] != "_" and inspect.isroutine(value)
        }
        assert methods - {"stop", "close"} == known.keys() - {"close"}


def test_what_is_awaited_after_its_block_is_refused(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path) as db:
            await db.execute("CREATE TABLE t (x)")
            async with db.write() as connection:
                cursor = await connection.execute("SELECT 1")
                late = [call(connection) for call in OF_A_CONNECTION.values()]
                late += [call(cursor) for call in OF_A_CURSOR.values()]
            async with db.write() as other:
                for call in late:
                    with pytest.raises(ConnectionClosedError, match="given back at the end"):
                        await call
                assert other.in_transaction
            assert await db.query("SELECT * FROM t") == []

    run(main)


class _Busy:
    """Keeps a connection at work until it is told to go on."""

    def __init__(self, connection: Connection) -> None:
        self._may_go_on = threading.Event()
        begun = threading.Event()

        def work(driver: sqlite3.Connection) -> None:
            begun.set()
            assert self._may_go_on.wait(LIMIT_SECONDS)

        self._task = asyncio.ensure_future(connection.run_sync(work))
        self._begun = begun

    async def __aenter__(self) -> "_Busy":
        await loop_until(self._begun.is_set)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._may_go_on.set()
        await self._task


@pytest.mark.parametrize("how", ["rollback", "close"])
def test_what_is_to_be_let_go_of_is(path: Path, how: str) -> None:
    """Under a cancelled scope of anyio's every ``await`` is cancelled, again and again."""
    anyio = pytest.importorskip("anyio")

    async def main() -> None:
        async with aio.connect(path) as connection:
            await connection.execute("CREATE TABLE t (x)")
            await connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(300)])
            await connection.commit()
            if how == "rollback":
                await connection.execute("DELETE FROM t")
            cursor = await connection.execute("SELECT x FROM t ORDER BY x")
            assert how == "rollback" or await cursor.fetchone() == (0,)
            async with _Busy(connection):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await (connection.rollback() if how == "rollback" else cursor.close())
                assert scope.cancelled_caught
            if how == "rollback":
                await connection.run_sync(lambda driver: None)
                assert not connection.in_transaction
                assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(300,)]
            else:
                with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
                    await cursor.fetchone()

    anyio.run(main)


def test_the_isolation_level_waits_for_nothing(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with aio.connect(path) as connection:
            await connection.execute("CREATE TABLE t (x)")
            await connection.execute("INSERT INTO t VALUES (1)")
            async with _Busy(connection):
                connection.isolation_level = None
                assert connection.isolation_level is None
            await connection.execute("INSERT INTO t VALUES (2)")
            assert not connection.in_transaction, "the first was committed, the second by itself"
            async with _Busy(connection):
                connection.isolation_level = None
                connection.isolation_level = "DEFERRED"
                assert connection.isolation_level == "DEFERRED"
            await connection.execute("INSERT INTO t VALUES (3)")
            assert connection.isolation_level == "DEFERRED"
            assert connection.in_transaction

    run(main)


def test_the_isolation_level_without_a_loop(run: Run[Any], path: Path) -> None:
    connection: Connection = run(lambda: aio.connect(path).__aenter__())
    connection.isolation_level = None
    assert connection.isolation_level is None
    run(connection.close)


def test_a_dump_and_the_end_of_a_block_wait_in_turns(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path) as db:
            await db.execute("CREATE TABLE t (x)")
            async with db.write() as connection:
                async with _Busy(connection):
                    first = asyncio.ensure_future(anext(connection.iterdump()))  # type: ignore[arg-type]
                    await asyncio.sleep(0)  # the loop goes on
                assert await first == "BEGIN TRANSACTION;"
                await connection.execute("INSERT INTO t VALUES (1)")
            assert await db.query("SELECT * FROM t") == [(1,)]

    run(main)


def test_a_loop_that_was_used_before_a_fork_is_refused(child: Child) -> None:
    output = child(
        """
        async def one():
            async with connect(":memory:") as connection:
                return await connection.execute_fetchall("SELECT 1")

        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(one()) == [(1,)]
        process = os.fork()
        if process == 0:
            try:
                loop.run_until_complete(one())
            except RuntimeError as error:
                print(error)
            print(asyncio.run(one()), flush=True)
            os._exit(0)
        assert os.waitpid(process, 0)[1] == 0
        assert loop.run_until_complete(one()) == [(1,)]
        loop.close()
        """
    )
    assert "This event loop was used before the fork" in output
    assert "[(1,)]" in output


def test_a_loop_may_be_named_for_nothing(run: Run[None]) -> None:
    async def main() -> None:
        with pytest.warns(DeprecationWarning, match="has no effect"):
            connection = aio.connect(":memory:", loop=asyncio.get_running_loop())
        async with connection:
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]

    run(main)
