"""All operations of ``driver``, in the order of the report, and what shapes a run of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from oxlite.bench.errors import UsageError
from oxlite.bench.parameters import Parameters, interpreters, parameter, seed
from oxlite.bench.registry import Registry
from oxlite.bench.workloads.driver.blobs import BLOBS
from oxlite.bench.workloads.driver.callbacks import CALLBACKS
from oxlite.bench.workloads.driver.connections import CONNECTIONS
from oxlite.bench.workloads.driver.conversions import CONVERSIONS
from oxlite.bench.workloads.driver.copies import COPIES
from oxlite.bench.workloads.driver.operation import Operation
from oxlite.bench.workloads.driver.reads import READS, ROW_FORMS
from oxlite.bench.workloads.driver.writes import WRITES

OPERATIONS: Registry[Operation] = Registry("operation")
for declared in chain(READS, WRITES, CONNECTIONS, CALLBACKS, BLOBS, ROW_FORMS, CONVERSIONS, COPIES):
    OPERATIONS.add(declared)


@dataclass(frozen=True)
class DriverParameters(Parameters):
    """What shapes the work."""

    operation: Sequence[str] = parameter((), "Only the operations whose name contains this")
    interpreter: Sequence[str] = interpreters()
    batches: int = parameter(
        3, "Batches in a repeat; the fastest counts", quick=1, least=1, most=1000
    )
    scale: float = parameter(
        1.0, "Size of a batch in parts of the usual", quick=0.3, least=0.0001, most=1000
    )
    seed: int = seed("Of the random order of keys")

    def __post_init__(self) -> None:
        """Refuse what is out of range, or chooses no operation."""
        super().__post_init__()
        self.operations()

    def operations(self) -> Sequence[Operation]:
        """The operations whose name contains one of the words; all, without words.

        Raises:
            UsageError: a word is in no name.
        """
        found: set[str] = set()
        for word in self.operation:
            fitting = [name for name in OPERATIONS.names() if word.lower() in name.lower()]
            if not word or not fitting:
                # Semicolons, because there are commas in the names.
                raise UsageError(
                    f"no operation is called {word!r}, even in part; "
                    f"there are: {'; '.join(OPERATIONS.names())}"
                )
            found.update(fitting)
        return [operation for operation in OPERATIONS if not found or operation.name in found]
