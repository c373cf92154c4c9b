"""What shapes a run of ``async``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import UsageError, require_between

MAXIMUM_TASKS = 10_000
MAXIMUM_ROWS = 1_000_000
SHORTEST_SECONDS = 0.01
MAXIMUM_SECONDS = 3600


@dataclass(frozen=True)
class TasksParameters:
    """What shapes the work.

    Attributes:
        tasks: how many at once, each number a scenario.
        rows: of the table that is read.
        duration_seconds: how long a scenario works.
        seed: of which rows are read.
        timeout_seconds: how long a lock is waited for.
    """

    tasks: Sequence[int] = (1, 16, 64)
    rows: int = 10_000
    duration_seconds: float = 1.0
    seed: int = 1
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "tasks", tuple(dict.fromkeys(self.tasks)))
        if not self.tasks:
            raise UsageError("--tasks must be at least one number")
        for count in self.tasks:
            require_between("--tasks", count, 1, MAXIMUM_TASKS)
        require_between("--rows", self.rows, 1, MAXIMUM_ROWS)
        require_between("--duration", self.duration_seconds, SHORTEST_SECONDS, MAXIMUM_SECONDS)
        require_between("--timeout", self.timeout_seconds, 0, MAXIMUM_SECONDS)
