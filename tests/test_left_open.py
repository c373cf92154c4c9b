"""A transaction that somebody leaves open on the writer takes nothing of others with it.

A ``Database`` begins and ends its transactions itself. Who has the connection beyond his block, or
has it keep a transaction open always, would have the writes of others become part of it:
acknowledged, and lost when it is rolled back.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import oxlite
import oxlite.aio
from oxlite import sqlite3

Leave = Callable[[oxlite.Database], object]


def begin_after_the_block(database: oxlite.Database) -> None:
    with database.write() as connection:
        pass
    connection.execute("BEGIN")


def savepoint_after_the_block(database: oxlite.Database) -> None:
    with database.write() as connection:
        pass
    connection.execute("SAVEPOINT a")


def write_after_the_block(database: oxlite.Database) -> None:
    with database.write() as connection:
        pass
    connection.isolation_level = "IMMEDIATE"
    connection.execute("INSERT INTO t VALUES (-1)")


def keep_one_open(database: oxlite.Database) -> None:
    with database.write() as connection:
        connection.autocommit = False


def keep_one_open_to_read(database: oxlite.Database) -> None:
    with database.read() as connection:
        connection.autocommit = False


LEAVE = [
    begin_after_the_block,
    savepoint_after_the_block,
    write_after_the_block,
    keep_one_open,
    keep_one_open_to_read,
]


def kept(path: Path) -> list[tuple[int]]:
    """What another program finds."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT a FROM t ORDER BY a").fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize("leave", LEAVE)
@pytest.mark.parametrize("durable_commit", ["group", "each", "shared"])
def test_what_is_acknowledged_is_committed(
    tmp_path: Path, leave: Leave, durable_commit: Literal["group", "each", "shared"]
) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path, readers=1, durable_commit=durable_commit) as database:
        database.execute("CREATE TABLE t(a)")
        leave(database)
        database.execute("INSERT INTO t VALUES (1)")
        assert kept(path) == [(1,)]
        leave(database)
        database.executemany("INSERT INTO t VALUES (?)", [(2,), (3,)])
        assert kept(path) == [(1,), (2,), (3,)]
        with database.write() as connection:
            connection.execute("INSERT INTO t VALUES (4)")
        with database.read() as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (4,)
        # Nobody else is kept from writing.
        other = oxlite.connect(path, timeout=0.5)
        other.execute("INSERT INTO t VALUES (5)")
        other.commit()
        other.close()
    assert kept(path) == [(1,), (2,), (3,), (4,), (5,)]


def test_what_is_acknowledged_to_a_task_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "app.db"

    async def run() -> None:
        async with oxlite.aio.Database(path) as database:
            await database.execute("CREATE TABLE t(a)")
            async with database.write() as connection:
                await connection.run_sync(lambda driver: setattr(driver, "autocommit", False))
            await database.execute("INSERT INTO t VALUES (1)")
            assert kept(path) == [(1,)]
            async with database.write() as connection:
                await connection.execute("INSERT INTO t VALUES (2)")
            assert kept(path) == [(1,), (2,)]

    asyncio.run(run())


def test_a_set_up_cannot_keep_a_transaction_open(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="setup has changed autocommit"):
        oxlite.Database(
            tmp_path / "app.db",
            setup=lambda connection: setattr(connection, "autocommit", False),
        )
