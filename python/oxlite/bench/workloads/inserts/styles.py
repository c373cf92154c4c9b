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
from functools import partial
from queue import SimpleQueue

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.base import Connection
from oxlite.bench.drivers.connections import Place
from oxlite.bench.drivers.oxlite import Oxlite
from oxlite.bench.workloads.inserts import work

POOLED = 4
"""Connections of the shared pool."""

Insert = Callable[[work.Row], object]
Enter = Callable[[], AbstractContextManager[Insert]]
Style = Callable[[Place], AbstractContextManager[Enter]]


def warm(place: Place, *, shared: bool = False) -> Connection:
    """A connection of which the schema has been read."""
    connection = place.opened(shared=shared)
    connection.execute(work.WARM, ()).fetchall()
    return connection


@contextmanager
def own(place: Place) -> Iterator[Enter]:
    """Each thread has a connection of its own."""

    @contextmanager
    def enter() -> Iterator[Insert]:
        with closing(warm(place)) as connection:
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
    with closing(warm(place, shared=True)) as connection:
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
            idle.put(stack.enter_context(closing(warm(place, shared=True))))

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
        with closing(warm(place)) as connection:
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
            pragmas.check(connection, pragmas.SETS[place.scenario["pragmas"]])
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
