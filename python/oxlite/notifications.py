"""NOTIFY and LISTEN: what a transaction notifies is delivered to whoever listens when it commits.

A notification is a row of ``oxlite_notification``, so triggers and other programs notify by INSERT.
Whoever listens is woken by the commit, in whatever process, and polls nothing.

Invariants:
- A notification is delivered after its transaction has committed, in the order of the commits, and
  never if that was rolled back.
- A listener is given each notification of its channels once, or ``NotificationsLost`` is raised.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

from oxlite import sqlite3
from oxlite._native import Announcement, Subscription, prepare_notifications
from oxlite.connection import driver_connection

__all__ = [
    "INSERT",
    "Listener",
    "Notification",
    "Payload",
    "channels_of",
    "encoded",
    "insert",
    "is_missing",
    "joined",
]

INSERT = "INSERT INTO main.oxlite_notification (channel, payload) VALUES (?, ?)"

_PAYLOAD_BYTES_AT_MOST = 1 << 20

Payload = str | bytes | Mapping[str, Any] | Sequence[Any] | int | float | None
"""What can be notified: a text, bytes, nothing, or what JSON can say."""


class Notification(NamedTuple):
    """A notification.

    Attributes:
        channel: In which channel.
        payload: Text, bytes, or None, as it was notified; what else was notified is JSON.
        position: Which one it is, for ``listen(since=…)``: text without spaces, fit for the header
            ``Last-Event-ID``.
    """

    channel: str
    payload: str | bytes | None
    position: str

    def json(self) -> Any:  # noqa: ANN401 - whatever was notified
        """The payload, read as JSON.

        Raises:
            ValueError: It is none.
        """
        import json

        return None if self.payload is None else json.loads(self.payload)


def encoded(payload: Payload) -> str | bytes | None:
    """What is stored of a payload: text, bytes and None as they are, anything else as JSON.

    Raises:
        TypeError: It cannot be JSON.
        ValueError: It is longer than a mebibyte.
    """
    if payload is not None and not isinstance(payload, str | bytes):
        import json

        payload = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    if payload is not None and len(payload) * 4 > _PAYLOAD_BYTES_AT_MOST:
        length = len(payload.encode() if isinstance(payload, str) else payload)
        if length > _PAYLOAD_BYTES_AT_MOST:
            raise ValueError(
                f"a payload has at most {_PAYLOAD_BYTES_AT_MOST} bytes, not {length}: put what is"
                " larger into a table, and its key into the payload"
            )
    return payload


def channels_of(channels: tuple[str, ...]) -> list[str]:
    """The channels to listen to, of which there must be one; the core checks their names."""
    if not channels:
        raise TypeError("listen() takes the names of channels, or patterns such as 'chat.*'")
    for channel in channels:
        if not isinstance(channel, str):
            raise TypeError(f"the name of a channel is text, not {type(channel).__name__}")
    return list(channels)


def is_missing(error: sqlite3.Error) -> bool:
    """Whether an error says that the table of notifications is not there yet."""
    message = str(error)
    return "no such table: " in message and "oxlite_notification" in message


def joined(connection: object) -> sqlite3.Connection:
    """The driver's connection of one whose transaction a notification is to be part of.

    Args:
        connection: One of ``oxlite``'s, a ``Session`` or ``Connection`` of SQLAlchemy's, or the
            alias or connection of a Django database.

    Raises:
        TypeError: It is none of these.
    """
    if isinstance(connection, str):
        from django.db import connections

        connection = connections[connection]
    if callable(ensure := getattr(connection, "ensure_connection", None)):
        ensure()
        connection = cast(Any, connection).connection
    if callable(begin := getattr(connection, "connection", None)):
        connection = begin()  # a Session's
    inner = getattr(connection, "connection", connection)
    found = getattr(inner, "driver_connection", inner)
    try:
        return driver_connection(cast(sqlite3.Connection, found))
    except (AttributeError, TypeError):
        raise TypeError(
            "connection= takes a connection of Oxlite's, a Session or Connection of SQLAlchemy's,"
            f" or the alias of a Django database, not {type(connection).__name__}"
        ) from None


def insert(
    connection: sqlite3.Connection,
    announcement: Announcement,
    channel: str,
    payload: str | bytes | None,
) -> None:
    """Notify as part of the transaction that is open on a connection, or by itself if none is.

    Raises:
        oxlite.sqlite3.ProgrammingError: The connection is to another file.
    """
    announcement.check(connection)
    prepare_notifications(connection)
    connection.execute(INSERT, (channel, payload)).close()
    announcement.follow(connection)


class Listener:
    """Notifications as they come: an iterator. Closed at the end of a ``with`` block.

    Several threads may take from one; each notification is given to one of them.

    >>> for note in db.listen("orders", "chat.*"):
    ...     print(note.channel, note.payload)
    """

    def __init__(self, subscription: Subscription, timeout: float | None, database: object) -> None:
        self._subscription: Subscription | None = subscription
        self._timeout = timeout
        # Kept open while somebody listens.
        self._database: object = database

    def __iter__(self) -> Self:
        """This one."""
        return self

    def __next__(self) -> Notification:
        """Wait for the next one.

        Raises:
            StopIteration: None has come within the timeout, or it is closed.
            oxlite.NotificationsLost: Some are not there any more.
            oxlite.sqlite3.Error: They cannot be read.
        """
        subscription = self._subscription
        taken = None if subscription is None else subscription.take(self._timeout)
        if taken is None:
            raise StopIteration
        return Notification(*taken)

    def close(self) -> None:
        """Listen no longer. The iteration of a thread that waits ends."""
        subscription, self._subscription = self._subscription, None
        self._database = None
        if subscription is not None:
            subscription.close()

    def __enter__(self) -> Self:
        """This one."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()
