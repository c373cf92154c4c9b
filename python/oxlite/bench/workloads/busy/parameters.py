"""What shapes a run of ``busy``, and the work that follows from it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import UsageError, require_between

MAXIMUM_PROCESSES = 1000
MAXIMUM_THREADS = 1000
MAXIMUM_COUNT = 1_000_000
MAXIMUM_SECONDS = 86_400


@dataclass(frozen=True)
class BusyParameters:
    """What shapes the work.

    Attributes:
        processes: how many children there are, each number a scenario.
        threads: how many threads each child has, likewise.
        long: how many long transactions the parent runs, likewise.
        hold_seconds: how long each of those takes.
        transactions: how many each thread of a child runs.
        timeout_seconds: how long a transaction waits for the lock.
    """

    processes: Sequence[int] = (4, 8)
    threads: Sequence[int] = (2, 4)
    long: Sequence[int] = (0, 1, 2)
    hold_seconds: float = 1.0
    transactions: int = 1
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for name, minimum, maximum in (
            ("processes", 1, MAXIMUM_PROCESSES),
            ("threads", 1, MAXIMUM_THREADS),
            ("long", 0, MAXIMUM_COUNT),
        ):
            counts = tuple(dict.fromkeys(getattr(self, name)))
            object.__setattr__(self, name, counts)
            if not counts:
                raise UsageError(f"--{name} must be at least one number")
            for count in counts:
                require_between(f"--{name}", count, minimum, maximum)
        require_between("--hold", self.hold_seconds, 0, MAXIMUM_SECONDS)
        require_between("--transactions", self.transactions, 1, MAXIMUM_COUNT)
        require_between("--timeout", self.timeout_seconds, 0, MAXIMUM_SECONDS)


def work_digest(parameters: BusyParameters) -> str:
    """The sha256 of the shape of the work: there is nothing random in it."""
    shape = (
        parameters.processes,
        parameters.threads,
        parameters.long,
        parameters.hold_seconds,
        parameters.transactions,
    )
    return hashlib.sha256(repr(shape).encode()).hexdigest()
