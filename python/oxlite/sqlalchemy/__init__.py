"""SQLAlchemy on Oxlite: ``create_engine("sqlite+oxlite:///app.db")``.

The dialect is found by its name, for ``create_engine`` and for ``create_async_engine``; nothing
need be imported. This package offers what goes beyond it:

- ``create_engines`` and ``RoutingSession``: readers and a writer, with a pool each;
  ``create_async_engines`` for an event loop, ``create_reader_engine`` for an engine one has
  already.
- ``ArrayIndex``: an index of the elements of an ``ARRAY``; on PostgreSQL one with GIN.
- ``render_item``: for Alembic, where a model has PostgreSQL's ``ARRAY``.
- The dialect's class, and the pools that name who has their connections.

How to use it, and what each isolation level prevents: ``docs/sqlalchemy.md``.
"""

from oxlite.sqlalchemy.array_indexes import ArrayIndex
from oxlite.sqlalchemy.arrays import render_item
from oxlite.sqlalchemy.dialect import SQLiteDialect_oxlite
from oxlite.sqlalchemy.engines import (
    AsyncEngines,
    Engines,
    RoutingSession,
    create_async_engines,
    create_engines,
    create_reader_engine,
)
from oxlite.sqlalchemy.pools import AsyncQueuePool, Holder, OneThreadPool, QueuePool

__all__ = [
    "ArrayIndex",
    "AsyncEngines",
    "AsyncQueuePool",
    "Engines",
    "Holder",
    "OneThreadPool",
    "QueuePool",
    "RoutingSession",
    "SQLiteDialect_oxlite",
    "create_async_engines",
    "create_engines",
    "create_reader_engine",
    "render_item",
]
