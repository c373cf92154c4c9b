"""Makes the dialect known to SQLAlchemy's own test machinery: ``pytest -p dialect_plugin``.

The machinery looks for a dialect's ``load_provisioning``, which says how databases for tests are
made. SQLite's does, for the drivers in a list of its own; ours are put there, or processes that
test side by side would share a file.

Source: https://github.com/sqlalchemy/sqlalchemy/blob/main/README.dialects.rst
"""

import pytest
from sqlalchemy.dialects import registry

registry.register("sqlite.oxlite", "oxlite.sqlalchemy.dialect", "SQLiteDialect_oxlite")
registry.register("sqlite.oxlite_async", "oxlite.sqlalchemy.aio", "SQLiteDialect_oxlite_async")

# Before the machinery is imported, or its assertions say less when they fail.
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403 - hooks, by their names

from oxlite.sqlalchemy import SQLiteDialect_oxlite  # noqa: E402


def _load_provisioning(cls: type[SQLiteDialect_oxlite]) -> None:
    from sqlalchemy.dialects.sqlite import provision

    provision._drivernames |= {"oxlite", "oxlite_async"}


SQLiteDialect_oxlite.load_provisioning = classmethod(_load_provisioning)
