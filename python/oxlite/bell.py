"""A bell: by which any thread wakes the one that waits for descriptors.

Invariants:
- Ringing takes no lock and never waits: a signal handler and the garbage collector may do it.
- Its descriptors are open as long as anybody can ring: they are closed with the object.
"""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Final

__all__ = ["Bell"]

_RINGS_AT_ONCE: Final = 1 << 16
"""As many bytes as a pipe has on Linux: https://man7.org/linux/man-pages/man7/pipe.7.html."""


class Bell:
    """See the module.

    Args:
        poll: Where it is waited for.
    """

    def __init__(self, poll: "select.poll") -> None:
        self._ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        poll.register(self._ends[0], select.POLLIN)

    def ring(self) -> None:
        """Wake who waits, now or when he waits next."""
        with suppress(BlockingIOError):
            os.write(self._ends[1], b"\0")

    def quiet(self) -> None:
        """Forget that it was rung: whoever was woken looks at everything now."""
        with suppress(BlockingIOError):
            os.read(self._ends[0], _RINGS_AT_ONCE)

    # While the interpreter ends, names of the module may be gone.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """Close it."""
        for descriptor in getattr(self, "_ends", ()):
            try:  # noqa: SIM105 - see above
                close(descriptor)
            except OSError:
                pass
