"""Both faces of the cache under one set of names, so that one contract is tested on either."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oxlite.cache import aio

__all__ = ["AwaitedCache"]


class AwaitedCache:
    """The cache for asyncio, as a thread uses it that has no event loop."""

    def __init__(self, path: Path, size: int | None = 256 << 20, **options: Any) -> None:  # noqa: ANN401
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._cache = aio.Cache(path, size, **options)

    def _await(self, coroutine: Any) -> Any:  # noqa: ANN401
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """A method, called and awaited."""
        function = getattr(self._cache, name)
        return lambda *args, **kwargs: self._await(function(*args, **kwargs))

    def __contains__(self, key: str) -> bool:
        """Whether a key is there."""
        found: bool = self._await(self._cache.contains(key))
        return found

    def __len__(self) -> int:
        """How many there are."""
        found: int = self._await(self._cache.count())
        return found

    def keys(self, pattern: str = "*") -> Iterator[str]:
        async def every() -> list[str]:
            return [key async for key in self._cache.keys(pattern)]

        yield from self._await(every())

    def __iter__(self) -> Iterator[str]:
        """All keys."""
        return self.keys()

    def lock(self, name: str, timeout: float | None = None) -> Any:  # noqa: ANN401
        return self._cache.lock(name, timeout)

    def memoize(self, **options: Any) -> Any:  # noqa: ANN401
        decorate = self._cache.memoize(**options)

        def decorated(function: Any) -> Any:  # noqa: ANN401
            async def awaited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
                return function(*args, **kwargs)

            awaited.__doc__ = function.__doc__
            memoized = decorate(awaited)
            call = lambda *args, **kwargs: self._await(memoized(*args, **kwargs))  # noqa: E731
            call.__doc__ = memoized.__doc__
            return call

        return decorated

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self._await(self._cache.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
