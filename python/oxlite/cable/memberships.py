"""The groups in which the channels of this process are, as far as it has put them there.

Where the file was made anew, or this process was taken for dead, they are added again.

Invariant: only the courier's thread uses it, which notes what it has written, so both agree.
"""

import time
from typing import Final

__all__ = ["Membership", "Memberships"]

Membership = tuple[str, str, float]
"""A group, a channel, and for how many seconds it is there."""

_KEPT_UNSEEN: Final = 64


class Memberships:
    """See the module."""

    def __init__(self) -> None:
        # By queue; by group and channel: when each ends, as `time.monotonic` counts, and how often
        # all had been deleted when it was noted.
        self._noted: dict[str, dict[tuple[str, str], tuple[float, int]]] = {}
        self._looks_through_at = _KEPT_UNSEEN

    def note(self, queue: str, rows: list[Membership], flushes: int) -> None:
        """Those were added, after all had been deleted so often."""
        now = time.monotonic()
        noted = self._noted.setdefault(queue, {})
        for group, channel, expiry in rows:
            noted[group, channel] = now + expiry, flushes
        if len(noted) > self._looks_through_at:
            self._noted[queue] = kept = {row: each for row, each in noted.items() if each[0] > now}
            self._looks_through_at = 2 * len(kept) + _KEPT_UNSEEN

    def drop(self, queue: str, rows: list[tuple[str, str]]) -> None:
        """Channels have left groups."""
        noted = self._noted.get(queue, {})
        for row in rows:
            noted.pop(row, None)

    def forget(self, flushes: int) -> None:
        """All had been deleted so often: what was noted before that is no more."""
        for queue, noted in self._noted.items():
            self._noted[queue] = {row: each for row, each in noted.items() if each[1] >= flushes}

    def clear(self) -> None:
        """All that was noted is no more."""
        self._noted.clear()

    def of(self, queue: str) -> list[Membership]:
        """Those of a queue that have not ended."""
        now = time.monotonic()
        noted = self._noted.get(queue, {})
        return [(*row, end - now) for row, (end, _) in noted.items() if end > now]
