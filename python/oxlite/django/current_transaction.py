"""Which transaction is open where code runs, also in a coroutine that a view has called.

It is that of ``atomic()``, or what follows ``set_autocommit(False)``.

A view's connection belongs to its thread, and ``async_to_sync`` runs a coroutine in another one;
its context goes along.

Invariant: a context that lives on after its transaction finds none, whatever that thread does next.
"""

from contextvars import ContextVar
from typing import Any

__all__ = ["current_connection", "note_beginning"]

# By alias: the wrapper, and which of its transactions.
_OPEN: ContextVar[dict[str, tuple[Any, int]] | None] = ContextVar("_OPEN", default=None)


def note_beginning(wrapper: Any, number: int) -> None:
    """Note that a wrapper's transaction of that number has begun in this context."""
    _OPEN.set({**(_OPEN.get() or {}), wrapper.alias: (wrapper, number)})


def current_connection(alias: str) -> Any:
    """The driver's connection of the transaction that is open for this code, if one is."""
    wrapper, number = (_OPEN.get() or {}).get(alias, (None, 0))
    if wrapper is None or wrapper.transaction_number != number:
        return None
    if not wrapper.in_atomic_block and wrapper.autocommit:
        return None
    return wrapper.connection
