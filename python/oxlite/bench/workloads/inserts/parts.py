"""What a thread of ``inserts`` does: insert its rows in order until the time is over.

Each insert is timed on its own, from before it to the return of its commit; where
several rows share a transaction, the commit is that of all of them. The insert that is
under way when the time is over is finished, and its wait counts. One that fails is
counted by what the driver said, and never tried again.

Who has inserted all of its rows closes the window for all: alone with what is left,
the others would be measured under other conditions.
"""

import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.harness.threads import Body, Part, Window
from oxlite.bench.workloads.inserts import work
from oxlite.bench.workloads.inserts.styles import Enter


@dataclass(frozen=True)
class Done:
    """What a thread did: one entry per insert, in the order of its rows.

    Attributes:
        from_ns: the instant from which it counts.
        begun_ns: the instants before each insert.
        ended_ns: those after its commit, or its failure.
        outcomes: 0, or the number of the error, from 1.
    """

    from_ns: int
    begun_ns: "array[int]"
    ended_ns: "array[int]"
    outcomes: "array[int]"


class Errors:
    """The kinds of errors that befell any thread, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def number(self, error: Exception) -> int:
        """The number of its kind: the class, SQLite's name for it, the beginning of the message.

        The rest of a message may say for how long or by whom, which makes no kind.
        """
        name = getattr(error, "sqlite_errorname", None)
        message = str(error).partition(":")[0]
        kind = f"{type(error).__name__}{f' ({name})' if name else ''}: {message}"
        with self._lock:
            return self._numbers.setdefault(kind, len(self._numbers) + 1)

    def kinds(self) -> list[str]:
        """All kinds, in order."""
        return list(self._numbers)


def inserter(
    enter: Enter,
    rows: Sequence[work.Row],
    failures: tuple[type[Exception], ...],
    errors: Errors,
) -> Part:
    """Inserts ``rows``, a transaction each."""

    @contextmanager
    def part() -> Iterator[Body]:
        begun_ns, ended_ns, outcomes = _arrays(len(rows))
        with enter() as insert:

            def body(window: Window) -> Done:
                clock = time.perf_counter_ns
                done = 0
                for row in rows:
                    begun_ns[done] = clock()
                    try:
                        insert(row)
                    except failures as error:
                        now = ended_ns[done] = clock()
                        outcomes[done] = errors.number(error)
                    else:
                        now = ended_ns[done] = clock()
                    done += 1
                    if now > window.until_ns:
                        break
                else:
                    window.until_ns = min(window.until_ns, clock())
                return Done(window.from_ns, begun_ns[:done], ended_ns[:done], outcomes[:done])

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
        begun_ns, ended_ns, outcomes = _arrays(len(rows))
        with opened() as connection:
            execute, insert = connection.execute, work.INSERT

            def body(window: Window) -> Done:
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
                return Done(window.from_ns, begun_ns[:done], ended_ns[:done], outcomes[:done])

            yield body

    return part


def _arrays(count: int) -> "tuple[array[int], array[int], array[int]]":
    return array("Q", bytes(8 * count)), array("Q", bytes(8 * count)), array("H", bytes(2 * count))
