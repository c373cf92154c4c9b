"""What shapes a run of ``shared``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import UsageError, require_between
from oxlite.bench.workloads.gate.parameters import MAXIMUM_PROCESSES, GateParameters


@dataclass(frozen=True)
class SharedParameters:
    """As those of ``gate``; one process may be alone, where nobody is killed.

    Attributes:
        processes: how many write, each number a scenario.
        duration_seconds: how long they write.
        keys: rows of the table, from which each write picks one.
        kills: how many writers are killed, in the scenarios where some are.
        seed: of all random streams.
        timeout_seconds: how long a write waits for the lock.
    """

    processes: Sequence[int] = (1, 4, 25)
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
            require_between("--processes", count, 1, MAXIMUM_PROCESSES)
        self.of_gate()

    def of_gate(self) -> GateParameters:
        """Those by which ``gate`` does the work: as many keys as the most processes need."""
        return GateParameters(
            processes=(max(2, *self.processes),),
            duration_seconds=self.duration_seconds,
            keys=self.keys,
            kills=self.kills,
            seed=self.seed,
            timeout_seconds=self.timeout_seconds,
        )
