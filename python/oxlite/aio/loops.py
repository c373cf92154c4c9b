"""Event loops that wait for what native threads do.

Each loop has one mailbox, to which everything it waits for is delivered; it is woken once for all
that has come. Futures are created and resolved by the loop's own thread.

Invariants:
- A task that is cancelled goes on at once; what it waited for is given up as far as it can be.
- A loop that was used before a fork is refused in the child: it shares what wakes it with the
  parent's.
- Whoever waits for a future lets go of it whatever comes: what it raises knows by its traceback the
  frames that it has passed, and would be kept by the future in them until the garbage collector
  comes.
- A loop that has been closed is told nothing, and kept alive no longer than until the next one is
  seen or somebody waits in vain.
"""

import asyncio
import os
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from oxlite._native import Job, Mailbox, close_to_threads, open_to_threads
from oxlite._native import SerialExecutor as NativeExecutor
from oxlite.sqlite3 import Connection

__all__ = ["SerialExecutor", "current", "forget_closed", "reply", "silence"]

_T = TypeVar("_T")

_mailboxes: "WeakKeyDictionary[AbstractEventLoop, Mailbox]" = WeakKeyDictionary()

# Of the parent's loops, in a forked child.
_inherited: "WeakKeyDictionary[AbstractEventLoop, Mailbox]" = WeakKeyDictionary()

# Of the loop that asked last; looking into the dictionary takes longer than all the rest.
_latest: tuple[ReferenceType[AbstractEventLoop], Mailbox] | None = None


def current() -> tuple[AbstractEventLoop, Mailbox]:
    """The loop that runs, and its mailbox.

    Raises:
        RuntimeError: No loop runs in this thread; or the one that does was used before a fork.
        OSError: The system has no file descriptor left.
    """
    global _latest
    loop = asyncio.get_running_loop()
    latest = _latest
    if latest is not None and latest[0]() is loop:
        return loop, latest[1]
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        if loop in _inherited:
            raise RuntimeError(
                "This event loop was used before the fork, and the parent process has it too: what"
                " one of them waits for would come to the other. Use a loop of the child's own:"
                " asyncio.run(), or asyncio.new_event_loop()."
            )
        forget_closed()
        mailbox = Mailbox()
        loop.add_reader(mailbox.fileno(), mailbox.collect)
        _mailboxes[loop] = mailbox
    _latest = (ref(loop), mailbox)
    return loop, mailbox


def forget_closed() -> None:
    """Let go of what has come for loops that were closed before they took it.

    It would keep them alive: a future that waits in a mailbox has its loop, for which the mailbox
    is kept.
    """
    global _latest
    for reference in _mailboxes.keyrefs():
        loop = reference()
        if loop is None or not loop.is_closed():
            continue
        mailbox = _mailboxes.pop(loop, None)
        if mailbox is not None:
            mailbox.close()
            if _latest is not None and _latest[1] is mailbox:
                _latest = None


def _begin_anew() -> None:
    global _mailboxes, _latest
    _inherited.update(_mailboxes)
    _mailboxes, _latest = WeakKeyDictionary(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=close_to_threads, after_in_parent=open_to_threads, after_in_child=_begin_anew
    )


def silence() -> None:
    """The process ends: loops that still run, in threads that end with it, are told nothing."""
    for mailbox in list(_mailboxes.values()):
        mailbox.close()


async def reply(job: Job, future: "Future[_T]") -> _T:
    """Wait for what comes of a job, which is given up if this task is cancelled, or is no more."""
    try:
        return await future
    except BaseException:
        job.cancel()  # of no consequence if the job itself has raised this
        raise
    finally:
        del future


class SerialExecutor:
    """Functions that are called one after the other, in native threads.

    No thread belongs to it: between two calls there is none.
    """

    def __init__(self) -> None:
        self._native = NativeExecutor()

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
        job = self._native.call(mailbox, future, function, arguments, connection)
        try:
            return await reply(job, future)
        finally:
            del future

    async def fetch(self, connection: Connection, sql: str, parameters: object) -> list[Any]:
        """Execute a statement and fetch all its rows; a query without the GIL."""

        def fetch(sql: str, parameters: Any) -> list[Any]:  # noqa: ANN401 - the driver checks them
            return connection.execute(sql, parameters).fetchall()

        loop, mailbox = current()
        future: Future[list[Any]] = loop.create_future()
        job = self._native.fetch(mailbox, future, connection, fetch, sql, parameters)
        try:
            return await reply(job, future)
        finally:
            del future

    def call_unheard(self, function: Callable[..., object], *arguments: object) -> None:
        """The same, for what nobody waits for: no loop is needed, and what it raises is dropped."""
        self._native.call_unheard(function, arguments)

    def call_anyway(self, function: Callable[..., _T], *arguments: object) -> "Future[_T]":
        """The same, for what is to be done whoever waits; a cancelled future changes nothing."""
        loop, mailbox = current()
        future: Future[_T] = loop.create_future()
        self._native.call(mailbox, future, function, arguments)
        return future
