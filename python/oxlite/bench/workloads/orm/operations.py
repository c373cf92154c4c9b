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


def once(_: Scale) -> int:
    """What is done once, whatever the scale."""
    return 1


def n_times(scale: Scale) -> int:
    """What is usually repeated n times."""
    return scale.times(scale.n)


def repeated(usual: int) -> Callable[[Scale], int]:
    """What is usually repeated ``usual`` times."""
    return lambda scale: scale.times(usual)


@dataclass(frozen=True)
class Operation:
    """Something done with a mapper.

    Attributes:
        name: the published name.
        rows: how many rows a pass goes through.
        start: what is made before, untimed: a method of the mapper that is given their number.
        given: the attribute of what was made whose values the operation is given; those of
            which nothing is made are given numbers.
        each: how many objects it concerns for each row.
        passes: how often it goes through them.
        threads: how many threads of its own it has; one that has some has no form in one
            transaction.
        read_by_nobody: whether it is one whose queries the published benchmark did not read.
    """

    name: str
    rows: Callable[[Scale], int]
    start: str = ""
    given: str = ""
    each: int = 1
    passes: Callable[[Scale], int] = once
    threads: Callable[[Scale], int] | None = None
    read_by_nobody: bool = False

    def count(self, scale: Scale) -> int:
        """How many objects it concerns."""
        return self.each * self.rows(scale) * self.passes(scale)


def _eager(
    name: str, rows: Callable[[Scale], int], start: str, usual: int, each: int = 1
) -> Operation:
    passes = repeated(usual)
    return Operation(
        f"eager_loading_{name}_records", rows, start, each=each, passes=passes, read_by_nobody=True
    )


OPERATIONS = (
    Operation("model_object_creation", lambda s: 50 * s.n),
    Operation(
        "model_object_select", lambda s: 100 * s.n, "parties", passes=n_times, read_by_nobody=True
    ),
    Operation("model_object_select_by_pk", lambda s: 10 * s.n, "parties", "id", passes=n_times),
    Operation(
        "model_object_select_by_attr", lambda s: 10 * s.n, "parties", "theme", passes=n_times
    ),
    Operation("model_object_select_and_save", lambda s: 50 * s.n, "parties"),
    Operation("model_object_destruction", lambda s: 100 * s.n, "parties"),
    Operation("model_object_and_associated_object_creation", lambda s: 20 * s.n, each=2),
    Operation(
        "model_object_and_associated_object_destruction", lambda s: 25 * s.n, "pairs", each=2
    ),
    _eager("query_per_association_with_1_to_1", lambda s: 20 * s.n, "pairs", 22),
    _eager("single_query_with_1_to_1", lambda s: 20 * s.n, "pairs", 22),
    _eager("query_per_association_with_1_to_n", lambda s: s.n * s.n, "crowds", 22),
    _eager("single_query_with_1_to_n", lambda s: s.n * s.n, "crowds", 22),
    _eager("query_per_association_with_1_to_n_to_n", lambda s: s.n * s.n, "double_crowds", 9, 2),
    _eager("single_query_with_1_to_n_to_n", lambda s: s.n * s.n, "double_crowds", 1, 2),
    Operation("lazy_loading_with_1_to_1_records", lambda s: 20 * s.n, "pairs"),
    Operation(
        "lazy_loading_with_1_to_n_records", lambda s: s.n * s.n, "crowds", passes=repeated(16)
    ),
    Operation(
        "light_threading",
        lambda s: s.n * s.light_threads,
        each=4,
        threads=lambda s: s.light_threads,
    ),
    Operation("heavy_threading", lambda s: s.n * s.n, each=4, threads=lambda s: s.n),
    *(
        Operation(
            f"model_object_{verb}", lambda s: 10 * s.n, "documents", given="id", passes=n_times
        )
        for verb in ("select_json_nested", "update_json_nested", "update_json")
    ),
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
        return self.operation.threads is None

    @property
    def metric(self) -> str:
        """The name of its figure."""
        return f"{self.operation.name}{'_in_transaction' if self.in_transaction else ''}_ms"


TIMED = tuple(
    Timed(operation, in_transaction)
    for operation in OPERATIONS
    for in_transaction in ((False, True) if operation.threads is None else (False,))
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
