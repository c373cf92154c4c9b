"""Errors as SQLAlchemy shows them: classes, causes, disconnects, pickles."""

import os
import pickle
import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

import oxlite
from oxlite import sqlite3

MakeEngine = Callable[..., sa.Engine]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM missing", exc.OperationalError),
        ("INSERT INTO note (text) VALUES ('first')", exc.IntegrityError),
        ("SELECT ?", exc.ProgrammingError),
    ],
)
def test_errors_are_of_sqlalchemys_classes(
    engine: sa.Engine, sql: str, expected: type[exc.DBAPIError]
) -> None:
    with engine.connect() as connection, pytest.raises(expected) as caught:
        connection.exec_driver_sql(sql)
    assert isinstance(caught.value.orig, sqlite3.Error)
    assert caught.value.__cause__ is caught.value.orig
    assert not caught.value.connection_invalidated


def test_a_locked_database_names_who_holds_it(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    with other.begin() as elsewhere:
        elsewhere.execute(note.delete())
        with engine.connect() as connection, pytest.raises(exc.OperationalError) as caught:
            connection.execute(note.insert().values(text="x"))
    error = caught.value.orig
    assert isinstance(error, oxlite.LockedError)
    assert error.holder is not None
    assert error.holder["process_id"] == os.getpid()
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (oxlite.LockedError, str(error))
    assert again.holder == error.holder
    assert again.sqlite_errorname == error.sqlite_errorname


def test_sqlalchemys_errors_are_pickled_with_ours(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(exc.OperationalError) as caught:
        connection.exec_driver_sql("SELECT * FROM missing")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert type(again.orig) is sqlite3.OperationalError
    assert again.orig.sqlite_errorcode == caught.value.orig.sqlite_errorcode


@pytest.mark.parametrize(
    "error",
    [
        oxlite.StaleSnapshotError("stale"),
        oxlite.LockedError("locked"),
        oxlite.CommitOutcomeUnknown("unknown"),
        oxlite.StatementTimeout("late"),
        oxlite.SyncFailedError("failed"),
        oxlite.PoolTimeout("full"),
        sqlite3.IntegrityError("unique"),
    ],
)
def test_the_drivers_errors_are_pickled(error: sqlite3.Error) -> None:
    error.sqlite_errorcode = 5
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (oxlite.CommitOutcomeUnknown("x"), True),
        (oxlite.SyncFailedError("x"), True),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), True),
        (sqlite3.ProgrammingError("This connection was opened before a fork, in …"), True),
        (sqlite3.ProgrammingError("wrong number of bindings"), False),
        (oxlite.LockedError("database is locked"), False),
        (oxlite.StaleSnapshotError("x"), False),
        (oxlite.StatementTimeout("x"), False),
        (sqlite3.OperationalError("interrupted"), False),
        (ValueError("Cannot operate on a closed database."), False),
    ],
)
def test_what_is_a_disconnect(engine: sa.Engine, error: Exception, answer: bool) -> None:
    assert engine.dialect.is_disconnect(error, None, None) is answer


def test_a_connection_closed_behind_the_pools_back_is_replaced(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.close()
        with pytest.raises(exc.ProgrammingError) as caught:
            connection.exec_driver_sql("SELECT 1")
        assert caught.value.connection_invalidated
        connection.rollback()
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1


def test_a_ping_finds_a_closed_connection(make_engine: MakeEngine) -> None:
    engine = make_engine(pool_pre_ping=True)
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
    assert raw is not None
    raw.close()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1


def test_a_statement_that_takes_too_long(make_engine: MakeEngine) -> None:
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    )
    with (
        make_engine("?statement_timeout=0.05").connect() as connection,
        pytest.raises(exc.OperationalError) as caught,
    ):
        connection.exec_driver_sql(endless)
    assert isinstance(caught.value.orig, oxlite.StatementTimeout)


def test_a_database_in_memory_is_refused_to_a_second_thread() -> None:
    engine = sa.create_engine("sqlite+oxlite://")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x)")
    with engine.connect() as connection, engine.connect() as again:
        assert again.connection.dbapi_connection is connection.connection.dbapi_connection
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            engine.connect()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=connect, name="worker")
    thread.start()
    thread.join()
    (error,) = errors
    assert isinstance(error, exc.InvalidRequestError)
    assert "belongs to thread 'MainThread'" in str(error)
    assert "thread 'worker' would get an empty one" in str(error)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT * FROM t")
    engine.dispose()


def test_one_connection_in_memory_for_all_threads() -> None:
    engine = sa.create_engine(
        "sqlite+oxlite://",
        poolclass=sa.StaticPool,
        connect_args={"check_same_thread": False},
    )
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x)")
    counts: list[object] = []

    def count() -> None:
        with engine.connect() as connection:
            counts.append(connection.exec_driver_sql("SELECT count(*) FROM t").scalar())

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    assert counts == [0]
    engine.dispose()


def test_a_flush_that_fails_leaves_a_session_that_can_be_rolled_back(
    engine: sa.Engine, note: sa.Table
) -> None:
    with Session(engine) as session:
        session.execute(note.insert().values(text="third"))
        with pytest.raises(exc.IntegrityError):
            session.execute(note.insert().values(text="first"))
        session.rollback()
        assert session.scalar(sa.select(sa.func.count()).select_from(note)) == 2
