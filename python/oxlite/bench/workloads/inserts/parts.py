"""What a thread of ``inserts`` does: insert its rows in order until the time is over.

Each insert is timed on its own, from before it to the return of its commit; where
several rows share a transaction, the commit is that of all of them. The insert that is
under way when the time is over is finished, and its wait counts. One that fails is
counted by what the driver said, and never tried again.

Who has inserted all of its rows closes the window for all: alone with what is left,
the others would be measured under other conditions.
"""

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from oxlite.bench.drivers.base import Connection
from oxlite.bench.harness.outcomes import Errors
from oxlite.bench.harness.threads import Body, Part, Window
from oxlite.bench.workloads.inserts import work
from oxlite.bench.workloads.inserts.styles import Enter


class Done(NamedTuple):
    """What a thread did: one entry per insert, in the order of its rows.

    Attributes:
        begun_ns: the instants before each insert.
        ended_ns: those after its commit, or its failure.
        numbers: 0, or the number of the error, from 1.
        from_ns: the instant from which it counts.
    """

    begun_ns: "array[int]"
    ended_ns: "array[int]"
    numbers: "array[int]"
    from_ns: int = 0

    @classmethod
    def none(cls, count: int) -> "Done":
        """Of ``count`` inserts, none yet."""
        begun_ns, ended_ns = (array("Q", bytes(8 * count)) for _ in range(2))
        return cls(begun_ns, ended_ns, array("H", bytes(2 * count)))

    def first(self, count: int, window: Window) -> "Done":
        """The first ``count``, of that turn."""
        begun_ns, ended_ns, numbers = (each[:count] for each in self[:3])
        return Done(begun_ns, ended_ns, numbers, window.from_ns)


def kind(error: Exception) -> str:
    """The class of an error, SQLite's name for it, and the beginning of its message.

    The rest of a message may say for how long or by whom, which makes no kind.
    """
    name = getattr(error, "sqlite_errorname", None)
    message = str(error).partition(":")[0]
    return f"{type(error).__name__}{f' ({name})' if name else ''}: {message}"


def inserter(
    enter: Enter,
    rows: Sequence[work.Row],
    failures: tuple[type[Exception], ...],
    errors: Errors,
) -> Part:
    """Inserts ``rows``, a transaction each."""

    @contextmanager
    def part() -> Iterator[Body]:
        every = Done.none(len(rows))
        with enter() as insert:

            def body(window: Window) -> Done:
                begun_ns, ended_ns, numbers, _ = every
                clock = time.perf_counter_ns
                done = 0
                for row in rows:
                    begun_ns[done] = clock()
                    try:
                        insert(row)
                    except failures as error:
                        now = ended_ns[done] = clock()
                        numbers[done] = errors.number(error)
                    else:
                        now = ended_ns[done] = clock()
                    done += 1
                    if now > window.until_ns:
                        break
                else:
                    window.until_ns = min(window.until_ns, clock())
                return every.first(done, window)

            yield body

    return part


def climber(
    opened: Callable[[], AbstractContextManager[Connection]],
    rows: Sequence[work.Row],
    size: int | None,
) -> Part:
    """Inserts ``rows`` in transactions of ``size``, or in one; an error is nothing to count."""

    @contextmanager
    def part() -> Iterator[Body]:
        every = Done.none(len(rows))
        with opened() as connection:
            execute, insert = connection.execute, work.INSERT

            def body(window: Window) -> Done:
                begun_ns, ended_ns, *_ = every
                clock, until_ns = time.perf_counter_ns, window.until_ns
                done = now = 0
                while done < len(rows) and now <= until_ns:
                    first = done
                    execute("BEGIN", ())
                    for row in rows[first : first + size] if size else rows:
                        begun_ns[done] = now = clock()
                        execute(insert, row)
                        done += 1
                        if now > until_ns:
                            break
                    execute("COMMIT", ())
                    now = clock()
                    ended_ns[first:done] = array("Q", [now]) * (done - first)
                return every.first(done, window)

            yield body

    return part
