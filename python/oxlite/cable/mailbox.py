"""What has come for a queue in this process, and who waits for it.

One task of one event loop, the pump, takes messages while anybody waits, for all who wait in
whatever loop; it is woken by the commits of those who send, and polls nothing.

Invariants:
- A message that was taken is given to one who waits, or kept, in the order in which it came. What
  is kept for a channel is at most its capacity: the oldest goes first.
- Nothing is read while nobody waits. Of a queue that others read as well no more is taken than
  there are who wait, and what was then given to nobody is put back.
- Who is cancelled has taken nothing.
- There is one pump at most. It ends with the last who waits, and where only others' loops wait, it
  goes on in one of them.
"""

import asyncio
import logging
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

from oxlite import sqlite3
from oxlite._native import Hearing
from oxlite.aio.listener import readable

__all__ = ["Mailbox", "Source", "Taken"]

_AT_A_TIME = 256

_TRY_AGAIN_AFTER_SECONDS = 0.5

_DELETE_AFTER_SECONDS = 0.02
"""How long what was read may wait to be deleted together with what follows."""

_log = logging.getLogger("oxlite.cable")


class Taken(NamedTuple):
    """A message that was taken.

    Attributes:
        number: its number in the table.
        channels: the full names of whom it is for.
        content: it, encoded.
        sent_at: when it was sent, in seconds since 1970.
        expires_at: when it expires, likewise.
        seconds_left: how long it may still wait.
    """

    number: int
    channels: list[str]
    content: bytes | str
    sent_at: float
    expires_at: float
    seconds_left: float


class Source(Protocol):
    """Where messages come from."""

    async def hear(self, queue: str) -> Hearing:
        """Hear of news in a queue."""

    async def read(self, queue: str, after: int, at_most: int) -> list[Taken]:
        """Read messages of a queue that nobody else reads, after that number, in order."""

    async def delete_read(self, queue: str, last: int) -> None:
        """Delete what was read up to that number."""

    async def take(self, queue: str, at_most: int) -> list[Taken]:
        """Take messages from a queue that others read as well, in order."""

    async def put_back(self, queue: str, channel: str, message: Taken) -> None:
        """Give back one that nobody has got."""


class _Waiter(NamedTuple):
    loop: AbstractEventLoop
    future: "Future[Taken]"


class _Kept(NamedTuple):
    message: Taken
    expires: float  # time.monotonic()


class Mailbox:
    """See the module."""

    def __init__(self, source: Source, queue: str, capacity: int) -> None:
        self._source = source
        self._queue = queue
        self._capacity = capacity
        # Whether this process alone reads the queue.
        self._is_own = queue.endswith("!")
        self._lock = threading.RLock()
        self._waiting: dict[str, deque[_Waiter]] = {}
        self._kept: dict[str, deque[_Kept]] = {}
        self._swept = time.monotonic()
        self._is_overflowing: set[str] = set()
        self._pump: tuple[AbstractEventLoop, asyncio.Task[None]] | None = None
        self._wake: Callable[[], None] | None = None
        self._hearing: Hearing | None = None
        # The latest signal before the last look; None if there may be more than was taken.
        self._seen: int | None = None
        # Of a queue of this process: the number that was read last, how many were read since the
        # last deletion, and in which loop the next one is due.
        self._last = 0
        self._read_count = 0
        self._deletion: AbstractEventLoop | None = None

    async def receive(self, channel: str) -> Taken:
        """Wait for the next message of a channel, or of all if its name ends at ``!``."""
        loop = asyncio.get_running_loop()
        with self._lock:
            message = self._from_kept(channel)
            if message is not None:
                return message
            waiter = _Waiter(loop, loop.create_future())
            self._waiting.setdefault(channel, deque()).append(waiter)
            self._see_to_a_pump()
        try:
            return await waiter.future
        except BaseException:
            self._leave(channel, waiter)
            raise

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits and nothing is kept."""
        with self._lock:
            return not self._waiting and not self._kept and self._pump is None

    def forget(self) -> None:
        """Drop what is kept: the queue was flushed."""
        with self._lock:
            self._kept.clear()
            self._seen = None

    def close(self) -> None:
        """Hear no longer."""
        with self._lock:
            hearing, self._hearing = self._hearing, None
            self._seen = None
            waiters = [waiter for each in self._waiting.values() for waiter in each]
        if hearing is not None:
            hearing.close()
        for waiter in waiters:
            _in_its_loop(waiter.loop, waiter.future.cancel)

    # Who waits.

    def _from_kept(self, channel: str) -> Taken | None:
        channels = [channel]
        if channel == self._queue and self._is_own:
            channels = sorted(self._kept, key=lambda each: self._kept[each][0].message.number)
        now = time.monotonic()
        for each in channels:
            kept = self._kept.get(each)
            while kept:
                message, expires = kept.popleft()
                if not kept:
                    self._kept.pop(each, None)
                    self._is_overflowing.discard(each)
                if expires > now:
                    return message
        return None

    def _leave(self, channel: str, waiter: _Waiter) -> None:
        future = waiter.future
        with self._lock:
            waiting = self._waiting.get(channel)
            if waiting is not None and waiter in waiting:
                waiting.remove(waiter)
                if not waiting:
                    del self._waiting[channel]
            # It was given one when it was cancelled.
            if future.done() and not future.cancelled() and future.exception() is None:
                self._give(future.result(), channel, is_returned=True)
            if not self._waiting and self._wake is not None:
                self._wake()

    # Who gives.

    def _distribute(self, messages: list[Taken]) -> None:
        with self._lock:
            for message in messages:
                if message.seconds_left <= 0:
                    continue
                for channel in message.channels:
                    self._give(message, channel)

    def _give(self, message: Taken, channel: str, is_returned: bool = False) -> None:
        names = (channel, self._queue) if self._is_own else (channel,)
        for name in names:
            waiting = self._waiting.get(name)
            while waiting:
                waiter = waiting.popleft()
                if not waiting:
                    del self._waiting[name]
                if self._hand_over(waiter, name, message):
                    return
        self._keep(message, channel, is_returned)

    def _hand_over(self, waiter: _Waiter, channel: str, message: Taken) -> bool:
        loop, future = waiter
        if future.done() or loop.is_closed():
            return False
        if self._pump is not None and loop is self._pump[0] and _runs_here(loop):
            future.set_result(message)
            return True

        def arrive() -> None:
            if not future.done():
                future.set_result(message)
            else:
                with self._lock:
                    self._give(message, channel, is_returned=True)

        return _in_its_loop(loop, arrive)

    def _keep(self, message: Taken, channel: str, is_returned: bool) -> None:
        if not self._is_own:
            self._put_back(message, channel)
            return
        now = time.monotonic()
        kept = self._kept.setdefault(channel, deque())
        item = _Kept(message, now + message.seconds_left)
        if is_returned:
            kept.appendleft(item)
        else:
            kept.append(item)
        if len(kept) > self._capacity:
            kept.popleft()
            if channel not in self._is_overflowing:
                self._is_overflowing.add(channel)
                _log.warning(
                    "%s reads more slowly than it is sent to: its oldest messages are dropped, of"
                    " more than %d that wait",
                    channel,
                    self._capacity,
                )
        if now - self._swept > max(1.0, message.seconds_left):
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Forget what has expired: whoever it was for may be gone."""
        self._swept = now
        for channel, kept in list(self._kept.items()):
            while kept and kept[0].expires <= now:
                kept.popleft()
            if not kept:
                del self._kept[channel]
                self._is_overflowing.discard(channel)

    def _put_back(self, message: Taken, channel: str) -> None:
        _in_background(self._source.put_back(self._queue, channel, message))

    # The pump.

    def _see_to_a_pump(self) -> None:
        """Have one where somebody waits; called with the lock, in a loop in which one waits."""
        if self._pump is not None and not self._pump[0].is_closed():
            return
        loop = asyncio.get_running_loop()
        self._pump = loop, loop.create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waits_here(loop):
                if await self._is_news():
                    await self._look()
                else:
                    await self._sleep(loop)
        except Exception as error:
            self._fail(error)
        finally:
            self._hand_on()

    def _waits_here(self, loop: AbstractEventLoop) -> bool:
        with self._lock:
            return any(each.loop is loop for waiting in self._waiting.values() for each in waiting)

    async def _is_news(self) -> bool:
        hearing = self._hearing
        if hearing is not None and hearing.is_replaced():
            hearing.close()
            hearing, self._last = None, 0
        if hearing is None:
            self._hearing = await self._source.hear(self._queue)
            self._seen = None
            return True
        return self._seen is None or hearing.has_newer(self._seen)

    async def _look(self) -> None:
        hearing = self._hearing
        if hearing is None:
            return
        # Before looking: what is committed from here on is signalled with a greater number.
        seen = hearing.seen()
        try:
            self._seen = seen if await (self._read() if self._is_own else self._take()) else None
        except sqlite3.OperationalError as error:
            # Locked by another program, or the disk is full: who waits goes on waiting.
            _log.warning("%s cannot be read for now, and is tried again: %s", self._queue, error)
            await asyncio.sleep(_TRY_AGAIN_AFTER_SECONDS)

    async def _read(self) -> bool:
        """Give what is new in a queue of this process; whether that was all."""
        messages = await self._source.read(self._queue, self._last, _AT_A_TIME)
        if messages:
            self._last = messages[-1].number
            self._distribute(messages)
            self._read_count += len(messages)
            # Capacity counts what is not deleted yet.
            if self._read_count >= min(_AT_A_TIME, max(1, self._capacity // 4)):
                await self._delete_read()
            elif self._deletion is None or self._deletion.is_closed():
                self._deletion = asyncio.get_running_loop()
                self._deletion.call_later(_DELETE_AFTER_SECONDS, self._delete_soon)
        return len(messages) < _AT_A_TIME

    def _delete_soon(self) -> None:
        self._deletion = None
        if self._read_count:
            _in_background(self._delete_read())

    async def _delete_read(self) -> None:
        self._read_count = 0
        await self._source.delete_read(self._queue, self._last)

    async def _take(self) -> bool:
        """Give one message each to those who wait; whether there were no more."""
        at_most = self._waiting_count()
        taking = asyncio.ensure_future(self._source.take(self._queue, at_most))
        try:
            messages = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # What is taken is given to those who wait elsewhere, or put back.
            taking.add_done_callback(self._distribute_late)
            raise
        self._distribute(messages)
        return len(messages) < at_most

    def _distribute_late(self, taking: "Future[list[Taken]]") -> None:
        if not taking.cancelled() and taking.exception() is None:
            self._distribute(taking.result())

    def _waiting_count(self) -> int:
        with self._lock:
            return max(1, sum(len(waiting) for waiting in self._waiting.values()))

    async def _sleep(self, loop: AbstractEventLoop) -> None:
        hearing = self._hearing
        if hearing is None:
            return
        woken: asyncio.Task[None] = asyncio.ensure_future(readable(hearing.fileno()))

        def wake() -> None:
            _in_its_loop(loop, woken.cancel)

        with self._lock:
            self._wake = wake
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([woken])
        finally:
            woken.cancel()
            with self._lock:
                self._wake = None

    def _fail(self, error: Exception) -> None:
        """All who wait are told."""
        with self._lock:
            waiters = [waiter for each in self._waiting.values() for waiter in each]
            self._waiting.clear()

        def tell(future: "Future[Any]") -> None:
            if not future.done():
                future.set_exception(error)

        for waiter in waiters:
            _in_its_loop(waiter.loop, partial(tell, waiter.future))

    def _hand_on(self) -> None:
        """If others wait, one of their loops goes on."""
        with self._lock:
            if self._pump is None or self._pump[1] is not asyncio.current_task():
                return  # another one has taken over from a loop that was closed
            self._pump = None
            loops = {waiter.loop for each in self._waiting.values() for waiter in each}

        def go_on() -> None:
            with self._lock:
                if self._waiting:
                    self._see_to_a_pump()

        for loop in loops:
            if _in_its_loop(loop, go_on):
                return


# Kept from being collected while they run.
_tasks: set["asyncio.Task[None]"] = set()


def _in_background(work: Coroutine[Any, Any, None]) -> None:
    """Do it in the loop that runs; where it fails, say so."""
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)

    def done(task: "asyncio.Task[None]") -> None:
        _tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("the queues of the cable cannot be written for now: %s", error)

    task.add_done_callback(done)


def _runs_here(loop: AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _in_its_loop(loop: AbstractEventLoop, function: Callable[[], object]) -> bool:
    """Have a function called there; whether that loop is still there to do it."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        return False
    return True
