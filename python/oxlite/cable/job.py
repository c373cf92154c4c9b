"""What the courier is to do for somebody, who may wait for it or be gone."""

import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from contextlib import suppress
from typing import Final

__all__ = ["Job"]

_FAILS_AFTER_SECONDS: Final = 5.0


class Job:
    """Something that the courier is to do, in the order in which it was told.

    Attributes:
        do: It, called in the courier's thread; again if it fails.
        waiting: Who waits for it, as a future with its loop; None if nobody does.
        fails_at: When he is told that it has failed, as ``time.monotonic`` counts.
    """

    def __init__(
        self,
        do: Callable[[], object],
        waiting: tuple[AbstractEventLoop, "Future[None]"] | None,
    ) -> None:
        self.do = do
        self.waiting = waiting
        self.fails_at = time.monotonic() + _FAILS_AFTER_SECONDS

    def end(self, error: Exception | None) -> None:
        """Tell who waits."""
        if self.waiting is None:
            return
        loop, future = self.waiting

        def tell() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        with suppress(RuntimeError):  # that loop is closed
            loop.call_soon_threadsafe(tell)
