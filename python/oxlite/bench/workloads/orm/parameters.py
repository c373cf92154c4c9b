"""What shapes a run of ``orm``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import require_at_least, require_between
from oxlite.bench.workloads.orm.operations import Scale, Timed, chosen

HIGHEST_LEVEL = 10
MOST_LOOPS = 10_000


@dataclass(frozen=True)
class OrmParameters:
    """What shapes the work.

    Attributes:
        level: the scale is 2 to the power of it; the published level is 5.
        loops: how often an operation does what it repeats; 0: as often as it does.
        faithful: in the manner of the published benchmark: see ``operations``.
        operation: only those whose name contains one of these; all, without any.
        at_least_seconds: an operation that is shorter is done several times in a round.
    """

    level: int = 5
    loops: int = 0
    faithful: bool = False
    operation: Sequence[str] = ()
    at_least_seconds: float = 0.25

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "operation", tuple(dict.fromkeys(self.operation)))
        require_between("--level", self.level, 0, HIGHEST_LEVEL)
        require_between("--loops", self.loops, 0, MOST_LOOPS)
        require_at_least("--at-least", self.at_least_seconds, 0)
        self.operations()

    def operations(self) -> Sequence[Timed]:
        """The chosen operations."""
        return chosen(self.operation)

    @property
    def scale(self) -> Scale:
        """How much is done."""
        return Scale(1 << self.level, self.loops or None, self.faithful)
