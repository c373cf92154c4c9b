"""Closing: what is under way is waited for, who waits is sent away, and nothing comes after it."""

import threading
from pathlib import Path

import pytest
from tests.aio.loops import ENDLESS
from tests.database.faces import Either, Face

from oxlite import sqlite3


def test_closing_refuses_further_use(face: Face, path: Path) -> None:
    async def main() -> None:
        db = await face.open(path)
        await db.query("SELECT 1")
        await db.close()
        await db.close()

        async def block(kind: str) -> None:
            async with getattr(db, kind)():
                pass

        async def enter() -> None:
            async with db:
                pass

        async def stats() -> None:
            db.stats()

        for use in (
            lambda: db.query("SELECT 1"),
            lambda: db.query_one("SELECT 1"),
            lambda: anext(db.stream("SELECT 1")),
            lambda: db.execute("DELETE FROM t"),
            lambda: db.execute("SELECT 1"),
            lambda: db.executemany("DELETE FROM t", []),
            lambda: db.executemany("DELETE FROM t", iter([])),
            db.checkpoint,
            lambda: block("read"),
            lambda: block("write"),
            enter,
            stats,
        ):
            with pytest.raises(sqlite3.ProgrammingError, match="closed Database"):
                await use()
        assert not path.with_name("app.db-wal").exists(), "the last connection is closed"

    face.run(main)


def test_closing_waits_for_what_is_lent_and_sends_away_who_waits(face: Face, path: Path) -> None:
    async def main() -> None:
        db = await face.open(path, readers=1, timeout=60)
        await db.execute("CREATE TABLE t (x)")
        begun, end = face.event(), face.event()

        async def hold() -> None:
            async with db.read(), db.write() as connection:
                begun.set()
                await end.wait()
                await connection.execute("INSERT INTO t VALUES (1)")

        async def outcome(use: Either) -> str:
            try:
                await use()
            except sqlite3.ProgrammingError as error:
                return str(error)
            return "done"

        async def block(kind: str) -> None:
            async with getattr(db, kind)():
                pass

        holder = face.start(hold())
        await begun.wait()
        waiting = [
            face.start(outcome(use))
            for use in (
                lambda: db.query("SELECT 1"),
                lambda: db.execute("INSERT INTO t VALUES (2)"),
                lambda: db.execute("VACUUM"),
                lambda: block("read"),
                lambda: block("write"),
            )
        ]
        await face.until(lambda: db.stats()[2:4] == (2, 3))
        closing = face.start(db.close(timeout=60))
        # All of them before anything that is lent comes back.
        for actor in waiting:
            assert await actor.result() == "Cannot operate on a closed Database."
        end.set()
        await holder.result()
        await closing.result()
        async with face.opened(path) as again:
            assert await again.query("SELECT x FROM t") == [(1,)]

    face.run(main)


@pytest.mark.parametrize("kind", ["query", "block", "stream", "execute", "write"])
def test_closing_interrupts_in_the_end(face: Face, path: Path, kind: str) -> None:
    async def main() -> None:
        begun = threading.Event()

        def set_up(connection: sqlite3.Connection) -> None:
            connection.create_function("begun", 0, begun.set)

        db = await face.open(path, setup=set_up)
        # An interruption before the statement begins would be SQLite's to forget.
        endless = ENDLESS.replace("SELECT 1", "SELECT begun() IS NULL", 1)

        async def use() -> None:
            if kind == "query":
                await db.query(endless)
            elif kind == "execute":
                await db.execute(endless)
            elif kind == "stream":
                async for _ in db.stream(endless):
                    pass
            else:
                async with db.read() if kind == "block" else db.write() as connection:
                    await connection.execute_fetchall(endless)

        async def work() -> str:
            with pytest.raises(sqlite3.OperationalError) as caught:
                await use()
            return str(caught.value)

        working = face.start(work())
        await face.until(begun.is_set)
        await db.close(timeout=0.05)
        assert await working.result() == "interrupted"

    face.run(main)


@pytest.mark.parametrize(("kind", "name"), [("read", "readers"), ("write", "the writer")])
def test_closing_tells_who_keeps_a_connection(face: Face, path: Path, kind: str, name: str) -> None:
    async def main() -> None:
        db = await face.open(path)
        async with getattr(db, kind)() as connection:
            with pytest.raises(
                sqlite3.OperationalError,
                match=rf"still in use after 0 s: {name} by {face.who} .*; closed when given back",
            ):
                await db.close(timeout=0)
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]
        await face.until(lambda: not path.with_name("app.db-wal").exists())

    face.run(main)


@pytest.mark.parametrize("is_lent", [False, True])
def test_closing_leaves_statistics_for_the_planner(face: Face, path: Path, is_lent: bool) -> None:
    async def fill(db: Either) -> None:
        await db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name)")
        await db.execute("CREATE INDEX item_name ON item (name)")
        names = [(str(n % 7),) for n in range(1000)]
        await db.executemany("INSERT INTO item (name) VALUES (?)", names)

    async def main() -> None:
        db = await face.open(path)
        await fill(db)
        if is_lent:
            begun = face.event()

            async def hold() -> None:
                async with db.write():
                    begun.set()
                    await face.sleep(0.2)

            holder = face.start(hold())
            await begun.wait()
        await db.close(timeout=60)
        if is_lent:
            await holder.result()
        async with face.opened(path) as again:
            assert await again.query("SELECT tbl, idx FROM sqlite_stat1") == [("item", "item_name")]

    face.run(main)
