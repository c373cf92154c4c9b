"""What shapes a run of ``orm``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import require_between
from oxlite.bench.workloads.orm.operations import Timed, chosen

HIGHEST_LEVEL = 10


@dataclass(frozen=True)
class OrmParameters:
    """What shapes the work.

    Attributes:
        level: the scale is 2 to the power of it; the published level is 5.
        operation: only those whose name contains one of these; all, without any.
    """

    level: int = 5
    operation: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "operation", tuple(dict.fromkeys(self.operation)))
        require_between("--level", self.level, 0, HIGHEST_LEVEL)
        self.operations()

    def operations(self) -> Sequence[Timed]:
        """The chosen operations."""
        return chosen(self.operation)

    @property
    def scale(self) -> int:
        """How large everything is: n."""
        return 1 << self.level
