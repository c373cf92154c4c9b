"""All drivers of the lab. To add one: write its module and add it here."""

from oxlite.bench.drivers.aiosqlite import Aiosqlite
from oxlite.bench.drivers.apsw import Apsw
from oxlite.bench.drivers.base import Driver
from oxlite.bench.drivers.oxlite import Oxlite
from oxlite.bench.drivers.postgresql import PostgreSql
from oxlite.bench.drivers.stdlib import StandardLibrary
from oxlite.bench.registry import Registry

DRIVERS: Registry[Driver] = Registry("driver")
DRIVERS.add(StandardLibrary())
DRIVERS.add(Apsw())
DRIVERS.add(Aiosqlite())
DRIVERS.add(Oxlite())
DRIVERS.add(PostgreSql())
