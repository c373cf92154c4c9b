"""What Django is told of each cache, and nothing more.

Each process has one configuration, because Django has; so the lab itself never loads Django. A
cache has the defaults of its own, but for two: values are kept for an hour, and of those backends
that count entries none evicts any. The stock database has what Django's documentation recommends
for SQLite in production.
"""

from pathlib import Path
from typing import Any

from oxlite.bench.workloads.cache import work

TABLE = "cache_table"
MANY = 100_000_000
"""Entries that nobody has."""

STOCK_OPTIONS = {
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
}


def configure(driver: str, way: str, path: Path, size: int) -> None:
    """Set Django up with that cache, in a process that has not done so.

    Args:
        driver: the value of that axis.
        way: the same.
        path: the file, the directory, or the socket of the server.
        size: the limit of the cache, in bytes, where it has one.
    """
    import django
    from django.conf import settings

    databases: dict[str, Any] = {}
    if way == "table":
        databases["default"] = (
            {"ENGINE": "oxlite.django.sqlite3", "NAME": path}
            if driver == "oxlite"
            else {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": STOCK_OPTIONS}
        )
    settings.configure(
        CACHES={"default": {**_cache(driver, way, path, size), "TIMEOUT": work.EXPIRES_SECONDS}},
        DATABASES=databases,
        SECRET_KEY=f"of the lab: {path}",
    )
    django.setup()


def make_ready(way: str) -> None:
    """Make what must be there before anything is set."""
    if way == "table":
        from django.core.management import call_command

        call_command("createcachetable", verbosity=0)


def connection() -> object:
    """The connection to the database of a table."""
    from django.db import connection as default

    default.ensure_connection()
    found: object = default.connection
    return found


def _cache(driver: str, way: str, path: Path, size: int) -> dict[str, Any]:
    builtin = "django.core.cache.backends"
    unlimited = {"MAX_ENTRIES": MANY}
    if way == "table":
        return {"BACKEND": f"{builtin}.db.DatabaseCache", "LOCATION": TABLE, "OPTIONS": unlimited}
    found: dict[str, dict[str, Any]] = {
        "oxlite": {
            "BACKEND": "oxlite.django.cache.OxliteCache",
            "LOCATION": path,
            "OPTIONS": {"size": size},
        },
        "redis": {"BACKEND": f"{builtin}.redis.RedisCache", "LOCATION": f"unix://{path}"},
        "filebased": {
            "BACKEND": f"{builtin}.filebased.FileBasedCache",
            "LOCATION": path,
            "OPTIONS": unlimited,
        },
        "locmem": {"BACKEND": f"{builtin}.locmem.LocMemCache", "OPTIONS": unlimited},
    }
    return found[driver]
