"""What a program does by each door; ``told()`` is whatever has told of it since the last time."""

from collections.abc import Callable
from typing import Any, Final

Blocks = dict[str, list[str]]
"""The programs of the guide, by the headings under which they stand."""

Instrumented = Callable[..., dict[str, Any]]
"""Runs parts of a program; returns what it has put in ``found``."""

DRIVER: Final = """
import oxlite
connection = oxlite.connect("app.db")
cursor = connection.cursor()
cursor.execute("CREATE TABLE IF NOT EXISTS note (text)")
cursor.executemany("INSERT INTO note VALUES (?)", [("a",), ("b",)])
connection.commit()
with connection:
    connection.cursor().execute("DELETE FROM note")
connection.close()
found["connect"] = told()
connection = oxlite.sqlite3.connect("app.db")
connection.cursor().execute("SELECT 1")
connection.close()
found["drop-in"] = told()
"""

ENGINE: Final = """
import sqlalchemy as sa
from sqlalchemy.orm import sessionmaker
from oxlite.sqlalchemy import RoutingSession, create_engines
engine = sa.create_engine("sqlite+oxlite:///engine.db")
with engine.begin() as connection:
    connection.execute(sa.text("CREATE TABLE note (text)"))
    connection.execute(sa.text("INSERT INTO note VALUES (:text)"), [{"text": "a"}, {"text": "b"}])
levels = []
for level in ("SNAPSHOT", "SERIALIZABLE", "AUTOCOMMIT", "READ COMMITTED"):
    with engine.connect().execution_options(isolation_level=level) as connection:
        levels.append([connection.get_isolation_level(), connection.in_transaction()])
        connection.execute(sa.text("UPDATE note SET text = 'c'"))
        connection.commit()
        driver = connection.connection.dbapi_connection
        levels[-1].append(driver.in_transaction)
found["levels"] = levels
try:
    with engine.connect().execution_options(sqlite_read_only=True) as connection:
        connection.execute(sa.text("DELETE FROM note"))
except sa.exc.OperationalError as error:
    found["refusal"] = str(error.orig)
with engine.connect() as connection:
    found["rows"] = [list(row) for row in connection.execute(sa.text("SELECT text FROM note"))]
found["tables"] = sa.inspect(engine).get_table_names()
engine.dispose()
found["engine"] = told()
engines = create_engines("sqlite+oxlite:///engine.db")
with sessionmaker(engines.writer, class_=RoutingSession)() as session:
    session.execute(sa.text("SELECT count(*) FROM note"))
engines.dispose()
found["engines"] = told()
"""

ASYNC_ENGINE: Final = """
import sqlalchemy as sa
import sqlalchemy.ext.asyncio
async def use_engine():
    engine = sqlalchemy.ext.asyncio.create_async_engine("sqlite+oxlite:///engine.db")
    async with engine.begin() as connection:
        found["one"] = (await connection.execute(sa.text("SELECT 1"))).scalar()
    await engine.dispose()
asyncio.run(use_engine())
found["async engine"] = told()
"""

POOLS: Final = """
import oxlite
import oxlite.aio
with oxlite.Database("pool.db") as db:
    db.execute("CREATE TABLE note (text)")
    db.execute("INSERT INTO note VALUES (?)", ("a",))
    db.executemany("INSERT INTO note VALUES (?)", [("b",), ("c",)])
    found["one"] = list(db.query_one("SELECT count(*) FROM note"))
    found["all"] = [list(row) for row in db.query("SELECT text FROM note")]
    with db.write() as connection:
        connection.execute("DELETE FROM note WHERE text = 'c'")
    found["Database"] = told()
async def use_pool():
    async with oxlite.aio.Database("pool.db") as db:
        await db.execute("INSERT INTO note VALUES (?)", ("d",))
        found["gathered"] = [list(row) for (row,) in await asyncio.gather(
            *(db.query("SELECT count(*) FROM note") for _ in range(3))
        )]
        async with db.write() as connection:
            await connection.execute("UPDATE note SET text = 'e'")
    found["aio.Database"] = told()
    async with oxlite.aio.connect("pool.db") as connection:
        async with connection.execute("SELECT 1") as cursor:
            found["entered"] = list(await cursor.fetchone())
        await connection.execute_fetchall("SELECT 2")
    found["aio.connect"] = told()
asyncio.run(use_pool())
"""

SITE: Final = """
import django
from django.conf import settings
settings.configure(
    DATABASES={
        "default": {"ENGINE": "oxlite.django", "NAME": os.path.abspath("site.db")},
        "other": {
            "ENGINE": "oxlite.django",
            "NAME": os.path.abspath("other.db"),
            "TEST": {"NAME": os.path.abspath("test.db")},
        },
    },
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()
from django.core.management import call_command
from django.db import connection, connections, transaction
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group
from oxlite.django import read_only
told()
with transaction.atomic():
    Group.objects.create(name="a")
with read_only():
    found["names"] = list(Group.objects.values_list("name", flat=True))
found["streamed"] = [group.name for group in Group.objects.iterator()]
with connection.cursor() as cursor:
    cursor.execute("SELECT 1")
found["site"] = told()
connection.close()
connection.creation.create_test_db(verbosity=0)  # in memory
Group.objects.create(name="of the test")
connection.creation.clone_test_db("1", verbosity=0)
child = os.fork()
if not child:
    connection.creation.setup_worker_connection(1)
    os._exit(0 if Group.objects.count() == 1 else 1)
found["worker"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
connections["other"].creation.create_test_db(verbosity=0)
Group.objects.using("other").create(name="of the test")
connections["other"].creation.clone_test_db("1", verbosity=0)
found["clone"] = os.path.exists("test_1.db")
"""
