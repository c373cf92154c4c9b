"""What the threads of ``gil`` do: look up, spin, tick, query, write.

Invariants: each opens a connection of its own, in its own thread; what it did
is counted and checked, all of it; only what was done in the time that counts
counts for a rate.
"""

import itertools
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.threads import Body, Part, Window
from oxlite.bench.workloads.gil import work

Open = Callable[[], Connection]

SPINS = 200
"""Iterations of the CPU-bound loop between two looks at the clock: about 10 microseconds."""

SPUN = sum(range(SPINS))
TICK_SECONDS = 0.001
TICK_NS = 1_000_000
INSERTS_PER_TRANSACTION = 10


@dataclass(frozen=True)
class Done:
    """What a part did.

    Attributes:
        counted: between the instant from which it counts and the closing of the window.
        total: with what was under way then.
        elapsed_ns: from the beginning of the window to the end of the last.
    """

    counted: int
    total: int
    elapsed_ns: int


def repeating(action: Callable[[], object], each: int = 1, most: int | None = None) -> Body:
    """Does ``action``, which counts as ``each``: ``most`` times, or until the window closes."""

    def body(window: Window) -> Done:
        done = total = now = 0
        while most is None or total < most * each:
            action()
            total += each
            now = time.perf_counter_ns()
            if now > window.until_ns and most is None:
                break
            if window.from_ns <= now <= window.until_ns:
                done += each
        return Done(done, total, now - window.begin_ns)

    return body


def connected(opened: Open, prepare: Callable[[Connection], Body]) -> Part:
    """A part with a connection, which is closed at its end."""

    @contextmanager
    def part() -> Iterator[Body]:
        with closing(opened()) as connection:
            yield prepare(connection)

    return part


def warm(connection: Connection) -> None:
    """Bring the table into the connection's cache."""
    connection.execute(work.WARM, ()).fetchone()


def reader(opened: Open, lookups: Sequence[work.Lookup]) -> Part:
    """Looks up by key, in autocommit."""

    def prepare(connection: Connection) -> Body:
        warm(connection)
        execute, clock, sql = connection.execute, time.perf_counter_ns, work.READ
        execute(sql, lookups[0][0]).fetchone()

        def body(window: Window) -> Done:
            done = total = wrong = now = 0
            from_ns = window.from_ns
            for parameters, row in itertools.cycle(lookups):
                if execute(sql, parameters).fetchone() != row:
                    wrong += 1
                total += 1
                now = clock()
                if now > window.until_ns:
                    break
                if now >= from_ns:
                    done += 1
            if wrong:
                raise VerificationError(f"{wrong} of {total} look-ups gave another row")
            return Done(done, total, now - window.begin_ns)

        return body

    return connected(opened, prepare)


def spinner() -> Part:
    """The CPU-bound thread: a loop in pure Python, which is never interrupted by itself."""

    def spin() -> None:
        total = 0
        for number in range(SPINS):
            total += number
        if total != SPUN:
            raise VerificationError(f"the loop came to {total} instead of {SPUN}")

    return lambda: nullcontext(repeating(spin, SPINS))


def ticker(ticks: int) -> Part:
    """The idle thread: sleeps a millisecond and notes by how many ns it woke up late.

    It closes the window after so many ``ticks``: a fixed count is a fixed support
    for its percentiles.
    """

    def body(window: Window) -> "array[int]":
        late_ns = array("Q")
        clock, sleep = time.perf_counter_ns, time.sleep
        while len(late_ns) < ticks:
            due_ns = clock() + TICK_NS
            sleep(TICK_SECONDS)
            now = clock()
            if now >= window.from_ns:
                late_ns.append(max(0, now - due_ns))
            if now > window.until_ns:
                break
        window.until_ns = min(window.until_ns, clock())
        return late_ns

    return lambda: nullcontext(body)


def querier(opened: Open, rounds: int, count: int | None = None) -> Part:
    """Runs the query of so many ``rounds``: ``count`` times, or until the window closes."""

    def prepare(connection: Connection) -> Body:
        warm(connection)
        return repeating(lambda: check_query(connection, rounds), most=count)

    return connected(opened, prepare)


def check_query(connection: Connection, rounds: int) -> None:
    """Run the query once.

    Raises:
        VerificationError: its result is not the expected one.
    """
    expected = work.query_result(rounds)
    got = connection.execute(work.QUERY, (rounds,)).fetchone()
    if got != (expected,):
        raise VerificationError(f"the query gave {got!r} instead of {(expected,)!r}")


def writer(opened: Open, text: str) -> Part:
    """Inserts rows with this ``text``, in transactions of ten."""

    def prepare(connection: Connection) -> Body:
        execute, parameters = connection.execute, (text,)

        def transaction() -> None:
            execute("BEGIN IMMEDIATE", ())
            for _ in range(INSERTS_PER_TRANSACTION):
                execute(work.WRITE, parameters)
            execute("COMMIT", ())

        return repeating(transaction, INSERTS_PER_TRANSACTION)

    return connected(opened, prepare)
