"""``"ENGINE": "oxlite.django"``: the same backend by the name of the whole package.

Sites that were written before there was ``oxlite.django.sqlite3`` have this name. Invariant: it is
no second backend; the classes are the same objects.
"""

from oxlite.django.sqlite3.base import Database, DatabaseWrapper, SQLiteCursorWrapper

__all__ = ["Database", "DatabaseWrapper", "SQLiteCursorWrapper"]
