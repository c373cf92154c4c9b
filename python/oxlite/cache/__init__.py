"""The cache: keys and values in a file of their own, for all threads and processes of a machine.

How to use it: ``docs/cache.md``. ``oxlite.cache.aio.Cache`` is the same for asyncio, and
``oxlite.django.cache.OxliteCache`` Django's backend of it.
"""

from oxlite.cache.cache import Cache
from oxlite.cache.locks import NamedLock
from oxlite.cache.statistics import CacheStatistics

__all__ = ["Cache", "CacheStatistics", "NamedLock"]
