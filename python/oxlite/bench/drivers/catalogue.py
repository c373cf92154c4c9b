"""All drivers of the lab. To add one: write its module and add it here."""

from oxlite.bench.drivers.apsw import Apsw
from oxlite.bench.drivers.base import Driver
from oxlite.bench.drivers.caches import Diskcache, FileBased, LocMem
from oxlite.bench.drivers.messages import ChannelsLite, ChannelsRedis, Honker, Memory, Redis
from oxlite.bench.drivers.oxlite import Oxlite
from oxlite.bench.drivers.postgresql import PostgreSql
from oxlite.bench.drivers.stdlib import Aiosqlite, StandardLibrary
from oxlite.bench.drivers.tasks import Celery, DjangoTasks, Huey
from oxlite.bench.registry import Registry

DRIVERS: Registry[Driver] = Registry("driver")
for _driver in (
    StandardLibrary,
    Apsw,
    Aiosqlite,
    Oxlite,
    PostgreSql,
    Redis,
    Honker,
    ChannelsRedis,
    ChannelsLite,
    Memory,
    Diskcache,
    FileBased,
    LocMem,
    Celery,
    Huey,
    DjangoTasks,
):
    DRIVERS.add(_driver())
