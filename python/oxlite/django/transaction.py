"""What a site's code says about transactions: that one only reads, that one may be run again.

Invariant: Django is looked for when a function is called, not when this module is imported.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload

import oxlite
from oxlite.retries import is_stale

if TYPE_CHECKING:
    from oxlite.django.sqlite3.base import DatabaseWrapper

__all__ = ["read_only", "read_only_exempt", "retry"]

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_Function = Callable[_Arguments, _Answer]


_COMMITTED: Final = (
    "a transaction of it was already committed; it is not run again. What is to be run again is"
    " one transaction: put retry() on that, and on what an on_commit() hook does"
)


class _Final(Exception):  # noqa: N818 - nobody sees it
    """Brings an error past ``oxlite.retry``, which would run the function again."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _ReadOnly(ContextDecorator):
    """A transaction in which all queries see one snapshot and no write is possible."""

    def __init__(self, using: str | None) -> None:
        from django.db.transaction import Atomic

        self._using = using
        self._atomic = Atomic(using, savepoint=True, durable=False)

    def __call__(self, function: Any) -> Any:
        """The function, in a transaction of its own at each call."""
        _refuse_coroutine_functions("read_only()", function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"read_only() cannot decorate {function.__qualname__}: it is a generator, which"
                " runs when the transaction has ended; return a list, or write"
                " `with read_only():` in it"
            )
        return super().__call__(function)

    def _recreate_cm(self) -> "_ReadOnly":
        return _ReadOnly(self._using)  # as a decorator it may be in several threads at a time

    def _connection(self) -> "DatabaseWrapper":
        from django.core.exceptions import ImproperlyConfigured
        from django.db.transaction import get_connection

        connection: DatabaseWrapper = get_connection(self._using)
        if not hasattr(connection, "begins_read_only"):
            raise ImproperlyConfigured(
                "read_only() needs the ENGINE 'oxlite.django.sqlite3';"
                f" settings.DATABASES[{connection.alias!r}]['ENGINE'] is"
                f" {connection.settings_dict['ENGINE']!r}"
            )
        return connection

    def __enter__(self) -> None:
        connection = self._connection()
        outermost = connection.get_autocommit() and not connection.in_atomic_block
        connection.begins_read_only = outermost
        try:
            self._atomic.__enter__()
        finally:
            connection.begins_read_only = False
        connection.were_read_only.append(not outermost and connection.only_reads)
        if not connection.only_reads:
            connection.set_read_only(True)

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        connection = self._connection()
        was_read_only = connection.were_read_only.pop()
        try:
            self._atomic.__exit__(exception_type, exception, traceback)
        finally:
            # The end of the outermost transaction has taken it back, unless that has failed.
            if not was_read_only:
                connection.end_read_only()


@overload
def read_only(using: str | None = None) -> _ReadOnly: ...
@overload
def read_only(using: _Function[_Arguments, _Answer]) -> _Function[_Arguments, _Answer]: ...


def read_only(using: str | Callable[..., Any] | None = None) -> _ReadOnly | Callable[..., Any]:
    """Only read in a transaction: a context manager, and a decorator with or without arguments.

    It begins DEFERRED, so it waits for nobody and nobody for it; its queries see one snapshot, from
    the first of them on. A write is refused with an ``OperationalError`` that says how one writes.
    Inside ``atomic()`` it is a part of that transaction in which nothing can be written.

    Args:
        using: The alias of the database; by default ``"default"``. Without parentheses it is the
            function that is decorated.

    Raises:
        TypeError: A coroutine function is decorated: Django's transactions are of one thread; or a
            generator, which runs only when its transaction has ended.
        django.core.exceptions.ImproperlyConfigured: The database's ENGINE is another one.

    Source: https://sqlite.org/pragma.html#pragma_query_only
    """
    if callable(using):
        function: Callable[..., Any] = _ReadOnly(None)(using)
        return function
    return _ReadOnly(using)


def read_only_exempt(view: _Function[_Arguments, _Answer]) -> _Function[_Arguments, _Answer]:
    """Mark a view that may write in answer to a safe method, whatever the middleware does."""
    view.read_only_exempt = True  # type: ignore[attr-defined]
    return view


def retry(
    function: Callable[..., Any] | None = None,
    /,
    *,
    using: str | None = None,
    attempts: int = 5,
    first_delay: float = 0.005,
    longest_delay: float = 0.25,
) -> Callable[..., Any]:
    """Have a function run again when its snapshot was stale: ``@retry`` above ``@atomic``.

    It is ``oxlite.retry``, which also looks behind Django's ``OperationalError``. The function must
    contain the whole transaction. Where it is called inside another one it runs once: only the
    outermost transaction can begin anew. Nor is it run again once something of it is committed: by
    an earlier ``atomic()`` in it, outside of any, or where a hook of ``on_commit()`` has failed.

    Args:
        function: What to run; left out where arguments are given: ``@retry(attempts=3)``.
        using: The alias of the database whose transaction it is; by default ``"default"``.
        attempts: How often it is run at most.
        first_delay: The longest wait before the second attempt, in seconds; it doubles.
        longest_delay: What the wait does not grow beyond, in seconds.

    Raises:
        TypeError: It is no function, or one that cannot be run again, or a coroutine function.
        ValueError: ``attempts`` is less than one, or a delay is negative.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _refuse_coroutine_functions("retry()", function)
        repeating_anything = oxlite.retry(
            attempts=attempts, first_delay=first_delay, longest_delay=longest_delay
        )
        repeating_anything(function)  # it is refused by its own name

        @functools.wraps(function)
        def attempt(*args: Any, **kwargs: Any) -> Any:
            before = _kept()
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if is_stale(error) and _kept() != before:
                    error.add_note(_COMMITTED)
                    raise _Final(error) from None
                raise

        repeating = repeating_anything(attempt)

        @functools.wraps(function)
        def outermost(*args: Any, **kwargs: Any) -> Any:
            from django.db.transaction import get_connection

            connection = get_connection(using)
            nested = connection.in_atomic_block and not all(
                block._from_testcase for block in connection.atomic_blocks
            )
            if nested:
                return function(*args, **kwargs)
            try:
                return repeating(*args, **kwargs)
            except _Final as final:
                error = final.error
            raise error

        return outermost

    if function is not None:
        return decorate(function)
    oxlite.retry(attempts=attempts, first_delay=first_delay, longest_delay=longest_delay)
    return decorate


def _kept() -> dict[str, tuple[int, int]]:
    """What this thread has committed until now, by aliases, if it is something."""
    from django.db import connections

    opened = connections.all(initialized_only=True)
    kept = {each.alias: each.kept() for each in opened if hasattr(each, "kept")}
    # A database that is used for the first time in between is no difference by itself.
    return {alias: counts for alias, counts in kept.items() if any(counts)}


def _refuse_coroutine_functions(name: str, function: object) -> None:
    """Refuse to decorate what runs in an event loop.

    Raises:
        TypeError: It is a coroutine function.
    """
    if inspect.iscoroutinefunction(function):
        raise TypeError(
            f"{name} cannot decorate a coroutine function: Django's transactions belong to a"
            " thread. Decorate a function and call it with asgiref.sync.sync_to_async()."
        )
