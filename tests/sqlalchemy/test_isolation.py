"""Isolation levels: what each lets one see, and what it locks."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, InvalidRequestError, OperationalError
from sqlalchemy.orm import Session

import oxlite
from oxlite import sqlite3
from oxlite.sqlalchemy.isolation import begins

MakeEngine = Callable[..., sa.Engine]


def texts(connection: sa.Connection, note: sa.Table) -> list[str]:
    return list(connection.scalars(sa.select(note.c.text).order_by(note.c.id)))


def add(engine: sa.Engine, note: sa.Table, text: str) -> None:
    with engine.begin() as connection:
        connection.execute(note.insert().values(text=text))


def in_transaction(connection: sa.Connection) -> bool:
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, oxlite.Connection)
    return raw.in_transaction


def test_read_committed_is_the_default(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        assert connection.default_isolation_level == "READ COMMITTED"


@pytest.mark.parametrize(
    "level", ["READ COMMITTED", "SERIALIZABLE", "SNAPSHOT", "READ UNCOMMITTED", "AUTOCOMMIT"]
)
def test_a_level_is_set_by_engine_connection_or_option(
    make_engine: MakeEngine, note: sa.Table, level: str
) -> None:
    engine = make_engine(isolation_level=level)
    with engine.connect() as connection:
        assert connection.get_isolation_level() == level
    plain = make_engine()
    with plain.execution_options(isolation_level=level).connect() as connection:
        assert connection.get_isolation_level() == level
    with plain.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        connection.execution_options(isolation_level=level.lower().replace(" ", "_"))
        assert connection.get_isolation_level() == level
        connection.execute(note.insert().values(text=level))
        connection.commit()
    with plain.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED", "taken back on return"
        assert level in texts(connection, note)
    by_url = make_engine("?isolation_level=" + level.replace(" ", "_").lower())
    by_arguments = make_engine(connect_args={"isolation_level": level})
    for engine in (by_url, by_arguments):
        with engine.connect() as connection:
            assert connection.get_isolation_level() == level
            connection.execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            assert connection.get_isolation_level() == level


def test_read_committed_reads_see_the_newest_commit_and_lock_nothing(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    with engine.connect() as connection:
        assert texts(connection, note) == ["first", "second"]
        assert not in_transaction(connection)
        add(other, note, "third")
        assert texts(connection, note) == ["first", "second", "third"]


@pytest.mark.parametrize(
    "write",
    [
        lambda note: note.insert().values(text="x"),
        lambda note: note.update().values(stars=1),
        lambda note: note.delete(),
        lambda note: sa.select(note).with_for_update(),
        lambda note: sa.select(sa.select(note).with_for_update().subquery()),
        lambda note: sa.text("INSERT INTO note (text) VALUES ('x')"),
        lambda note: sa.text("/* c */ -- d\n insert into note (text) VALUES ('x')"),
        lambda note: sa.text("WITH s AS (SELECT 'x') INSERT INTO note (text) SELECT * FROM s"),
        lambda note: sa.text("REPLACE INTO note (text) VALUES ('x')"),
        lambda note: sa.text("CREATE TABLE other (id)"),
        lambda note: sa.schema.CreateIndex(sa.Index("i", note.c.stars)),
    ],
)
def test_read_committed_is_serialised_from_the_first_write_on(
    engine: sa.Engine, other: sa.Engine, note: sa.Table, write: Callable[..., sa.Executable]
) -> None:
    statement = write(note.to_metadata(sa.MetaData()))
    with engine.connect() as connection:
        texts(connection, note)
        connection.execute(statement)
        assert in_transaction(connection)
        with pytest.raises(OperationalError) as caught:
            add(other, note, "third")
        assert isinstance(caught.value.orig, oxlite.LockedError)
        connection.rollback()
        add(other, note, "third")
        assert texts(connection, note) == ["first", "second", "third"]


def test_many_rows_at_once_are_one_transaction(engine: sa.Engine, note: sa.Table) -> None:
    with engine.connect() as connection:
        connection.execute(note.insert(), [{"text": "x"}, {"text": "y"}])
        connection.exec_driver_sql(
            "WITH s AS (SELECT 1) INSERT INTO note (text) VALUES (?)", [("z",), ("w",)]
        )
        connection.rollback()
        assert texts(connection, note) == ["first", "second"]


def test_ddl_is_part_of_the_transaction(engine: sa.Engine, note: sa.Table) -> None:
    metadata = sa.MetaData()
    sa.Table("other", metadata, sa.Column("id", sa.Integer))
    with engine.connect() as connection:
        metadata.create_all(connection)
        connection.execute(note.delete())
        connection.rollback()
        assert texts(connection, note) == ["first", "second"]
        assert not sa.inspect(connection).has_table("other")


def test_a_savepoint_begins_the_transaction_it_is_in(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    with engine.connect() as connection:
        outer = connection.begin_nested()
        assert in_transaction(connection)
        connection.execute(note.insert().values(text="outer"))
        inner = connection.begin_nested()
        connection.execute(note.insert().values(text="inner"))
        inner.rollback()
        outer.commit()
        with other.connect() as elsewhere:
            assert "outer" not in texts(elsewhere, note), "RELEASE has not committed"
        connection.commit()
    with other.connect() as elsewhere:
        assert texts(elsewhere, note) == ["first", "second", "outer"]


def test_read_committed_may_overwrite_what_came_between_and_for_update_may_not(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    one = note.c.id == 1
    star = note.update().where(one)
    read = sa.select(note.c.stars).where(one)
    with engine.connect() as connection:
        stars = connection.scalars(read).one()
        with other.begin() as elsewhere:
            elsewhere.execute(star.values(stars=10))
        connection.execute(star.values(stars=stars + 1))
        connection.commit()
        assert connection.scalars(read).one() == 1, "the ten are lost, as on PostgreSQL"
        connection.rollback()
        stars = connection.scalars(read.with_for_update()).one()
        with pytest.raises(OperationalError, match="locked"):
            add(other, note, "third")
        connection.execute(star.values(stars=stars + 1))
        connection.commit()
        assert connection.scalars(read).one() == 2


def test_serializable_locks_from_the_start(
    make_engine: MakeEngine, other: sa.Engine, note: sa.Table
) -> None:
    engine = make_engine("?timeout=0.3", isolation_level="SERIALIZABLE")
    with engine.connect() as connection:
        with connection.begin():
            assert in_transaction(connection)
            with pytest.raises(OperationalError, match="locked"):
                add(other, note, "third")
        add(other, note, "third")
        with other.begin() as elsewhere:
            elsewhere.execute(note.delete())
            with pytest.raises(OperationalError) as caught:
                connection.begin()
            assert isinstance(caught.value.orig, oxlite.LockedError)


def test_a_snapshot_stays_as_it_was_and_a_stale_one_is_not_written_on(
    make_engine: MakeEngine, other: sa.Engine, note: sa.Table
) -> None:
    engine = make_engine("?timeout=0.3", isolation_level="SNAPSHOT")
    with engine.connect() as connection:
        assert texts(connection, note) == ["first", "second"]
        add(other, note, "third")
        assert texts(connection, note) == ["first", "second"]
        with pytest.raises(OperationalError) as caught:
            connection.execute(note.insert().values(text="fourth"))
        assert isinstance(caught.value.orig, oxlite.StaleSnapshotError)
        assert not caught.value.connection_invalidated
        connection.rollback()
        assert texts(connection, note) == ["first", "second", "third"]
        connection.execute(note.insert().values(text="fourth"))
        connection.commit()


def test_retry_runs_a_transaction_again_whose_snapshot_was_stale(
    make_engine: MakeEngine, other: sa.Engine, note: sa.Table
) -> None:
    engine = make_engine(isolation_level="SNAPSHOT")
    attempts = []

    @oxlite.retry
    def star() -> int:
        with engine.begin() as connection:
            stars = connection.scalars(sa.select(note.c.stars).where(note.c.id == 1)).one()
            if not attempts:
                with other.begin() as elsewhere:
                    elsewhere.execute(note.update().values(stars=10))
            attempts.append(stars)
            connection.execute(note.update().values(stars=stars + 1).where(note.c.id == 1))
            return stars + 1

    assert star() == 11
    assert attempts == [0, 10]


def test_autocommit_commits_each_statement(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(note.insert().values(text="third"))
        connection.execute(sa.select(note).with_for_update())
        connection.exec_driver_sql("CREATE TABLE other (id)")
        assert not in_transaction(connection)
        with other.connect() as elsewhere:
            assert texts(elsewhere, note) == ["first", "second", "third"]
            assert sa.inspect(elsewhere).has_table("other")
        connection.exec_driver_sql("VACUUM")
        connection.rollback()


def test_read_only_is_one_snapshot_in_which_nothing_is_written(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    with engine.connect().execution_options(sqlite_read_only=True) as connection:
        assert texts(connection, note) == ["first", "second"]
        assert in_transaction(connection)
        add(other, note, "third")
        assert texts(connection, note) == ["first", "second"]
        with pytest.raises(OperationalError, match="sqlite_read_only is True"):
            connection.execute(note.delete())
        with pytest.raises(OperationalError, match="sqlite_read_only is True"):
            connection.execute(note.insert(), [{"text": "x"}, {"text": "y"}])
        with pytest.raises(OperationalError, match="sqlite_read_only is True"):
            connection.exec_driver_sql("CREATE TABLE other (id)")
        with connection.begin_nested():
            assert texts(connection, note) == ["first", "second"]
    add(engine, note, "fourth")


@pytest.mark.parametrize("level", ["READ COMMITTED", "AUTOCOMMIT"])
def test_read_only_is_ended_by_nothing_else(engine: sa.Engine, note: sa.Table, level: str) -> None:
    options = {"sqlite_read_only": True, "isolation_level": level}
    with engine.connect().execution_options(**options) as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        for pragma in ("query_only = OFF", "journal_mode = DELETE", "locking_mode = EXCLUSIVE"):
            with pytest.raises(OperationalError, match="sqlite_read_only is True"):
                connection.exec_driver_sql(f"PRAGMA {pragma}")
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            driver.deserialize(b"")
        assert texts(connection, note) == ["first", "second"]
    add(engine, note, "third")


def test_read_only_ends_with_what_was_set_before(engine: sa.Engine, note: sa.Table) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
        connection.execution_options(sqlite_read_only=True)
    with engine.connect() as connection:  # the only one of its pool
        assert connection.exec_driver_sql("PRAGMA query_only").scalar() == 1
        connection.exec_driver_sql("PRAGMA query_only = OFF")
    add(engine, note, "third")


def test_read_only_for_an_engine_and_in_autocommit(engine: sa.Engine, note: sa.Table) -> None:
    readers = engine.execution_options(sqlite_read_only=True)
    with pytest.raises(OperationalError, match="sqlite_read_only is True"):
        add(readers, note, "third")
    with readers.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert texts(connection, note) == ["first", "second"]
        assert not in_transaction(connection)
        with pytest.raises(OperationalError, match="sqlite_read_only is True"):
            connection.execute(note.delete())
    add(engine, note, "third")


def test_read_only_is_true_or_false_and_not_set_inside_a_transaction(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(ArgumentError, match="must be True or False, not 'yes'"):
            connection.execution_options(sqlite_read_only="yes")
        connection.begin()
        with pytest.raises(InvalidRequestError, match="sqlite_read_only may not be altered"):
            connection.execution_options(sqlite_read_only=True)


def test_a_file_that_cannot_be_written_is_not_blamed_on_us(
    make_engine: MakeEngine, file: object, note: sa.Table
) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///file:{file}?mode=ro&uri=true")
    with pytest.raises(OperationalError, match="readonly") as caught:
        add(engine, note, "third")
    assert "sqlite_read_only" not in str(caught.value)
    assert "query_only" not in str(caught.value)
    engine.dispose()


def test_a_write_while_a_result_is_read_may_find_the_snapshot_stale(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    with engine.connect() as connection:
        result = connection.execute(sa.select(note))
        result.fetchone()
        add(other, note, "third")
        with pytest.raises(OperationalError) as caught:
            connection.execute(note.delete())
        assert isinstance(caught.value.orig, oxlite.StaleSnapshotError)
        result.close()
        connection.execute(note.delete())


def test_a_transaction_that_sqlite_has_ended_is_followed_by_another(
    engine: sa.Engine, note: sa.Table
) -> None:
    with engine.connect() as connection:
        connection.execute(note.insert().values(text="third"))
        with pytest.raises(sa.exc.IntegrityError):
            connection.exec_driver_sql("INSERT OR ROLLBACK INTO note (text) VALUES ('first')")
        assert not in_transaction(connection)
        connection.execute(note.insert().values(text="fourth"))
        assert in_transaction(connection)
        connection.rollback()
        assert texts(connection, note) == ["first", "second"]


def test_the_drivers_connection_is_in_the_same_kind_of_transaction(
    engine: sa.Engine, note: sa.Table
) -> None:
    raw = engine.raw_connection()
    raw.cursor().execute("DELETE FROM note")
    raw.rollback()
    raw.close()
    with engine.connect() as connection:
        assert texts(connection, note) == ["first", "second"]


def test_a_listener_may_begin_in_its_own_way(
    engine: sa.Engine, other: sa.Engine, note: sa.Table
) -> None:
    engine = engine.execution_options(isolation_level="SERIALIZABLE")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN EXCLUSIVE")

    with engine.begin(), pytest.raises(OperationalError, match="locked"):
        add(other, note, "third")


def test_orm_objects_for_update(engine: sa.Engine, other: sa.Engine, note: sa.Table) -> None:
    class Note:
        text: str

    mapper = sa.orm.registry()
    mapper.map_imperatively(Note, note)
    with Session(engine) as session:
        assert session.get(Note, 1).text == "first"
        add(other, note, "third")
        session.get(Note, 1, with_for_update=True)
        with pytest.raises(OperationalError, match="locked"):
            add(other, note, "fourth")
    mapper.dispose()


def test_two_phase_is_refused(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(InvalidRequestError, match="two-phase"):
        connection.begin_twophase()
    session = Session(engine, twophase=True)
    with pytest.raises(InvalidRequestError, match="two-phase"):
        session.execute(sa.text("SELECT 1"))
    session.close()


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("IMMEDIATE", "SQLAlchemy's level is 'SERIALIZABLE'"),
        ("DEFERRED", "SQLAlchemy's level is 'SNAPSHOT'"),
        ("EXCLUSIVE", "SQLAlchemy's level is 'SERIALIZABLE'"),
    ],
)
def test_the_drivers_words_for_a_level_are_refused(
    make_engine: MakeEngine, level: str, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        make_engine(isolation_level=level)
    with pytest.raises(ArgumentError, match=message):
        make_engine(f"?isolation_level={level}")


def test_an_unknown_level_is_refused(make_engine: MakeEngine) -> None:
    with pytest.raises(ArgumentError, match="Valid isolation levels for 'sqlite' are READ COMM"):
        make_engine(isolation_level="REPEATABLE READ").connect()
    with pytest.raises(ArgumentError, match="did you mean SNAPSHOT"):
        make_engine("?isolation_level=SNAPSHOTS")
    with pytest.raises(ArgumentError, match="there are READ COMMITTED, SERIALIZABLE"):
        make_engine("?isolation_level=chaos")
    with pytest.raises(ArgumentError, match="SQLAlchemy's level is 'AUTOCOMMIT'"):
        make_engine(connect_args={"isolation_level": None}).connect()


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("SELECT 1", False),
        ("INSERT INTO t VALUES (1)", False),  # the driver begins
        ("  insert into t VALUES (1)", True),
        ("CREATE TABLE t (x)", True),
        ("-- comment\nDROP TABLE t", True),
        ("/* unfinished", False),
        ("", False),
        ("; SELECT", False),
        ("PRAGMA user_version = 1", False),
        ("VACUUM", False),
        ("ATTACH 'x' AS y", False),
        ("EXPLAIN DELETE FROM t", False),
        ("SAVEPOINT s", True),
        ("RELEASE SAVEPOINT s", False),
        ("ROLLBACK TO s", False),
        ("WITH a AS (SELECT 1) SELECT * FROM a", False),
        ("WITH a AS (SELECT 1), b(x) AS (VALUES (1)) UPDATE t SET x = 1", True),
        ("WITH \"insert\" AS (SELECT 'DELETE (') SELECT 1", False),
        ("WITH [update] AS (SELECT 1 /* ) INSERT */) VALUES (1)", False),
        ("with a as materialized (select ')' as \")\" from `delete`) delete from t", True),
        ("WITH a AS (INSERT", False),
    ],
)
def test_which_statements_begin(statement: str, answer: bool) -> None:
    assert begins(statement) is answer


@pytest.mark.parametrize("what", ["nowait", "skip_locked"])
def test_for_update_of_rows_that_others_have_is_refused(
    engine: sa.Engine, note: sa.Table, what: str
) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.CompileError, match=rf"{what}=True.*one lock for the whole file"):
            connection.execute(sa.select(note).with_for_update(**{what: True}))  # type: ignore[arg-type]
        assert connection.execute(sa.select(note).with_for_update()).all()
