"""Whether each listener has heard every message once, in order."""

from collections.abc import Sequence
from typing import NamedTuple

from oxlite.bench.errors import VerificationError


class Account(NamedTuple):
    """What went wrong with messages.

    Attributes:
        lost: those that one has not heard.
        doubled: those that it has heard again.
        disordered: those that came after one that was published later.
    """

    lost: int
    doubled: int
    disordered: int

    def plus(self, other: "Account") -> "Account":
        """Both together."""
        return Account(*(mine + its for mine, its in zip(self, other, strict=True)))

    def errors(self) -> dict[str, int]:
        """What there is of each, in words."""
        words = ("lost", "doubled", "out of order")
        return {word: count for word, count in zip(words, self, strict=True) if count}


def account(numbers: Sequence[int], count: int) -> Account:
    """Account for what one listener has heard.

    Args:
        numbers: of the messages, in the order in which they came.
        count: how many were published.

    Raises:
        VerificationError: it has heard what nobody has published.
    """
    highest, seen, disordered = -1, set[int](), 0
    for number in numbers:
        if not 0 <= number < count:
            raise VerificationError(f"a listener heard message {number}, of {count} published")
        disordered += number < highest and number not in seen
        seen.add(number)
        highest = max(highest, number)
    return Account(count - len(seen), len(numbers) - len(seen), disordered)
