"""Notes that one can write, read and give stars: Flask and SQLAlchemy.

    flask --app examples/flask_notes/app.py run

Everything that concerns SQLite is in the URL. Reads take no write lock; the two routes that write
wait in line for it.
"""

import os

from flask import Flask, Response, abort, jsonify, request
from sqlalchemy import String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker


class Base(DeclarativeBase):
    """The application's models."""


class Note(Base):
    """A note, and how many stars it has been given."""

    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(280))
    stars: Mapped[int] = mapped_column(default=0)

    def as_json(self) -> dict[str, object]:
        """The note as clients see it."""
        return {"id": self.id, "text": self.text, "stars": self.stars}


def create_app(url: str) -> Flask:
    """The application on the database of that URL, whose tables are made if there are none."""
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    make_session: sessionmaker[Session] = sessionmaker(engine)
    app = Flask(__name__)

    @app.get("/notes")
    def latest() -> Response:
        """The latest twenty notes, and how many there are."""
        with make_session() as session:
            notes = session.scalars(select(Note).order_by(Note.id.desc()).limit(20))
            shown = [note.as_json() for note in notes]
            return jsonify(notes=shown, count=session.scalar(select(func.count(Note.id))))

    @app.get("/notes/<int:id>")
    def one(id: int) -> Response:
        """One note."""
        with make_session() as session:
            note = session.get(Note, id) or abort(404, "there is no such note")
            return jsonify(note.as_json())

    @app.post("/notes")
    def write() -> tuple[Response, int]:
        """Write a note."""
        text = (request.get_json(silent=True) or {}).get("text")
        if not isinstance(text, str) or not 0 < len(text) <= 280:
            abort(400, "text must be a string of 1 to 280 characters")
        with make_session.begin() as session:
            note = Note(text=text)
            session.add(note)
            session.flush()
            return jsonify(note.as_json()), 201

    @app.post("/notes/<int:id>/star")
    def star(id: int) -> Response:
        """Give a note a star. FOR UPDATE: nobody gives one between the reading and the writing."""
        with make_session.begin() as session:
            note = session.get(Note, id, with_for_update=True) or abort(
                404, "there is no such note"
            )
            note.stars += 1
            return jsonify(note.as_json())

    return app


app = create_app(os.environ.get("NOTES_URL", "sqlite+oxlite:///notes.db"))
