"""A writer that may be killed: it writes until it is told to stop, or to hold the lock and wait.

An order is for whoever next gets the write lock: each writer that sees it begins
a transaction, and the first to be let in takes it. It holds the lock, so nobody
else can take the order meanwhile. Then it writes rows that must never be seen,
and waits to be killed. To the others the order is nothing but a transaction.

What the killer and the writers that it forks tell each other stands in shared memory, in words of
64 bits, so that a writer neither makes a system call nor takes a lock to be heard, which would
disturb what is measured, and a killed one leaves no half of a message.

Invariants: each word has one writer, but for ``TAKEN`` and ``TAKER``, which only the process that
holds the write lock of the database writes; a word that announces others is written after them;
a writer ends when the process that forked it has gone: on Linux the
kernel sees to that, elsewhere it looks itself.
"""

import mmap
import os
import time
from collections.abc import Iterator

from oxlite.bench.drivers.base import Connection
from oxlite.bench.workloads.gate import work

IDLE, WRITING, ANY = KINDS = ("idle", "writing", "any")
"""Whom a kill meets: a process that has the lock in an open transaction and does nothing, one that
has it in the middle of a statement that writes many rows, and any, wherever it is: waiting,
committing, opening."""


LOOK_SECONDS = 0.1
"""Between two looks at whether there is still somebody to be killed by."""

STOPPED, ORDER, KIND, TAKEN, TAKER, KILLED_NS = range(6)
"""All should end; the number of the last order; what it asks for; the number of the last one
that was taken; the place of whoever took it; the instant of the last kill."""

HEAD_WORDS = 8
PLACE_WORDS = 4
ACKNOWLEDGED, LOCKED, ANSWERED_NS, FIRST_NS = range(PLACE_WORDS)
"""Of each place: its acknowledged writes; those that failed with a lock; the last kill after
which it has committed; the instant of its first commit after that."""


class Shared:
    """The words; a forked child sees the same."""

    def __init__(self, places: int) -> None:
        self.places = places
        size_bytes = 8 * (HEAD_WORDS + PLACE_WORDS * places)
        self.words = memoryview(mmap.mmap(-1, size_bytes)).cast("Q")

    def at(self, place: int, word: int) -> int:
        """The index of a word of ``place``."""
        return HEAD_WORDS + PLACE_WORDS * place + word

    def total(self, word: int) -> int:
        """The sum over all places."""
        return sum(self.words[self.at(place, word)] for place in range(self.places))

    def commits_after(self, killed_ns: int) -> Iterator[int]:
        """The instants of the first commit of each writer that has committed after the kill."""
        for place in range(self.places):
            if self.words[self.at(place, ANSWERED_NS)] == killed_ns:
                yield self.words[self.at(place, FIRST_NS)]


def write_until_stopped(
    shared: Shared,
    place: int,
    connection: Connection,
    failures: tuple[type[Exception], ...],
    statement: str,
    parameters: Iterator[tuple[int, ...]],
) -> None:
    """Write until all should stop.

    Args:
        shared: the words.
        place: which of the writers it is.
        connection: its own.
        failures: the errors of its driver; one that is not of a lock ends the writer.
        statement: a write, a transaction of its own.
        parameters: of each write, without an end; those of a write that failed come again.
    """
    parent, parent_now = os.getppid(), os.getppid
    words, execute, clock = shared.words, connection.execute, time.perf_counter_ns
    acknowledged, locked = (shared.at(place, word) for word in (ACKNOWLEDGED, LOCKED))
    answered, first = (shared.at(place, word) for word in (ANSWERED_NS, FIRST_NS))
    seen = words[ORDER]
    values = next(parameters)
    while not words[STOPPED] and parent_now() == parent:
        order = words[ORDER]
        try:
            if order == seen:
                execute(statement, values)
            else:
                execute("BEGIN IMMEDIATE", ())
                # One that has waited long may come with an order that was done with long ago.
                if words[TAKEN] < order:
                    _take(shared, place, order, connection)
                    while parent_now() == parent:
                        time.sleep(LOOK_SECONDS)
                    return
                execute(statement, values)
                execute("COMMIT", ())
                seen = order
        except failures as error:
            if "locked" not in str(error):
                raise
            words[locked] += 1
            continue
        now_ns = clock()
        values = next(parameters)
        words[acknowledged] += 1
        killed_ns = words[KILLED_NS]
        if words[answered] != killed_ns < now_ns:
            words[first] = now_ns
            words[answered] = killed_ns


def _take(shared: Shared, place: int, order: int, connection: Connection) -> None:
    """Take the order, with the write lock, and write what must never be seen."""
    words = shared.words
    execute = connection.execute
    execute(work.BALLAST, (1,))
    words[TAKER] = place
    words[TAKEN] = order
    if KINDS[words[KIND]] == WRITING:
        execute(work.BALLAST, (work.BALLAST_ROWS,))
