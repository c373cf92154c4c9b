"""``create_async_engine``: the same dialect for an event loop."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

import oxlite
import oxlite.aio
from oxlite import sqlite3

Test = Callable[[], Coroutine[Any, Any, None]]
Open = Callable[..., Any]

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def open_engine(file: Path) -> Open:
    """Opens an async engine of the database, disposed of at the end of the block."""

    @asynccontextmanager
    async def open_engine(
        query: str = "", driver: str = "oxlite", **options: Any
    ) -> AsyncIterator[AsyncEngine]:
        engine = create_async_engine(f"sqlite+{driver}:///{file}{query}", **options)
        try:
            yield engine
        finally:
            await engine.dispose()

    return open_engine


@pytest.mark.parametrize("driver", ["oxlite", "oxlite_async"])
def test_the_same_url_serves_an_event_loop(open_engine: Open, note: sa.Table, driver: str) -> None:
    async def test() -> None:
        async with open_engine(driver=driver) as engine:
            async with engine.begin() as connection:
                assert await connection.get_isolation_level() == "READ COMMITTED"
                result = await connection.execute(
                    note.insert().returning(note.c.id), [{"text": "x"}, {"text": "y"}]
                )
                assert result.scalars().all() == [3, 4]
            async with engine.connect() as connection:
                result = await connection.execute(note.insert().values(text="z"))
                assert result.inserted_primary_key == (5,)
                await connection.rollback()
                assert await connection.scalar(sa.select(sa.func.count()).select_from(note)) == 4
                raw = await connection.get_raw_connection()
                assert isinstance(raw.driver_connection, oxlite.aio.Connection)
                assert raw.driver_connection.isolation_level == "IMMEDIATE"

    asyncio.run(test())


def test_isolation_levels(open_engine: Open, note: sa.Table) -> None:
    async def test() -> None:
        query = sa.select(sa.func.count()).select_from(note)
        async with open_engine("?timeout=0.3") as engine, open_engine("?timeout=0.1") as other:

            async def add(text: str) -> None:
                async with other.begin() as elsewhere:
                    await elsewhere.execute(note.insert().values(text=text))

            async with engine.connect() as connection:
                assert await connection.scalar(query) == 2
                await add("third")
                assert await connection.scalar(query) == 3
                await connection.execute(sa.select(note).with_for_update())
                with pytest.raises(exc.OperationalError) as caught:
                    await add("fourth")
                assert isinstance(caught.value.orig, oxlite.LockedError)
            async with engine.connect() as connection:
                await connection.execution_options(isolation_level="SNAPSHOT")
                assert await connection.scalar(query) == 3
                await add("fourth")
                assert await connection.scalar(query) == 3
                with pytest.raises(exc.OperationalError) as caught:
                    await connection.execute(note.delete())
                assert isinstance(caught.value.orig, oxlite.StaleSnapshotError)
            async with engine.connect() as connection:
                await connection.execution_options(sqlite_read_only=True)
                with pytest.raises(exc.OperationalError, match="sqlite_read_only is True"):
                    await connection.execute(note.delete())
            async with engine.begin() as connection:
                await connection.execute(note.delete())

    asyncio.run(test())


def test_rows_are_streamed(open_engine: Open, note: sa.Table) -> None:
    async def test() -> None:
        async with open_engine() as engine, engine.connect() as connection:
            await connection.execute(note.insert(), [{"text": str(n)} for n in range(1000)])
            seen = [row.id async for row in await connection.stream(sa.select(note))]
            assert seen == list(range(1, 1003))
            async with connection.stream(sa.select(note)) as result:
                assert len(await result.fetchmany(3)) == 3
                assert (await result.fetchone()).id == 4
            result = await connection.stream(sa.select(note))
            assert len(await result.all()) == 1002
            streamed = await connection.stream_scalars(sa.select(note.c.id))
            assert [len(part) async for part in streamed.partitions(400)] == [400, 400, 202]

    asyncio.run(test())


def test_many_tasks_read_and_write(open_engine: Open, note: sa.Table) -> None:
    async def test() -> None:
        async with open_engine("?timeout=30", pool_size=4, max_overflow=2) as engine:

            async def work(number: int) -> None:
                async with AsyncSession(engine) as session:
                    for _ in range(5):
                        await session.execute(sa.select(note))
                        await session.execute(note.update().values(stars=note.c.stars + 1))
                        await session.commit()

            await asyncio.gather(*(work(number) for number in range(16)))
            async with engine.connect() as connection:
                assert (await connection.scalars(sa.select(note.c.stars))).all() == [80, 80]
            assert "Held by: nobody" in engine.pool.status()

    asyncio.run(test())


def test_a_cancelled_read_gives_its_connection_back(open_engine: Open, note: sa.Table) -> None:
    async def test() -> None:
        async with open_engine(pool_size=1, max_overflow=0, pool_timeout=10) as engine:

            async def read() -> None:
                async with engine.connect() as connection:
                    await connection.exec_driver_sql(ENDLESS)

            task = asyncio.create_task(read())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with engine.connect() as connection:
                assert await connection.scalar(sa.select(sa.func.count()).select_from(note)) == 2

    asyncio.run(test())


def test_an_exhausted_pool_names_the_tasks(open_engine: Open) -> None:
    async def test() -> None:
        async with open_engine(pool_size=1, max_overflow=0, pool_timeout=0.1) as engine:
            inside = asyncio.Event()

            async def hold() -> None:
                async with engine.connect():
                    inside.set()
                    await asyncio.sleep(30)

            task = asyncio.create_task(hold(), name="report-1")
            await inside.wait()
            with pytest.raises(exc.TimeoutError, match="held by task 'report-1' for 0"):
                await engine.connect()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(test())


def test_options_are_refused_in_the_same_words(file: Path) -> None:
    with pytest.raises(exc.ArgumentError, match="did you mean timeout"):
        create_async_engine(f"sqlite+oxlite:///{file}?tiemout=1")

    async def test() -> None:
        engine = create_async_engine(f"sqlite+oxlite:///{file}", connect_args={"profile": "wbe"})
        with pytest.raises(exc.ArgumentError, match="wbe"):
            await engine.connect()

    asyncio.run(test())


def test_an_async_url_for_a_blocking_engine_is_refused(file: Path) -> None:
    engine = sa.create_engine(f"sqlite+oxlite_async:///{file}")
    with pytest.raises(exc.InvalidRequestError, match=r"create_engine\(\) wants sqlite\+oxlite"):
        engine.connect()


def test_a_blocking_engine_for_an_event_loop_is_refused(engine: sa.Engine) -> None:
    with pytest.raises(exc.InvalidRequestError, match="requires an async driver"):
        AsyncEngine(engine)


def test_a_database_in_memory_is_one_connection() -> None:
    async def test() -> None:
        engine = create_async_engine("sqlite+oxlite://")
        async with engine.begin() as connection:
            await connection.exec_driver_sql("CREATE TABLE t (x)")
        async with engine.connect() as connection:
            result = await connection.exec_driver_sql("SELECT count(*) FROM t")
            assert result.scalar() == 0
        await engine.dispose()

    asyncio.run(test())


def test_a_regular_expression_that_python_would_not_end() -> None:
    async def test() -> None:
        engine = create_async_engine("sqlite+oxlite://")
        async with engine.connect() as connection:
            query = "SELECT ? REGEXP '^(a+)+$'"
            result = await connection.exec_driver_sql(query, ("a" * 10_000 + "b",))
            assert result.scalar() == 0
        await engine.dispose()

    asyncio.run(test())


def test_retry_of_a_coroutine(open_engine: Open, note: sa.Table) -> None:
    async def test() -> None:
        attempts = []
        async with (
            open_engine(isolation_level="SNAPSHOT") as engine,
            open_engine() as other,
        ):

            @oxlite.retry
            async def star() -> None:
                async with AsyncSession(engine) as session, session.begin():
                    stars = await session.scalar(sa.select(note.c.stars).where(note.c.id == 1))
                    if not attempts:
                        async with other.begin() as elsewhere:
                            await elsewhere.execute(note.update().values(stars=10))
                    attempts.append(stars)
                    await session.execute(note.update().values(stars=stars + 1))

            await star()
        assert attempts == [0, 10]

    asyncio.run(test())


def test_loops_one_after_the_other(file: Path, note: sa.Table) -> None:
    engine = create_async_engine(f"sqlite+oxlite:///{file}")

    async def count() -> int:
        async with engine.connect() as connection:
            return await connection.scalar(sa.select(sa.func.count()).select_from(note)) or 0

    assert [asyncio.run(count()) for _ in range(3)] == [2, 2, 2]
    asyncio.run(engine.dispose())


def test_a_connection_that_is_forgotten_is_closed(
    open_engine: Open, file: Path, note: sa.Table
) -> None:
    async def test() -> None:
        async with open_engine() as engine:
            connection = await engine.connect()
            await connection.execute(note.insert().values(text="forgotten"))
            raw = (await connection.get_raw_connection()).dbapi_connection
            raw.terminate()
            await asyncio.sleep(0)
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                await raw.driver_connection.execute("SELECT 1")
            await connection.invalidate()
            await connection.close()

    asyncio.run(test())
    connection = oxlite.connect(file)
    assert connection.execute("SELECT count(*) FROM note").fetchone() == (2,)


def test_a_connection_that_outlives_its_loop_is_closed(file: Path, note: sa.Table) -> None:
    async def test() -> Any:
        engine = create_async_engine(f"sqlite+oxlite:///{file}")
        connection = await engine.connect()
        await connection.execute(note.insert().values(text="forgotten"))
        raw = (await connection.get_raw_connection()).dbapi_connection
        connection.sync_connection.detach()
        return connection, raw, engine

    connection, raw, engine = asyncio.run(test())
    raw.terminate()
    del connection, raw, engine
    gc.collect()
    other = oxlite.connect(file, timeout=10)
    other.execute("DELETE FROM note")
    other.close()


def test_listeners_use_the_connection_as_a_blocking_one(open_engine: Open, tmp_path: Path) -> None:
    async def test() -> None:
        async with open_engine() as engine:

            @sa.event.listens_for(engine.sync_engine, "connect")
            def attach(connection: Any, record: object) -> None:
                connection.execute("ATTACH ? AS archive", (str(tmp_path / "archive.db"),))
                connection.run_async(lambda raw: raw.create_function("twice", 1, lambda x: 2 * x))

            async with engine.connect() as connection:
                result = await connection.exec_driver_sql("SELECT twice(21)")
                assert result.scalar() == 42
                await connection.exec_driver_sql("CREATE TABLE archive.t (x)")

    asyncio.run(test())


def test_a_stream_left_early_keeps_no_snapshot(open_engine: Open, note: sa.Table) -> None:
    async def test() -> None:
        async with open_engine(pool_size=1, max_overflow=0) as engine, open_engine() as other:
            async with engine.connect() as connection:
                left = await connection.stream(sa.select(note))
                assert await left.fetchone() is not None
            async with other.begin() as connection:
                await connection.execute(note.insert().values(text="newest"))
            async with engine.begin() as connection:
                texts = await connection.scalars(sa.select(note.c.text))
                assert set(texts) == {"first", "second", "newest"}
                await connection.execute(note.insert().values(text="written"))

    asyncio.run(test())


def test_a_connection_may_be_opened_by_the_application(file: Path) -> None:
    async def main() -> None:
        async def create() -> oxlite.aio.Connection:
            return await oxlite.aio.connect(file, profile="durable")

        engine = create_async_engine("sqlite+oxlite://", async_creator=create)
        async with engine.connect() as connection:
            assert await connection.scalar(sa.text("PRAGMA synchronous")) == 2
            assert await connection.scalar(sa.text("SELECT count(*) FROM note")) == 2
        await engine.dispose()

        async def create_other() -> object:
            return object()

        engine = create_async_engine("sqlite+oxlite://", async_creator=create_other)
        with pytest.raises(exc.ArgumentError, match=r"oxlite\.aio\.connect.*not builtins\.object"):
            await engine.connect()
        await engine.dispose()

    asyncio.run(main())
