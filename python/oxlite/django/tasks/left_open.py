"""What a task has left open in its thread: a transaction that nobody ends any more.

A time limit may come in the midst of ``atomic()``, before or after that knows of its transaction.

Invariant: no task begins inside of another one's transaction, or with a connection that is dead.
"""

from typing import Any

from django.db import connections
from django.db.transaction import TransactionManagementError

__all__ = ["close_left_open", "refuse"]


def close_left_open() -> list[str]:
    """Close the connections of this thread that have a transaction open; their aliases.

    What was written there is rolled back. The next use opens another connection.
    """
    found = []
    for wrapper in connections.all(initialized_only=True):
        if wrapper.in_atomic_block or _has_begun(wrapper):
            found.append(wrapper.alias)
            try:
                wrapper.close()
            finally:
                # Inside atomic() Django keeps the dead connection, and opens no other one.
                wrapper.connection = None
                wrapper.in_atomic_block = wrapper.closed_in_transaction = False
                wrapper.needs_rollback = False
    return found


def refuse(left_open: list[str]) -> None:
    """Say of a task that has returned what it has left open.

    Raises:
        django.db.transaction.TransactionManagementError: Something.
    """
    if left_open:
        named = ", ".join(map(repr, left_open))
        raise TransactionManagementError(
            f"the task has left atomic() open on {named}: what it wrote there was rolled back"
        )


def _has_begun(wrapper: Any) -> bool:
    """Whether SQLite is in a transaction of which Django does not know."""
    connection = wrapper.connection
    return bool(wrapper.autocommit and getattr(connection, "in_transaction", False))
