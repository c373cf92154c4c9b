"""How tasks call for what they do: a database for all of them, or one connection.

Each way is an asynchronous context manager around two functions, one that reads the text
of a row and one that inserts a row; when the latter has returned, the row is durable.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

from oxlite.bench.drivers.connections import Place
from oxlite.bench.drivers.oxlite import PROFILES
from oxlite.bench.workloads.async_ import work

Read = Callable[[int], Awaitable[object]]
Insert = Callable[[int, int], Awaitable[object]]


class Calls(NamedTuple):
    """What a task can call for."""

    read: Read
    insert: Insert


@asynccontextmanager
async def database(place: Place) -> AsyncIterator[Calls]:
    """Oxlite's ``aio.Database``."""
    from oxlite.aio import Database

    profile = PROFILES[place.scenario["pragmas"]]
    async with Database(place.path, profile, timeout=place.timeout_seconds) as db:

        async def read(key: int) -> object:
            return (await db.query_one(work.READ, (key,)))[0]

        async def insert(task: int, number: int) -> object:
            return await db.execute(work.INSERT, (task, number))

        yield Calls(read, insert)


@asynccontextmanager
async def cursor(place: Place) -> AsyncIterator[Calls]:
    """One connection for all tasks, and a cursor for each statement."""
    async with _connection(place) as connection:

        async def read(key: int) -> object:
            async with connection.execute(work.READ, (key,)) as found:
                return (await found.fetchone())[0]

        yield Calls(read, _insert(connection))


@asynccontextmanager
async def fetchall(place: Place) -> AsyncIterator[Calls]:
    """One connection for all tasks, and a query in one call."""
    async with _connection(place) as connection:

        async def read(key: int) -> object:
            [(text,)] = await connection.execute_fetchall(work.READ, (key,))
            return text

        yield Calls(read, _insert(connection))


def _insert(connection: Any) -> Insert:  # noqa: ANN401 - of either library
    async def insert(task: int, number: int) -> object:
        return await connection.execute(work.INSERT, (task, number))

    return insert


@asynccontextmanager
async def _connection(place: Place) -> AsyncIterator[Any]:
    """A connection in autocommit mode, with the scenario's settings."""
    if place.driver.name == "oxlite":
        from oxlite.aio import connect

        profile = PROFILES[place.scenario["pragmas"]]
        async with connect(
            place.path, profile=profile, timeout=place.timeout_seconds, isolation_level=None
        ) as ours:
            yield ours
        return
    import aiosqlite

    opened: Callable[[], Any] = place.opened
    # It calls this in its own thread, which alone uses what it returns.
    async with aiosqlite.Connection(opened, 64) as theirs:
        yield theirs


CALLS: dict[str, Callable[[Place], AbstractAsyncContextManager[Calls]]] = {
    "database": database,
    "cursor": cursor,
    "fetchall": fetchall,
}
"""The values of the axis ``call``."""
