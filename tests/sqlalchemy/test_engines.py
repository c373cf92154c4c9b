"""Readers and a writer behind one session: what goes where, and what a session sees."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import async_sessionmaker
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

import oxlite
from oxlite.sqlalchemy import (
    Engines,
    RoutingSession,
    create_async_engines,
    create_engines,
    create_reader_engine,
)


class Base(DeclarativeBase):
    """The application's models."""


class Note(Base):
    """A note."""

    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(unique=True)
    stars: Mapped[int] = mapped_column(server_default="0")


class Log(Base):
    """A line of a log, in another database."""

    __tablename__ = "log"
    id: Mapped[int] = mapped_column(primary_key=True)
    line: Mapped[str]


@pytest.fixture
def engines(file: Path) -> Iterator[Engines]:
    """Two engines on the database."""
    engines = create_engines(f"sqlite+oxlite:///{file}?timeout=5", readers=2)
    yield engines
    engines.dispose()


@pytest.fixture
def make_session(engines: Engines) -> sessionmaker[RoutingSession]:
    return sessionmaker(engines.writer, class_=RoutingSession)


def used(session: Session) -> str:
    """Which engines the session's transaction has come to."""
    out = []
    for engine, name in ((session.bind, "writer"), (session.bind.dialect.reader, "reader")):  # type: ignore[union-attr]
        if engine.pool.checkedout():  # type: ignore[union-attr]
            out.append(name)
    return " ".join(out)


def add(engines: Engines, text: str) -> None:
    with engines.writer.begin() as connection:
        connection.execute(sa.insert(Note).values(text=text))


def test_reads_go_to_the_readers_and_see_the_newest_commit(
    engines: Engines, make_session: sessionmaker[RoutingSession]
) -> None:
    with make_session() as session:
        assert session.scalars(sa.select(Note.text)).all() == ["first", "second"]
        assert session.get(Note, 1).text == "first"  # type: ignore[union-attr]
        assert session.query(Note).count() == 2
        assert session.execute(sa.text("SELECT 1")).scalar() == 1
        query = sa.text("WITH n AS (SELECT * FROM note) SELECT * FROM n").columns(Note.id)
        assert len(session.scalars(sa.select(Note).from_statement(query)).all()) == 2
        union = sa.select(Note.id).union(sa.select(Note.id))
        assert len(session.scalars(union, bind_arguments={"clause": union}).all()) == 2
        assert used(session) == "reader"
        add(engines, "third")
        assert session.query(Note).count() == 3
    assert used(session) == ""


@pytest.mark.parametrize(
    "write",
    [
        lambda session: session.execute(sa.insert(Note).values(text="x")),
        lambda session: session.execute(sa.update(Note).values(stars=1)),
        lambda session: session.execute(
            sa.update(Note).values(stars=1), execution_options={"synchronize_session": "fetch"}
        ),
        lambda session: session.execute(sa.delete(Note).where(Note.id == 9)),
        lambda session: session.query(Note).filter_by(id=9).delete(),
        lambda session: session.execute(sa.text("UPDATE note SET stars = 1")),
        lambda session: session.execute(sa.select(Note).with_for_update()),
        lambda session: session.get(Note, 1, with_for_update=True),
        lambda session: session.query(Note).with_for_update().all(),
        lambda session: (session.add(Note(text="x")), session.flush()),
        lambda session: session.bulk_insert_mappings(Note, [{"text": "x"}]),
        lambda session: session.connection(),
        lambda session: session.execute(sa.text("PRAGMA user_version = 1")),
        lambda session: session.begin_nested() and session.scalars(sa.select(Note)).all(),
        lambda session: session.scalar(sa.insert(Note).values(text="x").returning(Note.id)),
    ],
)
def test_from_the_first_write_on_all_goes_to_the_writer(
    make_session: sessionmaker[RoutingSession], write: Any
) -> None:
    with make_session() as session:
        write(session)
        assert used(session) == "writer"
        session.scalars(sa.select(Note)).all()
        assert used(session) == "writer"
        session.rollback()
        session.scalars(sa.select(Note)).all()
        assert used(session) == "reader", "the next transaction begins anew"


def test_what_is_not_known_to_read_goes_to_the_writer(
    make_session: sessionmaker[RoutingSession],
) -> None:
    with make_session() as session:
        union = sa.select(Note.id).union(sa.select(Note.id))
        assert len(session.scalars(union).all()) == 2, "SQLAlchemy tells get_bind() nothing of it"
        assert used(session) == "writer"


def test_a_session_reads_what_it_has_written(
    engines: Engines, make_session: sessionmaker[RoutingSession]
) -> None:
    with make_session() as session:
        note = session.get(Note, 1)
        assert note is not None
        assert used(session) == "reader"
        note.text = "changed"
        found = session.scalars(sa.select(Note).where(Note.text == "changed")).one()
        assert found is note, "autoflush has written before the query was sent"
        assert used(session) == "writer reader"
        with make_session() as other:
            assert other.get(Note, 1).text == "first"  # type: ignore[union-attr]
        session.commit()
        assert note.text == "changed"
        assert used(session) == "reader"
    with make_session() as session:
        assert session.get(Note, 1).text == "changed"  # type: ignore[union-attr]


def test_readers_cannot_write(engines: Engines) -> None:
    with engines.reader.connect() as connection:
        with pytest.raises(exc.OperationalError, match="write through the engine that has"):
            connection.execute(sa.delete(Note))
        with pytest.raises(exc.OperationalError, match="FOR UPDATE takes the write lock"):
            connection.execute(sa.select(Note).with_for_update())
        with connection.begin_nested():
            assert len(connection.execute(sa.select(Note)).all()) == 2
        assert connection.execute(sa.select(Note)).all()


def test_for_update_in_a_subquery_is_refused_and_not_forgotten(
    make_session: sessionmaker[RoutingSession],
) -> None:
    statement = sa.select(sa.select(Note).with_for_update().subquery())
    with make_session() as session:
        with pytest.raises(exc.OperationalError, match="outside subqueries, and after connection"):
            session.execute(statement)
        session.rollback()
        session.connection()
        assert len(session.execute(statement).all()) == 2


@pytest.mark.parametrize("how", ["engine", "url", "arguments", "option"])
@pytest.mark.parametrize("level", ["SERIALIZABLE", "SNAPSHOT", "READ COMMITTED"])
def test_another_level_is_of_one_connection(file: Path, level: str, how: str) -> None:
    options: dict[str, Any] = {}
    url = f"sqlite+oxlite:///{file}"
    if how == "engine":
        options["isolation_level"] = level
    elif how == "url":
        url += f"?isolation_level={level.replace(' ', '_')}"
    elif how == "arguments":
        options["connect_args"] = {"isolation_level": level}
    engines = create_engines(url, **options)
    bind = engines.writer
    if how == "option":
        bind = bind.execution_options(isolation_level=level)
    with RoutingSession(bind) as session:
        session.scalars(sa.select(Note)).all()
        assert used(session) == ("reader" if level == "READ COMMITTED" else "writer")
        if level != "READ COMMITTED":
            assert session.connection().get_isolation_level() == level
    engines.dispose()


def test_a_session_that_only_reads_has_one_snapshot(file: Path) -> None:
    engines = create_engines(f"sqlite+oxlite:///{file}", writers=2)
    reading = engines.writer.execution_options(sqlite_read_only=True)
    with RoutingSession(reading) as session:
        count = sa.select(sa.func.count()).select_from(Note)
        assert session.scalar(count) == 2
        add(engines, "third")
        assert session.scalar(count) == 2, "the same snapshot"
        with pytest.raises(exc.OperationalError, match="sqlite_read_only is True"):
            session.execute(sa.insert(Note).values(text="fourth"))
    engines.dispose()


def test_a_level_for_one_transaction(make_session: sessionmaker[RoutingSession]) -> None:
    with make_session() as session:
        connection = session.connection(execution_options={"isolation_level": "SERIALIZABLE"})
        assert connection.get_isolation_level() == "SERIALIZABLE"
        session.scalars(sa.select(Note)).all()
        assert used(session) == "writer"


def test_several_databases(engines: Engines, tmp_path: Path) -> None:
    logs = create_engines(f"sqlite+oxlite:///{tmp_path}/log.db")
    plain = sa.create_engine(f"sqlite:///{tmp_path}/plain.db")
    Base.metadata.create_all(logs.writer, tables=[Log.__table__])  # type: ignore[list-item]
    make_session = sessionmaker(
        class_=RoutingSession, binds={Note: engines.writer, Log: logs.writer, Base: plain}
    )
    with make_session() as session:
        session.add(Log(line="begun"))
        session.flush()
        assert logs.writer.pool.checkedout() == 1  # type: ignore[attr-defined]
        assert session.query(Note).count() == 2
        assert engines.writer.pool.checkedout() == 0, "only the other database was written to"  # type: ignore[attr-defined]
        assert session.get_bind(Note) is engines.writer
        assert session.execute(sa.text("SELECT 1"), bind_arguments={"bind": plain}).scalar() == 1
        session.commit()
        assert session.query(Log).count() == 1
    logs.dispose()
    plain.dispose()


def test_migrations_use_the_writer(engines: Engines) -> None:
    metadata = sa.MetaData()
    sa.Table("added", metadata, sa.Column("id", sa.Integer))
    metadata.create_all(engines.writer)
    assert sa.inspect(engines.reader).has_table("added")
    with pytest.raises(exc.OperationalError, match="only reads"):
        metadata.drop_all(engines.reader)
    metadata.drop_all(engines.writer)


def test_alembic_migrates_through_the_writer(engines: Engines) -> None:
    migration = pytest.importorskip("alembic.migration")
    operations = pytest.importorskip("alembic.operations")
    with engines.writer.begin() as connection:
        context = migration.MigrationContext.configure(connection)
        op = operations.Operations(context)
        op.add_column("note", sa.Column("added", sa.Integer))
        with op.batch_alter_table("note") as batch:
            batch.drop_column("stars")
    columns = [column["name"] for column in sa.inspect(engines.reader).get_columns("note")]
    assert columns == ["id", "text", "added"]


def test_a_session_bound_to_a_connection_is_left_alone(engines: Engines) -> None:
    with engines.writer.connect() as connection, RoutingSession(connection) as session:
        session.add(Note(text="third"))
        session.flush()
        assert session.query(Note).count() == 3
        assert engines.reader.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_an_engine_that_exists_already_is_given_readers(file: Path) -> None:
    writer = sa.create_engine(f"sqlite+oxlite:///{file}")
    reader = create_reader_engine(writer, readers=3)
    assert reader.pool.size() == 3  # type: ignore[attr-defined]
    with RoutingSession(writer) as session:
        session.scalars(sa.select(Note)).all()
        assert used(session) == "reader"
    writer.dispose()
    assert reader.pool.checkedin() == 0, "disposed of with the writer"  # type: ignore[attr-defined]


def test_the_status_of_both_pools(engines: Engines) -> None:
    with engines.reader.connect():
        writer, reader = engines.status().splitlines()
    assert writer.startswith("writer: Pool size: 1 ")
    assert writer.endswith("Held by: nobody")
    assert reader.startswith("reader: Pool size: 2 ")
    assert "Held by: thread 'MainThread'" in reader


def test_the_writer_in_use_is_named(file: Path) -> None:
    engines = create_engines(f"sqlite+oxlite:///{file}", pool_timeout=0.1)
    session = RoutingSession(engines.writer)
    with (
        engines.writer.connect(),
        pytest.raises(exc.TimeoutError, match="held by thread 'MainThread'"),
    ):
        session.execute(sa.delete(Note))
    session.close()
    engines.dispose()


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("sqlite+oxlite://", {}, "a database in memory has one connection"),
        (
            "sqlite+oxlite:///file::memory:?cache=shared&uri=true",
            {},
            "a database in memory has one connection.*Use a file",
        ),
        (
            "sqlite+oxlite:///file:x?mode=memory&cache=shared&uri=true",
            {},
            "a database in memory has one connection.*Use a file",
        ),
        ("sqlite:///x.db", {}, "not sqlite"),
        ("sqlite+oxlite:///x.db?readers=many", {}, "readers=many in the URL: a number"),
        ("sqlite+oxlite:///x.db", {"readers": 0}, "readers must be at least 1, not 0"),
        ("sqlite+oxlite:///x.db", {"writers": 0}, "writers must be at least 1, not 0"),
        ("sqlite+oxlite:///x.db", {"pool_size": 3}, "pool_size is not taken here: say readers"),
        ("sqlite+oxlite:///x.db", {"creator": oxlite.connect}, "creator is not taken here"),
        ("sqlite+oxlite:///x.db?reader=3", {}, "did you mean readers"),
    ],
)
def test_what_cannot_be_is_refused(url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(exc.ArgumentError, match=message):
        create_engines(url, **options)


def test_readers_of_another_engine_are_refused() -> None:
    with pytest.raises(exc.ArgumentError, match="not sqlite"):
        create_reader_engine(sa.create_engine("sqlite://"))


def test_the_url_says_how_many_readers(file: Path) -> None:
    engines = create_engines(f"sqlite+oxlite:///{file}?readers=7&timeout=1")
    assert engines.reader.pool.size() == 7  # type: ignore[attr-defined]
    assert engines.writer.pool.size() == 1  # type: ignore[attr-defined]
    engines.dispose()


def test_threads_that_read_and_write_lose_nothing(
    engines: Engines, make_session: sessionmaker[RoutingSession]
) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                with make_session.begin() as session:
                    session.scalars(sa.select(Note)).all()
                    note = session.get(Note, 1, with_for_update=True, populate_existing=True)
                    assert note is not None
                    note.stars += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with make_session() as session:
        assert session.get(Note, 1).stars == 80  # type: ignore[union-attr]
    assert engines.status().count("nobody") == 2


def test_an_event_loop(file: Path) -> None:
    async def test() -> None:
        engines = create_async_engines(f"sqlite+oxlite:///{file}?readers=2")
        make_session = async_sessionmaker(engines.writer, sync_session_class=RoutingSession)
        async with make_session() as session:
            assert len((await session.scalars(sa.select(Note))).all()) == 2
            assert engines.writer.pool.checkedout() == 0  # type: ignore[attr-defined]
            session.add(Note(text="third"))
            assert len((await session.scalars(sa.select(Note))).all()) == 3
            assert engines.writer.pool.checkedout() == 1  # type: ignore[attr-defined]
            await session.commit()
        assert "Held by: nobody" in engines.status()
        async with engines.reader.connect() as connection:
            with pytest.raises(exc.OperationalError, match="only reads"):
                await connection.execute(sa.delete(Note))
        await engines.dispose()

    asyncio.run(test())
