"""The operations of ``orm``: the names of the published benchmark, and how much each is.

The scale is n, 2 to the power of the level; n = 32 is the published one. Every operation but
the threads' is done twice: each object by itself, and all of it in one transaction. An
operation tells how many objects it has created, read, changed or deleted; that must be the
number here, or it has not done its work.

What differs from the published one: threads all begin together (there each was waited for
before the next was started), rows are made objects and counted (there a query that nobody
reads was never run), and pairs are destroyed too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oxlite.bench.errors import unknown

IN_TRANSACTION = " (txn)"


@dataclass(frozen=True)
class Operation:
    """Something done with a mapper.

    Attributes:
        name: the published name.
        count: how many objects it concerns, for n.
        has_transaction: whether it is also done in one transaction.
    """

    name: str
    count: Callable[[int], int]
    has_transaction: bool = True


OPERATIONS = (
    Operation("model_object_creation", lambda n: 50 * n),
    Operation("model_object_select", lambda n: 100 * n * n),
    Operation("model_object_select_by_pk", lambda n: 10 * n * n),
    Operation("model_object_select_by_attr", lambda n: 10 * n * n),
    Operation("model_object_select_and_save", lambda n: 50 * n),
    Operation("model_object_destruction", lambda n: 100 * n),
    Operation("model_object_and_associated_object_creation", lambda n: 40 * n),
    Operation("model_object_and_associated_object_destruction", lambda n: 50 * n),
    Operation("eager_loading_query_per_association_with_1_to_1_records", lambda n: 22 * 20 * n),
    Operation("eager_loading_single_query_with_1_to_1_records", lambda n: 22 * 20 * n),
    Operation("eager_loading_query_per_association_with_1_to_n_records", lambda n: 22 * n * n),
    Operation("eager_loading_single_query_with_1_to_n_records", lambda n: 22 * n * n),
    Operation("eager_loading_query_per_association_with_1_to_n_to_n_records", lambda n: 18 * n * n),
    Operation("eager_loading_single_query_with_1_to_n_to_n_records", lambda n: 2 * n * n),
    Operation("lazy_loading_with_1_to_1_records", lambda n: 20 * n),
    Operation("lazy_loading_with_1_to_n_records", lambda n: 16 * n * n),
    Operation("light_threading", lambda n: 4 * n * light_threads(n), has_transaction=False),
    Operation("heavy_threading", lambda n: 4 * n * n, has_transaction=False),
    Operation("model_object_select_json_nested", lambda n: 10 * n * n),
    Operation("model_object_update_json_nested", lambda n: 10 * n * n),
    Operation("model_object_update_json", lambda n: 10 * n * n),
)


def light_threads(n: int) -> int:
    """How many threads are few."""
    return round(math.sqrt(n))


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
