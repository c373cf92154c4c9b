"""What shapes a run of ``driver``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import require_between
from oxlite.bench.workloads.driver import catalogue
from oxlite.bench.workloads.driver.operation import Operation

SMALLEST_SCALE = 0.0001
LARGEST_SCALE = 1000.0
MOST_BATCHES = 1000


@dataclass(frozen=True)
class DriverParameters:
    """What shapes the work.

    Attributes:
        operation: only those whose name contains one of these; all, without any.
        interpreter: the Pythons that the workers run on; the lab's own, without any.
        batches: of each operation in a repeat; the fastest counts.
        scale: how large a batch is, in parts of the usual.
        seed: of the random order of keys.
    """

    operation: Sequence[str] = ()
    interpreter: Sequence[str] = ()
    batches: int = 3
    scale: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for name in ("operation", "interpreter"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        require_between("--batches", self.batches, 1, MOST_BATCHES)
        require_between("--scale", self.scale, SMALLEST_SCALE, LARGEST_SCALE)
        self.operations()

    def operations(self) -> Sequence[Operation]:
        """The chosen operations."""
        return catalogue.chosen(self.operation)
