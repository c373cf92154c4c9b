"""The groups in which the channels of this process are, as far as it has put them there.

Where the file was made anew, or this process was taken for dead, they are added again.

Invariant: whoever adds notes it before it writes, so that what is written meanwhile has it.
"""

import json
import threading
import time

__all__ = ["Memberships"]


class Memberships:
    """See the module. May be used by all threads."""

    def __init__(self) -> None:
        # Re-entrant: the garbage collector may run what leaves a room in the midst of anything.
        self._lock = threading.RLock()
        # When each ends, as `time.monotonic` counts: by queue, channel and group.
        self._ends: dict[str, dict[str, dict[str, float]]] = {}
        # Likewise, of channels that were taken for dead.
        self._resting: dict[str, dict[str, float]] = {}

    def note(self, queue: str, channel: str, group: str, expiry: float) -> None:
        """One was added, for so many seconds."""
        ends = time.monotonic() + expiry
        with self._lock:
            self._ends.setdefault(queue, {}).setdefault(channel, {})[group] = ends

    def drop(self, queue: str, channel: str, group: str) -> None:
        """A channel has left a group."""
        with self._lock:
            for channels in (self._ends.get(queue, {}), self._resting):
                groups = channels.get(channel, {})
                groups.pop(group, None)
                if not groups:
                    channels.pop(channel, None)

    def rest(self, queue: str, channels: list[str]) -> None:
        """Channels were taken for dead: they are in no group until they are received again."""
        now = time.monotonic()
        with self._lock:
            for channel in channels:
                groups = self._ends.get(queue, {}).pop(channel, None)
                if groups:
                    self._resting[channel] = groups
            for channel, groups in list(self._resting.items()):
                if max(groups.values(), default=0.0) <= now:
                    del self._resting[channel]

    @property
    def are_resting(self) -> bool:
        """Whether any channel was taken for dead."""
        return bool(self._resting)

    def resume(self, queue: str, channel: str) -> str | None:
        """A channel is received again: its groups, as JSON, if it had left them."""
        now = time.monotonic()
        with self._lock:
            groups = self._resting.pop(channel, None)
            if groups is None:
                return None
            self._ends.setdefault(queue, {})[channel] = groups
            return json.dumps([(group, channel, ends - now) for group, ends in groups.items()])

    def forget(self) -> None:
        """All groups are empty."""
        with self._lock:
            self._ends.clear()
            self._resting.clear()

    def as_json(self, queue: str) -> str:
        """Those of a queue that have not ended, as the statement wants them that adds them."""
        now = time.monotonic()
        with self._lock:
            rows = [
                (group, channel, ends - now)
                for channel, groups in list(self._ends.get(queue, {}).items())
                for group, ends in list(groups.items())
                if ends > now
            ]
        return json.dumps(rows)
