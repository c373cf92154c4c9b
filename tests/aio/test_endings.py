"""Endings: of a loop, of the interpreter, of a process that forks; nothing hangs, nothing is said.

Each runs in a process of its own, which must end by itself with an empty standard error.
"""

import os
import sqlite3 as standard
from pathlib import Path

import pytest
from tests.aio.loops import Child

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def rows(path: Path) -> list[object]:
    connection = standard.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = [row[0] for row in connection.execute("SELECT x FROM t ORDER BY x")]
    connection.close()
    return found


WORK = """
async def begin():
    global db
    db = Database(path, readers=2, timeout=30)
    await db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    await db.execute("INSERT INTO t VALUES (1)")

async def in_read():
    async with db.read() as connection:
        await connection.execute("SELECT * FROM t")
        await asyncio.sleep(60)

async def in_write():
    async with db.write() as connection:
        await connection.execute("INSERT INTO t VALUES (2)")
        await asyncio.sleep(60)

async def in_stream():
    async for _ in db.stream("SELECT 1 UNION ALL SELECT 2", chunk_size=1):
        await asyncio.sleep(60)

async def insert():
    await db.execute("INSERT INTO t VALUES (3)")

async def endless():
    await db.query(ENDLESS)

def is_idle():
    return db.stats()[:4] == (2, 0, 0, 0)

async def look():
    # All that was lent comes back.
    async with asyncio.timeout(30):
        async with db.read(), db.write():
            pass
        await db.execute("INSERT INTO t VALUES (9)")
        await until(is_idle)
"""

KINDS = ["in_read", "in_write", "in_stream", "insert", "endless"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pause", [0, 0.002, 0.05])
def test_a_run_that_fails_with_work_in_flight(
    child: Child, path: Path, kind: str, pause: float
) -> None:
    child(
        WORK
        + f"""
        async def main():
            await begin()
            tasks = [asyncio.create_task({kind}()) for _ in range(3)]
            await asyncio.sleep({pause})
            raise LookupError

        for _ in range(3):
            try:
                asyncio.run(main())
            except LookupError:
                pass
            asyncio.run(look())
            asyncio.run(db.close())
        """.replace("\n        ", "\n")
    )
    found = rows(path)
    assert found.count(1) == 3
    assert found.count(9) == 3
    assert 2 not in found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pause", [0, 0.002, 0.05])
def test_a_loop_that_is_closed_with_work_in_flight(
    child: Child, path: Path, kind: str, pause: float
) -> None:
    # asyncio itself complains of tasks that are destroyed with such a loop, which it may.
    child(
        WORK
        + f"""
        import logging
        logging.disable()

        async def main():
            await begin()
            tasks.extend(asyncio.ensure_future({kind}()) for _ in range(3))
            await asyncio.sleep({pause})

        tasks = []
        for _ in range(3):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(main())
            loop.close()
            # With the tasks still there, and without them.
            asyncio.run(look())
            del loop
            tasks.clear()
            gc.collect()
            asyncio.run(look())
            asyncio.run(db.close())
        """.replace("\n        ", "\n"),
        says="" if kind != "in_stream" else None,
    )
    found = rows(path)
    assert found.count(1) == 3
    assert found.count(9) == 6
    assert 2 not in found


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "raise SystemExit"])
def test_an_exit_with_everything_open(child: Child, path: Path, end: str) -> None:
    child(
        f"""
        async def main():
            global db, connection, tasks
            db = Database(path, readers=2, timeout=30)
            await db.execute("CREATE TABLE t (x)")
            connection = await connect(path, isolation_level=None)
            async def insert(number):
                await db.execute("INSERT INTO t VALUES (?)", (number,))
                await connection.execute("INSERT INTO t VALUES (?)", (number,))
            await asyncio.gather(*(insert(number) for number in range(50)))
            tasks = [
                asyncio.create_task(db.query(ENDLESS)),
                asyncio.ensure_future(connection.execute(ENDLESS)),
                *(asyncio.create_task(insert(number)) for number in range(50, 60)),
            ]
            await asyncio.sleep(0.02)
            {end}

        asyncio.run(main())
        """
    )
    found = rows(path)
    assert [number for number in found if number < 50] == sorted([*range(50), *range(50)])


def test_an_exit_while_a_loop_runs_in_a_daemon_thread(child: Child, path: Path) -> None:
    child(
        """
        done = threading.Event()
        count = 0

        def work():
            asyncio.run(main())

        async def main():
            global count, db, connection
            db = Database(path, timeout=30)
            await db.execute("CREATE TABLE t (x)")
            connection = await connect(path, isolation_level=None)
            await connection.create_function("f", 0, lambda: sum(range(100)))
            async def loop():
                global count
                while True:
                    await db.execute("INSERT INTO t VALUES (?)", (count,))
                    await connection.execute("SELECT f(), f(), f()")
                    await db.query("SELECT * FROM t LIMIT 500")
                    async with db.write() as writer:
                        await writer.execute("SELECT 1")
                    count += 1
                    if count > 20:
                        done.set()
            await asyncio.gather(loop(), loop(), db.query(ENDLESS))

        threading.Thread(target=work, daemon=True).start()
        assert done.wait(50)
        """
    )
    assert len(rows(path)) >= 20


def test_objects_that_nobody_closes_are_collected(child: Child, path: Path) -> None:
    child(
        """
        import weakref

        async def use():
            db = Database(path, readers=2, timeout=30)
            await db.execute("CREATE TABLE IF NOT EXISTS t (x)")
            await db.execute("INSERT INTO t VALUES (1)")
            async with db.read() as connection:
                await connection.execute("SELECT 1")
            connection = await connect(path)
            await connection.execute("SELECT 1")
            known = {"db": db}
            known["itself"] = known
            return weakref.ref(db)

        async def main():
            for _ in range(5):
                reference = await use()
                gc.collect()
                assert reference() is None

        asyncio.run(main())
        gc.collect()
        """
    )
    assert rows(path) == [1] * 5


@pytest.mark.parametrize(
    "read",
    [
        "db.query(ENDLESS)",
        "anext(db.stream(ENDLESS))",
        "connection.execute(ENDLESS)",
        "connection.run_sync(lambda driver: driver.execute(ENDLESS).fetchall())",
    ],
)
def test_ctrl_c_ends_a_long_read(child: Child, read: str) -> None:
    child(
        f"""
        # Whoever runs the tests in the background has it ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        async def main():
            global ended
            async with Database(path, timeout=30) as db, connect(path) as connection:
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                await {read}

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
        """
    )


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit"])
def test_what_ends_a_run_may_come_from_a_function(child: Child, raised: str) -> None:
    told = child(
        f"""
        def fail(driver):
            raise {raised}

        async def main():
            async with connect(path) as connection:
                await connection.run_sync(fail)

        try:
            asyncio.run(main())
        except {raised}:
            print("as raised")
        """
    )
    assert told == "as raised\n"


@needs_fork
def test_a_forked_child_uses_it_beside_its_parent(child: Child, path: Path) -> None:
    child(
        """
        async def begin():
            await db.execute("CREATE TABLE t (x)")
            await asyncio.gather(*(db.query("SELECT 1") for _ in range(10)))

        async def use(number):
            for _ in range(20):
                await db.execute("INSERT INTO t VALUES (?)", (number,))
                async with db.read() as connection:
                    await connection.execute("SELECT count(*) FROM t")
                assert await db.query_one("SELECT count(*) > 0 FROM t") == (1,)

        db = Database(path, readers=2, timeout=60)
        asyncio.run(begin())
        children = []
        for number in range(1, 4):
            child = os.fork()
            if child == 0:
                signal.alarm(40)
                status = 1
                try:
                    asyncio.run(use(number))
                    asyncio.run(db.close())
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        asyncio.run(use(0))
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        asyncio.run(use(0))
        asyncio.run(db.close())
        """
    )
    found = rows(path)
    assert [found.count(number) for number in range(4)] == [40, 20, 20, 20]


@needs_fork
def test_a_fork_in_the_midst_of_work(child: Child, path: Path) -> None:
    # Threads of the parent have locks of all kinds at that moment.
    child(
        """
        db = Database(path, readers=2, timeout=60)
        connection = None
        stop = False

        async def busy():
            global connection
            await db.execute("CREATE TABLE t (x)")
            connection = await connect(path)
            async def work():
                while not stop:
                    await db.execute("INSERT INTO t VALUES (0)")
                    await db.query("SELECT 1")
                    await connection.execute("SELECT 1")
                    async with db.read():
                        pass
            await asyncio.gather(*(work() for _ in range(8)))
            await connection.close()

        async def use():
            await db.execute("INSERT INTO t VALUES (1)")
            await db.query("SELECT 1")
            try:
                await connection.execute("SELECT 1")
            except sqlite3.Error:
                pass

        def in_child():
            asyncio.run(asyncio.wait_for(use(), 30))
            asyncio.run(db.close())

        parent = threading.Thread(target=lambda: asyncio.run(busy()))
        parent.start()
        while connection is None:
            time.sleep(0.001)
        for _ in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(40)
                status = 1
                try:
                    in_child()
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0
        stop = True
        parent.join()
        asyncio.run(db.close())
        """
    )
    assert rows(path).count(1) == 40
