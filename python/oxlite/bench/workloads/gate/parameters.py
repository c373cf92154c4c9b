"""What shapes a run of ``gate``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import UsageError, require_between

MAXIMUM_PROCESSES = 1000
MAXIMUM_COUNT = 10_000_000
SHORTEST_SECONDS = 0.01
MAXIMUM_SECONDS = 86_400


@dataclass(frozen=True)
class GateParameters:
    """What shapes the work.

    Attributes:
        processes: how many write, each number a scenario.
        duration_seconds: how long they write.
        keys: rows of the table, from which each write picks one.
        kills: how many writers are killed, in the scenarios where some are.
        seed: of all random streams.
        timeout_seconds: how long a write waits for the lock.
    """

    processes: Sequence[int] = (4, 25)
    duration_seconds: float = 2.0
    keys: int = 100
    kills: int = 30
    seed: int = 1
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "processes", tuple(dict.fromkeys(self.processes)))
        if not self.processes:
            raise UsageError("--processes must be at least one number")
        for count in self.processes:
            require_between("--processes", count, 2, MAXIMUM_PROCESSES)
        require_between("--duration", self.duration_seconds, SHORTEST_SECONDS, MAXIMUM_SECONDS)
        require_between("--keys", self.keys, 1, MAXIMUM_COUNT)
        require_between("--kills", self.kills, 1, MAXIMUM_COUNT)
        require_between("--timeout", self.timeout_seconds, 0, MAXIMUM_SECONDS)
