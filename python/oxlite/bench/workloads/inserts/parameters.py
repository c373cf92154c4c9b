"""What shapes a run of ``inserts``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import UsageError, require_between, unknown

MODES = ("sound", "faithful")
"""With what the schema needs, or with the redundant index of the published one."""

MAXIMUM_THREADS = 1000
MAXIMUM_INSERTS = 10_000_000
SHORTEST_SECONDS = 0.01
MAXIMUM_SECONDS = 86_400


@dataclass(frozen=True)
class InsertsParameters:
    """What shapes the work.

    Attributes:
        mode: one of :data:`MODES`.
        threads: how many insert at once, each number a scenario.
        inserts: the rows of all threads together, of which a scenario does what it has time for.
        duration_seconds: how long it has.
        seed: of the rows.
        timeout_seconds: how long an insert waits for a lock, where it waits.
    """

    mode: str = "sound"
    threads: Sequence[int] = (1, 4, 16, 64)
    inserts: int = 100_000
    duration_seconds: float = 0.4
    seed: int = 1
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "threads", tuple(dict.fromkeys(self.threads)))
        if self.mode not in MODES:
            raise unknown("value of --mode", self.mode, MODES)
        if not self.threads:
            raise UsageError("--threads must be at least one number")
        for count in self.threads:
            require_between("--threads", count, 1, MAXIMUM_THREADS)
        require_between("--inserts", self.inserts, max(self.threads), MAXIMUM_INSERTS)
        require_between("--duration", self.duration_seconds, SHORTEST_SECONDS, MAXIMUM_SECONDS)
        require_between("--timeout", self.timeout_seconds, 0, MAXIMUM_SECONDS)
