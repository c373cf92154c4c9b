"""How threads come by a connection for one insert: one function for each style.

A style is entered once, where it opens what the threads share; it gives what each
thread enters, and that gives the function that inserts one row and returns when the
row is committed.

Invariants: what is opened before the start is warm (the schema has been read); what a
style opens it closes; one connection is used by one thread at a time.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.drivers.oxlite import Oxlite
from oxlite.bench.scenarios import pragmas
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.inserts import work

POOLED = 4
"""Connections of the shared pool."""

Insert = Callable[[work.Row], object]
Enter = Callable[[], AbstractContextManager[Insert]]
Style = Callable[["Place"], AbstractContextManager[Enter]]


@dataclass(frozen=True)
class Place:
    """Where rows are inserted: a file, and the conditions.

    Attributes:
        driver: that of the scenario.
        path: the database.
        scenario: the conditions.
        timeout_seconds: how long a lock is waited for, where it is.
    """

    driver: Driver
    path: Path
    scenario: Scenario
    timeout_seconds: float

    def opened(self, *, shared: bool = False) -> Connection:
        """A connection with the scenario's settings."""
        return open_connection(
            self.driver, self.path, self.scenario, self.timeout_seconds, shared=shared
        )

    def warm(self, *, shared: bool = False) -> Connection:
        """The same, with the schema read."""
        connection = self.opened(shared=shared)
        connection.execute(work.WARM, ()).fetchall()
        return connection


@contextmanager
def own(place: Place) -> Iterator[Enter]:
    """Each thread has a connection of its own."""

    @contextmanager
    def enter() -> Iterator[Insert]:
        with closing(place.warm()) as connection:
            yield partial(connection.execute, work.INSERT)

    yield enter


@contextmanager
def reconnect(place: Place) -> Iterator[Enter]:
    """Each insert opens a connection, sets what is to be set, and closes it again."""

    def insert(row: work.Row) -> None:
        with closing(place.opened()) as connection:
            connection.execute(work.INSERT, row)

    yield lambda: nullcontext(insert)


@contextmanager
def mutex(place: Place) -> Iterator[Enter]:
    """All threads share one connection, behind one lock."""
    lock = threading.Lock()
    with closing(place.warm(shared=True)) as connection:
        execute = connection.execute

        def insert(row: work.Row) -> None:
            with lock:
                execute(work.INSERT, row)

        yield lambda: nullcontext(insert)


@contextmanager
def pool(place: Place) -> Iterator[Enter]:
    """All threads share a few connections, each lent for one insert."""
    idle: SimpleQueue[Connection] = SimpleQueue()
    with ExitStack() as stack:
        for _ in range(POOLED):
            idle.put(stack.enter_context(closing(place.warm(shared=True))))

        def insert(row: work.Row) -> None:
            connection = idle.get()
            try:
                connection.execute(work.INSERT, row)
            finally:
                idle.put(connection)

        yield lambda: nullcontext(insert)


@contextmanager
def explicit(place: Place) -> Iterator[Enter]:
    """Each thread has a connection of its own, and each insert an explicit transaction."""

    @contextmanager
    def enter() -> Iterator[Insert]:
        with closing(place.warm()) as connection:
            execute = connection.execute

            def insert(row: work.Row) -> None:
                execute("BEGIN IMMEDIATE", ())
                try:
                    execute(work.INSERT, row)
                    execute("COMMIT", ())
                except BaseException:
                    # Some errors have ended the transaction themselves.
                    with suppress(*place.driver.errors()):
                        execute("ROLLBACK", ())
                    raise

            yield insert

    yield enter


@contextmanager
def database(place: Place) -> Iterator[Enter]:
    """All threads share an ``oxlite.Database``, which commits as the style says.

    Raises:
        VerificationError: its profile does not set what the scenario asks for.
    """
    driver = place.driver
    if not isinstance(driver, Oxlite):
        raise TypeError(f"{driver.title} has no Database")
    with closing(driver.open_database(place.path, place.scenario, place.timeout_seconds)) as opened:
        with opened.write() as connection:
            pragmas.check(connection, pragmas.SETS[place.scenario.pragmas or ""])
            connection.execute(work.WARM).fetchall()
        insert = partial(opened.execute, work.INSERT)
        yield lambda: nullcontext(insert)


STYLES: Mapping[str, Style] = {
    "own": own,
    "reconnect": reconnect,
    "mutex": mutex,
    "pool": pool,
    "explicit": explicit,
    "group": database,
    "each": database,
}
"""Every style by its name on the axis."""
