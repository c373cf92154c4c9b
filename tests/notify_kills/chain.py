"""What a listener has been given in all of its lives, compared with what was committed.

A life appends a line to its log for each thing that it is told, before it asks for the next.
Whoever is killed in between has not logged it, and his successor is given it once more.

Invariants of a log:

- a life that goes on after a position is given what matches its channels from there, each once, in
  the order of the commits;
- one that begins without a position is given all that is committed after ``listen`` has returned;
- what is lost is said, and only where it is not kept any more.
"""

from collections.abc import Iterable

from tests.kill_campaigns import WrongError
from tests.notify_kills.history import CHANNELS, History, Row

KEPT = 100_000
"""So many notifications are kept."""

SINCE, FRESH, NOTE, LOST = "S", "F", "N", "L"


def matches(pattern: str, channel: str) -> bool:
    """Whether a pattern means a channel."""
    return channel.startswith(pattern[:-1]) if pattern.endswith("*") else channel == pattern


class Chain:
    """The lives of one listener.

    Attributes:
        patterns: What it listens to.
        position: From where its next life goes on.
        delivered: How many notifications it was given.
        losses: How often it was told that it had lost some, and each time had.
    """

    def __init__(self, patterns: tuple[str, ...], position: str) -> None:
        self.patterns = patterns
        self.position = position
        self.delivered = 0
        self.losses = 0
        self._epoch, number = position.split("-")
        self.number = int(number)
        # All up to this one have been seen to be none of its own, or were given.
        self._passed = self.number
        self._wanted = {c for c in CHANNELS if any(matches(p, c) for p in patterns)}
        self._fresh: tuple[int, int] | None = None

    def follow(self, lines: Iterable[str], history: History) -> None:
        """Take what a life has logged; the history was read afterwards.

        Raises:
            WrongError: It was not given what it should have been.
        """
        for line in lines:
            kind, _, rest = line.partition(" ")
            if kind == NOTE:
                self._take(rest, history)
            elif kind == LOST:
                self._lose(rest, history)
            elif kind == FRESH:
                before, after = map(int, rest.split())
                self._fresh = (before, after)
            elif kind == SINCE:
                self._fresh = None
                if rest != self.position:
                    raise WrongError(f"a life goes on from {rest}, not {self.position}")
            else:
                raise WrongError(f"{self.patterns}: a log says {line!r}")

    def _number(self, position: str) -> int:
        epoch, _, number = position.partition("-")
        if epoch != self._epoch:
            raise WrongError(f"{position} is of another epoch than {self.position}")
        return int(number)

    def _take(self, rest: str, history: History) -> None:
        position, channel, payload = rest.split(" ", 2)
        number = self._number(position)
        if self._fresh is not None:
            before, after = self._fresh
            if number <= before:
                raise WrongError(f"{self.patterns}: {rest} was there before it listened")
            # What is committed before listen() has returned may be given or not, but for the last.
            self._passed = min(number - 1, after)
            self._fresh = None
        if number <= self._passed:
            raise WrongError(
                f"{self.patterns}: doubled or out of order, after {self.position}: {rest}"
            )
        found = self._next(history)
        if found != (number, channel, payload):
            raise WrongError(
                f"{self.patterns}: after {self.position} follows {found}, given: {rest}"
            )
        self._passed = self.number = number
        self.position = position
        self.delivered += 1

    def _lose(self, position: str, history: History) -> None:
        number = self._number(position)
        if self._fresh is not None or number <= self.number:
            raise WrongError(f"{self.patterns}: has lost nothing up to {position}")
        if number > history.latest - KEPT:
            raise WrongError(f"{self.patterns}: told {position} of {history.latest}: all is kept")
        self._passed = self.number = number
        self.position = position
        self.losses += 1

    def _next(self, history: History) -> Row | None:
        for row in history.after(self._passed):
            if row.channel in self._wanted:
                return row
            self._passed = row.number
        return None

    def missing(self, history: History) -> Row | None:
        """The next one that it has not been given."""
        if self._fresh is not None:
            after = self._fresh[1]
            rows = history.after(min(after, history.latest))
            return next((row for row in rows if row.channel in self._wanted), None)
        return self._next(history)

    def stay(self) -> None:
        """Its life has ended: the next one goes on from its position, whatever was begun."""
        self._fresh = None
        self._passed = max(self._passed, self.number)

    @property
    def needed(self) -> int:
        """All up to this one of the history it needs no more."""
        return self.number
