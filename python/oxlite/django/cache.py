"""Django's cache in a file: ``oxlite.django.cache.OxliteCache``.

>>> CACHES = {
...     "default": {
...         "BACKEND": "oxlite.django.cache.OxliteCache",
...         "LOCATION": BASE_DIR / "cache.db",
...     }
... }

Invariant: keys, versions, timeouts and errors are those of Django's contract; what is stored, and
how, is the cache's.
"""

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.exceptions import ImproperlyConfigured

from oxlite.cache import Cache, CacheStatistics, aio

__all__ = ["OxliteCache"]

_SALT: Final = b"oxlite.django.cache:"
_OPTIONS: Final = frozenset({"size", "compress_above", "profile", "lock_timeout", "serializer"})
_IGNORED: Final = frozenset({"MAX_ENTRIES", "CULL_FREQUENCY"})
_LONGEST_KEY: Final = 16_000
"""Longer keys, of which Django warns, are kept under a hash."""


@dataclass(frozen=True)
class _Faces:
    """One file with its options, as threads and as event loops use it."""

    blocking: Cache
    native: aio.Cache


_caches: dict[tuple[Any, ...], _Faces] = {}
_lock = threading.Lock()


def _secret(secret_key: str | bytes) -> bytes:
    """What seals values; that key itself signs other things of the site."""
    raw = secret_key if isinstance(secret_key, bytes) else secret_key.encode()
    return hashlib.sha256(_SALT + raw).digest() if raw else b""


def _shared(path: str, options: Mapping[str, Any], secrets: list[bytes]) -> _Faces:
    """The cache of a file and its options: all threads of the process have the same one.

    Django makes a backend for each thread and for each request's context.
    """
    which = (str(Path(path).absolute()), *sorted(options.items()), *secrets)
    found = _caches.get(which)
    if found is None:
        made = _Faces(
            Cache(path, secret_key=secrets, lazily=True, **options),
            aio.Cache(path, secret_key=secrets, **options),
        )
        with _lock:
            found = _caches.setdefault(which, made)
    return found


class OxliteCache(BaseCache):
    """Keys and values in an SQLite file, for all processes of a site.

    Args:
        location: ``LOCATION``: the file; made when it is first needed.
        params: The rest. ``OPTIONS`` may have ``size`` (bytes; ``None``: nothing is evicted),
            ``serializer`` (``"pickle"``, sealed with ``SECRET_KEY``, or ``"json"``),
            ``compress_above`` (bytes), ``profile``, and ``lock_timeout``, for which a lock of the
            file is waited for, in seconds. ``MAX_ENTRIES`` and ``CULL_FREQUENCY`` have no effect:
            the limit is in bytes.

    A value that was sealed with another ``SECRET_KEY`` is not there, unless that is one of
    ``SECRET_KEY_FALLBACKS``.
    """

    def __init__(self, location: str | PathLike[str], params: dict[str, Any]) -> None:
        super().__init__(params)
        options = {
            name: value for name, value in params.get("OPTIONS", {}).items() if name not in _IGNORED
        }
        if unknown := options.keys() - _OPTIONS:
            raise ImproperlyConfigured(
                f"OxliteCache has no option {min(unknown)!r}; it has {', '.join(sorted(_OPTIONS))}"
            )
        if not location:
            raise ImproperlyConfigured("OxliteCache needs LOCATION: the path of its file")
        secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        try:
            faces = _shared(
                str(location),
                {"serializer": "pickle", **options},
                [_secret(one) for one in secrets],
            )
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"OxliteCache: {error}") from error
        self._path = Path(location).absolute()
        self._cache = faces.blocking
        self._aio = faces.native

    def validate_key(self, key: str) -> None:
        """Warn of keys that memcached would refuse, as Django's own backends do."""
        # What memcached takes is told without looking at each character.
        if len(key) <= 250 and key.isascii() and key.isprintable() and " " not in key:
            return
        super().validate_key(key)

    def make_and_validate_key(self, key: str, version: int | None = None) -> str:
        """The key in the file: with prefix and version; a hash where it is too long or no text."""
        # Not by super(): each lookup comes here.
        made: str = self.make_key(key, version=version)
        self.validate_key(made)
        if made.isascii() and len(made) <= _LONGEST_KEY:
            return made
        raw = made.encode(errors="surrogatepass")
        if len(raw) <= _LONGEST_KEY and not any("\ud800" <= one <= "\udfff" for one in made):
            return made
        return "sha256:" + hashlib.sha256(raw).hexdigest()

    @property
    def path(self) -> Path:
        """Its file."""
        return self._path

    @property
    def cache(self) -> Cache:
        """What it is built on, for what Django has no word for."""
        return self._cache

    def _seconds(self, timeout: Any) -> float | None:
        found: float | None = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return found

    # What Django asks for.

    def add(
        self,
        key: str,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        """See Django's documentation of the cache API, as for the rest."""
        key = self.make_and_validate_key(key, version=version)
        return self._cache.add(key, value, self._seconds(timeout))

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """See there."""
        return self._cache.get(self.make_and_validate_key(key, version=version), default)

    def set(
        self,
        key: str,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> None:
        """See there."""
        key = self.make_and_validate_key(key, version=version)
        self._cache.set(key, value, self._seconds(timeout))

    def touch(
        self,
        key: str,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        """See there."""
        key = self.make_and_validate_key(key, version=version)
        return self._cache.touch(key, self._seconds(timeout))

    def delete(self, key: str, version: int | None = None) -> bool:
        """See there."""
        return self._cache.delete(self.make_and_validate_key(key, version=version))

    def has_key(self, key: str, version: int | None = None) -> bool:
        """See there."""
        return self.make_and_validate_key(key, version=version) in self._cache

    def get_many(self, keys: Iterable[str], version: int | None = None) -> dict[str, Any]:
        """See there."""
        given = {self.make_and_validate_key(key, version=version): key for key in keys}
        return {given[key]: value for key, value in self._cache.get_many(given).items()}

    def set_many(
        self,
        data: Mapping[str, Any],
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> list[str]:
        """See there. All are set at once."""
        given = {self.make_and_validate_key(key, version=version): key for key in data}
        values = {key: data[name] for key, name in given.items()}
        return [given[key] for key in self._cache.set_many(values, self._seconds(timeout))]

    def delete_many(self, keys: Iterable[str], version: int | None = None) -> None:
        """See there."""
        self._cache.delete_many([self.make_and_validate_key(key, version=version) for key in keys])

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """See there. It is atomic; the expiry stays."""
        made = self.make_and_validate_key(key, version=version)
        try:
            return self._cache.incr(made, delta)
        except ValueError:
            raise ValueError(f"Key '{key}' not found") from None

    def get_or_set(
        self,
        key: str,
        default: Any | Callable[[], Any],
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> Any:
        """See there. One caller of all processes computes the value; the others wait for it."""
        made = self.make_and_validate_key(key, version=version)
        return self._cache.get_or_set(made, default, self._seconds(timeout))

    def clear(self) -> None:
        """See there. It deletes the keys of all versions and prefixes."""
        self._cache.clear()

    def stats(self) -> CacheStatistics:
        """What the cache holds, and what this process has done with it."""
        return self._cache.stats()

    # The same for event loops, without threads.

    async def aadd(
        self,
        key: str,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        """See there."""
        key = self.make_and_validate_key(key, version=version)
        return await self._aio.add(key, value, self._seconds(timeout))

    async def aget(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """See there."""
        return await self._aio.get(self.make_and_validate_key(key, version=version), default)

    async def aset(
        self,
        key: str,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> None:
        """See there."""
        key = self.make_and_validate_key(key, version=version)
        await self._aio.set(key, value, self._seconds(timeout))

    async def atouch(
        self,
        key: str,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        """See there."""
        key = self.make_and_validate_key(key, version=version)
        return await self._aio.touch(key, self._seconds(timeout))

    async def adelete(self, key: str, version: int | None = None) -> bool:
        """See there."""
        return await self._aio.delete(self.make_and_validate_key(key, version=version))

    async def ahas_key(self, key: str, version: int | None = None) -> bool:
        """See there."""
        return await self._aio.contains(self.make_and_validate_key(key, version=version))

    async def aget_many(self, keys: Iterable[str], version: int | None = None) -> dict[str, Any]:
        """See there."""
        given = {self.make_and_validate_key(key, version=version): key for key in keys}
        found = await self._aio.get_many(given)
        return {given[key]: value for key, value in found.items()}

    async def aset_many(
        self,
        data: Mapping[str, Any],
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> list[str]:
        """See there."""
        given = {self.make_and_validate_key(key, version=version): key for key in data}
        values = {key: data[name] for key, name in given.items()}
        failed = await self._aio.set_many(values, self._seconds(timeout))
        return [given[key] for key in failed]

    async def adelete_many(self, keys: Iterable[str], version: int | None = None) -> None:
        """See there."""
        made = [self.make_and_validate_key(key, version=version) for key in keys]
        await self._aio.delete_many(made)

    async def aincr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """See there."""
        made = self.make_and_validate_key(key, version=version)
        try:
            return await self._aio.incr(made, delta)
        except ValueError:
            raise ValueError(f"Key '{key}' not found") from None

    async def adecr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """See there."""
        return await self.aincr(key, -delta, version=version)

    async def aget_or_set(
        self,
        key: str,
        default: Any | Callable[[], Any],
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> Any:
        """See there. What the function returns is awaited if it can be."""
        made = self.make_and_validate_key(key, version=version)
        return await self._aio.get_or_set(made, default, self._seconds(timeout))

    async def aclear(self) -> None:
        """See there."""
        await self._aio.clear()
