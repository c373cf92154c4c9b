"""What the courier is to write for somebody, who may wait for it or be gone."""

import time
from asyncio import AbstractEventLoop, Future
from contextlib import suppress
from typing import Any, Final

__all__ = ["Job"]

_FAILS_AFTER_SECONDS: Final = 5.0


class Job:
    """Something that the courier is to write, in the order in which it was told.

    Attributes:
        statement: What is executed; its parameters follow.
        future: Who waits for it, with his loop; None if nobody does.
        fails_at: When he is told that it has failed, as ``time.monotonic`` counts.
    """

    def __init__(
        self,
        statement: str,
        parameters: tuple[Any, ...],
        waiting: tuple[AbstractEventLoop, "Future[None]"] | None,
    ) -> None:
        self.statement = statement
        self.parameters = parameters
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
