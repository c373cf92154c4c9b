"""How each system is asked: by its own client, by Django's interface, by a client for asyncio.

A client is four functions, taken of the library as they are, so that nothing of the lab is in what
is timed: ``get(key)``, ``set(key, value, seconds)``, ``incr(key)``, ``get_many(keys)``. Through its
own client a value is bytes on all sides, which no library serialises; through Django's interface it
is an object that every backend pickles.

Invariant: importing this loads none of the libraries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.cache import site

RAW, DJANGO, ASYNCIO = INTERFACES = ("raw", "django", "asyncio")
UNIX, TCP, UNIX_LOGGED, TCP_LOGGED = REDIS_WAYS = ("unix", "tcp", "unix_aof", "tcp_aof")

SYSTEMS: Sequence[tuple[str, str, str]] = (
    ("oxlite", RAW, "file"),
    *(("redis", RAW, way) for way in REDIS_WAYS),
    ("diskcache", RAW, "file"),
    ("oxlite", DJANGO, "file"),
    ("redis", DJANGO, UNIX),
    ("stdlib", DJANGO, "table"),
    ("oxlite", DJANGO, "table"),
    ("filebased", DJANGO, "file"),
    ("locmem", DJANGO, "memory"),
    ("oxlite", ASYNCIO, "file"),
    ("redis", ASYNCIO, UNIX),
)
"""The values of the axes ``driver``, ``interface`` and ``way`` that go together."""


@dataclass(frozen=True)
class Client:
    """How a system is asked; see the module. With asyncio all are awaited.

    Attributes:
        get, set, incr, get_many: see the module.
        close: leaves it.
        unable: how often it could not do what it was asked, and went on.
        enter: opens it for an event loop, as ``async with`` does.
    """

    get: Callable[..., Any]
    set: Callable[..., Any]
    incr: Callable[..., Any]
    get_many: Callable[..., Any]
    close: Callable[[], Any]
    unable: Callable[[], Any] = lambda: 0
    enter: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Whereabouts:
    """Where a system is.

    Attributes:
        path: its file, its directory, or the socket of its server.
        port: of its server, where that is asked by TCP.
        size: the limit of the cache, in bytes, where it has one.
    """

    path: Path
    port: int
    size: int


def is_atomic(scenario: Scenario) -> bool:
    """Whether increments of several processes all count: BaseCache's read, add and write."""
    return scenario["interface"] != DJANGO or (scenario.driver, scenario["way"]) in {
        ("oxlite", "file"),
        ("redis", UNIX),
    }


def opened(scenario: Scenario, where: Whereabouts) -> Client:
    """A client of this process's own."""
    if scenario["interface"] == DJANGO:
        return _django(scenario, where)
    openers = _RAW if scenario["interface"] == RAW else _ASYNCIO
    return openers[scenario.driver](scenario, where)


def _oxlite(_: Scenario, where: Whereabouts) -> Client:
    from oxlite.cache import Cache

    cache = Cache(where.path, where.size)
    return Client(
        cache.get, cache.set, cache.incr, cache.get_many, cache.close,
        lambda: cache.stats().failures,
    )  # fmt: skip


def _redis(scenario: Scenario, where: Whereabouts) -> Client:
    redis = import_module("redis").Redis
    by_port = scenario["way"].startswith(TCP)
    client = redis(port=where.port) if by_port else redis(unix_socket_path=str(where.path))
    return Client(client.get, client.set, client.incr, client.mget, client.close)


def _diskcache(_: Scenario, where: Whereabouts) -> Client:
    cache = import_module("diskcache").Cache(str(where.path), size_limit=where.size)
    get = cache.get

    # It has no operation for several keys.
    def get_many(keys: Sequence[str]) -> list[Any]:
        return [get(key) for key in keys]

    return Client(get, cache.set, cache.incr, get_many, cache.close)


def _oxlite_aio(_: Scenario, where: Whereabouts) -> Client:
    from oxlite.cache.aio import Cache

    cache = Cache(where.path, where.size)

    async def unable() -> int:
        return (await cache.stats()).failures

    return Client(
        cache.get, cache.set, cache.incr, cache.get_many, cache.close, unable, cache.__aenter__
    )


def _redis_aio(_: Scenario, where: Whereabouts) -> Client:
    client = import_module("redis.asyncio").Redis(unix_socket_path=str(where.path))
    return Client(client.get, client.set, client.incr, client.mget, client.aclose)


def _django(scenario: Scenario, where: Whereabouts) -> Client:
    site.configure(scenario.driver, scenario["way"], where.path, where.size)
    from django.core.cache import caches

    cache = caches["default"]
    stats = getattr(cache, "stats", None)
    return Client(
        cache.get, cache.set, cache.incr, cache.get_many, cache.close,
        (lambda: stats().failures) if stats else (lambda: 0),
    )  # fmt: skip


_RAW: Mapping[str, Callable[[Scenario, Whereabouts], Client]] = {
    "oxlite": _oxlite,
    "redis": _redis,
    "diskcache": _diskcache,
}
_ASYNCIO: Mapping[str, Callable[[Scenario, Whereabouts], Client]] = {
    "oxlite": _oxlite_aio,
    "redis": _redis_aio,
}


def ordered(found: Any, keys: Sequence[str]) -> list[Any]:  # noqa: ANN401 - a list, or a dict
    """What ``get_many`` has found, in the order of the keys."""
    return [found.get(key) for key in keys] if isinstance(found, dict) else list(found)
