"""``oxlite.sqlite3`` under the name that ``sqlite3.dbapi2`` has in the standard library.

Invariant: the same names, each the same object; nothing is defined here.
"""

from oxlite.sqlite3 import *  # noqa: F403 - all of them, whatever they are
from oxlite.sqlite3 import __all__ as __all__
from oxlite.sqlite3 import __getattr__ as __getattr__
