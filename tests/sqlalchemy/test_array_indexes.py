"""``ArrayIndex``: what is in one, that it changes no answer, what makes and removes it."""

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import alembic.autogenerate
import alembic.operations
import alembic.runtime.migration
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, mapped_column, relationship
from sqlalchemy.schema import CreateIndex, DropIndex

import oxlite.sqlalchemy
from oxlite.arrays import indexed
from oxlite.sqlalchemy import ArrayIndex

METADATA = sa.MetaData()
POST = sa.Table(
    "post",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("code", sa.String, unique=True),
    sa.Column("tags", ARRAY(sa.String)),
    sa.Column("pairs", ARRAY(sa.Integer, dimensions=2)),
    ArrayIndex("post_tags", "tags"),
    ArrayIndex("post_pairs", "pairs"),
)
# The same without indexes.
PLAIN = sa.Table(
    "post",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("tags", ARRAY(sa.String)),
    sa.Column("pairs", ARRAY(sa.Integer, dimensions=2)),
)
TAGS = POST.c.tags


@pytest.fixture
def connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in a transaction, to a database with these tables."""
    METADATA.create_all(engine)
    with engine.begin() as connection:
        yield connection


def entries(connection: sa.Connection, name: str = "post_tags") -> list[Any]:
    """What is in an index."""
    return sorted(map(tuple, connection.exec_driver_sql(f'SELECT value, "row" FROM "{name}"')))


def wanted(connection: sa.Connection, name: str = "tags") -> list[Any]:
    """What should be in it."""

    def flat(value: Any) -> Iterator[Any]:
        for each in value:
            yield from flat(each) if isinstance(each, list) else [each]

    rows = connection.execute(sa.select(PLAIN.c.id, PLAIN.c[name])).all()
    return sorted({(each, key) for key, of_row in rows for each in flat(of_row or [])} - {None})


def plan(connection: sa.Connection, statement: Any) -> str:
    """How SQLite goes about a statement."""
    text = statement.compile(connection, compile_kwargs={"literal_binds": True})
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")
    return "\n".join(row[3] for row in rows)


def names(connection: sa.Connection) -> set[str]:
    """What the database has."""
    return set(connection.exec_driver_sql("SELECT name FROM sqlite_schema").scalars())


def test_an_index_has_the_elements_of_each_row_whoever_writes(connection: sa.Connection) -> None:
    def right() -> None:
        found = entries(connection), entries(connection, "post_pairs")
        assert found == (wanted(connection), wanted(connection, "pairs"))

    def run(statement: Any) -> None:
        connection.execute(statement)
        right()

    run(POST.insert().values(code="a", tags=["x", "y", "x"], pairs=[[1, 2], [2, 3]]))
    run(POST.insert().values(code="b", tags=["y"]))
    run(POST.insert().values([{"code": "c", "tags": None}, {"code": "d", "tags": []}]))
    assert entries(connection, "post_pairs") == [(1, 1), (2, 1), (3, 1)]
    run(POST.update().where(POST.c.code == "b").values(tags=["y", "z"]))
    run(POST.update().where(POST.c.code == "c").values(tags=["z"]))
    run(POST.update().where(POST.c.code == "a").values(tags=None))
    run(POST.update().where(POST.c.code == "b").values(id=100))
    run(POST.update().where(TAGS.contains(["z"])).values(tags=["z", "w"]))
    upsert = insert(POST).values([{"code": "b", "tags": ["u"]}, {"code": "e", "tags": ["v"]}])
    run(upsert.on_conflict_do_update(["code"], set_={"tags": upsert.excluded.tags}))
    run(insert(POST).values(code="e", tags=["w"]).on_conflict_do_nothing())
    with connection.begin_nested() as savepoint:
        connection.execute(POST.insert().values(code="f", tags=["lost"]))
        savepoint.rollback()
    right()
    run(sa.text("""UPDATE post SET tags = '["q"]', _rowid_ = 200 WHERE code = 'e'"""))
    run(POST.delete().where(TAGS.overlap(["q"])))
    run(POST.delete())
    assert entries(connection) == []


def test_what_replace_leaves_behind_changes_no_answer(connection: sa.Connection) -> None:
    replace = POST.insert().prefix_with("OR REPLACE")
    connection.execute(POST.insert().values(id=1, code="a", tags=["x"]))
    connection.execute(replace.values(id=1, code="a", tags=["y"]))
    connection.execute(replace.values(id=2, code="a", tags=["y"]))
    assert {("x", 1), ("y", 2)} <= set(entries(connection))
    for name, found in (("x", []), ("y", [2])):
        for condition in (TAGS.contains([name]), TAGS.overlap([name])):
            assert connection.scalars(sa.select(POST.c.id).where(condition)).all() == found
    for _ in range(2):  # over what was left
        connection.execute(POST.delete().where(POST.c.id == 1))
        connection.execute(POST.insert().values(id=1, code="b", tags=["x"]))
    assert connection.scalars(sa.select(POST.c.id).where(TAGS.contains(["x"]))).all() == [1]


def test_conditions_use_the_index_and_answer_the_same(connection: sa.Connection) -> None:
    chosen = random.Random(7)

    def some() -> list[Any]:
        return chosen.choices(["a", "b", "c", "d", None], k=chosen.randrange(5))

    def pairs() -> list[Any]:
        return [[chosen.randrange(5), chosen.randrange(5)] for _ in range(chosen.randrange(3))]

    rows = [{"tags": chosen.choice([None, some()]), "pairs": pairs()} for _ in range(300)]
    connection.execute(POST.insert(), rows)
    for _ in range(300):
        name, argument = chosen.choice([("tags", some()), ("pairs", pairs()), ("tags", None)])
        asked = chosen.choice(["contains", "overlap"])
        form = chosen.choice(FORMS)

        def found(table: sa.Table) -> list[Any]:
            condition = getattr(table.c[name], asked)(argument)  # noqa: B023
            return list(connection.scalars(form(table, condition)))  # noqa: B023

        assert found(POST) == found(PLAIN), (name, asked, argument)


# What a condition may stand in; the value of it matters in some of them.
FORMS: list[Callable[[sa.Table, Any], Any]] = [
    lambda table, condition: sa.select(table.c.id).where(condition).order_by("id"),
    lambda table, condition: sa.select(table.c.id).where(~condition).order_by("id"),
    lambda table, condition: (
        sa.select(table.c.id).where(condition | (table.c.id < 9), table.c.id > 3).order_by("id")
    ),
    lambda table, condition: sa.select(condition).select_from(table).order_by(table.c.id),
    lambda table, condition: sa.select(table.c.id).where(condition.is_(None)).order_by("id"),
    lambda table, condition: sa.select(table.c.id).order_by(condition, table.c.id),
    lambda table, condition: (
        sa.select(table.c.id).where(sa.func.coalesce(condition, 1) == 1).order_by("id")
    ),
    lambda table, condition: (
        sa.select(table.c.id)
        .where(sa.case((condition, 1), (condition.is_(None), 2), else_=0) == 2)
        .order_by("id")
    ),
    lambda table, condition: sa.select(sa.func.count()).where(
        table.c.id.not_in(sa.select(table.c.id).where(condition).scalar_subquery())
    ),
]


@pytest.mark.parametrize(
    "condition",
    [
        TAGS.contains(["rare"]),
        TAGS.contains(["rare", "often"]),
        TAGS.contains(array(["rare"])),
        TAGS.contains(sa.cast(["rare"], ARRAY(sa.Text))),
        TAGS.overlap(["rare", "never"]),
        sa.and_(TAGS.contains(["rare"]), POST.c.id > 0),
    ],
)
def test_only_rows_that_have_the_element_are_looked_at(
    connection: sa.Connection, condition: Any
) -> None:
    rows: list[Any] = [{"tags": ["often"]} for _ in range(3_000)]
    connection.execute(POST.insert(), [*rows, {"tags": ["often", "rare"]}])
    statement = sa.select(POST.c.id).where(condition)
    found = plan(connection, statement)
    assert "SEARCH post USING INTEGER PRIMARY KEY" in found, found
    assert "SEARCH post_tags USING PRIMARY KEY" in found, found
    assert "SCAN post" not in found, found
    # Each call is a hundred instructions of SQLite's machine, so at 3,000 rows there would be more.
    calls: list[None] = []
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: calls.append(None), 100)
    assert connection.scalars(statement).all() == [3_001]
    driver.set_progress_handler(None, 0)
    # Of an element that most rows have, up to a thousand are counted.
    assert len(calls) < (150 if "often" in str(statement.compile().params) else 15), len(calls)


def test_what_an_index_cannot_help_with_is_as_without(connection: sa.Connection) -> None:
    for condition in (
        TAGS.contained_by(["x"]),
        TAGS.contains(TAGS),
        ~TAGS.contains(["x"]),
        sa.literal("x") == sa.any_(TAGS),
        sa.select(TAGS).subquery().c.tags.contains(["x"]),
        sa.func.coalesce(TAGS.contains(["x"]), False),
    ):
        assert "post_tags" not in str(sa.select(POST.c.id).where(condition).compile(connection))


def test_a_table_with_rows_gets_its_index_later(engine: sa.Engine) -> None:
    PLAIN.create(engine)
    index = next(index for index in POST.indexes if index.name == "post_tags")
    with engine.begin() as connection:
        connection.execute(PLAIN.insert(), [{"tags": ["x", "y", None]}, {"tags": None}])
    no_table = pytest.raises(sa.exc.OperationalError, match="no such table: post_tags")
    with engine.connect() as connection, no_table:
        connection.execute(sa.select(POST.c.id).where(TAGS.contains(["x"])))
    for _ in range(2):
        index.create(engine, checkfirst=True)
    with engine.begin() as connection:
        assert entries(connection) == [("x", 1), ("y", 1)]
        connection.execute(CreateIndex(index, if_not_exists=True))
        with pytest.raises(sa.exc.OperationalError, match="already exists"):
            connection.execute(CreateIndex(index))
        connection.execute(PLAIN.update().values(tags=["z"]))
        assert entries(connection) == wanted(connection) == [("z", 1), ("z", 2)]
    for _ in range(2):
        index.drop(engine, checkfirst=True)
    with engine.begin() as connection:
        assert not any(name.startswith("post_tags") for name in names(connection))
        connection.execute(DropIndex(index, if_exists=True))
        with pytest.raises(sa.exc.OperationalError, match="no such table: post_tags"):
            connection.execute(DropIndex(index))


DROPS: list[Callable[[sa.Engine | sa.Connection], Any]] = [
    METADATA.drop_all,
    POST.drop,
    lambda bind: bind.execute(sa.text("DROP TABLE IF EXISTS main.post")),  # type: ignore[union-attr]
]


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("level", ["READ COMMITTED", "AUTOCOMMIT"])
def test_an_index_goes_with_its_table(
    engine: sa.Engine, drop: Callable[[Any], Any], level: Any
) -> None:
    with engine.connect() as connection:
        connection.execution_options(isolation_level=level)
        before = names(connection)
        METADATA.create_all(connection)
        connection.execute(POST.insert().values(tags=["x"], pairs=[[1]]))
        assert (entries(connection), entries(connection, "post_pairs")) == ([("x", 1)], [(1, 1)])
        drop(connection)
        assert names(connection) == before
        METADATA.create_all(connection)
        assert entries(connection) == []


def test_what_cannot_be_made_or_dropped_stays_as_it_was(engine: sa.Engine) -> None:
    METADATA.create_all(engine)
    child = sa.Table("child", sa.MetaData(), sa.Column("post_id", sa.ForeignKey(POST.c.id)))
    child.create(engine)
    with engine.begin() as connection:
        connection.execute(POST.insert().values(tags=["x"]))
        connection.execute(child.insert().values(post_id=1))
        with pytest.raises(sa.exc.IntegrityError):
            POST.drop(connection)
        connection.execute(POST.update().values(tags=["y"]))
        assert entries(connection) == [("y", 1)]
    table = sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    table.append_column(sa.Column("tags", ARRAY(sa.String)))
    table.create(engine)
    taken = ArrayIndex("note", table.c.tags)
    for level in ("AUTOCOMMIT", "READ COMMITTED"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            connection.exec_driver_sql("CREATE TRIGGER i_delete DELETE ON t BEGIN SELECT 1; END")
            before = names(connection)
            for index in (taken, ArrayIndex("i", table.c.tags)):
                with pytest.raises(sa.exc.OperationalError, match="already exists"):
                    connection.execute(CreateIndex(index))
                assert names(connection) == before
            with pytest.raises(sa.exc.ProgrammingError, match="'note' is another table"):
                connection.execute(DropIndex(taken))
            assert connection.exec_driver_sql("SELECT count(*) FROM note").scalar() == 2
            connection.exec_driver_sql("DROP TRIGGER i_delete")
            connection.commit()


def table_of(*items: Any, **options: Any) -> sa.Table:
    """A table with a column of arrays, which is not made."""
    return sa.Table(
        "t",
        sa.MetaData(),
        sa.Column("tags", ARRAY(sa.String)),
        sa.Column("n", sa.Integer),
        *items,
        **options,
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: table_of(ArrayIndex("i", "missing")), "no column named 'missing'"),
        (lambda: table_of(sa.Column("x", sa.String), ArrayIndex("i", "x")), "not an ARRAY"),
        (lambda: table_of(sa.Column("x", sa.JSON), ArrayIndex("i", "x")), "not an ARRAY"),
        (lambda: ArrayIndex("i", table_of().c.tags[1]), "is of a column"),
        (lambda: ArrayIndex("i", "tags", unique=True), "unique"),
        (lambda: ArrayIndex("i", "tags", sqlite_nothing=1), "sqlite_nothing"),
        (lambda: ArrayIndex("i", "tags", nothing=1), "nothing"),
    ],
)
def test_what_an_index_cannot_be_of_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises((sa.exc.ArgumentError, TypeError), match=said):
        make()


def key() -> sa.Column[Any]:
    """A primary key of one column."""
    return sa.Column("id", sa.Integer, primary_key=True)


VARIANT = sa.JSON().with_variant(ARRAY(sa.Integer), "postgresql")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: table_of(), "primary key of one column, and t has 0"),
        (lambda: table_of(sa.PrimaryKeyConstraint("tags", "n")), "one column, and t has 2"),
        (lambda: table_of(key(), prefixes=["TEMPORARY"]), "is temporary"),
        (lambda: table_of(key(), sa.Column("x", VARIANT)), "not an ARRAY"),
    ],
)
def test_what_sqlite_has_no_index_for_is_refused(
    engine: sa.Engine, make: Callable[[], sa.Table], said: str
) -> None:
    table = make()
    index = ArrayIndex("i", table.c.x if "x" in table.c else table.c.tags)
    with pytest.raises(sa.exc.CompileError, match=said):
        table.create(engine)
    # PostgreSQL takes them.
    text = str(CreateIndex(index).compile(dialect=postgresql.dialect()))
    assert text.startswith("CREATE INDEX i ON t USING gin")


def test_several_columns_are_refused(engine: sa.Engine) -> None:
    table = table_of(key())
    two = sa.Index("i", table.c.tags, table.c.n, sqlite_array_key="id")
    without_names = sa.MetaData(naming_convention={"pk": "pk_%(table_name)s"})
    nameless = ArrayIndex(None, table.to_metadata(without_names).c.tags)
    for index, said in ((two, "of one column"), (nameless, "needs a name")):
        with pytest.raises(sa.exc.CompileError, match=said):
            CreateIndex(index).compile(engine)


@pytest.mark.parametrize("with_rowid", [True, False])
def test_rows_may_be_known_by_a_text(engine: sa.Engine, with_rowid: bool) -> None:
    table = sa.Table(
        "of keys",
        sa.MetaData(),
        sa.Column("my tags", ARRAY(sa.Integer)),
        ArrayIndex('an "odd";\nname', "my tags"),
        sa.Column("the key", sa.String, primary_key=True),
        sqlite_with_rowid=with_rowid,
    )
    for _ in range(2):
        table.create(engine)
        with engine.begin() as connection:
            rows = [{"the key": "k", "my tags": [1, 2]}, {"the key": "1", "my tags": [2]}]
            connection.execute(table.insert(), rows)
            connection.execute(table.insert().values({"the key": "e", "my tags": []}))
            for elements, found in (([2], {"1", "k"}), ([1, 2], {"k"}), ([], {"1", "e", "k"})):
                statement = sa.select(table.c["the key"]).where(
                    table.c["my tags"].contains(elements)
                )
                assert set(connection.scalars(statement)) == found
                assert "SEARCH of keys USING" in plan(connection, statement)
            replaced = table.insert().prefix_with("OR REPLACE")
            connection.execute(replaced.values({"the key": "k", "my tags": [3]}))
            statement = sa.select(table.c["the key"]).where(table.c["my tags"].overlap([1, 3]))
            assert connection.scalars(statement).all() == ["k"]
        (found_again,) = sa.inspect(engine).get_indexes("of keys")
        assert found_again["name"] == 'an "odd";\nname'
        assert found_again["dialect_options"] == {"sqlite_array_key": "the key"}
        table.drop(engine)
        assert sa.inspect(engine).get_table_names() == ["note"]


def test_a_reflection_finds_an_index_and_not_its_table(engine: sa.Engine) -> None:
    METADATA.create_all(engine)
    assert sa.inspect(engine).get_table_names() == ["note", "post"]
    assert sa.inspect(engine).get_unique_constraints("post")[0]["column_names"] == ["code"]
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert set(metadata.tables) == {"note", "post"}
    copy = metadata.tables["post"].to_metadata(sa.MetaData())
    own = METADATA.tables["post"].to_metadata(sa.MetaData())
    metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []
    for table in (copy, own):
        table.create(engine)
        with engine.begin() as connection:
            connection.execute(table.insert().values(tags=["x"]))
            statement = sa.select(table.c.id).where(table.c.tags.contains(["x"]))
            assert connection.scalars(statement).all() == [1]
            assert "SEARCH post_tags" in plan(connection, statement)
        table.drop(engine)
    # Who has lost a trigger is no index, but what is left of one.
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER post_tags_delete")
    assert "post_tags" in sa.inspect(engine).get_table_names()
    assert [each["name"] for each in sa.inspect(engine).get_indexes("post")] == ["post_pairs"]
    for index in POST.indexes:
        index.drop(engine)
        index.create(engine)
    assert len(sa.inspect(engine).get_indexes("post")) == 2
    assert indexed("CREATE TRIGGER x DELETE ON t BEGIN SELECT 1; END") is None


def migration(connection: sa.Connection, metadata: sa.MetaData) -> tuple[str, str]:
    """What Alembic writes to bring a database to a metadata, and back again."""
    configured = alembic.runtime.migration.MigrationContext.configure(
        connection,
        opts={
            "target_metadata": metadata,
            "include_name": lambda name, kind, parents: kind != "table" or name != "note",
        },
    )
    made = alembic.autogenerate.produce_migrations(configured, metadata)
    assert made.upgrade_ops is not None
    assert made.downgrade_ops is not None
    return (
        alembic.autogenerate.render_python_code(made.upgrade_ops),
        alembic.autogenerate.render_python_code(made.downgrade_ops),
    )


def migrate(connection: sa.Connection, text: str) -> None:
    """Run what Alembic has written."""
    context = alembic.runtime.migration.MigrationContext.configure(connection)
    names = {"op": alembic.operations.Operations(context), "sa": sa, "oxlite": oxlite}
    lines = [line for line in text.split("\n") if line.strip() and "###" not in line]
    exec("\n".join(line.removeprefix("    ") for line in lines), names)


def test_alembic_makes_and_removes_an_index_as_any_other(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    for column in (sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Integer)):
        sa.Table("doc", metadata, column, extend_existing=True)
    table = metadata.tables["doc"]
    table.append_column(sa.Column("tags", sa.ARRAY(sa.String)))
    with engine.begin() as connection:
        table.create(connection)
        connection.execute(table.insert().values(tags=["x"]))
        index = ArrayIndex("doc_tags", table.c.tags)
        upgrade, downgrade = migration(connection, metadata)
        assert "op.create_index('doc_tags', 'doc', ['tags'], unique=False" in upgrade
        assert "sqlite_array_key='id'" in upgrade
        assert "postgresql_using='gin'" in upgrade
        migrate(connection, upgrade)
        assert entries(connection, "doc_tags") == [("x", 1)]
        assert "pass" in migration(connection, metadata)[0]
        migrate(connection, downgrade)
        assert "doc_tags" not in names(connection)
        migrate(connection, upgrade)
        # A table that is made with it, and dropped with it.
        back, forth = migration(connection, sa.MetaData())
        assert back.index("op.drop_index") < back.index("op.drop_table('doc')")
        assert "op.drop_table('doc_tags')" not in back
        migrate(connection, back)
        assert not any(name.startswith("doc") for name in names(connection))
        migrate(connection, forth)
        connection.execute(table.insert().values(tags=["x"]))
        # One that the migration does not say goes with the table all the same.
        migrate(connection, "op.rename_table('doc', 'docs')")
        connection.exec_driver_sql("INSERT INTO docs (tags) VALUES (json_array('y'))")
        assert entries(connection, "doc_tags") == [("x", 1), ("y", 2)]
        migrate(connection, "op.drop_table('docs')")
        assert not any(name.startswith("doc") for name in names(connection))
        assert index.table is table


def test_alembics_batch_makes_an_index_again_with_its_table(engine: sa.Engine) -> None:
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(POST.insert().values(code="a", tags=["x"], pairs=[[1]]))
        context = alembic.runtime.migration.MigrationContext.configure(connection)
        operations = alembic.operations.Operations(context)

        def right(key: str = "id") -> None:
            found = {
                each["name"]: each["dialect_options"]["sqlite_array_key"]
                for each in sa.inspect(connection).get_indexes("post")
            }
            assert found == {"post_tags": key, "post_pairs": key}
            insert = "INSERT INTO post (code, tags) VALUES ('b', json_array('y'))"
            connection.exec_driver_sql(insert)
            assert entries(connection) == [("x", 1), ("y", 2)]
            connection.exec_driver_sql("DELETE FROM post WHERE code = 'b'")
            assert entries(connection) == [("x", 1)]
            assert entries(connection, "post_pairs") == [(1, 1)]

        with operations.batch_alter_table("post", recreate="always") as batch:
            batch.alter_column("code", nullable=False)
            batch.add_column(sa.Column("more", ARRAY(sa.Integer)))
        right()
        with operations.batch_alter_table("post") as batch:
            batch.alter_column("id", new_column_name="number")
        right("number")
        connection.exec_driver_sql("ALTER TABLE post RENAME COLUMN number TO id")
        right()
        with operations.batch_alter_table("post", recreate="always") as batch:
            batch.drop_index("post_pairs")
            batch.create_index("post_more", ["more"], sqlite_array_key="id")
        assert not any(name.startswith("post_pairs") for name in names(connection))
        connection.exec_driver_sql("UPDATE post SET more = json_array(7)")
        assert entries(connection, "post_more") == [(7, 1)]
        with pytest.raises(sa.exc.CompileError, match="primary key of one column"):
            operations.create_index("post_pairs", "post", ["pairs"], sqlite_array_key="")


def test_mapped_classes_aliases_and_joins_use_the_index(engine: sa.Engine) -> None:
    class Base(DeclarativeBase):
        metadata = sa.MetaData(naming_convention={"ix": "ix_%(column_0_label)s"})

    class Doc(Base):
        __tablename__ = "doc"
        id: Mapped[int] = mapped_column(primary_key=True)
        tags: Mapped[list[str]] = mapped_column(ARRAY(sa.String))
        above_id: Mapped[int | None] = mapped_column(sa.ForeignKey("doc.id"))
        above: Mapped["Doc | None"] = relationship(remote_side=[id])
        __table_args__ = (ArrayIndex(None, tags),)

    Base.metadata.create_all(engine)
    with Session(engine) as session:
        above = Doc(tags=["x", "y"])
        session.add_all([above, Doc(tags=["y"], above=above)])
        session.commit()
        other = aliased(Doc)
        for statement, found in (
            (sa.select(Doc.id).where(Doc.tags.contains(["x"])), [1]),
            (sa.select(other.id).where(other.tags.contains(["y"])), [1, 2]),
            (sa.select(Doc.id).join(other, Doc.above).where(other.tags.contains(["x"])), [2]),
            (sa.select(Doc.id).where(Doc.above.has(Doc.tags.overlap(["x"]))), [2]),
            (
                sa.select(Doc.id).join(
                    other, sa.and_(Doc.above_id == other.id, other.tags.contains(["x"]))
                ),
                [2],
            ),
        ):
            assert sorted(session.scalars(statement)) == found
            assert "SEARCH ix_doc_tags" in plan(session.connection(), statement), statement
        ids = sa.select(Doc.id).where(Doc.id == above.id, Doc.tags.contains(["x"])).subquery()
        assert session.scalars(sa.select(ids.c.id)).all() == [1]
        session.execute(sa.update(Doc).where(Doc.tags.overlap(["x"])).values(tags=["z"]))
        assert session.scalars(sa.select(Doc.id).where(Doc.tags.contains(["z"]))).all() == [1]
        session.execute(sa.delete(Doc).where(Doc.tags.contains(["y"])))
        session.commit()
        assert entries(session.connection(), "ix_doc_tags") == [("z", 1)]


def test_an_attached_database_has_indexes_of_its_own(engine: sa.Engine, tmp_path: Path) -> None:
    translated = sa.Table(
        "post", sa.MetaData(), key(), sa.Column("tags", ARRAY(sa.String)), schema="later"
    )
    ArrayIndex("post_tags", translated.c.tags)
    named = translated.to_metadata(sa.MetaData(), schema="beside")
    with engine.connect() as connection:
        connection.exec_driver_sql("ATTACH ? AS beside", (str(tmp_path / "beside.db"),))
        connection.execution_options(schema_translate_map={"later": "beside"})
        for table in (named, translated):
            table.create(connection)
            connection.execute(table.insert().values(tags=["x"]))
            statement = sa.select(table.c.id).where(table.c.tags.contains(["x"]))
            assert connection.scalars(statement).all() == [1]
            everywhere = sa.select(table.c.id).where(table.c.tags.contains([]))
            assert connection.scalars(everywhere).all() == [1]
            inspector = sa.inspect(connection)
            assert inspector.get_table_names(schema="beside") == ["post"]
            assert len(inspector.get_indexes("post", schema="beside")) == 1
            (index,) = table.indexes
            connection.execute(DropIndex(index))
            connection.execute(CreateIndex(index))
            table.drop(connection)
            left = connection.exec_driver_sql("SELECT count(*) FROM beside.sqlite_schema")
            assert left.scalar() == 0
            connection.commit()


def test_an_event_loop_has_indexes_as_well(file: Path) -> None:
    asyncio.run(_in_an_event_loop(file))


async def _in_an_event_loop(file: Path) -> None:
    engine = create_async_engine(f"sqlite+oxlite:///{file}")
    for level in ("READ COMMITTED", "AUTOCOMMIT"):
        async with engine.execution_options(isolation_level=level).begin() as connection:  # type: ignore[call-overload]
            await connection.run_sync(METADATA.create_all)
            await connection.execute(POST.insert(), [{"tags": ["x"]}, {"tags": ["y"]}])
            statement = sa.select(POST.c.id).where(TAGS.contains(["y"]))
            assert (await connection.scalars(statement)).all() == [2]
            assert await connection.run_sync(entries) == [("x", 1), ("y", 2)]
            await connection.run_sync(METADATA.drop_all)
            assert not {"post", "post_tags"} & await connection.run_sync(names)
    await engine.dispose()


def test_postgresql_makes_one_with_gin() -> None:
    texts = sorted(
        str(CreateIndex(index).compile(dialect=postgresql.dialect())) for index in POST.indexes
    )
    assert texts == [
        "CREATE INDEX post_pairs ON post USING gin (pairs)",
        "CREATE INDEX post_tags ON post USING gin (tags)",
    ]
    own = ArrayIndex("i", table_of().c.tags, postgresql_using="gist", quote=True, info={"a": 1})
    assert own.info == {"a": 1}
    text = str(CreateIndex(own).compile(dialect=postgresql.dialect()))
    assert text == 'CREATE INDEX "i" ON t USING gist (tags)'
