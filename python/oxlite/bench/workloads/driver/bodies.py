"""The timed bodies, and the looking at what they did, that several operations share."""

from collections.abc import Callable, Iterable
from typing import Any

from oxlite.bench.workloads.driver.operation import Batch
from oxlite.bench.workloads.driver.peers import Call, Handle

COUNT_AND_SUM = "SELECT count(*), sum(a) FROM t"


def repeated(count: int, action: Callable[[], Any]) -> Callable[[], Any]:
    """The last result of ``count`` calls; for what takes so long that a call does not show."""

    def run() -> object:
        value = None
        for _ in range(count):
            value = action()
        return value

    return run


def fetches(connection: Handle, sql: str, count: int) -> Callable[[], list[Any]]:
    """All rows, ``count`` times."""
    execute = connection.execute
    return repeated(count, lambda: execute(sql).fetchall())


def lengths(execute: Call, sql: str, keys: Iterable[object]) -> Callable[[], int]:
    """The length of what stands under each key."""

    def run() -> int:
        characters = 0
        for key in keys:
            characters += len(execute(sql, key).fetchone()[0])
        return characters

    return run


def sums(execute: Call, sql: str, keys: Iterable[object]) -> Callable[[], int]:
    """The sum of what stands under each key."""

    def run() -> int:
        total = 0
        for key in keys:
            total += execute(sql, key).fetchone()[0]
        return total

    return run


def executions(execute: Call, sql: str, rows: Iterable[object]) -> Callable[[], None]:
    """One statement for each row of parameters."""

    def run() -> None:
        for row in rows:
            execute(sql, row)

    return run


def looked_up(connection: Handle, undo: str, sql: str = COUNT_AND_SUM) -> Callable[[object], Any]:
    """What a batch has done: the row that ``sql`` gives, before it is undone."""

    def result(_: object) -> tuple[object, ...]:
        row = tuple(connection.execute(sql).fetchone())
        connection.execute(undo)
        return row

    return result


def rolled_back(
    connection: Handle, run: Callable[[], object], expected: object, sql: str = COUNT_AND_SUM
) -> Batch:
    """A batch in a transaction that is looked at and rolled back."""
    begin, result = lambda: connection.execute("BEGIN"), looked_up(connection, "ROLLBACK", sql)
    return Batch(run, expected, begin, result)
