"""The modules and names of aiosqlite, as libraries take them from it."""

import importlib
import subprocess
import sys
from pathlib import Path

import aiosqlite
import pytest
from tests.aio.loops import Run

import oxlite.aio

MODULES = ["core", "cursor", "context"]
ALIKE = {"Connection", "Cursor", "Result", "connect"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_aiosqlites_is_there_with_the_same_classes(module: str) -> None:
    theirs = importlib.import_module(f"aiosqlite.{module}")
    ours = importlib.import_module(f"oxlite.aio.{module}")
    assert getattr(oxlite.aio, module) is ours, "as an attribute, without importing it"
    assert getattr(aiosqlite, module) is theirs
    defined = {name for name in ALIKE if hasattr(theirs, name)} & set(ours.__all__)
    assert defined == set(ours.__all__)
    for name in defined - {"Result"}:
        assert getattr(ours, name) is getattr(oxlite.aio, name)


def test_every_name_that_aiosqlite_offers_is_there() -> None:
    offered = set(aiosqlite.__all__) - {"__version__"}
    assert not {name for name in offered if not hasattr(oxlite.aio, name)}


def test_execute_returns_a_result(run: Run[None]) -> None:
    async def main() -> None:
        async with oxlite.aio.connect(":memory:") as connection:
            made = connection.execute("SELECT 1")
            assert isinstance(made, oxlite.aio.context.Result)
            assert await (await made).fetchone() == (1,)

    run(main)


def test_the_drivers_connection_by_aiosqlites_name(run: Run[None]) -> None:
    async def main() -> None:
        async with oxlite.aio.connect(":memory:") as connection:
            connection._conn.row_factory = oxlite.aio.Row
            (row,) = await connection.execute_fetchall("SELECT 1 AS x")
            assert row["x"] == 1

    run(main)


DATABASES = """
import asyncio, sys
import oxlite.aio
sys.modules["aiosqlite"] = oxlite.aio
import databases
async def main():
    async with databases.Database(f"sqlite:///{sys.argv[1]}") as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)")
        await database.execute_many("INSERT INTO t (x) VALUES (:x)", [{"x": "a"}, {"x": "b"}])
        try:
            async with database.transaction():
                await database.execute("DELETE FROM t")
                raise KeyError
        except KeyError:
            pass
        print(await database.fetch_val("SELECT count(*) FROM t"))
        print([row.x async for row in database.iterate("SELECT x FROM t ORDER BY id")])
        async with database.connection() as connection:
            print(type(connection.raw_connection) is oxlite.aio.Connection)
asyncio.run(main())
"""


def test_the_library_databases(tmp_path: Path) -> None:
    pytest.importorskip("databases")
    done = subprocess.run(
        [sys.executable, "-c", DATABASES, str(tmp_path / "app.db")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["2", "['a', 'b']", "True"]
