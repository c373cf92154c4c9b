"""What was committed, read from the table while it is still kept, and judged.

A writer's transactions have numbers, 1, 2, 3, …, and the payload of a notification says whose it
is, in which transaction, and which of how many there.

Invariants of the table, at whatever moment somebody was killed:

- the numbers of notifications grow by one;
- of each writer there are its transactions in their order: all that were acknowledged, and at most
  one more;
- each transaction is there as a whole, with nobody else's in between;
- nothing is there of what was rolled back.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tests.kill_campaigns import WrongError

NEVER = "never"
"""The payload of what is rolled back."""

CHANNELS = ("a", "b.1", "b.2", "b.10", "c", "c.x", "d")


class Row(NamedTuple):
    """A notification: its number, its channel and its payload."""

    number: int
    channel: str
    payload: str


def payload(writer: int, transaction: int, place: int, size: int, filler: str = "") -> str:
    """What says whose notification it is, in which transaction, and which of how many."""
    return f"{writer}.{transaction}.{place}.{size}.{filler}"


class History:
    """The notifications of a database, in their order.

    Attributes:
        latest: The number of the latest one.
        counts: How many transactions each writer has in it.
        singles: How many of them were alone in their transaction.
    """

    def __init__(self, begins: int = 0) -> None:
        self.latest = begins
        self.counts: dict[int, int] = {}
        self._rows: list[Row] = []
        self._forgotten = begins
        self._open: tuple[int, int, int, int] | None = None

    def add(self, rows: Iterable[Row]) -> None:
        """Take what has been committed since.

        Raises:
            WrongError: It is not what those who wrote it have committed.
        """
        for row in rows:
            if row.number != self.latest + 1:
                raise WrongError(f"after notification {self.latest} comes {row}")
            self._judge(row)
            self.latest = row.number
            self._rows.append(row)
        if self._open is not None:
            raise WrongError(f"in part: {self._open} is the last of its transaction")

    def _judge(self, row: Row) -> None:
        if row.payload.startswith(NEVER):
            raise WrongError(f"it was rolled back, and is there: {row}")
        writer, transaction, place, size = map(int, row.payload.split(".")[:4])
        if self._open is not None:
            expected = (writer, transaction, place, size)
            before = self._open
            if expected != (before[0], before[1], before[2] + 1, before[3]):
                raise WrongError(f"in part: {before} is followed by {row}")
        else:
            count = self.counts.get(writer, 0)
            if transaction != count + 1 or place != 1:
                raise WrongError(f"out of order: writer {writer} has {count}, then {row}")
            self.counts[writer] = transaction
        self._open = None if place == size else (writer, transaction, place, size)

    def check(self, writer: int, acknowledged: int) -> None:
        """See that a writer's acknowledged transactions are there, and at most one more.

        Raises:
            WrongError: They are not.
        """
        count = self.counts.get(writer, 0)
        if not acknowledged <= count <= acknowledged + 1:
            raise WrongError(
                f"lost: writer {writer} was told of {acknowledged} transactions, {count} are there"
            )

    def after(self, number: int) -> Iterable[Row]:
        """Those that follow a number.

        Raises:
            WrongError: They have been forgotten.
        """
        if number < self._forgotten:
            raise WrongError(f"the history begins after {self._forgotten}, not {number}")
        for index in range(number - self._forgotten, len(self._rows)):
            yield self._rows[index]

    def forget(self, number: int) -> None:
        """Keep nothing up to that number, which nobody asks for any more."""
        if number > self._forgotten:
            del self._rows[: number - self._forgotten]
            self._forgotten = number
