"""Which databases the next transaction of this request only reads.

The middleware says it just before the view runs; the backend asks when a transaction begins. It is
kept in the context of the request, so that requests which share a thread do not meet.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["begin_next_read_only", "next_is_read_only", "without_read_only_next"]

_NONE: Final[frozenset[str]] = frozenset()
_next_read_only: ContextVar[frozenset[str]] = ContextVar("oxlite_read_only_next", default=_NONE)


def begin_next_read_only(aliases: Iterable[str]) -> None:
    """Have the next transaction of each of these databases only read; of no others."""
    _next_read_only.set(frozenset(aliases))


def next_is_read_only(alias: str) -> bool:
    """Whether the transaction that begins on a database now only reads; true once."""
    aliases = _next_read_only.get()
    if alias not in aliases:
        return False
    _next_read_only.set(aliases - {alias})
    return True


@contextmanager
def without_read_only_next() -> Iterator[None]:
    """Let transactions begin that are not the request's own."""
    token = _next_read_only.set(_NONE)
    try:
        yield
    finally:
        _next_read_only.reset(token)
