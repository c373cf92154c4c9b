"""The doors of the package: each by itself writes one row and reads, in the process that asks.

A child that was forked uses them: nothing is imported from ``oxlite`` here before a door is used,
so what the parent has imported is its own affair.

Invariants:
- A door writes one row, reads it, and leaves nothing open.
- A door's wait ends with its timeout, and a child with its alarm: what hangs is killed, and told
  of.
"""

import asyncio
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Only a hang takes as long, also on a machine under load.
LIMIT_SECONDS = 40

INSERT = "INSERT INTO t VALUES (1)"
SELECT = "SELECT count(*) > 0 FROM t"


def _check(row: Any) -> None:  # noqa: ANN401 - each door has its own kind of row
    assert tuple(row) == (1,), row


def use_connect(path: str) -> None:
    """``oxlite.connect``."""
    import oxlite

    connection = oxlite.connect(path, isolation_level=None, timeout=30)
    connection.execute(INSERT)
    _check(connection.execute(SELECT).fetchone())
    connection.close()


def use_drop_in(path: str) -> None:
    """``oxlite.sqlite3.connect``."""
    from oxlite import sqlite3

    connection = sqlite3.connect(path, timeout=30)
    with connection:
        connection.execute(INSERT)
    _check(connection.execute(SELECT).fetchone())
    connection.close()


def use_database(path: str) -> None:
    """``oxlite.Database``."""
    import oxlite

    with oxlite.Database(path, timeout=30) as db:
        db.execute(INSERT)
        _check(db.query_one(SELECT))
        with db.write() as connection:
            connection.execute("UPDATE t SET x = x")
        with db.read() as connection:
            _check(connection.execute(SELECT).fetchone())


def use_aio_database(path: str) -> None:
    """``oxlite.aio.Database``."""
    import oxlite.aio

    async def main() -> None:
        async with oxlite.aio.Database(path, timeout=30) as db:
            await db.execute(INSERT)
            _check(await db.query_one(SELECT))
            async with db.write() as connection:
                await connection.execute("UPDATE t SET x = x")
            async with db.read() as connection:
                _check(await (await connection.execute(SELECT)).fetchone())

    asyncio.run(main())


def use_aio_connect(path: str) -> None:
    """``oxlite.aio.connect``."""
    import oxlite.aio

    async def main() -> None:
        async with oxlite.aio.connect(path, isolation_level=None, timeout=30) as connection:
            await connection.execute(INSERT)
            _check((await connection.execute_fetchall(SELECT))[0])

    asyncio.run(main())


def use_sqlalchemy(path: str) -> None:
    """``create_engine("sqlite+oxlite://")``."""
    from sqlalchemy import create_engine, text

    engine = create_engine(f"sqlite+oxlite:///{path}", connect_args={"timeout": 30})
    with engine.begin() as connection:
        connection.execute(text(INSERT))
        _check(connection.execute(text(SELECT)).one())
    engine.dispose()


def use_sqlalchemy_async(path: str) -> None:
    """``create_async_engine("sqlite+oxlite_async://")``."""
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    async def main() -> None:
        engine = create_async_engine(f"sqlite+oxlite_async:///{path}", connect_args={"timeout": 30})
        async with engine.begin() as connection:
            await connection.execute(text(INSERT))
            _check((await connection.execute(text(SELECT))).one())
        await engine.dispose()

    asyncio.run(main())


def use_django(path: str) -> None:
    """The engine ``oxlite.django``."""
    configure_django(path)
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT)
    with connection.cursor() as cursor:
        cursor.execute(SELECT)
        _check(cursor.fetchone())
    connection.close()


def configure_django(path: str) -> None:
    """Give Django its settings, unless it has some; nothing of ``oxlite`` is imported."""
    import django
    from django.conf import settings

    if not settings.configured:
        database = {"ENGINE": "oxlite.django", "NAME": path, "OPTIONS": {"timeout": 30}}
        settings.configure(DATABASES={"default": database}, SECRET_KEY="a")
        django.setup()


Door = Callable[[str], None]

DOORS: dict[str, Door] = {
    "connect": use_connect,
    "drop-in": use_drop_in,
    "Database": use_database,
    "aio.Database": use_aio_database,
    "aio.connect": use_aio_connect,
}
if find_spec("sqlalchemy") is not None:
    DOORS["SQLAlchemy"] = use_sqlalchemy
    DOORS["SQLAlchemy, asyncio"] = use_sqlalchemy_async
if find_spec("django") is not None:
    DOORS["Django"] = use_django


def make(path: str) -> None:
    """Make the database, in WAL mode, without anything of ``oxlite``."""
    import sqlite3 as standard

    connection = standard.connect(path)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()


def attempt(work: Callable[[], None], told: Path, limit_seconds: int) -> None:
    """Do it in this process, which is a child, and end that; what was wrong is told in a file."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limit_seconds)
    try:
        work()
        told.write_text("")
    except BaseException:
        told.write_text(traceback.format_exc())
    finally:
        os._exit(0)


def begin(work: Callable[[], None], told: Path, limit_seconds: int = LIMIT_SECONDS) -> int:
    """Have a forked child do it; its process id."""
    child = os.fork()
    if child == 0:
        attempt(work, told, limit_seconds)
    return child


def end(child: int, told: Path) -> str:
    """Wait for a child; what was wrong."""
    _, status = os.waitpid(child, 0)
    if status:
        return f"killed: signal {os.WTERMSIG(status)}, perhaps for it has hung"
    return told.read_text()


def use_all(path: str, folder: Path, names: Iterable[str] = DOORS) -> dict[str, str]:
    """Have a forked child each go through every door, all at once; what was wrong, by door."""
    children = []
    for number, name in enumerate(names):
        told = folder / f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}-{number}"
        children.append((name, begin(lambda name=name: DOORS[name](path), told), told))
    said = {name: end(child, told) for name, child, told in children}
    return {name: what for name, what in said.items() if what}
