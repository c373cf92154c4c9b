"""Pools: who has their connections; forks and disposal in the middle of work."""

import gc
import os
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

MakeEngine = Callable[..., sa.Engine]


def in_a_child(work: Callable[[], object]) -> None:
    """Run something in a forked child; fail if it raises there, or does not end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def count(engine: sa.Engine, note: sa.Table) -> int:
    with engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(note)) or 0


def test_an_exhausted_pool_names_who_has_its_connections(make_engine: MakeEngine) -> None:
    engine = make_engine(pool_size=1, max_overflow=1, pool_timeout=0.1)
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.connect():
            inside.set()
            done.wait(30)

    thread = threading.Thread(target=hold, name="report-1")
    thread.start()
    inside.wait(30)
    with engine.connect():
        with pytest.raises(exc.TimeoutError) as caught:
            engine.connect()
        assert "held by thread 'report-1' for 0." in str(caught.value)
        assert "thread 'MainThread' for 0." in str(caught.value)
        status = engine.pool.status()
        assert "Waits: 1 " in status
        assert "Held by: thread 'report-1'" in status
    done.set()
    thread.join()
    status = engine.pool.status()
    assert status.endswith("Held by: nobody")
    assert "Waiting: 0" in status


def test_a_wait_that_is_over_is_counted(make_engine: MakeEngine) -> None:
    engine = make_engine(pool_size=1, max_overflow=0, pool_timeout=30)
    first = engine.connect()
    thread = threading.Thread(target=lambda: engine.connect().close())
    thread.start()
    while "Waiting: 1" not in engine.pool.status():
        pass
    first.close()
    thread.join()
    assert "Waiting: 0 Waits: 1" in engine.pool.status()


def test_a_connection_that_is_detached_or_dropped_has_no_holder(make_engine: MakeEngine) -> None:
    engine = make_engine(pool_size=2, max_overflow=0)
    connection = engine.connect()
    connection.detach()
    assert engine.pool.status().endswith("nobody")
    connection.close()
    raw: Any = engine.raw_connection()
    raw.invalidate()
    raw.close()
    assert engine.pool.status().endswith("nobody")
    assert engine.pool.recreate().status().endswith("nobody")


def test_a_forked_child_gets_connections_of_its_own(
    make_engine: MakeEngine, note: sa.Table
) -> None:
    engine = make_engine()
    assert count(engine, note) == 2

    def work() -> None:
        assert engine.pool.checkedin() == 0  # type: ignore[attr-defined]
        with engine.begin() as connection:
            connection.execute(note.insert().values(text="child"))
        engine.dispose()

    in_a_child(work)
    assert count(engine, note) == 3


def test_a_fork_inside_a_transaction_leaves_it_to_the_parent(
    make_engine: MakeEngine, note: sa.Table, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = make_engine("?timeout=5", pool_size=1, max_overflow=0, pool_timeout=5)
    with engine.connect() as connection:
        connection.execute(note.insert().values(text="parent"))

        def work() -> None:
            with pytest.raises(exc.ProgrammingError, match="before a fork") as caught:
                connection.execute(note.insert().values(text="child"))
            assert caught.value.connection_invalidated
            connection.close()
            assert count(engine, note) == 2

        in_a_child(work)

        def leave() -> None:
            connection.close()
            assert count(engine, note) == 2
            assert engine.pool.checkedin() == 1  # type: ignore[attr-defined]

        in_a_child(leave)
        connection.commit()
    assert count(engine, note) == 3
    assert capfd.readouterr() == ("", "")


def test_forks_while_threads_work(make_engine: MakeEngine, note: sa.Table) -> None:
    engine = make_engine("?timeout=30", pool_size=2, max_overflow=1)
    done = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not done.is_set():
                with engine.begin() as connection:
                    connection.execute(sa.select(note)).all()
                    connection.execute(note.update().values(stars=note.c.stars + 1))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        in_a_child(lambda: [count(engine, note) for _ in range(5)])
    done.set()
    for thread in threads:
        thread.join()
    assert not errors


def opened(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""


def test_disposal_while_threads_work(make_engine: MakeEngine, file: Path, note: sa.Table) -> None:
    engine = make_engine("?timeout=30")
    done = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not done.is_set():
                with engine.begin() as connection:
                    connection.execute(sa.select(note)).all()
                    connection.execute(note.update().values(stars=note.c.stars + 1))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        engine.dispose()
        assert count(engine, note) == 2
    done.set()
    for thread in threads:
        thread.join()
    assert not errors
    engine.dispose()
    # A connection that was out when its pool was disposed of went back to that pool.
    gc.collect()
    assert [fd for fd in Path("/proc/self/fd").iterdir() if opened(fd).startswith(str(file))] == []


def test_who_borrows_next_sees_nothing_of_a_result_left_open(
    make_engine: MakeEngine, note: sa.Table
) -> None:
    engine = make_engine(pool_size=1, max_overflow=0)
    other = make_engine()
    with engine.connect() as connection:
        left = connection.execution_options(stream_results=True).execute(sa.select(note))
        assert left.fetchone() is not None
    with other.begin() as connection:
        connection.execute(note.insert().values(text="newest"))
    with engine.begin() as connection:
        texts = connection.scalars(sa.select(note.c.text)).all()
        assert set(texts) == {"first", "second", "newest"}
        connection.execute(note.insert().values(text="written"))


def test_rolling_back_ends_a_result(make_engine: MakeEngine, note: sa.Table) -> None:
    with make_engine().connect() as connection:
        result = connection.exec_driver_sql("VALUES (1), (2), (3)")
        assert result.fetchone() == (1,)
        connection.rollback()
        with pytest.raises(sa.exc.OperationalError, match="ended before all of its rows"):
            result.fetchall()


@pytest.mark.parametrize("database", ["file::memory:?", "file:shared?mode=memory&"])
def test_a_shared_cache_in_memory_belongs_to_one_thread_too(threads: Any, database: str) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///{database}cache=shared&uri=true")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x)")

    def connect() -> None:
        with pytest.raises(exc.InvalidRequestError, match="belongs to thread 'MainThread'"):
            engine.connect()

    threads.start(connect)
    threads.finish()
    engine.dispose()
