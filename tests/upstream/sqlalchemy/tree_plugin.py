"""Puts our dialect in the place of the standard library's driver: ``pytest -p tree_plugin``.

SQLAlchemy's tree has tests for that driver alone, which they know by its name. So in its tests, and
only there, ours has that name.
"""

import register_dialect  # noqa: F401 - it makes databases for the tests
from sqlalchemy.dialects import registry

from oxlite.sqlalchemy import SQLiteDialect_oxlite


class StandIn(SQLiteDialect_oxlite):
    """The dialect under the other driver's name."""

    driver = "pysqlite"
    supports_statement_cache = True


registry.register("sqlite.oxlite", __name__, "StandIn")
