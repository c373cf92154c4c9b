"""Notes that one can write, read and give stars: FastAPI and SQLAlchemy's asyncio extension.

    uvicorn --app-dir examples/fastapi_notes app:app

Everything that concerns SQLite is in the URL. The event loop never waits for it: reads take no
write lock, and the two routes that write wait in line for it, in native threads.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import String, func, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The application's models."""


class Note(Base):
    """A note, and how many stars it has been given."""

    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(280))
    stars: Mapped[int] = mapped_column(default=0)


class NewNote(BaseModel):
    """What a client sends to write a note."""

    text: Annotated[str, Field(min_length=1, max_length=280)]


class ShownNote(BaseModel):
    """A note as clients see it."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    text: str
    stars: int


class Page(BaseModel):
    """The latest notes, and how many there are."""

    notes: list[ShownNote]
    count: int


def create_app(url: str) -> FastAPI:
    """The application on the database of that URL, whose tables are made if there are none."""
    engine = create_async_engine(url)
    make_session = async_sessionmaker(engine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        yield
        await engine.dispose()

    app = FastAPI(title="Notes", lifespan=lifespan)

    @app.get("/notes")
    async def latest() -> Page:
        """The latest twenty notes, and how many there are."""
        async with make_session() as session:
            notes = await session.scalars(select(Note).order_by(Note.id.desc()).limit(20))
            shown = [ShownNote.model_validate(note) for note in notes]
            return Page(notes=shown, count=await session.scalar(select(func.count(Note.id))) or 0)

    @app.get("/notes/{id}")
    async def one(id: int) -> ShownNote:
        """One note."""
        async with make_session() as session:
            return ShownNote.model_validate(found(await session.get(Note, id)))

    @app.post("/notes", status_code=201)
    async def write(new: NewNote) -> ShownNote:
        """Write a note."""
        async with make_session.begin() as session:
            note = Note(text=new.text)
            session.add(note)
            await session.flush()
            return ShownNote.model_validate(note)

    @app.post("/notes/{id}/star")
    async def star(id: int) -> ShownNote:
        """Give a note a star. FOR UPDATE: nobody gives one between the reading and the writing."""
        async with make_session.begin() as session:
            note = found(await session.get(Note, id, with_for_update=True))
            note.stars += 1
            return ShownNote.model_validate(note)

    return app


def found(note: Note | None) -> Note:
    """The note that was looked for; or the answer that there is none."""
    if note is None:
        raise HTTPException(404, "there is no such note")
    return note


app = create_app(os.environ.get("NOTES_URL", "sqlite+oxlite:///notes.db"))
