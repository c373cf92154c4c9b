"""Under which keys the results of functions are kept."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

__all__ = ["key_of", "prefix_of"]

_LONGEST: Final = 250


def prefix_of(function: Callable[..., Any], prefix: str | None, *, is_async: bool) -> str:
    """What the keys of a function begin with.

    Raises:
        TypeError: It is a coroutine function for a cache that calls, or the other way round.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    if inspect.iscoroutinefunction(function) is not is_async:
        kind, other = ("a coroutine function", "oxlite.cache.aio.Cache")
        if is_async:
            kind, other = ("no coroutine function", "oxlite.cache.Cache")
        raise TypeError(f"{name} is {kind}: memoize it with {other}")
    return prefix or name


def key_of(prefix: str, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """The key of a result; a long one is a hash."""
    of = f"{args!r}{sorted(kwargs.items())!r}"
    if len(of) > _LONGEST:
        of = hashlib.blake2b(of.encode(errors="surrogatepass"), digest_size=24).hexdigest()
    return f"{prefix}{of}"
