"""What has come for a queue in this process, and who waits for it: in memory.

Who receives pulls: a message stays here until the receiver that was woken takes it, as the last
thing that it does. So one that is cancelled, or whose event loop is gone, has taken nothing.

Invariants:
- Everything is called with the courier's lock held, and calls nobody: which receivers are to be
  woken is returned.
- For each message one receiver is woken in each event loop in which any wait for its channel: one
  loop that stands still does not swallow it.
- Messages of a channel are taken in the order in which they came. Of a channel of this process no
  more than its capacity are kept; the oldest goes first.
"""

import math
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Iterable
from typing import Final

__all__ = ["Mailbox", "Message", "OwnMailbox", "Receiver", "SharedMailbox"]

_DELETE_AFTER_SECONDS: Final = 0.02
"""How long what was given may wait to be deleted together with what follows."""

_DELETED_TOGETHER: Final = 256
"""When so many are in the file, half of them are enough for not waiting."""


class Message:
    """A message as it was read.

    Attributes:
        number: its number in the table.
        content: it, encoded.
        is_text: whether it was stored as text, and not as bytes; None if as neither.
        sent_at: when it was sent, in seconds since 1970.
        expires_at: when it expires, likewise.
        expires: when it expires, as ``time.monotonic`` counts, in seconds.
        is_refused: whether the log has said that it is no message.
    """

    __slots__ = (
        "content", "expires", "expires_at", "is_refused", "is_text", "number", "sent_at",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        content: bytes,
        is_text: bool | None,
        sent_at: float,
        expires_at: float,
        expires: float,
    ) -> None:
        self.number = number
        self.content = content
        self.is_text = is_text
        self.sent_at = sent_at
        self.expires_at = expires_at
        self.expires = expires
        self.is_refused = False


class Receiver:
    """One who waits.

    Attributes:
        mailbox: for what comes there.
        channel: for messages of that channel, or of all if it ends at ``!``.
        loop: in which event loop.
        future: done when he is woken.
        is_woken: whether he has been woken, and not come yet.
        is_absent: whether he was woken and did not come for long: his loop stands still.
        is_gone: whether his coroutine was destroyed, which nobody else hears of.
    """

    __slots__ = ("channel", "future", "is_absent", "is_gone", "is_woken", "loop", "mailbox")

    def __init__(self, mailbox: "Mailbox", channel: str, loop: AbstractEventLoop) -> None:
        self.mailbox = mailbox
        self.channel = channel
        self.loop = loop
        self.future: Future[None] = loop.create_future()
        self.is_woken = self.is_absent = self.is_gone = False

    def note_gone(self) -> None:
        """He will never come. Takes no lock: the garbage collector may say so anywhere."""
        self.is_gone = self.mailbox.has_gone = True


class Mailbox:
    """What both kinds have: who waits for which channel.

    Attributes:
        queue: Whose messages it has.
        retry_at: When the file is tried again after it has failed, as ``time.monotonic`` counts.
        is_told: Whether a receiver has said that there may be something to do.
        has_gone: Whether one who waits is known to be gone.
        signal: The number of the latest signal before the last look; None if there may be more than
            was read.
    """

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.retry_at = 0.0
        self.is_told = True
        self.has_gone = False
        self.signal: int | None = None
        # Each channel's receivers in the order in which they came.
        self._waiting: dict[str, dict[Receiver, None]] = {}

    def take(self, channel: str, now: float) -> Message | None:
        """The next message of a channel, which nobody else is given."""
        raise NotImplementedError

    def available(self, channel: str) -> int:
        """How many messages there are for who waits for that channel."""
        raise NotImplementedError

    def add(self, receiver: Receiver) -> None:
        """Have one wait."""
        self._waiting.setdefault(receiver.channel, {})[receiver] = None

    def remove(self, receiver: Receiver) -> None:
        """He waits no more."""
        waiting = self._waiting.get(receiver.channel)
        if waiting is not None and receiver in waiting:
            del waiting[receiver]
            if not waiting:
                del self._waiting[receiver.channel]

    def forget(self) -> None:
        """Drop all that is here: the queues were flushed."""
        raise NotImplementedError

    def receivers(self) -> list[Receiver]:
        """All who wait."""
        return [each for waiting in list(self._waiting.values()) for each in list(waiting)]

    def remove_gone(self) -> list[Receiver]:
        """Forget those who will never come; who is to be woken in their place."""
        self.has_gone = False
        woken: list[Receiver] = []
        for receiver in self.receivers():
            if receiver.is_gone or receiver.loop.is_closed():
                self.remove(receiver)
                if receiver.is_woken:
                    woken += self.to_wake([receiver.channel])
        return woken

    def to_wake(self, channels: Iterable[str]) -> list[Receiver]:
        """Who is to be woken for what there is in channels: in each loop as many as there are."""
        woken: list[Receiver] = []
        for channel in channels:
            waiting = self._waiting.get(channel)
            if not waiting:
                continue
            available = self.available(channel)
            counts: dict[AbstractEventLoop, int] = {}
            for receiver in list(waiting):
                count = counts.get(receiver.loop, 0)
                if count >= available:
                    continue
                counts[receiver.loop] = count + 1
                if not receiver.is_woken:
                    receiver.is_woken = True
                    woken.append(receiver)
        return woken


class SharedMailbox(Mailbox):
    """Of a channel that other processes receive as well.

    Attributes:
        held_since: Since when it has messages, as ``time.monotonic`` counts; None if it has none.
    """

    def __init__(self, queue: str) -> None:
        super().__init__(queue)
        self._messages: deque[Message] = deque()
        self.held_since: float | None = None

    def take(self, channel: str, now: float) -> Message | None:
        """The next message."""
        while self._messages:
            message = self._messages.popleft()
            if not self._messages:
                self.held_since = None
            if message.expires > now:
                return message
        return None

    def available(self, channel: str) -> int:
        """How many messages there are."""
        return len(self._messages)

    @property
    def wanted(self) -> int:
        """How many messages may be taken from the file: one for each who waits and has none."""
        present = sum(not each.is_absent for each in self.receivers())
        return max(0, present - len(self._messages))

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits and there is nothing."""
        return not self._waiting and not self._messages

    def deliver(self, messages: list[Message], now: float) -> list[Receiver]:
        """Put in what was taken from the file; who is to be woken."""
        if not messages:
            return []
        self._messages.extend(messages)
        if self.held_since is None:
            self.held_since = now
        return self.to_wake([self.queue])

    def unwanted(self, now: float, held_at_most_seconds: float) -> list[Message]:
        """Give up what is to be put back, the latest first: what nobody waits for, or comes for."""
        if not self._messages:
            return []
        keep = len(self.receivers())
        if self.held_since is not None and now - self.held_since >= held_at_most_seconds:
            for receiver in self.receivers():
                receiver.is_absent = receiver.is_woken
                self.has_gone |= receiver.loop.is_closed()
            keep = 0
        given_up: list[Message] = []
        while len(self._messages) > keep:
            given_up.append(self._messages.pop())
        if not self._messages:
            self.held_since = None
        return given_up

    def all(self) -> list[Message]:
        """Give up all, the latest first."""
        given_up = list(reversed(self._messages))
        self.forget()
        return given_up

    def restore(self, messages: list[Message], now: float) -> list[Receiver]:
        """Have back what was given up, the latest first; who is to be woken."""
        for message in messages:
            self._messages.appendleft(message)
        self.held_since = now
        return self.to_wake([self.queue])

    def forget(self) -> None:
        """Drop all: the queues were flushed."""
        self._messages.clear()
        self.held_since = None


class OwnMailbox(Mailbox):
    """Of the channels of this process, of which it keeps what nobody has taken yet.

    A message *is given* when it, or one that came later, was taken; or when somebody waits for
    another channel. From then on it counts nowhere but here.

    Attributes:
        capacity: How many messages are kept for a channel, and may wait in the file.
        epoch: That of the numbers below, and how often all had been deleted.
        read: The number that was read last.
        given: The number of the latest that was given.
        deleted: All up to this number were deleted.
        delete_at: When what was given is to be deleted, as ``time.monotonic`` counts.
        sweep_at: When something expires that is here, or that is in the file.
    """

    def __init__(self, queue: str, capacity: int) -> None:
        super().__init__(queue)
        self.capacity = capacity
        self._kept: dict[str, deque[Message]] = {}
        self._overflowing: set[str] = set()
        # In the order in which they came, for who takes those of all channels. Some were taken.
        self._in_order: deque[tuple[str, Message]] | None = None
        # What was read and is in the file still, by number.
        self._undeleted: dict[int, Message] = {}
        # What was there when numbers began again: it is not given a second time.
        self._known: set[tuple[int, float]] = set()
        self.epoch: tuple[bytes, int] | None = None
        self.read = self.given = self.deleted = 0
        self.delete_at: float | None = None
        self.sweep_at: float | None = None

    @property
    def epoch_key(self) -> bytes:
        """Of which epoch the numbers are; empty before anything was read."""
        return b"" if self.epoch is None else self.epoch[0]

    def take(self, channel: str, now: float) -> Message | None:
        """The next message of a channel, or of all if it ends at ``!``."""
        is_of_all = channel == self.queue
        message = self._take_any(now) if is_of_all else self._take_of(channel, now)
        if message is not None and message.number > self.given:
            self._give(message.number)
        return message

    def _take_of(self, channel: str, now: float) -> Message | None:
        kept = self._kept.get(channel)
        while kept:
            message = kept.popleft()
            if not kept:
                del self._kept[channel]
                self._overflowing.discard(channel)
            if message.expires > now:
                return message
        return None

    def _take_any(self, now: float) -> Message | None:
        if self._in_order is None:
            all_kept = [(name, each) for name, kept in self._kept.items() for each in kept]
            all_kept.sort(key=lambda entry: entry[1].number)
            self._in_order = deque(all_kept)
        while self._in_order:
            channel, message = self._in_order.popleft()
            kept = self._kept.get(channel)
            # What is not the first of its channel was taken from there.
            if kept and kept[0] is message and (taken := self._take_of(channel, now)):
                return taken
        self._in_order = None
        return None

    def available(self, channel: str) -> int:
        """How many messages there are for who waits for that channel."""
        if channel == self.queue:
            return sum(map(len, self._kept.values()))
        return len(self._kept.get(channel, ()))

    def _give(self, number: int) -> None:
        self.given = number

    @property
    def is_due_for_deletion(self) -> bool:
        """Whether something that was given is in the file still."""
        return self.given > self.deleted and bool(self._undeleted)

    def plan_deletion(self, now: float) -> bool:
        """Have what was given deleted, soon; whether that is earlier than was planned.

        At once if what is in the file could make a sender elsewhere refuse.
        """
        is_urgent = 2 * len(self._undeleted) >= min(self.capacity, _DELETED_TOGETHER)
        due = now if is_urgent else now + _DELETE_AFTER_SECONDS
        if self.delete_at is not None and self.delete_at <= due:
            return False
        self.delete_at = due
        return True

    def pass_by(self) -> bool:
        """One begins to wait: what is here for others is in nobody's way; whether any was."""
        if self.read <= self.given:
            return False
        self._give(self.read)
        return True

    def deliver(
        self, messages: list[tuple[Message, list[str]]], now: float
    ) -> tuple[list[Receiver], list[str], list[int]]:
        """Put in what was read.

        Returns:
            Who is to be woken; which channels begin to lose the oldest; the numbers of what was
            here before, and is to be deleted.
        """
        touched: dict[str, None] = {}
        overflowing: list[str] = []
        known: list[int] = []
        for message, channels in messages:
            self.read = message.number
            if self._known and (message.number, message.sent_at) in self._known:
                known.append(message.number)
                continue
            self._undeleted[message.number] = message
            if message.expires <= now:
                continue
            for channel in channels:
                touched[channel] = None
                self._keep(message, channel, overflowing)
        if self._in_order is not None and len(self._in_order) > 2 * self.available(self.queue) + 64:
            self._in_order = None
        woken = self.to_wake([*touched, self.queue] if touched else [])
        if messages:
            self._pass_by(messages[-1][0].number)
            self._sweep_by(min(message.expires for message, _ in messages), now)
        return woken, overflowing, known

    def _keep(self, message: Message, channel: str, overflowing: list[str]) -> None:
        kept = self._kept.setdefault(channel, deque())
        kept.append(message)
        if self._in_order is not None:
            self._in_order.append((channel, message))
        if len(kept) > self.capacity:
            oldest = kept.popleft()
            if oldest.number > self.given:
                self._give(oldest.number)
            if channel not in self._overflowing:
                self._overflowing.add(channel)
                overflowing.append(channel)

    def _pass_by(self, number: int) -> None:
        """Who waits for one channel is not kept waiting by what is for others."""
        if number <= self.given:
            return
        if any(not each.is_woken for waiting in self._waiting.values() for each in waiting):
            self._give(number)

    def _sweep_by(self, expires: float, now: float) -> None:
        # Not at each of many instants that are close together, but well before the message has
        # waited for twice its expiry.
        at = max(expires, now + min(1.0, max(0.05, (expires - now) / 4)))
        if math.isfinite(at):
            self.sweep_at = at if self.sweep_at is None else min(self.sweep_at, at)

    def note_deleted(self, number: int) -> None:
        """All up to that number are deleted."""
        self.deleted = number
        for each in list(self._undeleted):
            if each > number:
                break
            del self._undeleted[each]

    def note_rows_deleted(self, numbers: list[int]) -> None:
        """These are deleted."""
        for number in numbers:
            self._undeleted.pop(number, None)

    def expired(self, now: float) -> list[int]:
        """The numbers of what has expired and is in the file still."""
        return [number for number, each in self._undeleted.items() if each.expires <= now]

    def sweep(self, now: float) -> None:
        """Forget what has expired."""
        earliest = min((each.expires for each in self._undeleted.values()), default=math.inf)
        for channel, kept in list(self._kept.items()):
            while kept and kept[0].expires <= now:
                kept.popleft()
            if kept:
                earliest = min(earliest, kept[0].expires)
            else:
                del self._kept[channel]
                self._overflowing.discard(channel)
        self.sweep_at = None
        if math.isfinite(earliest):
            self._sweep_by(earliest, now)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is kept that could expire, here or in the file."""
        return not (self._kept or self._undeleted)

    def begin_anew(self) -> None:
        """Numbers have begun again: what is in the file was not read yet. What is here stays."""
        self.read = self.given = self.deleted = 0
        self._known = {(each.number, each.sent_at) for each in self._undeleted.values()}
        self._undeleted.clear()
        for kept in self._kept.values():
            for message in kept:
                message.number = 0  # it says nothing about the others any more

    def forget(self) -> None:
        """Drop all: the queues were flushed."""
        self._kept.clear()
        self._overflowing.clear()
        self._undeleted.clear()
        self._in_order = None
