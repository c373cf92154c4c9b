"""What a ``Database`` does with a connection of its own, for as long as nobody else has it.

Its callers, blocking and asyncio's, see to it that the connection is theirs meanwhile.

Invariant: a connection that may be lent again has no transaction and no snapshot, and is as its
set-up has left it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oxlite import sqlite3
from oxlite._native import forget_rowid, latest_rowid
from oxlite.database.result import Result
from oxlite.sqlite3 import Connection

__all__ = [
    "Parameters",
    "commit_begun",
    "execute_alone",
    "executemany_alone",
    "make_idle",
    "refuse_transaction",
]

Parameters = Sequence[Any] | Mapping[str, Any]


def execute_alone(connection: Connection, sql: str, parameters: Parameters) -> Result:
    """Run one statement that has its transaction to itself.

    Raises:
        oxlite.sqlite3.ProgrammingError: It has begun a transaction and not ended it.
        oxlite.sqlite3.Error: What the statement raises.
    """
    forget_rowid(connection)
    cursor = connection.execute(sql, parameters)
    rows = cursor.fetchall()
    if connection.in_transaction:
        raise sqlite3.ProgrammingError(
            "A transaction of several statements needs db.write(); this one was rolled back."
        )
    return Result(cursor.rowcount, latest_rowid(connection), rows)


def executemany_alone(connection: Connection, sql: str, parameters: Iterable[Parameters]) -> Result:
    """Run one statement with each set of parameters; raises what it raises."""
    forget_rowid(connection)
    cursor = connection.executemany(sql, parameters)
    return Result(cursor.rowcount, latest_rowid(connection), [])


def commit_begun(connection: Connection) -> None:
    """Commit the transaction that a block was begun with.

    Raises:
        oxlite.sqlite3.ProgrammingError: It was ended inside the block.
        oxlite.sqlite3.Error: What COMMIT raises.
    """
    if not connection.in_transaction:
        raise sqlite3.ProgrammingError(
            "The transaction was ended inside db.write(), by COMMIT, by ROLLBACK or by an"
            " error that rolls back; what came after it was committed by itself."
        )
    connection.commit()


def refuse_transaction(sql: str) -> None:
    """Say that a query without rows has begun a transaction, if it has; it is ended by then.

    Raises:
        oxlite.sqlite3.ProgrammingError: It begins with BEGIN or SAVEPOINT.
    """
    import re  # hardly ever needed, and long to import

    blank = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*"
    if re.match(rf"{blank}(?:BEGIN|SAVEPOINT)\b", sql, re.IGNORECASE | re.DOTALL):
        raise sqlite3.ProgrammingError(
            "One snapshot for several queries needs db.read(), and a transaction that writes"
            " db.write(); this one was rolled back."
        )


def make_idle(
    connection: Connection, restore: Callable[[Connection], object] | None = None
) -> bool:
    """End what is left of its use: whether it may be lent again.

    It may not when it is closed, beyond repair, or in the middle of its work.

    Args:
        connection: What comes back.
        restore: Called when it has no transaction any more, if somebody had the connection itself.
    """
    try:
        # Whoever has it next begins and ends his transactions himself.
        if connection.autocommit != sqlite3.LEGACY_TRANSACTION_CONTROL:
            connection.autocommit = sqlite3.LEGACY_TRANSACTION_CONTROL
        # A query that was left in the middle would keep its snapshot, for whoever comes next.
        is_idle = connection.end_reads()
        if connection.in_transaction:
            connection.rollback()
        if is_idle and restore is not None:
            restore(connection)
    except sqlite3.Error:
        return False
    return is_idle
