"""The blocking dialect where greenlet is not installed, as SQLAlchemy 2.1 leaves it by default.

Each test runs in a process of its own, in which importing greenlet fails as where it is missing.
"""

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import oxlite.sqlalchemy

MODULES = [
    "oxlite.sqlalchemy",
    *(
        f"oxlite.sqlalchemy.{module.name}"
        for module in pkgutil.iter_modules(oxlite.sqlalchemy.__path__)
    ),
]

# A name that is None in sys.modules is a ModuleNotFoundError to whoever imports it.
MISSING = """
import sys
sys.modules["greenlet"] = None
from sqlalchemy.dialects import registry
registry.register("sqlite.oxlite", "oxlite.sqlalchemy.dialect", "SQLiteDialect_oxlite")
"""


def run(script: str, *arguments: str) -> str:
    """What a script prints that runs without greenlet."""
    done = subprocess.run(
        [sys.executable, "-c", MISSING + script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_every_module_can_be_imported() -> None:
    """Each in a process in which none of the others has been."""
    script = """
import importlib, os, sqlalchemy, traceback
assert not [name for name in sys.modules if name.startswith("oxlite.sqlalchemy")]
for module in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(module)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(module)
"""
    assert run(script, *MODULES) == ""


def test_an_engine_works(tmp_path: Path) -> None:
    script = """
from sqlalchemy import create_engine, text
engine = create_engine(sys.argv[1])
with engine.begin() as connection:
    connection.execute(text("CREATE TABLE t (x)"))
    connection.execute(text("INSERT INTO t VALUES (1)"))
    print(connection.scalar(text("SELECT x FROM t")))
"""
    assert run(script, "sqlite+oxlite://") == "1"
    assert run(script, f"sqlite+oxlite:///{tmp_path}/app.db") == "1"


def test_readers_and_a_writer_work(tmp_path: Path) -> None:
    script = """
from sqlalchemy import text
from sqlalchemy.orm import sessionmaker
from oxlite.sqlalchemy import RoutingSession, create_engines
engines = create_engines(sys.argv[1])
with sessionmaker(engines.writer, class_=RoutingSession).begin() as session:
    session.execute(text("CREATE TABLE t (x)"))
    print(session.scalar(text("SELECT count(*) FROM t")))
"""
    assert run(script, f"sqlite+oxlite:///{tmp_path}/app.db") == "0"


def test_engines_for_an_event_loop_say_what_is_missing(tmp_path: Path) -> None:
    script = """
import asyncio
from oxlite.sqlalchemy import create_async_engines
async def main():
    async with create_async_engines(sys.argv[1]).writer.connect():
        print("connected")
try:
    asyncio.run(main())
except (ImportError, ValueError) as error:  # SQLAlchemy 2.1 says it first, 2.0 when it connects
    print(error)
"""
    assert "greenlet" in run(script, f"sqlite+oxlite:///{tmp_path}/app.db")
