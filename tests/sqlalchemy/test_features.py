"""What applications use of SQLite through SQLAlchemy."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects.sqlite import insert


def test_returning(engine: sa.Engine, note: sa.Table) -> None:
    with engine.begin() as connection:
        inserted = connection.execute(
            note.insert().returning(note.c.id, sort_by_parameter_order=True),
            [{"text": str(number)} for number in range(3)],
        )
        assert inserted.scalars().all() == [3, 4, 5]
        updated = connection.execute(
            note.update().values(stars=5).where(note.c.id < 3).returning(note.c.text)
        )
        assert updated.scalars().all() == ["first", "second"]
        deleted = connection.execute(note.delete().where(note.c.id > 3).returning(note.c.id))
        assert deleted.scalars().all() == [4, 5]
        assert connection.execute(note.delete().where(note.c.id == 1)).rowcount == 1
        assert connection.execute(note.insert().values(text="x")).inserted_primary_key == (4,)


def test_upsert(engine: sa.Engine, note: sa.Table) -> None:
    statement = insert(note).values(text="first", stars=7)
    with engine.begin() as connection:
        connection.execute(statement.on_conflict_do_nothing())
        query = sa.select(note.c.stars).where(note.c.text == "first")
        assert connection.scalar(query) == 0
        kept = statement.on_conflict_do_update(
            index_elements=[note.c.text], set_={"stars": statement.excluded.stars + note.c.stars}
        ).returning(note.c.id, note.c.stars)
        assert connection.execute(kept).one() == (1, 7)


def test_generated_columns(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    square = sa.Table(
        "square",
        metadata,
        sa.Column("side", sa.Integer),
        sa.Column("area", sa.Integer, sa.Computed("side * side", persisted=True)),
        sa.Column("border", sa.Integer, sa.Computed("4 * side")),
    )
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(square.insert().values(side=3))
        assert connection.execute(sa.select(square)).one() == (3, 9, 12)
    columns = sa.inspect(engine).get_columns("square")
    assert columns[1]["computed"] == {"sqltext": "side * side", "persisted": True}


def test_foreign_keys_are_kept_and_may_be_deferred(engine: sa.Engine, note: sa.Table) -> None:
    metadata = sa.MetaData()
    now = sa.Table("now", metadata, sa.Column("note_id", sa.ForeignKey(note.c.id)))
    later = sa.Table(
        "later",
        metadata,
        sa.Column("note_id", sa.ForeignKey(note.c.id, deferrable=True, initially="DEFERRED")),
    )
    metadata.create_all(engine, tables=[now, later])
    with engine.connect() as connection:
        with pytest.raises(exc.IntegrityError, match="FOREIGN KEY"):
            connection.execute(now.insert().values(note_id=9))
        connection.rollback()
        connection.execute(later.insert().values(note_id=9))
        with pytest.raises(exc.IntegrityError, match="FOREIGN KEY"):
            connection.commit()
        connection.rollback()
        connection.execute(later.insert().values(note_id=9))
        connection.execute(note.insert().values(id=9, text="nine"))
        connection.commit()
        assert connection.scalar(sa.select(sa.func.count()).select_from(later)) == 1


def test_json(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    event = sa.Table("event", metadata, sa.Column("data", sa.JSON))
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(event.insert(), [{"data": {"n": 1, "s": "ä"}}, {"data": [2]}])
        query = sa.select(event.c.data).where(event.c.data["n"].as_integer() == 1)
        assert connection.scalars(query).all() == [{"n": 1, "s": "ä"}]


def test_strict_and_without_rowid_tables(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    strict = sa.Table(
        "strict",
        metadata,
        sa.Column("key", sa.TEXT, primary_key=True),
        sa.Column("value", sa.INTEGER),
        sqlite_with_rowid=False,
        sqlite_strict=True,
    )
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(strict.insert().values(key="k", value=1))
        with pytest.raises(exc.OperationalError, match="no such column: rowid"):
            connection.exec_driver_sql("SELECT rowid FROM strict")
        with pytest.raises(exc.DBAPIError, match="cannot store TEXT value in INTEGER column"):
            connection.execute(strict.insert().values(key="l", value="many"))


def test_attached_schemas(engine: sa.Engine, tmp_path: Path, note: sa.Table) -> None:
    @sa.event.listens_for(engine, "connect")
    def attach(connection: object, record: object) -> None:
        connection.execute("ATTACH ? AS archive", (str(tmp_path / "archive.db"),))  # type: ignore[attr-defined]

    metadata = sa.MetaData(schema="archive")
    old = sa.Table("old", metadata, sa.Column("text", sa.String))
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(old.insert().from_select(["text"], sa.select(note.c.text)))
        connection.execute(note.delete())
    inspector = sa.inspect(engine)
    assert inspector.get_schema_names() == ["main", "archive"]
    assert inspector.get_table_names(schema="archive") == ["old"]
    with engine.connect() as connection:
        assert connection.scalars(sa.select(old)).all() == ["first", "second"]


def test_regular_expressions(engine: sa.Engine, note: sa.Table) -> None:
    with engine.connect() as connection:
        query = sa.select(note.c.text).where(note.c.text.regexp_match("^f.*t$"))
        assert connection.scalars(query).all() == ["first"]


def test_rows_are_streamed(engine: sa.Engine, note: sa.Table) -> None:
    with engine.begin() as connection:
        connection.execute(note.insert(), [{"text": str(number)} for number in range(1000)])
        result = connection.execution_options(yield_per=100).execute(sa.select(note.c.id))
        assert [len(part) for part in result.partitions()] == [100] * 10 + [2]


def test_regular_expressions_that_python_would_not_end(engine: sa.Engine, note: sa.Table) -> None:
    with engine.connect() as connection:
        endless = sa.literal("a" * 10_000 + "b").regexp_match("^(a+)+$")
        null = sa.literal(None, sa.Text()).regexp_match("a")
        pythons = sa.literal("xABC").regexp_match("(?<=x)(?i:a)")
        assert connection.execute(sa.select(endless, null, pythons)).one() == (False, None, True)
        with pytest.raises(exc.OperationalError, match="user-defined function"):
            connection.exec_driver_sql("SELECT 1 REGEXP '1'").all()
