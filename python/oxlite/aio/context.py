"""The module in which aiosqlite has ``Result``: what is awaited, or entered with ``async with``.

Invariant: it is the class of what ``execute`` returns; nothing is defined here.
"""

from oxlite.aio.connection import Opening as Result

__all__ = ["Result"]
