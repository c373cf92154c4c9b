"""SQLAlchemy's tests of any dialect, as it asks third-party dialects to run them.

Source: https://github.com/sqlalchemy/sqlalchemy/blob/main/README.dialects.rst
"""

from sqlalchemy.testing.suite import *  # noqa: F403 - its test classes, to be collected here
from sqlalchemy.testing.suite import ServerSideCursorsTest as _ServerSideCursorsTest


class ServerSideCursorsTest(_ServerSideCursorsTest):
    """As it stands, but that it knows by their names which drivers have such cursors."""

    def _is_server_side(self, cursor: object) -> bool:
        return bool(getattr(cursor, "server_side", False))
