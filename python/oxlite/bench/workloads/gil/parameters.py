"""What shapes a run of ``gil``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import require_between

SMALLEST_SCALE = 0.001
LARGEST_SCALE = 100.0


@dataclass(frozen=True)
class GilParameters:
    """What shapes the work.

    Attributes:
        interpreter: the Pythons that the workers run on; the lab's own, without any.
        scale: how long each turn takes, in parts of the usual.
        seed: of the random order of keys.
    """

    interpreter: Sequence[str] = ()
    scale: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "interpreter", tuple(dict.fromkeys(self.interpreter)))
        require_between("--scale", self.scale, SMALLEST_SCALE, LARGEST_SCALE)
