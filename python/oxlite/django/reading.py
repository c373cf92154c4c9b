"""Which databases the next transaction of this request only reads.

The middleware says it just before the view runs; the backend asks when a transaction begins. It is
kept in the context of the request, so that requests which share a thread do not meet.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["offer_read_only_turns", "takes_read_only_turn", "without_read_only_turns"]

_NONE: Final[frozenset[str]] = frozenset()
_turns: ContextVar[frozenset[str]] = ContextVar("oxlite_read_only_turns", default=_NONE)


def offer_read_only_turns(aliases: Iterable[str]) -> None:
    """Have the next transaction of each of these databases only read; of no others."""
    _turns.set(frozenset(aliases))


def takes_read_only_turn(alias: str) -> bool:
    """Whether the transaction that begins on a database now only reads; true once."""
    turns = _turns.get()
    if alias not in turns:
        return False
    _turns.set(turns - {alias})
    return True


@contextmanager
def without_read_only_turns() -> Iterator[None]:
    """Let transactions begin that are not the request's own."""
    token = _turns.set(_NONE)
    try:
        yield
    finally:
        _turns.reset(token)
