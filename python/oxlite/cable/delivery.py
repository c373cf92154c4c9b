"""What the courier does with the file: reads for mailboxes, deletes, puts back.

Invariants:
- Only the courier's thread uses it. What it looks at in mailboxes it looks at with the lock, which
  it never holds while the file is used.
- What fails leaves the mailbox so that it can be tried again.
"""

import json
import logging
import select
import time
from asyncio import Future
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final

from oxlite import Database, sqlite3
from oxlite._native import Hearing
from oxlite.cable import store
from oxlite.cable.file import CableFile, Identity
from oxlite.cable.mailbox import Mailbox, Message, OwnMailbox, Receiver, SharedMailbox
from oxlite.cable.memberships import Membership, Memberships
from oxlite.cable.rows import read_rows

__all__ = ["Delivery", "wake"]

_log = logging.getLogger("oxlite.cable")

_AT_A_TIME: Final = 256
_AT_FIRST: Final = 16

_READ_CHANNELS: Final = 65_536
"""For about so many channels messages are read at a time: their names are in memory meanwhile."""

_CHANNELS_AT_A_TIME: Final = 1024
"""Messages for so many channels are delivered before others have their turn at the mailboxes."""

_HELD_AT_MOST_SECONDS: Final = 1.0
"""How long a message of a shared queue waits for a loop that stands still before it is put back."""

_SAYS_OVERFLOW_EVERY_SECONDS: Final = 60.0


class Delivery:
    """See the module.

    Args:
        file: The file.
        lock: That of the mailboxes.
        do_later: Has something done when it can be.

    Attributes:
        poll: Whose descriptors are to be waited for.
        memberships: The groups of this process's channels.
    """

    def __init__(
        self,
        file: CableFile,
        lock: AbstractContextManager[object],
        do_later: Callable[[Callable[[], object]], None],
    ) -> None:
        self._file = file
        self._lock = lock
        self._do_later = do_later
        self.memberships = Memberships()
        self._database: Database | None = None
        self._identity: Identity = None
        self._hearings: dict[str, Hearing] = {}
        self._listening: dict[int, str] = {}
        self._at_a_time = _AT_FIRST
        self._said_overflow = -_SAYS_OVERFLOW_EVERY_SECONDS
        # Of which epoch it was said that it began; of that of a new file it is said by the file.
        self._epoch_said: bytes | None = None
        self._is_new_file = False
        self.poll = select.poll()

    # The file.

    def open(self) -> bool:
        """Open the file, if it is not open, or is another one; whether that was so.

        Raises:
            ValueError: The file holds other tables, which the profile could damage.
            oxlite.sqlite3.Error: It cannot be opened.
        """
        if self._database is not None:
            if self._file.identity() == self._identity:
                return False
            self.close()
            self._is_new_file = True
        self._database, self._identity = self._file.opened_for_courier()
        return True

    def close(self) -> None:
        """Close it, and hear no longer."""
        for queue in list(self._hearings):
            self.hear_no_longer(queue)
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close(timeout=0.5)

    def query(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Read."""
        assert self._database is not None
        return store.TABLES.query(self._database, statement, parameters)

    def write(
        self, statement: str, parameters: tuple[Any, ...], announces: bool = False
    ) -> list[Any]:
        """Have a statement committed; the rows that it returns."""
        database = self._database
        assert database is not None
        announcement = database._row_announcement(store.TOPIC_PREFIX) if announces else None
        return store.TABLES.write(database, statement, parameters, announcement)

    # Groups.

    def join(self, queue: str, rows: list[Membership]) -> None:
        """Put channels of this process into groups, and note it."""
        if added := self.write(store.ADD, (queue, json.dumps(rows))):
            self.memberships.note(queue, rows, added[0][0] or 0)

    def leave(self, queue: str, rows: list[tuple[str, str]]) -> None:
        """Take channels of this process out of groups."""
        self.write(store.REMOVE, (queue, json.dumps(rows)))
        self.memberships.drop(queue, rows)

    def flush(self) -> None:
        """Delete all messages and groups."""
        database = self._database
        assert database is not None
        with database.write() as writer:
            store.flush(writer, database._row_announcement(store.TOPIC_PREFIX))
        self.memberships.clear()

    # Who is heard.

    def hear_no_longer(self, queue: str) -> None:
        """Close what hears of a queue."""
        hearing = self._hearings.pop(queue, None)
        if hearing is not None:
            self._listen_no_longer(hearing)
            hearing.close()

    def stop_listening(self, queue: str) -> None:
        """Do not wake for news of a queue for now."""
        hearing = self._hearings.get(queue)
        if hearing is not None:
            self._listen_no_longer(hearing)

    def _listen_no_longer(self, hearing: Hearing) -> None:
        descriptor = hearing.fileno()
        if self._listening.pop(descriptor, None) is not None:
            self.poll.unregister(descriptor)

    def queues_of(self, descriptors: list[int]) -> set[str]:
        """Of which queues there is news."""
        return {self._listening[each] for each in descriptors if each in self._listening}

    def _is_news(self, mailbox: Mailbox) -> Hearing | None:
        """What hears of the queue, if there is more than was looked at; else it is listened to."""
        hearing = self._hearings.get(mailbox.queue)
        if hearing is None:
            assert self._database is not None
            topics = [store.TOPIC_PREFIX + mailbox.queue]
            if isinstance(mailbox, OwnMailbox):
                topics.append(store.TOPIC_PREFIX)
            hearing = self._database._hear(topics)
            self._hearings[mailbox.queue] = hearing
            mailbox.signal = None
        if mailbox.signal is None or hearing.has_newer(mailbox.signal):
            return hearing
        descriptor = hearing.fileno()
        if descriptor not in self._listening:
            self._listening[descriptor] = mailbox.queue
            self.poll.register(descriptor, select.POLLIN)
        return None

    # Mailboxes.

    def attend(self, mailbox: Mailbox) -> None:
        """Do what is due for one.

        Raises:
            oxlite.sqlite3.Error: The file cannot be used for now.
        """
        mailbox.is_told = False
        if mailbox.has_gone:
            with self._lock:
                woken = mailbox.remove_gone()
            wake(woken)
        if isinstance(mailbox, OwnMailbox):
            self._attend_own(mailbox)
        elif isinstance(mailbox, SharedMailbox):
            self._attend_shared(mailbox)

    def due_at(self, mailbox: Mailbox) -> float | None:
        """When something is to be done without being told, as ``time.monotonic`` counts."""
        if isinstance(mailbox, OwnMailbox):
            sweep_at = None if mailbox.is_quiet else mailbox.sweep_at
            return min((at for at in (mailbox.delete_at, sweep_at) if at is not None), default=None)
        if isinstance(mailbox, SharedMailbox) and mailbox.held_since is not None:
            return mailbox.held_since + _HELD_AT_MOST_SECONDS
        return None

    def _attend_own(self, mailbox: OwnMailbox) -> None:
        while hearing := self._is_news(mailbox):
            # Before looking: what is committed from here on is signalled with a greater number.
            signal = hearing.seen()
            mailbox.signal = signal if self._read(mailbox) else None
        now = time.monotonic()
        if mailbox.delete_at is not None and mailbox.delete_at <= now:
            self.delete_given(mailbox)
        if mailbox.sweep_at is not None and mailbox.sweep_at <= now:
            self._sweep(mailbox, now)

    def _read(self, mailbox: OwnMailbox) -> bool:
        """Read what is new in a queue of this process; whether that was all."""
        at_most = self._at_a_time
        parameters = (mailbox.queue, mailbox.read, at_most, mailbox.deleted)
        rows = self.query(store.READ, parameters)
        if not rows:
            for statement in store.BEGIN_EPOCH:  # somebody has deleted it
                self.write(statement, ())
            return False
        key, flushes, is_registered, is_restarted = rows[0][:4]
        epoch = mailbox.epoch
        if epoch is not None and (epoch[0] != key or is_restarted):
            self._restart(mailbox, (key, flushes))
            return False
        if epoch is None or epoch[1] != flushes:
            self.memberships.forget(flushes)
            with self._lock:
                mailbox.forget()
        mailbox.epoch = (key, flushes)
        found = [row[4:] for row in rows if row[4] is not None]
        if found:
            self._deliver(mailbox, found)
        if not is_registered:
            self._register(mailbox)
        return len(found) < at_most

    def _deliver(self, mailbox: OwnMailbox, rows: list[Any]) -> None:
        messages, wrong = read_rows(mailbox.queue, rows)
        channels = sum(len(names) for _, names in messages)
        fitting = _READ_CHANNELS * len(rows) // max(1, channels)
        self._at_a_time = max(1, min(fitting, 2 * self._at_a_time, _AT_A_TIME))
        dropped = list(wrong)
        for some in _slices(messages):
            with self._lock:
                now = time.monotonic()
                woken, overflowing, known = mailbox.deliver(some, now)
                if mailbox.is_due_for_deletion or woken:
                    mailbox.plan_deletion(now)
            wake(woken)
            self._say_overflow(mailbox, overflowing)
            dropped += known
        mailbox.read = max(row[0] for row in rows)
        _say_wrong(mailbox.queue, wrong)
        if dropped:
            self._do_later(partial(self._delete_rows, mailbox.queue, dropped, mailbox.epoch_key))

    def _delete_rows(self, queue: str, numbers: list[int], epoch_key: bytes) -> None:
        """Delete messages, if they are of that epoch still."""
        self.write(store.DELETE_ROWS, (queue, json.dumps(numbers), epoch_key))

    def _say_overflow(self, mailbox: OwnMailbox, channels: list[str]) -> None:
        now = time.monotonic()
        if channels and now - self._said_overflow >= _SAYS_OVERFLOW_EVERY_SECONDS:
            self._said_overflow = now
            others = f" and {len(channels) - 1} others" if channels[1:] else ""
            _log.warning(
                "%s%s: reads more slowly than it is sent to, and its oldest messages are dropped,"
                " of more than %d that wait. Others are not named for %d s",
                channels[0],
                others,
                mailbox.capacity,
                _SAYS_OVERFLOW_EVERY_SECONDS,
            )

    def _restart(self, mailbox: OwnMailbox, epoch: tuple[bytes, int]) -> None:
        """Numbers have begun again: read from the first one on, and be in the groups again."""
        for statement in store.RESTART:
            self.write(statement, (mailbox.queue,))
        self._register(mailbox)
        with self._lock:
            mailbox.begin_anew()
            mailbox.epoch = epoch
        if self._epoch_said != epoch[0] and not self._is_new_file:
            _log.warning(
                "the messages in %s count from the beginning again: the file was restored, or its"
                " tables were dropped",
                self._file.path,
            )
        self._epoch_said, self._is_new_file = epoch[0], False

    def _register(self, mailbox: OwnMailbox) -> None:
        """Say that the process lives; if it was taken for dead, be in its groups again."""
        if rows := self.memberships.of(mailbox.queue):
            self.join(mailbox.queue, rows)
        self.write(store.REGISTER, (mailbox.queue,))

    def delete_given(self, mailbox: OwnMailbox) -> None:
        """Delete what was given."""
        with self._lock:
            deleted, given, key = mailbox.deleted, mailbox.given, mailbox.epoch_key
            if not mailbox.is_due_for_deletion:
                mailbox.delete_at = None
                return
        self.write(store.DELETE_GIVEN, (mailbox.queue, deleted, given, key))
        with self._lock:
            mailbox.note_deleted(given)
            mailbox.delete_at = None
            if mailbox.is_due_for_deletion:  # more was given meanwhile
                mailbox.plan_deletion(time.monotonic())

    def _sweep(self, mailbox: OwnMailbox, now: float) -> None:
        """Delete what has expired."""
        with self._lock:
            expired = mailbox.expired(now)
        if expired:
            self._delete_rows(mailbox.queue, expired, mailbox.epoch_key)
            # Where the clock has gone forward, others may have taken this process for dead.
            mailbox.signal, mailbox.is_told = None, True
        with self._lock:
            mailbox.note_rows_deleted(expired)
            mailbox.sweep(now)

    def _attend_shared(self, mailbox: SharedMailbox) -> None:
        now = time.monotonic()
        with self._lock:
            unwanted = mailbox.unwanted(now, _HELD_AT_MOST_SECONDS)
        self.put_back(mailbox, unwanted)
        while True:
            with self._lock:
                at_most = min(_AT_A_TIME, mailbox.wanted)
            if not at_most:
                self.stop_listening(mailbox.queue)
                return
            hearing = self._is_news(mailbox)
            if hearing is None:
                return
            signal = hearing.seen()
            rows = self.write(store.TAKE, (mailbox.queue, at_most))
            mailbox.signal = signal if len(rows) < at_most else None
            messages, wrong = read_rows(mailbox.queue, rows)
            with self._lock:
                woken = mailbox.deliver([message for message, _ in messages], time.monotonic())
            wake(woken)
            _say_wrong(mailbox.queue, wrong)

    def put_back(self, mailbox: SharedMailbox, messages: list[Message]) -> None:
        """Give back what nobody here has got."""
        while messages:
            message = messages[-1]
            parameters = (
                message.number,
                mailbox.queue,
                message.content,
                message.is_text,
                message.sent_at,
                message.expires_at,
            )
            try:
                if not self.write(store.PUT_BACK, parameters, True):
                    # That number was given anew, in tables that were made anew.
                    self.write(store.PUT_BACK, (None, *parameters[1:]), True)
            except BaseException:
                with self._lock:
                    woken = mailbox.restore(messages, time.monotonic())
                wake(woken)
                raise
            messages.pop()


def _slices(
    messages: list[tuple[Message, list[str]]],
) -> Iterator[list[tuple[Message, list[str]]]]:
    """The messages, in order: a slice ends as soon as it is for a thousand channels."""
    some: list[tuple[Message, list[str]]] = []
    channels = 0
    for each in messages:
        some.append(each)
        channels += len(each[1])
        if channels >= _CHANNELS_AT_A_TIME:
            yield some
            some, channels = [], 0
    if some:
        yield some


def _say_wrong(queue: str, wrong: dict[int, str]) -> None:
    for number, why in wrong.items():
        _log.warning("message %d in the queue %r is dropped: %s", number, queue, why)


def wake(receivers: list[Receiver]) -> None:
    """Wake those, in their loops."""
    futures: dict[Any, list[Future[None]]] = {}
    for receiver in receivers:
        futures.setdefault(receiver.loop, []).append(receiver.future)
    for loop, some in futures.items():
        try:
            loop.call_soon_threadsafe(_resolve, some)
        except RuntimeError:  # it is closed
            for receiver in receivers:
                if receiver.loop is loop:
                    receiver.note_gone()


def _resolve(futures: list["Future[None]"]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
