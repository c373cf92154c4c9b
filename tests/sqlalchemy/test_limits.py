"""What needs more variables than SQLite's default works as on the SQLites that people have."""

import asyncio
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    relationship,
    selectinload,
)

COUNT = 40_000


class Base(DeclarativeBase):
    """The tables below."""


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    notes: Mapped[list["Note"]] = relationship()


class Note(Base):
    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id"))


def fill(connection: sa.Connection) -> None:
    Base.metadata.create_all(connection)
    connection.execute(sa.insert(Author), [{"id": i} for i in range(COUNT)])
    connection.execute(sa.insert(Note), [{"id": i, "author_id": i} for i in range(COUNT)])


ALL = sa.select(sa.func.count()).where(Author.id.in_(range(COUNT)))
# One statement with a variable for each: the way of many, though not of SQLAlchemy's own.
EACH = sa.select(sa.func.count()).where(
    Author.id.in_([sa.bindparam(None, i, unique=True) for i in range(COUNT)])
)


def test_forty_thousand_variables(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///{tmp_path / 'app.db'}")
    with engine.begin() as connection:
        fill(connection)
    with Session(engine) as session:
        assert session.scalar(ALL) == COUNT
        assert session.scalar(EACH) == COUNT
        authors = session.scalars(sa.select(Author).options(selectinload(Author.notes))).all()
        assert sum(len(author.notes) for author in authors) == COUNT
    engine.dispose()


def test_forty_thousand_variables_in_an_event_loop(tmp_path: Path) -> None:
    async def run() -> None:
        engine = create_async_engine(f"sqlite+oxlite_async:///{tmp_path / 'app.db'}")
        async with engine.begin() as connection:
            await connection.run_sync(fill)
        async with AsyncSession(engine) as session:
            assert await session.scalar(ALL) == COUNT
            assert await session.scalar(EACH) == COUNT
        await engine.dispose()

    asyncio.run(run())
