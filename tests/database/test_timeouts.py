"""Whoever waits for a connection waits no longer than the timeout, and is told who has it."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import ENDLESS
from tests.database.conftest import On
from tests.database.faces import Either, Face
from tests.wait import LIMIT_SECONDS

import oxlite
from oxlite import sqlite3


async def not_held(face: Face, use: Callable[[], Awaitable[Any]]) -> Either:
    """What comes of a use whose connection nobody has: it may be on its way for a moment."""
    ends = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            return await use()
        except (oxlite.LockedError, oxlite.PoolTimeout) as error:
            if f"by {face.who}" in str(error) or time.monotonic() > ends:
                raise
        await face.sleep(0.001)


@pytest.mark.parametrize("timeout", [0, 0.1])
def test_a_pool_timeout_names_the_holder(face: Face, path: Path, timeout: float) -> None:
    async def main() -> None:
        async with face.opened(path, readers=1, timeout=timeout) as db:

            async def block() -> None:
                async with db.read():
                    pass

            await not_held(face, lambda: db.execute("CREATE TABLE t (x)"))
            for _ in range(20):  # what is free is had without waiting
                assert await not_held(face, lambda: db.query("SELECT 1")) == [(1,)]
                await not_held(face, block)
                await not_held(face, lambda: db.execute("DELETE FROM t"))
            begun, end = face.event(), face.event()

            async def have_both() -> None:
                async with db.read(), db.write():
                    begun.set()
                    await end.wait()

            async def hold() -> None:
                await not_held(face, have_both)

            holder = face.start(hold(), name="the holder")
            await begun.wait()

            async def stream() -> None:
                async for _ in db.stream("SELECT 1"):
                    pass

            async def writing() -> None:
                async with db.write():
                    pass

            async def many() -> None:
                await db.executemany("INSERT INTO t VALUES (?)", iter([(1,)]))

            for use in (lambda: db.query("SELECT 1"), block, stream):
                with pytest.raises(
                    oxlite.PoolTimeout, match=rf"all 1 readers .*{face.who} 'the holder' for"
                ):
                    await use()
            for use in (
                lambda: db.execute("DELETE FROM t"),
                writing,
                lambda: db.execute("VACUUM"),
                many,
                db.checkpoint,
            ):
                with pytest.raises(
                    oxlite.LockedError, match=f"by {face.who} 'the holder' for"
                ) as caught:
                    await use()
                assert caught.value.sqlite_errorname == "SQLITE_BUSY"
                assert caught.value.holder is None
            assert db.stats()[:4] == (0, 1, 0, 0)
            end.set()
            await holder.result()
            assert await not_held(face, lambda: db.query("SELECT 1")) == [(1,)]
            await not_held(face, lambda: db.execute("DELETE FROM t"))

    face.run(main)


def test_a_lock_that_another_connection_has_is_waited_for(face: Face, path: Path) -> None:
    async def main() -> None:
        async with face.opened(path, timeout=0.1) as db:
            await db.execute("CREATE TABLE t (x)")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")

            async def block() -> None:
                async with db.write():
                    pass

            for use in (lambda: db.execute("DELETE FROM t"), block):
                with pytest.raises(oxlite.LockedError, match="locked"):
                    await use()
            other.rollback()
            other.close()
            await db.execute("DELETE FROM t")

    face.run(main)


def test_nobody_waits_for_himself(on: On) -> None:
    async def case(db: Either) -> None:
        async with db.write():
            for use in (
                lambda: db.execute("DELETE FROM t"),
                lambda: db.execute("CREATE TABLE u (x)"),
                lambda: db.executemany("INSERT INTO t (x) VALUES (?)", [(1,)]),
                db.checkpoint,
            ):
                with pytest.raises(sqlite3.ProgrammingError, match=r"inside db\.write"):
                    await use()
            with pytest.raises(sqlite3.ProgrammingError, match=r"inside db\.write"):
                async with db.write():
                    pass
            assert await db.query("SELECT * FROM t") == []
        async with db.read(), db.read():
            for use in (
                lambda: db.query("SELECT 1"),
                lambda: db.query_one("SELECT 1"),
                lambda: anext(db.stream("SELECT 1")),
            ):
                with pytest.raises(sqlite3.ProgrammingError, match="more than 2 readers"):
                    await use()
            with pytest.raises(sqlite3.ProgrammingError, match="more than 2 readers"):
                async with db.read():
                    pass
            await db.execute("INSERT INTO t (x) VALUES (1)")
        assert await db.query("SELECT x FROM t") == [(1,)]

    on(case)


def test_who_has_one_reader_waits_for_another_that_comes_back(on: On, face: Face) -> None:
    async def case(db: Either) -> None:
        begun, end = face.event(), face.event()

        async def hold() -> None:
            async with db.read():
                begun.set()
                await end.wait()

        async def let_go() -> None:
            await face.until(lambda: db.stats().readers_waiting)
            end.set()

        holder = face.start(hold())
        await begun.wait()
        async with db.read():
            helper = face.start(let_go())
            assert await db.query("SELECT 1") == [(1,)]
        await helper.result()
        await holder.result()

    on(case)


def test_a_reader_at_work_is_told_of(face: Face, path: Path) -> None:
    async def main() -> None:
        db = await face.open(path, readers=1, timeout=0.1)

        async def work() -> None:
            with pytest.raises(sqlite3.OperationalError, match="interrupted"):
                await db.query(ENDLESS)

        query = face.start(work())
        await face.until(lambda: db.stats().readers_lent)
        with pytest.raises(oxlite.PoolTimeout, match=r"all 1 readers have been in use for 0\.1 s"):
            await db.query("SELECT 1")
        await db.close(timeout=0)
        await query.result()

    face.run(main)
