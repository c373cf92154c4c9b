"""What shapes a run of ``busy``."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.parameters import LONGEST_SECONDS, Parameters, parameter, timeout


@dataclass(frozen=True)
class BusyParameters(Parameters):
    """What shapes the work."""

    processes: Sequence[int] = parameter((4, 8), "Children", quick=(8,), least=1, most=1000)
    threads: Sequence[int] = parameter(
        (2, 4), "Threads of each child", quick=(4,), least=1, most=1000
    )
    long: Sequence[int] = parameter(
        (0, 1, 2), "Long transactions of the parent", quick=(1,), most=1_000_000
    )
    hold_seconds: float = parameter(
        1.0, "Seconds that each of those takes", quick=0.5, most=LONGEST_SECONDS
    )
    transactions: int = parameter(
        1, "Transactions of each thread of a child", least=1, most=1_000_000
    )
    timeout_seconds: float = timeout("Seconds to wait for the lock")
