"""Django's tests with Oxlite's cache under the name of that in memory, which most of them use."""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from django.core.cache.backends import locmem
from settings_stock import *  # noqa: F403

from oxlite.django.cache import OxliteCache

_FOLDER = Path(tempfile.mkdtemp(prefix="oxlite-django-cache-"))


class LocMemCache(OxliteCache):
    """One file for each location, as there is one dict for each."""

    # By which the tests have several caches share one dict, beside ``_cache``.
    _expire_info: object = None

    def __init__(self, name: str, params: dict[str, Any]) -> None:
        named = hashlib.sha256(name.encode()).hexdigest()[:16]
        super().__init__(_FOLDER / f"{named}.db", params)


locmem.LocMemCache = LocMemCache  # type: ignore[misc]
