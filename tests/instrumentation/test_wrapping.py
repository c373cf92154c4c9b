"""Whoever wraps ``oxlite.sqlite3.connect`` is asked by every door that opens a connection."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import oxlite
import oxlite.aio
import oxlite.sqlalchemy

# Whatever somebody has put around a connection.
Wrapped = Any


class Proxy:
    """A connection in a wrapper that has nothing to do with any library for wrappers."""

    def __init__(self, connection: oxlite.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is there
        """What the connection has."""
        return getattr(self._connection, name)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Of which databases the wrapped function was asked for a connection."""
    asked: list[object] = []
    connect = oxlite.sqlite3.connect

    def wrapped(database: Wrapped, *arguments: Wrapped, **options: Wrapped) -> Wrapped:
        asked.append(database)
        return Proxy(connect(database, *arguments, **options))

    monkeypatch.setattr(oxlite.sqlite3, "connect", wrapped)
    return asked


def by_connect(file: Path) -> None:
    connection = oxlite.connect(file)
    assert type(connection) is Proxy
    connection.close()


def by_database(file: Path) -> None:
    with oxlite.Database(file) as db:
        assert db.query("SELECT 1") == [(1,)]


def by_aio_connect(file: Path) -> None:
    async def main() -> None:
        async with oxlite.aio.connect(file) as connection:
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]

    asyncio.run(main())


def by_aio_database(file: Path) -> None:
    async def main() -> None:
        async with oxlite.aio.Database(file) as db:
            assert await db.query("SELECT 1") == [(1,)]

    asyncio.run(main())


def by_engine(file: Path) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///{file}")
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1
    engine.dispose()


def by_async_engine(file: Path) -> None:
    async def main() -> None:
        engine = create_async_engine(f"sqlite+oxlite:///{file}")
        async with engine.connect() as connection:
            assert await connection.scalar(sa.text("SELECT 1")) == 1
        await engine.dispose()

    asyncio.run(main())


DOORS = [by_connect, by_database, by_aio_connect, by_aio_database, by_engine, by_async_engine]


@pytest.mark.parametrize("door", DOORS)
def test_a_door_asks_the_wrapped_function(
    tmp_path: Path, asked: list[object], door: Callable[[Path], None]
) -> None:
    door(tmp_path / "app.db")
    assert asked
    assert {Path(str(database)).name for database in asked} == {"app.db"}


def test_a_wrapper_without_a_connection_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = oxlite.sqlite3.connect

    class Opaque:
        def __init__(self, connection: oxlite.Connection) -> None:
            self._connection = connection

        def cursor(self) -> object:
            return object()

    def wrapped(*arguments: Wrapped, **options: Wrapped) -> Wrapped:
        return Opaque(connect(*arguments, **options))

    monkeypatch.setattr(oxlite.sqlite3, "connect", wrapped)
    with pytest.raises(TypeError, match=r"returns .*Opaque, in which no"):
        oxlite.Database(tmp_path / "app.db")


def test_statements_of_a_proxy_are_at_the_level_that_was_asked_for(
    tmp_path: Path, asked: list[object]
) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///{tmp_path}/app.db")
    for level in ("SNAPSHOT", "SERIALIZABLE", "READ COMMITTED"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            assert connection.get_isolation_level() == level
            connection.execute(sa.text("CREATE TABLE IF NOT EXISTS note (text)"))
            assert connection.connection.dbapi_connection.in_transaction  # type: ignore[union-attr]
    engine.dispose()
