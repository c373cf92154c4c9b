"""Writes: single statements, which may share their COMMIT, and blocks of several."""

import contextlib

import pytest
from tests.database.conftest import On
from tests.database.faces import Either, Face

from oxlite import sqlite3
from oxlite.database.planner_statistics import PlannerStatistics


def test_a_write_answers_row_count_row_id_and_rows(on: On) -> None:
    async def case(db: Either) -> None:
        assert await db.execute("INSERT INTO t (x) VALUES (?)", ("a",)) == (1, 1, [])
        sql = "INSERT INTO t (x) VALUES (:b), ('c') RETURNING id, x"
        result = await db.execute(sql, {"b": "b"})
        assert (result.rowcount, result.lastrowid, result.rows) == (2, 3, [(2, "b"), (3, "c")])
        assert await db.execute("SELECT count(*) FROM t") == (-1, None, [(3,)])
        assert await db.execute("UPDATE t SET x = x || 'x'") == (3, None, [])
        assert await db.executemany("INSERT INTO t (x) VALUES (?)", [("d",), ("e",)]) == (2, 5, [])
        several = iter([("f",), ("g",)])
        assert await db.executemany("INSERT INTO t (x) VALUES (?)", several) == (2, 7, [])
        delete = "DELETE FROM t WHERE x = ?"
        assert await db.executemany(delete, iter([("f",), ("g",)])) == (2, None, [])
        sets = [(str(i),) for i in range(1001)]  # too many to be put together with others
        assert (await db.executemany("INSERT INTO t (x) VALUES (?)", sets)).rowcount == 1001
        assert await db.execute("SELECT 1; -- nothing more") == (-1, None, [(1,)])

    on(case)


def test_a_block_commits_or_rolls_back(on: On) -> None:
    class ShoppingError(Exception):
        pass

    async def case(db: Either) -> None:
        async with db.write() as connection:
            assert connection.in_transaction
            await connection.execute("INSERT INTO t (x) VALUES (1)")
            assert await db.query("SELECT * FROM t") == []
        assert await db.query("SELECT x FROM t") == [(1,)]
        with pytest.raises(ShoppingError):  # noqa: PT012
            async with db.write() as connection:
                await connection.execute("DELETE FROM t")
                raise ShoppingError
        assert await db.query("SELECT x FROM t") == [(1,)]

    on(case)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "INSERT OR ROLLBACK INTO t VALUES (1, 1)"])
def test_a_block_whose_transaction_was_ended_says_so(on: On, end: str) -> None:
    async def case(db: Either) -> None:
        await db.execute("INSERT INTO t VALUES (1, 1)")

        async def write() -> None:
            async with db.write() as connection:
                with contextlib.suppress(sqlite3.IntegrityError):
                    await connection.execute(end)

        with pytest.raises(sqlite3.ProgrammingError, match=r"ended inside db\.write"):
            await write()
        await db.execute("INSERT INTO t VALUES (2, 2)")

    on(case)


def test_a_commit_that_fails_rolls_back(on: On) -> None:
    async def case(db: Either) -> None:
        await db.execute("CREATE TABLE child (t REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
        with pytest.raises(sqlite3.IntegrityError):
            async with db.write() as connection:
                await connection.execute("INSERT INTO child VALUES (7)")
        assert await db.query("SELECT * FROM child") == []
        await db.execute("INSERT INTO t (x) VALUES (1)")

    on(case)


def test_a_failed_write_changes_nothing(on: On) -> None:
    async def case(db: Either) -> None:
        await db.execute("INSERT INTO t (x) VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError):
            await db.execute("INSERT INTO t (x) VALUES (2), (1)")
        with pytest.raises(sqlite3.IntegrityError):
            await db.executemany("INSERT INTO t (x) VALUES (?)", [(2,), (1,)])
        with pytest.raises(ZeroDivisionError):
            await db.executemany("INSERT INTO t (x) VALUES (?)", ((1 / 0,) for _ in range(2)))
        with pytest.raises(sqlite3.ProgrammingError, match=r"needs db\.write"):
            await db.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError):
            await db.execute("COMMIT")
        assert await db.query("SELECT x FROM t") == [(1,)]

    on(case)


@pytest.mark.parametrize("durable_commit", ["group", "each", "shared"])
def test_writes_at_the_same_time_succeed_or_fail_as_if_alone(
    on: On, face: Face, durable_commit: str
) -> None:
    async def case(db: Either) -> None:
        await db.execute(
            "CREATE TABLE child (n, t REFERENCES t DEFERRABLE INITIALLY DEFERRED, CHECK (n < 1000))"
        )
        await db.execute("INSERT INTO t VALUES (1, 0)")

        async def outcome(sql: str, *parameters: object) -> str:
            try:
                answer = await db.execute(sql, parameters)
            except sqlite3.Error as error:
                return error.sqlite_errorname
            return f"{answer.rowcount}"

        kinds = [
            ("INSERT INTO t (x) VALUES (?)", "1"),
            ("INSERT INTO child VALUES (?, 1)", "1"),
            ("INSERT INTO child VALUES (?, 77777)", "SQLITE_CONSTRAINT_FOREIGNKEY"),
            ("INSERT INTO child VALUES (? + 1000, 1)", "SQLITE_CONSTRAINT_CHECK"),
            ("INSERT OR IGNORE INTO t VALUES (1, ?)", "0"),
            ("INSERT OR ROLLBACK INTO t VALUES (1, ?)", "SQLITE_CONSTRAINT_PRIMARYKEY"),
            ("INSERT OR FAIL INTO t VALUES (1, ?)", "SQLITE_CONSTRAINT_PRIMARYKEY"),
            ("INSERT INTO missing VALUES (?)", "SQLITE_ERROR"),
            ("UPDATE t SET x = 0 WHERE id = 1 AND ? IS NOT NULL", "1"),
        ]
        wanted = [(sql, i, expected) for i in range(1, 40) for sql, expected in kinds]
        actors = [face.start(outcome(sql, i)) for sql, i, _ in wanted]
        outcomes = [await actor.result() for actor in actors]
        assert outcomes == [expected for *_, expected in wanted]
        assert await db.query("SELECT count(*) FROM t") == [(40,)]
        assert await db.query("SELECT count(*) FROM child") == [(39,)]
        stats = db.stats()
        # What rolls all back makes each of its batch run alone, within the same batch.
        assert stats.batches <= stats.batched_writes
        if durable_commit == "each":
            assert stats.batches == stats.batched_writes

    on(case, durable_commit=durable_commit, profile="durable")


def test_writes_at_the_same_time_share_their_commits(on: On, face: Face) -> None:
    async def case(db: Either) -> None:
        async with db.write():
            writes = [
                face.start(db.execute("INSERT INTO t (x) VALUES (?)", (i,))) for i in range(100)
            ]
            await face.until(lambda: db.stats().writer_waiting == 100)
            before = db.stats()
        for write in writes:
            await write.result()
        after = db.stats()
        assert after.batched_writes - before.batched_writes == 100
        assert after.batches - before.batches < 50

    on(case)


def test_many_read_and_write(on: On, face: Face) -> None:
    async def case(db: Either) -> None:
        async def work() -> None:
            for _ in range(20):
                await db.execute("INSERT INTO t (x) VALUES (hex(randomblob(16)))")
                async with db.write() as connection:
                    await connection.execute("INSERT INTO t (x) VALUES (hex(randomblob(16)))")
                assert await db.query_one("SELECT count(*) >= 2 FROM t") == (1,)
                async with db.read() as connection:
                    first = await connection.execute_fetchall("SELECT count(*) FROM t")
                    assert await connection.execute_fetchall("SELECT count(*) FROM t") == first

        for actor in [face.start(work()) for _ in range(8)]:
            await actor.result()
        assert await db.query_one("SELECT count(*) FROM t") == (320,)

    on(case)


def test_checkpoints(on: On, face: Face) -> None:
    async def case(db: Either) -> None:
        await db.execute("INSERT INTO t (x) VALUES (1)")
        done = await db.checkpoint()
        assert (done.busy, done.log) == (False, done.checkpointed)
        assert done.log > 0
        assert await db.checkpoint("truncate") == (False, 0, 0)
        with pytest.raises(ValueError, match="unknown"):
            await db.checkpoint("some")
        async with db.read() as connection:
            await connection.execute_fetchall("SELECT * FROM t")
            await db.execute("INSERT INTO t (x) VALUES (2)")
            assert (await db.checkpoint("truncate", timeout=0.01)).busy
        begun, end = face.event(), face.event()

        async def hold() -> None:
            async with db.write():
                begun.set()
                await end.wait()

        holder = face.start(hold())
        await begun.wait()
        checkpoint = face.start(db.checkpoint())
        await face.until(lambda: db.stats().writer_waiting)
        end.set()
        await holder.result()
        assert not (await checkpoint.result()).busy
        assert db.stats().checkpoints >= 2

    on(case)


def test_the_planners_statistics_are_looked_at_after_a_write(
    on: On, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after one that runs alone, and not before it: then it would not have been seen."""
    seen: list[tuple[int, ...]] = []
    optimize = PlannerStatistics.optimize

    def look(self: PlannerStatistics, connection: sqlite3.Connection) -> None:
        seen.append(connection.execute("SELECT count(*) FROM t").fetchone())
        optimize(self, connection)

    async def case(db: Either) -> None:
        await db.executemany("INSERT INTO t (x) VALUES (?)", [(i,) for i in range(99)])
        await db.execute("CREATE INDEX i ON t (x)")
        monkeypatch.setattr(PlannerStatistics, "is_due", lambda _: True)
        monkeypatch.setattr(PlannerStatistics, "optimize", look)
        together = "INSERT INTO t (x) VALUES (?)"
        alone = "WITH a AS (SELECT ?) INSERT INTO t (x) SELECT * FROM a"
        for sql in (together, alone):
            seen.clear()
            await db.execute(sql, (sql,))
            (count,) = await db.query_one("SELECT count(*) FROM t")
            assert seen == [(count,)]
        assert await db.query("SELECT count(*) > 0 FROM sqlite_stat1") == [(1,)]

    on(case)


def test_the_planners_statistics_fail_no_write(
    on: On, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlannerStatistics, "is_due", lambda _: True)

    async def case(db: Either) -> None:
        # The writer is in use by another one when the write has been done.
        async with db.write():
            write = face.start(db.execute("INSERT INTO t (x) VALUES (2)"))
            await face.until(lambda: db.stats().writer_waiting)

            async def hold() -> None:
                async with db.write():
                    assert (await write.result()).rowcount == 1

            holder = face.start(hold())
            await face.until(lambda: db.stats().writer_waiting == 2)
        await holder.result()

    on(case)
