"""Event loops that wait for what native threads do.

Each loop has one mailbox, to which everything it waits for is delivered; it is woken once for all
that has come. Futures are created and resolved by the loop's own thread.

Invariants:
- A task that is cancelled goes on at once; what it waited for is given up as far as it can be.
- A loop that has been closed is told nothing and kept alive by nobody.
"""

import asyncio
from asyncio import AbstractEventLoop, CancelledError, Future
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from oxlite._native import Job, Mailbox
from oxlite._native import Turns as NativeTurns
from oxlite.sqlite3 import Connection

__all__ = ["Turns", "current", "reply"]

_T = TypeVar("_T")

_mailboxes: "WeakKeyDictionary[AbstractEventLoop, Mailbox]" = WeakKeyDictionary()

# Of the loop that asked last; looking into the dictionary takes longer than all the rest.
_latest: tuple[ReferenceType[AbstractEventLoop], Mailbox] | None = None


def current() -> tuple[AbstractEventLoop, Mailbox]:
    """The loop that runs, and its mailbox.

    Raises:
        RuntimeError: No loop runs in this thread.
        OSError: The system has no file descriptor left.
    """
    global _latest
    loop = asyncio.get_running_loop()
    latest = _latest
    if latest is not None and latest[0]() is loop:
        return loop, latest[1]
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = Mailbox()
        _listen(loop, mailbox)
        _mailboxes[loop] = mailbox
    _latest = (ref(loop), mailbox)
    return loop, mailbox


def _listen(loop: AbstractEventLoop, mailbox: Mailbox) -> None:
    """Have what comes to the mailbox handed over, in the loop's own thread."""

    def collect() -> None:
        if mailbox.collect():
            loop.call_soon(collect)  # the rest of a long result, after what others have to do

    loop.add_reader(mailbox.fileno(), collect)


async def reply(job: Job, future: "Future[_T]") -> _T:
    """Wait for what comes of a job, which is given up if this task is cancelled."""
    try:
        return await future
    except CancelledError:
        job.cancel()
        raise


class Turns:
    """Functions that are called one after the other, in native threads: the turns of a connection.

    No thread belongs to it: between two calls there is none.
    """

    def __init__(self) -> None:
        self._turns = NativeTurns()

    async def call(
        self, connection: Connection | None, function: Callable[..., _T], *arguments: object
    ) -> _T:
        """Call ``function(*arguments)`` when its turn has come.

        Args:
            connection: What is interrupted if the task is cancelled in the middle of a read.
            function: Called in a native thread, with the GIL.
            arguments: Its arguments.

        Returns:
            What it returns; it raises what that raises.
        """
        loop, mailbox = current()
        future: Future[_T] = loop.create_future()
        job = self._turns.call(mailbox, future, function, arguments, connection)
        return await reply(job, future)

    async def fetch(self, connection: Connection, sql: str, parameters: object) -> list[Any]:
        """Execute a statement and fetch all its rows; a query without the GIL."""

        def fetch(sql: str, parameters: Any) -> list[Any]:  # noqa: ANN401 - the driver checks them
            return connection.execute(sql, parameters).fetchall()

        loop, mailbox = current()
        future: Future[list[Any]] = loop.create_future()
        job = self._turns.fetch(mailbox, future, connection, fetch, sql, parameters)
        return await reply(job, future)

    def call_anyway(self, function: Callable[..., _T], *arguments: object) -> "Future[_T]":
        """The same, for what is to be done whoever waits; a cancelled future changes nothing."""
        loop, mailbox = current()
        future: Future[_T] = loop.create_future()
        self._turns.call(mailbox, future, function, arguments)
        return future
