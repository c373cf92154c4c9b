"""What the lab needs of an object-relational mapper.

Invariant: between two operations the tables are empty, and nothing is remembered of what was
in them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

Work = Callable[[], int]
"""Does an operation: how many objects it concerned."""

Prepare = Callable[[int], Work]
"""Makes everything ready for n, untimed."""


class Mapper(Protocol):
    """A mapper, connected to a database."""

    def prepare(self, name: str, n: int) -> Work:
        """Make the operation ``name`` ready, and empty what earlier ones have left."""
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
