"""The module in which aiosqlite has ``Cursor``.

Invariant: it is the same class as elsewhere in ``oxlite.aio``; nothing is defined here.
"""

from oxlite.aio.connection import Cursor

__all__ = ["Cursor"]
