"""Each case is run on both faces of a ``Database``, and on every kind of event loop."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import LOOPS
from tests.database.faces import THREADS, Either, Face, OnTasks, OnThreads


@pytest.fixture(params=[THREADS, *LOOPS])
def face(request: pytest.FixtureRequest) -> Face:
    """A face."""
    if request.param == THREADS:
        return OnThreads()
    if request.param != "asyncio":
        pytest.importorskip(request.param)
    return OnTasks(LOOPS[request.param])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may make a database file; none is there yet."""
    return tmp_path / "app.db"


Case = Callable[[Any], Coroutine[Any, Any, None]]
On = Callable[..., None]


@pytest.fixture
def on(face: Face, path: Path) -> On:
    """Runs a case with a database that has a table, and is idle again at the end."""

    def on(case: Case, **options: Either) -> None:
        options = {"readers": 2, "timeout": 30} | options

        async def main() -> None:
            async with face.opened(path, **options) as db:
                await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)")
                await case(db)
                await face.until(lambda: db.stats()[:4] == (options["readers"], 0, 0, 0))

        face.run(main)

    return on
