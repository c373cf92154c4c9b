"""What an operation is: a name, how many of it make a batch, and how it is prepared.

::

    @READING.operation("100 rows", 500)
    def hundred_rows(peer: Peer, count: int) -> Batch:
        ...                          # connections, tables, parameters: not timed
        return Batch(run, expected)  # ``run`` is timed, its result is checked

Invariants: a batch does exactly ``count`` of its operation; its result is known
beforehand and is the same for every driver; a batch leaves its tables as it
found them, so that every batch does the same work.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from oxlite.bench.workloads.driver.peers import Peer

Preparation = Callable[[Peer, int], "Batch"]


def unchanged(value: object) -> object:
    """The result of a body that returns it as it is."""
    return value


@dataclass(frozen=True)
class Batch:
    """A prepared operation; every function may be called again and again, in this order.

    Attributes:
        run: the timed body.
        expected: what the result must be.
        before: done before each body, not timed.
        result: makes the result of what the body returned and undoes its effects, not timed.
    """

    run: Callable[[], Any]
    expected: object
    before: Callable[[], object] | None = None
    result: Callable[[Any], object] = unchanged


@dataclass(frozen=True)
class Operation:
    """One row of the report.

    Attributes:
        name: what one of it is, for readers and for ``--operation``.
        count: how many make a batch that the fastest driver works on for 5 to 10 ms.
        prepare: makes the batch for one driver.
    """

    name: str
    count: int
    prepare: Preparation

    @property
    def metric(self) -> str:
        """The name of its figure."""
        words = "".join(letter if letter.isalnum() else " " for letter in self.name.lower())
        return f"{'_'.join(words.split())}_us"

    def scaled(self, scale: float) -> int:
        """How many make a batch of a run on that scale."""
        return max(1, round(self.count * scale))


class Operations:
    """The operations that one module declares, in order."""

    def __init__(self) -> None:
        self._declared: list[Operation] = []

    def operation(self, name: str, count: int) -> Callable[[Preparation], Preparation]:
        """Declare the decorated function to prepare the operation ``name``."""

        def declare(prepare: Preparation) -> Preparation:
            self._declared.append(Operation(name, count, prepare))
            return prepare

        return declare

    def __iter__(self) -> Iterator[Operation]:
        """The operations, as declared."""
        return iter(self._declared)
