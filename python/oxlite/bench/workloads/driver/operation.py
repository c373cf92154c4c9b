"""What an operation is: a name, how many of it make a batch, and how it is prepared.

::

    @READS.operation("100 rows", 500)
    def hundred_rows(peer: Peer, count: int) -> Batch:
        ...                          # connections, tables, parameters: not timed
        return Batch(run, expected)  # ``run`` is timed, its result is checked

Invariants: a batch does exactly ``count`` of its operation; its result is known
beforehand and is the same for every driver; a batch leaves its tables as it
found them, so that every batch does the same work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oxlite.bench.workloads.driver.peers import Peer

Preparation = Callable[[Peer, int], "Batch"]


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
    before: Callable[[], object] = lambda: None
    result: Callable[[Any], object] = lambda value: value


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


class Operations(list[Operation]):
    """The operations of one subject, in order."""

    def operation(self, name: str, count: int) -> Callable[[Preparation], Preparation]:
        """Declare that the function prepares the operation ``name``."""

        def declare(prepare: Preparation) -> Preparation:
            self.append(Operation(name, count, prepare))
            return prepare

        return declare
