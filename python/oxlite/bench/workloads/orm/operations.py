"""The operations of ``orm``: the names of the published benchmark, and how much each is.

The scale is n, 2 to the power of the level; n = 32 is the published one. Every operation but
the threads' is done twice: each object by itself, and all of it in one transaction. An
operation tells how many objects it has created, read, changed or deleted; that must be the
number here, or it has not done its work.

What differs from the published one: threads all begin together (there each was waited for
before the next was started), rows are made objects and counted (there a query that nobody
reads was never run), and pairs are destroyed too. The faithful manner has the first two as they
were; the operations whose queries nobody reads are then degenerate, and marked.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oxlite.bench.errors import unknown

IN_TRANSACTION = " (txn)"


@dataclass(frozen=True)
class Scale:
    """How much is done, and in which manner.

    Attributes:
        n: how large everything is.
        loops: how often an operation does what it repeats; ``None``: as often as it does.
        faithful: threads one after the other, and nobody reads what is loaded eagerly or
            selected whole.
    """

    n: int
    loops: int | None = None
    faithful: bool = False

    def times(self, usual: int) -> int:
        """How often to do what is usually done ``usual`` times."""
        return usual if self.loops is None else self.loops

    @property
    def light_threads(self) -> int:
        """How many threads are few."""
        return round(math.sqrt(self.n))


@dataclass(frozen=True)
class Operation:
    """Something done with a mapper.

    Attributes:
        name: the published name.
        count: how many objects it concerns.
        has_transaction: whether it is also done in one transaction.
        read_by_nobody: whether it is one whose queries the published benchmark did not read.
    """

    name: str
    count: Callable[[Scale], int]
    has_transaction: bool = True
    read_by_nobody: bool = False


OPERATIONS = (
    Operation("model_object_creation", lambda s: 50 * s.n),
    Operation("model_object_select", lambda s: 100 * s.n * s.times(s.n), read_by_nobody=True),
    Operation("model_object_select_by_pk", lambda s: 10 * s.n * s.times(s.n)),
    Operation("model_object_select_by_attr", lambda s: 10 * s.n * s.times(s.n)),
    Operation("model_object_select_and_save", lambda s: 50 * s.n),
    Operation("model_object_destruction", lambda s: 100 * s.n),
    Operation("model_object_and_associated_object_creation", lambda s: 40 * s.n),
    Operation("model_object_and_associated_object_destruction", lambda s: 50 * s.n),
    Operation(
        "eager_loading_query_per_association_with_1_to_1_records",
        lambda s: s.times(22) * 20 * s.n,
        read_by_nobody=True,
    ),
    Operation(
        "eager_loading_single_query_with_1_to_1_records",
        lambda s: s.times(22) * 20 * s.n,
        read_by_nobody=True,
    ),
    Operation(
        "eager_loading_query_per_association_with_1_to_n_records",
        lambda s: s.times(22) * s.n * s.n,
        read_by_nobody=True,
    ),
    Operation(
        "eager_loading_single_query_with_1_to_n_records",
        lambda s: s.times(22) * s.n * s.n,
        read_by_nobody=True,
    ),
    Operation(
        "eager_loading_query_per_association_with_1_to_n_to_n_records",
        lambda s: s.times(9) * 2 * s.n * s.n,
        read_by_nobody=True,
    ),
    Operation(
        "eager_loading_single_query_with_1_to_n_to_n_records",
        lambda s: s.times(1) * 2 * s.n * s.n,
        read_by_nobody=True,
    ),
    Operation("lazy_loading_with_1_to_1_records", lambda s: 20 * s.n),
    Operation("lazy_loading_with_1_to_n_records", lambda s: s.times(16) * s.n * s.n),
    Operation("light_threading", lambda s: 4 * s.n * s.light_threads, has_transaction=False),
    Operation("heavy_threading", lambda s: 4 * s.n * s.n, has_transaction=False),
    Operation("model_object_select_json_nested", lambda s: 10 * s.n * s.times(s.n)),
    Operation("model_object_update_json_nested", lambda s: 10 * s.n * s.times(s.n)),
    Operation("model_object_update_json", lambda s: 10 * s.n * s.times(s.n)),
)


@dataclass(frozen=True)
class Timed:
    """An operation, in one transaction or not."""

    operation: Operation
    in_transaction: bool

    @property
    def title(self) -> str:
        """Its name in a report."""
        return self.operation.name + (IN_TRANSACTION if self.in_transaction else "")

    @property
    def is_of_one_thread(self) -> bool:
        """Whether it has no threads of its own; those have no form in one transaction."""
        return self.operation.has_transaction

    @property
    def metric(self) -> str:
        """The name of its figure."""
        return f"{self.operation.name}{'_in_transaction' if self.in_transaction else ''}_ms"


TIMED = tuple(
    Timed(operation, in_transaction)
    for operation in OPERATIONS
    for in_transaction in ((False, True) if operation.has_transaction else (False,))
)


def chosen(parts: Sequence[str]) -> list[Timed]:
    """Those whose title contains one of ``parts``; all, without any.

    Raises:
        UsageError: a part is in no title.
    """
    for part in parts:
        if not any(part in timed.title for timed in TIMED):
            raise unknown("operation", part, [timed.title for timed in TIMED])
    return [timed for timed in TIMED if not parts or any(part in timed.title for part in parts)]
