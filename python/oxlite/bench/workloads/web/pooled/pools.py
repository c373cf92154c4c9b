"""The engines of the site, and the sessions on them, as the environment says.

``POOLED_DATABASE``
    the file.
``POOLED_POOLS``
    ``shared``: one pool for all; ``isolated``: one of readers, and one of a single writer.
``POOLED_SIZE``
    how many connections there are, in either case.
``POOLED_BUSY``
    how a lock is waited for, as ``oxlite.connect`` takes it; nothing is said to it unless named.

Each process has its own. Who finds no connection waits for longer than any client would, so a pool
that is too small costs time and no failures.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker

from oxlite.sqlalchemy import RoutingSession, create_engines

WAIT_SECONDS = 600.0
SHARED = "shared"
ISOLATED = "isolated"


@dataclass(frozen=True)
class Pools:
    """The engines, and what makes sessions of them.

    Attributes:
        engines: every one that has a pool of its own, the one that writes first.
        session: makes a session. What it has loaded stays as it is after COMMIT, as in Django.
    """

    engines: tuple[Engine, ...]
    session: Callable[..., Session]

    def in_autocommit(self) -> Session:
        """A session without a transaction, for one statement that writes."""
        return self.session(bind=self.engines[0].execution_options(isolation_level="AUTOCOMMIT"))

    def dispose(self) -> None:
        """Close what is in the pools."""
        for engine in self.engines:
            engine.dispose()


def pools_of(environment: Mapping[str, str]) -> Pools:
    """What an environment says; no connection is made before one is needed.

    Raises:
        ValueError: there are no such pools.
    """
    kind, size = environment["POOLED_POOLS"], int(environment["POOLED_SIZE"])
    waits = {"busy": environment["POOLED_BUSY"]} if "POOLED_BUSY" in environment else {}
    url = URL.create("sqlite+oxlite", database=environment["POOLED_DATABASE"], query=waits)
    if kind == ISOLATED:
        engines = create_engines(url, readers=size - 1, writers=1, pool_timeout=WAIT_SECONDS)
        routing = sessionmaker(engines.writer, class_=RoutingSession, expire_on_commit=False)
        return Pools((engines.writer, engines.reader), routing)
    if kind == SHARED:
        engine = create_engine(url, pool_size=size, max_overflow=0, pool_timeout=WAIT_SECONDS)
        return Pools((engine,), sessionmaker(engine, expire_on_commit=False))
    raise ValueError(f"POOLED_POOLS is {SHARED} or {ISOLATED}, not {kind!r}")
