"""Those who write to the ledger, each way that Oxlite has, and say what became of it.

Invariant: a caller says that a transaction begins before anything of it can be there, and what has
become of it as soon as he knows, and no sooner, except where that is the mistake to be noticed.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.ledger import ADD_CALLER, ADD_ENTRY, CALLERS, SCHEMA, payload_of
from tests.crash.recorder import Recorder
from tests.crash.verdict import DATABASE

import oxlite
from oxlite import sqlite3

_TIMEOUT_SECONDS = 30.0
_TIMEOUT_IN_TROUBLE_SECONDS = 0.05
_TOKENS_OF_A_CALLER = 10_000

SHARED = "shared"
"""Stands for a profile: the profile web with ``durable_commit="shared"``."""

Row = tuple[int, int, int, bytes]
Rows = list[Row]


@dataclass(frozen=True)
class Trouble:
    """A call that fails, or before which the process is killed: see ``tests.faults``."""

    call: str
    first: int
    is_persistent: bool
    effect: int


@dataclass(frozen=True)
class Play:
    """What is played."""

    workload: str
    profile: str
    seed: int
    is_answered_early: bool = False
    """Whether callers are answered before they are committed, which is wrong."""
    pragmas: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the databases, over those that follow from the seed."""
    trouble: Trouble | None = None

    @property
    def is_durable(self) -> bool:
        """Whether what is acknowledged must outlive a power cut."""
        return self.profile in {"durable", "stock", SHARED}

    @property
    def opening(self) -> dict[str, Any]:
        """How a connection is opened."""
        if self.profile == SHARED:
            return {"profile": "web", "durable_commit": "shared"}
        return {"profile": self.profile}

    def as_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> "Play":
        """From another process."""
        trouble = fields["trouble"]
        return cls(**fields | {"trouble": trouble and Trouble(**trouble)})


class AbandonedError(Exception):
    """Somebody changes his mind in the middle of a transaction."""


def is_unknown(error: BaseException) -> bool:
    """Whether a transaction that ended so may have been committed all the same.

    Oxlite says so where it knows; where it does not, a call that failed may have been the commit's.
    """
    if hasattr(oxlite, "CommitOutcomeUnknown"):
        return isinstance(error, oxlite.CommitOutcomeUnknown)
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_BUSY"))


class Stage:
    """A folder with a database, and what is played."""

    def __init__(self, folder: Path, play: Play, recorder: Recorder) -> None:
        self.folder = folder
        self.play = play
        self.recorder = recorder
        generator = random.Random(f"{play.seed} stage")
        self.page_size = generator.choice((512, 1024, 1024, 4096))
        # Small, so that the log begins again and again.
        self.pragmas = {"wal_autocheckpoint": generator.choice((4, 8, 20, 40)), **play.pragmas}
        self.options = {"durable_commit": generator.choice(("group", "group", "each"))}
        self.options |= play.options
        self.is_troubled = play.trouble is not None
        """Whether calls fail, so that transactions may as well."""
        self.timeout_seconds = _TIMEOUT_IN_TROUBLE_SECONDS if self.is_troubled else _TIMEOUT_SECONDS
        self.prepared: list[int] = []
        """The tokens of the transactions that were there before the recording."""

    @property
    def path(self) -> Path:
        """The database."""
        return self.folder / DATABASE

    def say_what_is_there(self) -> None:
        """Says what was promised before the recording began."""
        if self.path.exists():
            self.recorder.mark("schema")
        for token in self.prepared:
            self.recorder.mark("acknowledged", token=token)

    def database(self) -> oxlite.Database:
        """Opens the database for a whole process."""
        return oxlite.Database(
            self.path,
            timeout=self.timeout_seconds,
            pragmas=self.pragmas,
            **{**self.options, **self.play.opening},
        )

    @contextmanager
    def connection(self, name: str = DATABASE, **pragmas: int) -> Iterator[sqlite3.Connection]:
        """Opens one connection."""
        opening = self.play.opening
        if name != DATABASE and self.play.profile == SHARED:
            # A copy is made by one alone, and by no statement's commit.
            opening = {"profile": "durable"}
        connection = oxlite.connect(
            self.folder / name,
            **opening,
            timeout=self.timeout_seconds,
            isolation_level=None,
            pragmas={**self.pragmas, **pragmas},
        )
        try:
            yield connection
        finally:
            connection.close()


def make_schema(connection: sqlite3.Connection) -> None:
    """Makes the tables and the callers, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA.strip().split(";\n    CREATE "):
        text = statement.strip()
        connection.execute(text if text.startswith("CREATE") else f"CREATE {text}")
    connection.executemany(ADD_CALLER, [(number,) for number in CALLERS])
    connection.execute("COMMIT")


class Caller:
    """Somebody who writes, and says what became of it."""

    def __init__(self, stage: Stage, number: int) -> None:
        self.stage = stage
        self.number = number
        self.generator = random.Random(f"{stage.play.seed} caller {number}")
        self._count = 0

    def attempt(self, work: Callable[[Rows], object], parts: int, is_doomed: bool = False) -> None:
        """Has a transaction of so many entries, and says what becomes of it.

        What is doomed is never to be committed, whatever happens.
        """
        self._count += 1
        token = self.number * _TOKENS_OF_A_CALLER + self._count
        rows = [(self.number, token, part, payload_of(token, part)) for part in range(parts)]
        mark = self.stage.recorder.mark
        mark("begins", token=token, parts=parts, is_doomed=is_doomed)
        if self.stage.play.is_answered_early and not is_doomed:
            mark("acknowledged", token=token)
        try:
            work(rows)
        except (AbandonedError, sqlite3.Error, MemoryError) as error:
            if not self.stage.is_troubled and not is_doomed:
                raise
            is_open = is_unknown(error) and not is_doomed
            mark("unknown" if is_open else "failed", token=token, error=repr(error))
        else:
            if is_doomed:
                raise AssertionError("what is doomed was done")
            mark("acknowledged", token=token)

    def one(self, database: oxlite.Database) -> None:
        """A statement that is a transaction."""
        self.attempt(lambda rows: database.execute(ADD_ENTRY, rows[0]), 1)

    def many(self, database: oxlite.Database) -> None:
        """A statement with several sets of parameters."""
        parts = self.generator.randint(2, 6)
        self.attempt(lambda rows: database.executemany(ADD_ENTRY, rows), parts)

    def several(self, database: oxlite.Database) -> None:
        """A transaction of several statements."""

        def work(rows: Rows) -> None:
            with database.write() as connection:
                for row in rows:
                    connection.execute(ADD_ENTRY, row)

        self.attempt(work, self.generator.randint(2, 6))

    def abandoned(self, database: oxlite.Database) -> None:
        """A transaction that is rolled back."""

        def work(rows: Rows) -> None:
            with database.write() as connection:
                for row in rows:
                    connection.execute(ADD_ENTRY, row)
                raise AbandonedError

        self.attempt(work, self.generator.randint(1, 4), is_doomed=True)

    def refused(self, database: oxlite.Database) -> None:
        """A statement that a constraint refuses."""

        def work(rows: Rows) -> None:
            database.execute(ADD_ENTRY, (0, *rows[0][1:]))

        self.attempt(work, 1, is_doomed=True)

    def anything(self, database: oxlite.Database, count: int) -> None:
        """So many of these, single statements most."""
        ways = [self.one] * 5 + [self.many, self.several, self.several]
        ways += [self.abandoned, self.refused]
        for _ in range(count):
            self.generator.choice(ways)(database)

    def on_connection(self, connection: sqlite3.Connection, parts: int, is_doomed: bool) -> None:
        """A transaction on a connection of one's own, with a savepoint in it."""

        def work(rows: Rows) -> None:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(ADD_ENTRY, rows[:-1])
                connection.execute("SAVEPOINT inner")
                connection.executemany(ADD_ENTRY, rows)
                connection.execute("ROLLBACK TO inner")
                connection.execute(ADD_ENTRY, rows[-1])
                if is_doomed:
                    raise AbandonedError
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

        self.attempt(work, parts, is_doomed)
