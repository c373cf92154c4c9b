"""Makes the dialect known to SQLAlchemy's test machinery: ``pytest -p register_dialect``.

The machinery asks a dialect's ``load_provisioning`` for how databases are made for tests. SQLite's
does so for the drivers in a list of its own; ours are put there, or processes that test side by
side would share a file.

Source: https://github.com/sqlalchemy/sqlalchemy/blob/main/README.dialects.rst
"""

from sqlalchemy.dialects import registry

from oxlite.sqlalchemy import SQLiteDialect_oxlite

registry.register("sqlite.oxlite", "oxlite.sqlalchemy.dialect", "SQLiteDialect_oxlite")
registry.register("sqlite.oxlite_async", "oxlite.sqlalchemy.aio", "SQLiteDialect_oxlite_async")


def _load_provisioning(cls: type[SQLiteDialect_oxlite]) -> None:
    from sqlalchemy.dialects.sqlite import provision

    provision._drivernames |= {"oxlite", "oxlite_async"}


SQLiteDialect_oxlite.load_provisioning = classmethod(_load_provisioning)
