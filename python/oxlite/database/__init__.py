"""A database for a whole application: readers and one writer of a file.

``database`` is its face for threads; ``oxlite.aio.database`` is the one for asyncio. The other
modules are what both have in common: how connections are made (``factory``), what is done with one
that is borrowed (``transaction``), results, errors, and statistics.
"""

from oxlite.database.database import Database
from oxlite.database.result import Checkpoint, Result
from oxlite.database.statistics import DatabaseStatistics

__all__ = ["Checkpoint", "Database", "DatabaseStatistics", "Result"]
