"""The module in which aiosqlite has ``connect``, ``Connection`` and ``Cursor``.

Invariant: each name is the same object as elsewhere in ``oxlite.aio``; nothing is defined here.
"""

from oxlite.aio.connection import Connection, Cursor, connect

__all__ = ["Connection", "Cursor", "connect"]
