"""What SQLAlchemy's whole tree of tests may expect: its own list, which names drivers.

Only meaningful inside the tree, beside its ``test/requirements.py``.
"""

from sqlalchemy.testing import exclusions
from test.requirements import DefaultRequirements


class Requirements(DefaultRequirements):
    """As for the standard library's driver, where its name stands in a list."""

    @property
    def emulated_lastrowid(self) -> exclusions.compound:
        """The key of an inserted row is found by ``lastrowid``."""
        return exclusions.open()

    @property
    def emulated_lastrowid_even_with_sequences(self) -> exclusions.compound:
        """It is, even if a table names a sequence."""
        return exclusions.open()

    @property
    def dbapi_lastrowid(self) -> exclusions.compound:
        """The cursor has a ``lastrowid``."""
        return exclusions.open()
