"""Changesets: what a ``Session`` has recorded, as bytes, read and transformed.

A changeset holds, for each row that has changed, what it was and what it is. Apply one with
``Connection.apply_changeset``; the functions here need no connection:

- ``read``: its changes, one after the other;
- ``invert``: the changeset that undoes it;
- ``concat``: one changeset out of two.

A ``Change`` has its values as the objects that a query returns. A column about which it says
nothing has ``ABSENT``, which is not ``None``: that is NULL. TEXT that is not UTF-8 becomes ``str``
with surrogate escapes. The column names are not in a changeset; ``PRAGMA table_info`` has them in
the same order.

Changesets may come from strangers: malformed ones raise ``DatabaseError`` and do no harm.
"""

from oxlite._native import ABSENT, Absent, Change, Conflict
from oxlite._native import concat_changesets as concat
from oxlite._native import invert_changeset as invert
from oxlite._native import read_changeset as read

__all__ = ["ABSENT", "Absent", "Change", "Conflict", "concat", "invert", "read"]
