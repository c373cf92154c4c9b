"""Who lived when, and how soon another one had what a killed one left.

Instants are those of ``time.time``, as the rows have them: all is on one machine.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["Recovery", "Timeline"]

_BEGINS_WITHIN_SECONDS: Final = 0.5
"""So long after it was forked a process runs tasks, or others are looked for."""


class Recovery(NamedTuple):
    """A task whose process was killed, and that was begun again.

    Attributes:
        seconds: From the kill to the next attempt.
        is_witnessed: Whether a worker lived, and was not stopped, for all of that time.
        is_calm: Whether in addition nobody at all was stopped meanwhile: who is stopped may have
            the file's lock.
    """

    seconds: float
    is_witnessed: bool
    is_calm: bool


@dataclass
class Timeline:
    """What was done to the processes that use one file.

    Attributes:
        births: When each worker was there.
        ends: From when on it was not, or was asked to end.
        kills: When somebody was killed, worker or not.
        stops: Who was stopped from when to when.
    """

    births: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    kills: dict[int, float] = field(default_factory=dict)
    stops: list[tuple[int, float, float]] = field(default_factory=list)

    def story(self, pid: int) -> str:
        """What is known of one."""
        stops = [(first, last) for other, first, last in self.stops if other == pid]
        return (
            f"process {pid} was born at {self.births.get(pid)}, ended at {self.ends.get(pid)},"
            f" killed at {self.kills.get(pid)}, stopped {stops}"
        )

    def recovery(self, killed: int, began: float) -> Recovery:
        """Of a task that had been that process's, and was begun by another."""
        at = self.kills[killed]
        stopped = {pid for pid, first, last in self.stops if first < began and last > at}
        is_witnessed = any(
            born + _BEGINS_WITHIN_SECONDS <= at
            and self.ends.get(pid, began) >= began
            and pid not in stopped
            for pid, born in self.births.items()
        )
        return Recovery(began - at, is_witnessed, is_witnessed and not stopped)
