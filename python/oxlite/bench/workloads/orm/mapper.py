"""What the lab needs of an object-relational mapper.

A mapper has an operation as the method of its published name (``_model_object_creation``), which
does all passes, and those whose queries nobody reads as a query and what reads it (``reads``).
Everything is made ready here.

Invariant: between two operations the tables are empty, and nothing is remembered of what was
in them.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from oxlite.bench.workloads.orm.operations import Operation, Scale

Work = Callable[[], int]
"""Does an operation: how many objects it concerned."""

Content = tuple[str | int | None, ...]
"""A row of a table without its key, which differs from database to database."""

Read = tuple[Callable[[], Any], Callable[[Any], int]]
"""What makes a query, and what reads it: how many objects."""

Given = Sequence[Any]
"""What an operation is given: see :class:`~oxlite.bench.workloads.orm.operations.Operation`."""

TIMEOUT_SECONDS = 60.0
"""How long a lock is waited for."""

DOCUMENT = {"pumpkin": 1, "candy": 1}
"""What a document holds at first."""


class Mapper(ABC):
    """A mapper, connected to a database.

    Attributes:
        party: its class of parties,
        person: of people,
        document: and of parties that are one document.
        reads: the operations whose queries the published benchmark did not read.
    """

    party: Any
    person: Any
    document: Any
    reads: dict[str, Read]

    def prepare(self, operation: Operation, scale: Scale) -> Work:
        """Make an operation ready, and empty what earlier ones have left."""
        self.empty()
        rows = operation.rows(scale)
        given: Given = range(rows)
        if operation.start:
            with self.transaction():
                made = getattr(self, operation.start)(rows)
                given = [getattr(one, operation.given) for one in made] if operation.given else ()
        self.forget()
        passes = operation.passes(scale)
        if operation.threads is not None:
            live = partial(self.live, scale.n)
            return partial(run_threads, operation.threads(scale), live, one_by_one=scale.faithful)
        if operation.read_by_nobody:
            query, read = self.reads[operation.name]
            return partial(self._read, query, read, passes, read_by_nobody=scale.faithful)
        return partial(getattr(self, f"_{operation.name}"), given, passes)

    def _read(
        self,
        query: Callable[[], Any],
        read: Callable[[Any], int],
        passes: int,
        *,
        read_by_nobody: bool,
    ) -> int:
        count = 0
        for _ in range(passes):
            found = query()
            if not read_by_nobody:
                count += read(found)
                self.forget()
        return count

    def parties(self, count: int) -> list[Any]:
        """Parties without anybody."""
        return self.add(self.party(theme=f"theme {number}") for number in range(count))

    def pairs(self, count: int) -> list[Any]:
        """As many parties as people, one at each."""
        return self.add(
            self.person(party_id=party.id, name=f"name {number}", address="here")
            for number, party in enumerate(self.parties(count))
        )

    def crowds(self, count: int, relations: Sequence[str] = ("party_id",)) -> list[Any]:
        """People at parties: as many at each as there are parties."""
        n = math.isqrt(count)
        return self.add(
            self.person(**{relation: party.id}, name=f"name {number}", address="here")
            for party in self.parties(n)
            for number in range(n)
            for relation in relations
        )

    def double_crowds(self, count: int) -> list[Any]:
        """Crowds, and as many people for whom it is the other party."""
        return self.crowds(count, ("party_id", "other_party_id"))

    def documents(self, count: int) -> list[Any]:
        """Documents that are all equal."""
        return self.add(self.document(stuff=DOCUMENT) for _ in range(count))

    @abstractmethod
    def empty(self) -> None:
        """Empty the tables."""

    @abstractmethod
    def add(self, objects: Iterable[Any]) -> list[Any]:
        """Insert objects, which have their keys then."""

    @abstractmethod
    def forget(self) -> None:
        """Have what comes next read, and not remembered."""

    @abstractmethod
    def live(self, n: int, thread: int) -> int:
        """What a thread does: it creates, finds, changes and deletes n parties of its own."""

    @abstractmethod
    def contents(self) -> list[Content]:
        """What is in the tables now: the same on every mapper and database after the same work."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """One transaction around everything that is done inside."""

    @abstractmethod
    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """The driver's connection, for the report of the environment."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""


def run_threads(threads: int, live: Callable[[int], int], *, one_by_one: bool) -> int:
    """What ``live`` counts, over all threads.

    Args:
        threads: how many.
        live: what each does, given its number.
        one_by_one: whether each is waited for before the next is started, as in the published
            benchmark; else all begin together.

    Raises:
        Exception: what a thread has raised, the first of several.
    """
    barrier = threading.Barrier(1 if one_by_one else threads)
    counts: list[int] = []
    errors: list[BaseException] = []

    def run(thread: int) -> None:
        try:
            barrier.wait()
            counts.append(live(thread))
        except BaseException as error:
            errors.append(error)

    every = [threading.Thread(target=run, args=(one,)) for one in range(threads)]
    for thread in every:
        thread.start()
        if one_by_one:
            thread.join()
    for thread in every:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts)
