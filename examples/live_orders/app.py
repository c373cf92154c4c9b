"""Orders that change in every window at once: FastAPI, server-sent events and two processes.

    uvicorn --app-dir examples/live_orders --workers 2 --timeout-graceful-shutdown 1 app:app

A trigger notifies of each order, so it does not matter who writes: a worker, or the ``sqlite3``
shell. Each event has the position of its notification as its id. A browser that was away says the
last one it saw (``Last-Event-ID``), to whichever worker it comes, and is given what it missed.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel, Field

import oxlite
import oxlite.aio

PAGE = Path(__file__).with_name("page.html")
KEEP_ALIVE_SECONDS = 15

NOTIFY = """
INSERT INTO oxlite_notification (channel, payload)
VALUES ('orders', json_object('id', new.id, 'item', new.item, 'paid', new.paid))
"""
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS orders"
    " (id INTEGER PRIMARY KEY, item TEXT NOT NULL, paid INTEGER NOT NULL DEFAULT 0)",
    f"CREATE TRIGGER IF NOT EXISTS orders_insert AFTER INSERT ON orders BEGIN {NOTIFY}; END",
    f"CREATE TRIGGER IF NOT EXISTS orders_update AFTER UPDATE ON orders BEGIN {NOTIFY}; END",
)


class NewOrder(BaseModel):
    """What a client sends to order something."""

    item: Annotated[str, Field(min_length=1, max_length=80)]


def event(name: str, data: str, position: str | None = None) -> str:
    """A server-sent event: https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    id_line = "" if position is None else f"id: {position}\n"
    return f"{id_line}event: {name}\ndata: {data}\n\n"


async def all_orders(db: oxlite.aio.Database) -> str:
    """All orders, as JSON."""
    rows = (await db.execute("SELECT id, item, paid FROM orders ORDER BY id")).rows
    return json.dumps([{"id": id, "item": item, "paid": paid} for id, item, paid in rows])


async def events(db: oxlite.aio.Database, since: str | None) -> AsyncIterator[str]:
    """All orders, unless the browser has them; then each one as it changes."""
    yield "retry: 500\n\n"
    lost: str | None = None
    while True:
        try:
            # Listening begins before the orders are read: what changes in between comes twice, and
            # the page puts an order in the place of the one with the same id.
            async with db.listen("orders", since=since, timeout=KEEP_ALIVE_SECONDS) as listener:
                if since is None or lost is not None:
                    yield event("all", await all_orders(db), lost)
                while True:
                    async for note in listener:
                        yield event("order", str(note.payload), note.position)
                    yield ": nothing new\n\n"
        except oxlite.NotificationsLost as error:
            since = lost = error.resume_from
        except ValueError:
            since = None  # no position of ours: the browser is given all


def create_app(path: str) -> FastAPI:
    """The application on the database at that path."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with oxlite.aio.Database(path) as db:
            async with db.write() as connection:
                for statement in SCHEMA:
                    await connection.execute(statement)
            await db.notify("workers", os.getpid())  # makes the table that the triggers write
            app.state.db = db
            yield

    app = FastAPI(title="Live orders", lifespan=lifespan)

    @app.get("/")
    async def page() -> FileResponse:
        """The page."""
        return FileResponse(PAGE)

    @app.get("/events")
    async def stream(last_event_id: Annotated[str | None, Header()] = None) -> StreamingResponse:
        """The orders as they change."""
        headers = {"Cache-Control": "no-store", "X-Worker": str(os.getpid())}
        content = events(app.state.db, last_event_id)
        return StreamingResponse(content, media_type="text/event-stream", headers=headers)

    @app.post("/orders", status_code=201)
    async def order(new: NewOrder) -> dict[str, int | None]:
        """Order something."""
        done = await app.state.db.execute("INSERT INTO orders (item) VALUES (?)", (new.item,))
        return {"id": done.lastrowid}

    @app.post("/orders/{id}/pay")
    async def pay(id: int) -> dict[str, int]:
        """Pay an order."""
        done = await app.state.db.execute("UPDATE orders SET paid = 1 WHERE id = ?", (id,))
        if done.rowcount == 0:
            raise HTTPException(404, "there is no such order")
        return {"id": id}

    return app


app = create_app(os.environ.get("ORDERS_DATABASE", "orders.db"))
