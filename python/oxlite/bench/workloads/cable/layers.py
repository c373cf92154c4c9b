"""What Django is told of each channel layer, and nothing more.

Each process has one configuration, because Django has; so the lab itself never loads Django.
A layer has the defaults of its own where it works with them, and a database what its own
documentation recommends.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

VARIABLE = "OXLITE_BENCH_CABLE"
"""Tells the server's processes which layer they have."""

CHANNELS_LITE_INIT = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=5000;"

Config = Callable[[Path], dict[str, Any]]


def _redis(path: Path) -> dict[str, Any]:
    # channels-redis waits for a message for five seconds at a time. So does redis-py 8 for an
    # answer, and then a WebSocket to which nobody says anything is ended.
    return {"hosts": [{"address": f"unix://{path}", "socket_timeout": None}]}


def _django(path: Path) -> dict[str, Any]:
    return {"database": "default"}


LAYERS: Mapping[tuple[str, str], tuple[str, Config]] = {
    ("oxlite", "file"): (
        "oxlite.django.channels.OxliteChannelLayer", lambda path: {"path": str(path)},
    ),
    ("channels_redis", "core"): ("channels_redis.core.RedisChannelLayer", _redis),
    ("channels_redis", "pubsub"): ("channels_redis.pubsub.RedisPubSubChannelLayer", _redis),
    ("channels_lite", "orm"): ("channels_lite.layers.core.SQLiteChannelLayer", _django),
    ("channels_lite", "aio"): ("channels_lite.layers.aio.AIOSQLiteChannelLayer", _django),
    ("memory", "process"): ("channels.layers.InMemoryChannelLayer", lambda path: {}),
}  # fmt: skip
"""The backend and its ``CONFIG``, by the values of the axes ``driver`` and ``way``."""


def told(driver: str, way: str, path: Path) -> dict[str, str]:
    """The environment of a server whose processes have that layer."""
    return {VARIABLE: json.dumps([driver, way, str(path)])}


def configure_as_told() -> None:
    """Set Django up in a process of a server."""
    driver, way, path = json.loads(os.environ[VARIABLE])
    configure(driver, way, Path(path))


def configure(driver: str, way: str, path: Path) -> None:
    """Set Django up with that layer, in a process that has not done so."""
    import django
    from django.conf import settings

    backend, config = LAYERS[driver, way]
    own: dict[str, Any] = {}
    if driver == "channels_lite":
        database = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": path,
            "OPTIONS": {"init_command": CHANNELS_LITE_INIT},
        }
        own = {"INSTALLED_APPS": ["channels_lite"], "DATABASES": {"default": database}}
    settings.configure(
        CHANNEL_LAYERS={"default": {"BACKEND": backend, "CONFIG": config(path)}}, **own
    )
    django.setup()
