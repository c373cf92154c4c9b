"""SQL functions on each connection: ``REGEXP``, which is ``regexp_match()``, in linear time.

SQLAlchemy's own calls Python's ``re`` for each row, which some patterns keep busy for ever. That is
called for patterns that cannot be searched otherwise.
"""

import re

from oxlite import sqlite3
from oxlite._native import create_pattern_function
from oxlite.connection import driver_connection
from oxlite.patterns import pattern_of

__all__ = ["create_regexp"]


def create_regexp(connection: sqlite3.Connection) -> None:
    """Create ``REGEXP`` on a connection, or on the one that someone has wrapped."""
    own = driver_connection(connection)
    create_pattern_function(own, _search, pattern_of, searches_integers=False)


def _search(pattern: str, text: str | None) -> bool | None:
    """What SQLAlchemy does."""
    return None if text is None else re.search(pattern, text) is not None
