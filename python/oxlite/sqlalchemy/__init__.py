"""SQLAlchemy on Oxlite: ``create_engine("sqlite+oxlite:///app.db")``.

The dialect is found by its name; nothing need be imported. This package offers what goes beyond it:

- the dialect's class, and the pools that name who has their connections.

How to use it, and what each isolation level prevents: ``docs/sqlalchemy.md``.
"""

from oxlite.sqlalchemy.dialect import SQLiteDialect_oxlite
from oxlite.sqlalchemy.pools import AsyncQueuePool, OneThreadPool, QueuePool

__all__ = ["AsyncQueuePool", "OneThreadPool", "QueuePool", "SQLiteDialect_oxlite"]
