"""What shapes a run of ``orm``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.parameters import LONGEST_SECONDS, Parameters, parameter
from oxlite.bench.workloads.orm.operations import Scale, Timed, chosen


@dataclass(frozen=True)
class OrmParameters(Parameters):
    """What shapes the work."""

    level: int = parameter(5, "The scale is 2 to the power of it", quick=0, most=10)
    loops: int = parameter(
        0, "How often an operation does what it repeats; 0: as often as it does", most=10_000
    )
    faithful: bool = parameter(
        default=False, help="Threads one by one, and queries that nobody reads, as published"
    )
    operation: Sequence[str] = parameter((), "Only the operations whose name contains this")
    at_least_seconds: float = parameter(
        0.25, "Seconds; what is shorter is done again in a round", quick=0.0, most=LONGEST_SECONDS
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range, or chooses no operation."""
        super().__post_init__()
        self.operations()

    def operations(self) -> Sequence[Timed]:
        """The chosen operations."""
        return chosen(self.operation)

    @property
    def scale(self) -> Scale:
        """How much is done."""
        return Scale(1 << self.level, self.loops or None, self.faithful)
