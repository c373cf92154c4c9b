"""What the processes under test do: they write to the ledger in all the ways that Oxlite has.

How many threads meet where is up to them; what they want to do follows from the seed.
"""

import errno
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.crash.callers import SHARED, AbandonedError, Caller, Rows, Stage, make_schema
from tests.crash.children import ended, in_a_child
from tests.crash.ledger import ADD_ENTRY, payload_of
from tests.crash.verdict import COPY

import oxlite
from oxlite import sqlite3

_BACKUP_SECONDS = 10.0

_LONG_LOG_BYTES = 160_000
"""More than SQLite's VFS writes at once (131,071), so that it is written again in several parts."""
_PAGE_BYTES = 1024
_FILLERS = (5, 7, 9)
"""Callers with so many entries that their part of the index has pages of its own."""
_FILLING = range(5_001, 5_006)
ADD_BALLAST = "INSERT INTO ballast VALUES (randomblob(?))"
_BALLAST_BYTES = 2_500
_KILL = -2
"""The effect of a fault that kills the process: see the interposer."""


def checkpoint(connection: sqlite3.Connection, generator: random.Random) -> None:
    """Moves the log into the database, as far as others let it."""
    mode = generator.choice(("PASSIVE", "PASSIVE", "FULL", "RESTART", "TRUNCATE"))
    connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()


def together(work: list[Callable[[], object]]) -> None:
    """Has threads do this; raises what one of them raises."""
    raised: list[BaseException] = []

    def guarded(one: Callable[[], object]) -> None:
        try:
            one()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def single_statements(stage: Stage) -> None:
    """One caller, a statement at a time."""
    caller = Caller(stage, 1)
    with stage.database() as database:
        for _ in range(60):
            caller.one(database)


def mixed(stage: Stage) -> None:
    """One caller, everything that can be done, and checkpoints."""
    caller = Caller(stage, 1)
    with stage.database() as database, stage.connection() as connection:
        for _ in range(10):
            caller.anything(database, 5)
            checkpoint(connection, caller.generator)


def threads(stage: Stage) -> None:
    """Several callers of one database."""
    callers = [Caller(stage, number) for number in range(1, 7)]
    with stage.database() as database:
        together([lambda caller=caller: caller.anything(database, 12) for caller in callers])


def crowd(stage: Stage) -> None:
    """Many callers at once, a statement each, again and again."""
    callers = [Caller(stage, number) for number in range(1, 17)]

    def work(caller: Caller) -> None:
        for _ in range(6):
            caller.one(database)

    with stage.database() as database:
        together([lambda caller=caller: work(caller) for caller in callers])


def connections(stage: Stage) -> None:
    """Several callers with connections of their own, and one that makes checkpoints."""

    def write(caller: Caller) -> None:
        with stage.connection() as connection:
            for _ in range(14):
                is_doomed = caller.generator.random() < 0.15
                caller.on_connection(connection, caller.generator.randint(1, 5), is_doomed)

    def move() -> None:
        generator = random.Random(f"{stage.play.seed} checkpoints")
        with stage.connection() as connection:
            for _ in range(25):
                checkpoint(connection, generator)

    callers = [Caller(stage, number) for number in range(1, 4)]
    together([move, *(lambda caller=caller: write(caller) for caller in callers)])


def beside_an_outsider(stage: Stage) -> None:
    """One caller, and somebody who syncs nothing and makes checkpoints."""
    caller = Caller(stage, 1)
    outsider = oxlite.connect(stage.path, profile="cache", isolation_level=None)
    with stage.database() as database:
        for _ in range(12):
            for _ in range(3):
                caller.one(database)
            outsider.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            caller.one(database)
    outsider.close()


def large_transactions(stage: Stage) -> None:
    """Transactions that do not fit into the cache, so that they reach the log before they end."""
    caller = Caller(stage, 1)
    with stage.connection(cache_size=6) as connection:
        for number in range(12):
            caller.on_connection(connection, caller.generator.randint(12, 24), number % 4 == 2)


def pages_written_twice(stage: Stage) -> None:
    """Transactions of many pages, which one connection writes at once, and another in parts.

    What reaches the log before a transaction ends is written over, so that checksums are computed
    anew, and automatic vacuum moves pages while it ends.
    """
    caller = Caller(stage, 1)

    def work(connection: sqlite3.Connection, rows: Rows) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(ADD_BALLAST, [(_BALLAST_BYTES,)] * len(rows))
            connection.execute("UPDATE ballast SET x = randomblob(length(x))")
            connection.executemany(ADD_ENTRY, rows)
            connection.execute("SAVEPOINT inner")
            connection.execute("DELETE FROM ballast")
            connection.executemany(ADD_BALLAST, [(_BALLAST_BYTES,)] * len(rows))
            connection.execute("ROLLBACK TO inner")
            connection.execute("DELETE FROM ballast WHERE rowid % 3 = 0")
            if len(rows) % 5 == 0:
                raise AbandonedError
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    with stage.connection(cache_size=6) as small, stage.connection() as large:
        for _ in range(8):
            connection = caller.generator.choice((small, large))
            parts = caller.generator.randint(4, 12)
            caller.attempt(lambda rows, it=connection: work(it, rows), parts, parts % 5 == 0)


def opened_again(stage: Stage) -> None:
    """The database is closed, so that the log goes, and opened again."""
    caller = Caller(stage, 1)
    for _ in range(7):
        with stage.database() as database:
            caller.anything(database, 8)


def new(stage: Stage) -> None:
    """A database that there was not."""
    with stage.connection(page_size=stage.page_size) as connection:
        make_schema(connection)
        stage.recorder.mark("schema")
    opened_again(stage)


def backup(stage: Stage) -> None:
    """Backups into another file, while one writes."""
    caller = Caller(stage, 1)

    def copy() -> None:
        size = {"page_size": stage.page_size}
        with stage.connection() as source, stage.connection(COPY, **size) as target:
            ((entries,),) = source.execute("SELECT count(*) FROM entry").fetchall()
            source.backup(target, pages=5)
            stage.recorder.mark("copied", entries=entries)

    with stage.database() as database:
        for _ in range(4):
            caller.anything(database, 6)
            together([copy, lambda: caller.anything(database, 4)])


def short(stage: Stage) -> None:
    """A little of everything that can be done, to be played with trouble in it."""
    caller = Caller(stage, 1)
    for way in (caller.several, caller.abandoned, caller.many):
        with _trouble_tolerated(), stage.database() as database:
            for _ in range(3):
                caller.one(database)
            way(database)
            with _trouble_tolerated(), stage.connection() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            caller.one(database)


def short_crowd(stage: Stage) -> None:
    """Several callers at once, to be played with trouble in it."""
    callers = [Caller(stage, number) for number in range(1, 5)]

    def work(caller: Caller) -> None:
        for _ in range(3):
            caller.one(database)

    for _ in range(2):
        with _trouble_tolerated(), stage.database() as database:
            together([lambda caller=caller: work(caller) for caller in callers])


def short_backup(stage: Stage) -> None:
    """A backup, to be played with trouble in it."""
    caller = Caller(stage, 1)
    size = {"page_size": stage.page_size}
    for _ in range(2):
        with _trouble_tolerated(), stage.connection() as source:
            caller.on_connection(source, 3, False)
            ((entries,),) = source.execute("SELECT count(*) FROM entry").fetchall()
            with stage.connection(COPY, **size) as target:
                source.backup(target, pages=5, progress=_given_up_after(_BACKUP_SECONDS))
                stage.recorder.mark("copied", entries=entries)


def _given_up_after(seconds: float) -> Callable[[int, int, int], None]:
    """For a backup, which waits for locks as long as it takes.

    SQLite keeps one for good whose unlocking has failed.
    """
    ends = time.monotonic() + seconds

    def look(*_: int) -> None:
        if time.monotonic() > ends:
            raise sqlite3.OperationalError("the backup comes to no end")

    return look


def recovery(stage: Stage) -> None:
    """A log that somebody left is recovered from, and written to, to be played with trouble."""
    caller = Caller(stage, 1)
    for _ in range(2):
        with _trouble_tolerated(), stage.connection() as connection:
            for parts in (1, 3, 2):
                caller.on_connection(connection, parts, False)


def begun_again(stage: Stage) -> None:
    """All who write end in a sync, with a long log; then somebody begins anew. Twice."""
    for number in range(2):
        _leave_a_long_log(stage, number, is_killed=(stage.play.seed + number) % 2 == 0)
        caller = Caller(stage, 30 + number)
        with stage.database() as database:
            caller.anything(database, 3)


def renewal(stage: Stage) -> None:
    """A long log is left, whose last sync has failed; to be played with trouble after that."""
    _leave_a_long_log(stage, 0, is_killed=stage.play.seed % 2 == 0)
    caller = Caller(stage, 1)
    for _ in range(3):
        with _trouble_tolerated(), stage.connection() as connection:
            for parts in (1, 3):
                caller.on_connection(connection, parts, False)


def renewed_too_late(stage: Stage) -> None:
    """A long log is left, and brought into the database by who closes it, before it is renewed."""
    _leave_a_long_log(stage, 0, is_killed=False)
    connection = oxlite.connect(stage.path, profile="web", isolation_level=None)
    connection.execute("SELECT count(*) FROM entry").fetchall()
    connection.close()


def _leave_a_long_log(stage: Stage, number: int, is_killed: bool) -> None:
    """Has a process write until the log is long; its last sync fails, or it is killed in that.

    What it writes last goes to a page of the index that is not in the log before: between the
    entries of two callers that were there.
    """

    def work() -> None:
        caller, last = Caller(stage, 20 + number), Caller(stage, _FILLERS[number] + 1)
        log = stage.path.with_name(f"{stage.path.name}-wal")
        with stage.connection(wal_autocheckpoint=0) as connection:
            while not log.exists() or log.stat().st_size < _LONG_LOG_BYTES:
                caller.on_connection(connection, 24, False)
            stage.is_troubled = True
            effect = _KILL if is_killed else errno.EIO
            stage.recorder.injector.arm("sync", 1, False, effect)
            last.on_connection(connection, 3, False)
            stage.recorder.injector.disarm()

    def untroubled() -> None:
        # What its parent has armed is not meant for it.
        stage.recorder.injector.disarm()
        stage.is_troubled = False
        work()

    code = ended(in_a_child(untroubled))
    if code != (-signal.SIGKILL if is_killed else 0):
        raise AssertionError(f"who leaves a log ended with {code}")
    stage.recorder.mark("left")


def _trouble_tolerated() -> suppress:
    """Goes on behind what has failed where nothing is promised: opening, checkpoints, closing."""
    return suppress(sqlite3.Error, MemoryError)


def schema(stage: Stage) -> None:
    """A database without entries."""
    options = {"page_size": stage.page_size}
    connection = oxlite.connect(
        stage.path, profile="durable", isolation_level=None, pragmas=options
    )
    make_schema(connection)
    connection.close()


def with_ballast(stage: Stage) -> None:
    """A database without entries, and a table of which pages come and go."""
    stage.page_size = _PAGE_BYTES
    options = {"page_size": stage.page_size, "auto_vacuum": 1}
    connection = oxlite.connect(
        stage.path, profile="durable", isolation_level=None, pragmas=options
    )
    make_schema(connection)
    connection.execute("CREATE TABLE ballast (x)")
    connection.close()


def nothing(stage: Stage) -> None:
    """No file at all."""


def a_log_left(stage: Stage) -> None:
    """A database and a log that is not yet in it, as after a crash."""
    schema(stage)
    connection = oxlite.connect(
        stage.path, profile="durable", isolation_level=None, pragmas={"wal_autocheckpoint": 0}
    )
    for token in range(1, 7):
        connection.execute(ADD_ENTRY, (40, token, 0, payload_of(token, 0)))
        stage.prepared.append(token)
    names = [stage.path, stage.path.with_name(f"{stage.path.name}-wal")]
    left = [(path, path.read_bytes()) for path in names]
    connection.close()
    for path, content in left:
        path.write_bytes(content)


def filled(stage: Stage) -> None:
    """A database with entries, so that a transaction may change pages that no other one does."""
    stage.page_size = _PAGE_BYTES
    schema(stage)
    connection = oxlite.connect(stage.path, profile="durable", isolation_level=None)
    for caller in _FILLERS:
        for number in _FILLING:
            token = caller * 10_000 + number
            rows = [(caller, token, part, payload_of(token, part)) for part in range(24)]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(ADD_ENTRY, rows)
            connection.execute("COMMIT")
            stage.prepared.append(token)
    connection.close()


PROFILES = ("durable", "web", SHARED)


@dataclass(frozen=True)
class Workload:
    """What is played, and what there is before."""

    play: Callable[[Stage], None]
    prepare: Callable[[Stage], None] = schema
    profiles: tuple[str, ...] = PROFILES
    """With which it is played."""
    forgets_failures: bool = False
    """Whether a sync fails in which a process is killed.

    For those of which nobody is left then: while others have the log open, they are told.
    """

    @property
    def name(self) -> str:
        """What it is called."""
        return self.play.__name__.replace("_", " ")


def profiles_of(name: str) -> tuple[str, ...]:
    """With which profiles a workload is played."""
    return WORKLOADS[name].profiles if name in WORKLOADS else PROFILES


def _named(*workloads: Workload) -> dict[str, Workload]:
    return {workload.name: workload for workload in workloads}


LONG = _named(
    Workload(single_statements),
    Workload(mixed),
    Workload(threads),
    Workload(crowd),
    Workload(connections),
    Workload(large_transactions),
    Workload(pages_written_twice, with_ballast),
    Workload(opened_again),
    Workload(new, nothing),
    Workload(backup),
    Workload(begun_again, filled, (SHARED,), forgets_failures=True),
)
SHORT = _named(
    Workload(short),
    Workload(short_crowd),
    Workload(short_backup),
    Workload(recovery, a_log_left),
    Workload(renewal, filled, (SHARED,), forgets_failures=True),
)
CONTROLLED = _named(
    Workload(beside_an_outsider),
    Workload(renewed_too_late, filled, (SHARED,)),
)
"""Those in which somebody does wrong on purpose."""
WORKLOADS = LONG | SHORT | CONTROLLED

PROCESSES = "processes"
"""Several processes, each of which does what ``threads`` does, a little less."""


def process(stage: Stage, number: int) -> None:
    """One of several processes."""
    callers = [Caller(stage, 10 * number + thread) for thread in range(1, 4)]
    with stage.database() as database:
        together([lambda caller=caller: caller.anything(database, 8) for caller in callers])
