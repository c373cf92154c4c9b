"""The courier: a thread that brings messages from the file to those who receive them.

There is one for each ``Cable`` in each process, from when somebody first receives, or enters a
group. It waits for the descriptors by which commits are heard, and for a bell by which others tell
it something; it reads by a ``Database`` of its own, and writes what concerns this process's
channels. So nothing that is received depends on any event loop.

Invariants:
- Nothing is polled: with nothing to do it sleeps without a limit.
- Where the file cannot be read or written, it tries again. Those who receive go on waiting; whoever
  enters or leaves a group is told after some seconds, or at once what no waiting can mend.
- No lock is held while the file is used, while anything is logged, or where the garbage collector's
  work could want it.
- The process's end waits for it for some seconds at most, in which it puts back and deletes.
- A forked child has none of its parent's, and leaves none of its groups: the cable makes another.
"""

import asyncio
import atexit
import logging
import os
import threading
import time
from asyncio import Future
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final
from weakref import WeakSet

from oxlite import sqlite3
from oxlite.bell import Bell
from oxlite.cable import store
from oxlite.cable.delivery import Delivery, wake
from oxlite.cable.file import CableFile
from oxlite.cable.job import Job
from oxlite.cable.mailbox import Mailbox, Message, OwnMailbox, Receiver, SharedMailbox
from oxlite.cable.memberships import Membership
from oxlite.cable.service_thread import ServiceThread, call_all

__all__ = ["Courier"]

_log = logging.getLogger("oxlite.cable")

_SHARED_MAILBOXES_AT_MOST: Final = 64
"""So many queues that others read as well are remembered after they were read here."""

_TRY_AGAIN_AFTER_SECONDS: Final = 0.2

_LEFT_FOR_SECONDS: Final = 0.02
"""How long it leaves a file that was replaced to who found it so, and makes it anew."""

_SAY_AGAIN_AFTER_SECONDS: Final = 60.0

_ENDS_WITHIN_SECONDS: Final = 5.0

_WAITING_CANNOT_MEND: Final = (
    "SQLITE_AUTH", "SQLITE_CONSTRAINT", "SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_MISMATCH",
    "SQLITE_MISUSE", "SQLITE_NOTADB", "SQLITE_RANGE", "SQLITE_TOOBIG",
)  # fmt: skip

_couriers: "WeakSet[Courier]" = WeakSet()

_closed: "set[Courier]" = set()
"""Those that were closed and have not left their groups."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_closed.clear)


@atexit.register
def _end_all() -> None:
    """The process ends: what was taken and is not wanted any more goes back to the others."""
    ends = time.monotonic() + _ENDS_WITHIN_SECONDS
    couriers = {*_couriers, *_closed}
    for courier in couriers:
        courier.end()
    for courier in couriers:
        courier.wait_for_end(max(0.0, ends - time.monotonic()))


class Courier:
    """See the module.

    Args:
        file: The file.
        own_queue_mark: How the queues of this process end.
        capacity_of: The capacity of a queue.
    """

    def __init__(
        self,
        file: CableFile,
        own_queue_mark: str,
        capacity_of: Callable[[str], int],
    ) -> None:
        self._file = file
        self._own_queue_mark = own_queue_mark
        self._capacity_of = capacity_of
        # Re-entrant: the garbage collector may run what leaves a room in the midst of anything.
        self._lock = threading.RLock()
        self._mailboxes: dict[str, Mailbox] = {}
        self._jobs: deque[Job] = deque()
        self._thread = ServiceThread(
            f"oxlite cable {os.path.basename(file.path)}",  # noqa: PTH119 - it is text
            self._lock,
            serve=self._serve,
            finish=self._finish,
            has_more=lambda: len(self._jobs) > self._left,
            fail=self._fail,
        )
        self._leaving: list[Callable[[], None]] = []
        # The thread's own.
        self._delivery = Delivery(file, self._lock, self._do_later)
        self._bell = Bell(self._delivery.poll)
        self._try_again_at = self._try_jobs_again_at = 0.0
        # How many jobs could not be done when they were tried last.
        self._left = 0
        self._said = -_SAY_AGAIN_AFTER_SECONDS
        _couriers.add(self)

    # What event loops ask for.

    async def receive(self, queue: str, channel: str) -> Message:
        """Wait for the next message of a channel, and take it as the last thing that is done.

        Raises:
            ValueError: The file cannot be used like this.
        """
        loop = asyncio.get_running_loop()
        capacity = self._capacity_if_new(queue)
        receiver: Receiver | None = None
        try:
            while True:
                with self._lock:
                    mailbox = self._mailbox(queue, capacity)
                    if receiver is not None:
                        mailbox.remove(receiver)
                    message = mailbox.take(channel, time.monotonic())
                    if message is not None:
                        is_due = self._is_news_of(mailbox)
                    else:
                        receiver = Receiver(mailbox, channel, loop)
                        mailbox.add(receiver)
                        is_due = self._is_waited_for(mailbox)
                    thread = self._thread.claimed()
                self._thread.launch(thread)
                if is_due:
                    self.ring()
                if message is not None:
                    return message
                assert receiver is not None
                await receiver.future
        except GeneratorExit:
            # It is destroyed, perhaps by the garbage collector in a thread that has the lock.
            if receiver is not None:
                receiver.note_gone()
                self.ring()
            raise
        except BaseException:
            if receiver is not None:
                self._leave(receiver)
            raise

    async def join(self, queue: str, rows: list[Membership]) -> None:
        """Put channels of this process into groups, after all that it was told before.

        Raises:
            ValueError: The file cannot be used like this.
            oxlite.sqlite3.Error: It could not be written for seconds.
        """
        capacity = self._capacity_if_new(queue)
        with self._lock:
            # It is read from now on, although nobody receives yet.
            self._mailbox(queue, capacity)
        await self._done(partial(self._delivery.join, queue, rows))

    async def leave(self, queue: str, rows: list[tuple[str, str]]) -> None:
        """Take channels of this process out of groups, likewise. Raises as ``join``."""
        await self._done(partial(self._delivery.leave, queue, rows))

    def leave_anyway(self, queue: str, rows: list[tuple[str, str]]) -> None:
        """The same without waiting for it: it is done whatever becomes of whoever says so."""
        self._tell(Job(partial(self._delivery.leave, queue, rows), None))

    def note_left(self, queue: str, rows: list[tuple[str, str]]) -> None:
        """Somebody else takes them out of groups: they are not to be put there again."""
        with self._lock:  # there is no hurry
            self._jobs.append(Job(partial(self._delivery.memberships.drop, queue, rows), None))

    async def flush(self) -> None:
        """Delete all messages and groups, likewise, and what is kept here. Raises as ``join``."""
        await self._done(self._flush)

    def given(self, queue: str) -> int:
        """Up to which number the messages of a queue of this process are given."""
        mailbox = self._mailboxes.get(queue)
        return mailbox.given if isinstance(mailbox, OwnMailbox) else 0

    def all_given(self) -> dict[str, int]:
        """The same, of each queue of this process."""
        return {queue: given for queue in list(self._mailboxes) if (given := self.given(queue))}

    def leave_file(self, when_left: Callable[[], None]) -> None:
        """Have the file closed, to be opened again: there is another one of its name.

        Args:
            when_left: Called in the courier's thread, or in this one if there is none.
        """
        with self._lock:
            is_serving = self._thread.is_serving
            if is_serving:
                self._leaving.append(when_left)
        self.ring()
        if not is_serving:
            when_left()

    def close(self, when_closed: Callable[[], None]) -> None:
        """Have the file closed. Who waits is cancelled; what is kept here stays.

        Args:
            when_closed: Called in the courier's thread, or in this one if there is none.
        """
        with self._lock:
            receivers = [each for box in self._mailboxes.values() for each in box.receivers()]
            for mailbox in self._mailboxes.values():
                mailbox.signal = None
        self._thread.close(when_closed)
        for receiver in receivers:
            with suppress(RuntimeError):  # its loop is closed
                receiver.loop.call_soon_threadsafe(receiver.future.cancel)
        self.ring()

    def end(self) -> None:
        """End, and leave all groups: nobody can use it any more. May be called from anywhere."""
        self._thread.is_over = True
        self.ring()

    def wait_for_end(self, timeout: float) -> None:
        """Wait for its end for so many seconds at most; after ``close``, end it here."""
        if self._thread.wait_for_end(timeout) and self in _closed:
            self._finish()

    def ring(self) -> None:
        """Have it look. Takes no lock."""
        self._bell.ring()

    async def _done(self, do: Callable[[], object]) -> None:
        """Have something done, and wait for it."""
        loop = asyncio.get_running_loop()
        future: Future[None] = loop.create_future()
        self._tell(Job(do, (loop, future)))
        await future

    def _do_later(self, do: Callable[[], object]) -> None:
        self._tell(Job(do, None))

    def _tell(self, job: Job) -> None:
        """Have something done, after all that it was told before."""
        with self._lock:
            self._jobs.append(job)
            thread = self._thread.claimed(is_wanted=job.waiting is not None)
        self._thread.launch(thread)
        self.ring()

    def _capacity_if_new(self, queue: str) -> int:
        # It may call the user's function, for which no lock may be held.
        return 1 if queue in self._mailboxes else self._capacity_of(queue)

    # Called with the lock.

    def _mailbox(self, queue: str, capacity: int) -> Mailbox:
        mailbox = self._mailboxes.get(queue)
        if mailbox is None:
            if queue.endswith(self._own_queue_mark):
                mailbox = OwnMailbox(queue, capacity)
            else:
                mailbox = SharedMailbox(queue)
            self._mailboxes[queue] = mailbox
        return mailbox

    def _is_news_of(self, mailbox: Mailbox) -> bool:
        """After one was taken: whether the courier is to know."""
        return (
            isinstance(mailbox, OwnMailbox)
            and mailbox.is_due_for_deletion
            and mailbox.plan_deletion(time.monotonic())
        )

    def _is_waited_for(self, mailbox: Mailbox) -> bool:
        """After somebody has begun to wait: whether the courier is to know."""
        if isinstance(mailbox, OwnMailbox):
            is_due = mailbox.pass_by() and mailbox.plan_deletion(time.monotonic())
            return is_due or mailbox.is_told
        mailbox.is_told = True
        return True

    def _leave(self, receiver: Receiver) -> None:
        mailbox = receiver.mailbox
        with self._lock:
            mailbox.remove(receiver)
            woken = mailbox.to_wake([receiver.channel]) if receiver.is_woken else []
            is_shared = isinstance(mailbox, SharedMailbox)
            if is_shared:
                mailbox.is_told = True
        wake(woken)
        if is_shared:
            self.ring()

    # The thread.

    def _serve(self) -> None:
        """Go on until it is to end."""
        timeout: float | None = 0.0
        while True:
            queues = self._sleep(timeout)
            if self._thread.has_to_end:
                return
            try:
                timeout = self._round(queues)
            except Exception as error:
                # Whoever waits is told: no waiting mends it.
                self._fail(error)
                self._delivery.close()
                timeout = None

    def _sleep(self, timeout: float | None) -> set[str]:
        """Wait for news, for so many seconds at most; of which queues there is any."""
        at_most = None if timeout is None else min(1e6, max(0.0, timeout) * 1000)
        ready = [descriptor for descriptor, _ in self._delivery.poll.poll(at_most)]
        self._bell.quiet()
        return self._delivery.queues_of(ready)

    def _round(self, queues: set[str]) -> float | None:
        """Do what is due; for how many seconds there is nothing then, None if for ever."""
        now = time.monotonic()
        if self._leaving:
            self._leave_file()
        if now < self._try_again_at:
            return self._try_again_at - now
        with self._lock:
            mailboxes = sorted(self._mailboxes.values(), key=lambda each: each.queue[-1:] != "!")
            has_jobs = bool(self._jobs)
        if not (mailboxes or has_jobs):
            return None
        try:
            if self._delivery.open():
                for mailbox in mailboxes:
                    mailbox.is_told, mailbox.signal, mailbox.retry_at = True, None, 0.0
        except (sqlite3.Error, OSError) as error:
            self._fails_for_now(error)
            self._end_overdue(error)
            self._try_again_at = now + _TRY_AGAIN_AFTER_SECONDS
            return _TRY_AGAIN_AFTER_SECONDS
        at = [self._do_jobs()]
        for mailbox in mailboxes:
            due_at = self._delivery.due_at(mailbox)
            is_due = due_at is not None and due_at <= now
            if mailbox.is_told or mailbox.has_gone or is_due or mailbox.queue in queues:
                at.append(self._attend(mailbox))
            else:
                at.append(due_at)
        self._forget_idle()
        return min((each - time.monotonic() for each in at if each is not None), default=None)

    def _leave_file(self) -> None:
        with self._lock:
            leaving, self._leaving = self._leaving, []
        self._delivery.close()
        self._try_again_at = time.monotonic() + _LEFT_FOR_SECONDS
        call_all(leaving)

    def _attend(self, mailbox: Mailbox) -> float | None:
        """Do what is due for one; when it is its turn again."""
        if (retry_at := mailbox.retry_at) > time.monotonic():
            return retry_at
        try:
            self._delivery.attend(mailbox)
        except (sqlite3.Error, OSError) as error:
            self._fails_for_now(error)
            mailbox.is_told = True
            mailbox.retry_at = time.monotonic() + _TRY_AGAIN_AFTER_SECONDS
            # What wakes it would not let it sleep until then.
            self._delivery.stop_listening(mailbox.queue)
            return mailbox.retry_at
        if mailbox.is_told or mailbox.has_gone:
            return 0.0
        return self._delivery.due_at(mailbox)

    def _do_jobs(self) -> float | None:
        """Do what it was told to; when it is to go on with it."""
        if self._try_jobs_again_at > time.monotonic():
            return self._try_jobs_again_at
        while True:
            with self._lock:
                self._left = 0
                if not self._jobs:
                    return None
                job = self._jobs[0]
            try:
                job.do()
            except (sqlite3.Error, OSError) as error:
                self._fails_for_now(error)
                if _can_waiting_mend(error):
                    self._end_overdue(error)
                    with self._lock:
                        self._left = len(self._jobs)
                    self._try_jobs_again_at = time.monotonic() + _TRY_AGAIN_AFTER_SECONDS
                    return self._try_jobs_again_at
                job.end(error)
            else:
                job.end(None)
            with self._lock:
                self._jobs.popleft()

    def _end_overdue(self, error: Exception) -> None:
        """The file cannot be used: tell those who have waited for long."""
        now = time.monotonic() if _can_waiting_mend(error) else float("inf")
        with self._lock:
            overdue = self._waited_for(fails_by=now)
        for job in overdue:
            job.end(error)

    def _flush(self) -> None:
        self._delivery.flush()
        with self._lock:
            for mailbox in self._mailboxes.values():
                mailbox.forget()

    def _forget_idle(self) -> None:
        """Hear no longer of queues that were received once, if they are many."""
        with self._lock:
            shared = [box for box in self._mailboxes.values() if isinstance(box, SharedMailbox)]
            if len(shared) <= _SHARED_MAILBOXES_AT_MOST:
                return
            idle = [mailbox.queue for mailbox in shared if mailbox.is_idle]
            for queue in idle:
                del self._mailboxes[queue]
        for queue in idle:
            self._delivery.hear_no_longer(queue)

    def _fails_for_now(self, error: Exception) -> None:
        """Say so, rarely."""
        now = time.monotonic()
        if now - self._said >= _SAY_AGAIN_AFTER_SECONDS:
            self._said = now
            _log.warning(
                "%s cannot be used for now, and is tried again; who receives goes on waiting: %s",
                self._file.path,
                error,
            )

    def _fail(self, error: Exception) -> None:
        """Tell all who wait."""
        with self._lock:
            receivers = [each for box in self._mailboxes.values() for each in box.receivers()]
            jobs = self._waited_for()
            for mailbox in self._mailboxes.values():
                mailbox.is_told = True
        for job in jobs:
            job.end(error)
        for receiver in receivers:
            with suppress(RuntimeError):  # its loop is closed
                receiver.loop.call_soon_threadsafe(_raise, receiver.future, error)
        if not receivers and not jobs:
            _log.warning("%s cannot be used: %s", self._file.path, error)

    def _waited_for(self, fails_by: float = float("inf")) -> list[Job]:
        """With the lock, take out the jobs that somebody waits for; the others are done later."""
        jobs = [job for job in list(self._jobs) if job.waiting and job.fails_at <= fails_by]
        for job in jobs:
            self._jobs.remove(job)
        return jobs

    def _finish(self) -> None:
        """Put back and delete what is due, and close the file."""
        with self._lock:
            mailboxes = list(self._mailboxes.values())
            for mailbox in mailboxes:
                mailbox.is_told, mailbox.signal, mailbox.retry_at = True, None, 0.0
        self._try_again_at = self._try_jobs_again_at = 0.0
        try:
            if self._file.identity() is None:
                # What is due was deleted with it, and it is not to be made anew.
                with self._lock:
                    self._jobs = deque(self._waited_for())
            elif mailboxes or self._jobs:
                self._delivery.open()
                self._do_jobs()
                for mailbox in mailboxes:
                    self._finish_one(mailbox)
        except (sqlite3.Error, OSError, ValueError) as error:
            _log.warning("%s was closed while it could not be used: %s", self._file.path, error)
            with self._lock:
                self._left = len(self._jobs)
        finally:
            self._delivery.close()
            with self._lock:
                leaving, self._leaving = self._leaving, []
                ended = self._waited_for() if self._thread.is_closed or self._thread.is_over else []
            for job in ended:
                job.end(sqlite3.ProgrammingError("Cannot operate on a closed cable."))
            call_all(leaving)
        if self._thread.is_over:
            _closed.discard(self)
        elif any(isinstance(each, OwnMailbox) and each.epoch for each in mailboxes):
            _closed.add(self)

    def _finish_one(self, mailbox: Mailbox) -> None:
        if isinstance(mailbox, SharedMailbox):
            with self._lock:
                given_up = mailbox.all()
            self._delivery.put_back(mailbox, given_up)
        elif isinstance(mailbox, OwnMailbox) and self._thread.is_over:
            for statement in store.LEAVE_FOR_EVER:
                self._delivery.write(statement, (mailbox.queue,))
        elif isinstance(mailbox, OwnMailbox):
            self._delivery.delete_given(mailbox)


def _raise(future: "Future[None]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _can_waiting_mend(error: Exception) -> bool:
    return not getattr(error, "sqlite_errorname", "").startswith(_WAITING_CANNOT_MEND)
