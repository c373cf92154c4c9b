"""Before replication begins: a missing database is restored, a foreign place is left alone.

Invariants:
- A store that does not answer is never taken for one without a replica.
- What is restored is verified before it has the name of the database, by the code of every other
  restore (``oxlite.operations.restore``).
"""

import re
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import oxlite
from oxlite import harmless
from oxlite.operations import Restored
from oxlite.operations.files import litestream_directory
from oxlite.operations.partial import Partial
from oxlite.operations.restore import put_in_place, refuse_if_open, refuse_target
from oxlite.operations.verification import Stage
from oxlite.replication.claim import read_state
from oxlite.replication.errors import (
    LitestreamFailed,
    NoReplica,
    ReplicaOccupied,
    ReplicationError,
)
from oxlite.replication.litestream import Litestream
from oxlite.replication.replica import Held, Replica, held
from oxlite.replication.store import Store, store_of

__all__ = ["forget", "make_ready", "point_in_time", "restore_from"]

_HOURS_AT_MOST: Final = 24
_SHARED_MEMORY: Final = "-shm"
_CUT_OFF: Final = timedelta(seconds=1)
"""What Litestream leaves out of the times that it lists is less."""

_NOT_THEN: Final = re.compile(r"timestamp does not exist|no matching|no backup|no snapshot")


def make_ready(
    litestream: Litestream,
    replica: Replica,
    *,
    is_taken_over: bool = False,
    before_restore: Callable[[], object] = lambda: None,
) -> Restored | None:
    """See that there is a database, and that its place is its own.

    Args:
        litestream: The program.
        replica: What goes where. This process has claimed it.
        is_taken_over: Whether the place may hold the replica of another database, which is
            continued with this one.
        before_restore: Called before what is restored has its name: who is killed after that is to
            find the place known as this database's.

    Returns:
        What was restored; ``None`` if the database was there, or was made.

    Raises:
        StoreUnreachable: The store does not answer.
        ReplicaOccupied: The place holds a replica that is not known to be this database's.
        VerificationFailed: The replica is damaged.
    """
    found = held(litestream, replica.store)
    if not replica.database.exists():
        if found is not None:
            before_restore()
            return restore_from(litestream, replica.store, replica.database)
        with closing(oxlite.connect(replica.database)) as connection:
            # A file with a page: Litestream waits for one.
            connection.execute("PRAGMA user_version = 0")
        return None
    known = read_state(replica.database)
    is_ours = known is not None and Store(known.url).place == replica.store.place
    if found is not None and not (is_ours or is_taken_over):
        last = found.last_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        raise ReplicaOccupied(
            f"{replica.store.shown} holds a replica, last written at {last}, and"
            f" {replica.database} has not been replicated there from here: take another place,"
            f" or restore it (oxlite restore --from), or say --take-over if it is this database's"
        )
    if not _continues(litestream, replica, found):
        forget(replica.database)
    return None


def forget(database: Path) -> None:
    """Delete what Litestream has noted of a database, beside it; nobody may replicate it.

    It sends all of the database anew then.
    """
    shutil.rmtree(litestream_directory(database), ignore_errors=True)


def _continues(litestream: Litestream, replica: Replica, found: Held | None) -> bool:
    """Whether what Litestream has noted beside a database is of what the place holds.

    It looks at the numbers of transactions alone. Where the place has been emptied, another has
    been taken, or another machine has gone on with it meanwhile, it would fail, or send what
    follows something else.
    """
    noted = litestream_directory(replica.database)
    if not noted.is_dir():
        return True
    if found is None:
        return False
    own = held(litestream, store_of(str(noted)))
    if own is None or own.last_transaction < found.last_transaction:
        return True  # it fetches the last one, and sees whether the database goes on from there
    here = own.single.get(found.last_transaction)
    there = found.single.get(found.last_transaction)
    return here is not None and (there is None or here == there)


def restore_from(
    litestream: Litestream,
    store: Store,
    database: Path,
    *,
    at: datetime | None = None,
    live: bool = False,
    stage: Stage | None = None,
) -> Restored:
    """Put what a replica holds in the place of a database.

    Args:
        litestream: The program.
        store: The place of the replica.
        database: What it becomes; what is there is kept under another name.
        at: As it was then, by a clock with a time zone; by default as it is now. What was committed
            in the second before may not be in it, since Litestream notes when it has read a commit.
        live: As for ``oxlite.operations.restore``.
        stage: Called with what is being done.

    Raises:
        ReplicationError: ``at`` is in the future, or has no time zone.
        StoreUnreachable: The store does not answer.
        NoReplica: It has none there, or none so old.
        LitestreamFailed: What is there cannot be put together.
        OperationsError: As for ``oxlite.operations.restore``.
    """
    target = database.resolve()
    if at is not None:
        _refuse_time(at)
    refuse_target(target)
    if not live:
        refuse_if_open(target)  # what is fetched for hours would be refused then
    found = held(litestream, store)
    if found is None:
        raise NoReplica(f"{store.shown} holds no replica")
    if stage is not None:
        stage("fetching", 0, 0)
    with Partial(target) as partial:
        _fetch(litestream, store, partial.path, found, at)
        return put_in_place(partial, target, what=store.shown, live=live, stage=stage)


def point_in_time(text: str) -> datetime:
    """Read a time that somebody has written: ``2026-01-01T12:00:00Z``.

    Raises:
        ReplicationError: It is none, or does not say its time zone.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ReplicationError(
            f"{harmless(text)} is no time: write it as 2026-01-01T12:00:00Z"
        ) from None
    _refuse_time(found, is_now_asked=False)
    return found


def _refuse_time(at: datetime, *, is_now_asked: bool = True) -> None:
    if at.tzinfo is None:
        raise ReplicationError(
            f"{at} does not say its time zone: add Z for UTC, or an offset such as +02:00"
        )
    if is_now_asked and at > datetime.now(UTC):
        raise ReplicationError(
            f"{at.isoformat()} is in the future: it is {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} here"
        )


def _fetch(
    litestream: Litestream, store: Store, copy: Path, found: Held, at: datetime | None
) -> None:
    """Have Litestream put together what a replica holds."""
    arguments = ["restore", "-o", str(copy), "-json"]
    # It refuses a time after which nothing was written, as one that does not exist.
    is_newest = at is None or at >= found.newest_at + _CUT_OFF
    if at is not None and not is_newest:
        time = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        arguments += ["-timestamp", time]
    what = f"restore what is at {store.shown}"
    try:
        litestream.run([*arguments, store.url], seconds=_HOURS_AT_MOST * 3600.0, what=what)
    except LitestreamFailed as error:
        if at is None or is_newest or not _NOT_THEN.search(str(error)):
            raise
        if at < found.newest_at:
            raise NoReplica(
                f"{store.shown} does not go back to {at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}: its"
                f" first state is of {found.first_at:%Y-%m-%dT%H:%M:%SZ}"
            ) from None
        _fetch(litestream, store, copy, found, None)
        return
    copy.chmod(0o600)  # nobody knows who else may read what it holds
    Path(f"{copy}{_SHARED_MEMORY}").unlink(missing_ok=True)
