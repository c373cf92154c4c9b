"""What the lab needs of an object-relational mapper.

Invariant: between two operations the tables are empty, and nothing is remembered of what was
in them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from oxlite.bench.workloads.orm.operations import Scale

Work = Callable[[], int]
"""Does an operation: how many objects it concerned."""

Prepare = Callable[[Scale], Work]
"""Makes everything ready for a scale, untimed."""

Content = tuple[str | int | None, ...]
"""A row of a table without its key, which differs from database to database."""

TIMEOUT_SECONDS = 60.0
"""How long a lock is waited for."""

DOCUMENT = {"pumpkin": 1, "candy": 1}
"""What a document holds at first."""


class Mapper(Protocol):
    """A mapper, connected to a database."""

    def prepare(self, name: str, scale: Scale) -> Work:
        """Make the operation ``name`` ready, and empty what earlier ones have left."""
        ...

    def contents(self) -> list[Content]:
        """What is in the tables now: the same on every mapper and database after the same work."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """One transaction around everything that is done inside."""
        ...

    def versions(self) -> dict[str, str]:
        """The version of the mapper, under its name."""
        ...

    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """The driver's connection, for the report of the environment."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...
