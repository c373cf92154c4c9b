"""Before replication begins: a missing database is restored, a foreign place is left alone.

Invariants:
- A store that does not answer is never taken for one without a replica.
- What is restored is verified before it has the name of the database, by the code of every other
  restore (``oxlite.operations.restore``).
"""

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import oxlite
from oxlite.operations import Restored, restore
from oxlite.operations.partial import Partial
from oxlite.operations.verification import Stage
from oxlite.replication.claim import read_state
from oxlite.replication.errors import LitestreamFailed, NoReplica, ReplicaOccupied
from oxlite.replication.litestream import Litestream
from oxlite.replication.replica import Replica, held
from oxlite.replication.store import Store

__all__ = ["make_ready", "restore_from"]

_HOURS_AT_MOST: Final = 24
_SHARED_MEMORY: Final = "-shm"


def make_ready(
    litestream: Litestream, replica: Replica, *, is_taken_over: bool = False
) -> Restored | None:
    """See that there is a database, and that its place is its own.

    Args:
        litestream: The program.
        replica: What goes where. This process has claimed it.
        is_taken_over: Whether the place may hold the replica of another database, which is
            continued with this one.

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
    return None


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
        at: As it was then; by default as it is now.
        live: As for ``oxlite.operations.restore``.
        stage: Called with what is being done.

    Raises:
        StoreUnreachable: The store does not answer.
        NoReplica: It has none there, or none so old.
        LitestreamFailed: What is there cannot be put together.
        OperationsError: As for ``oxlite.operations.restore``.
    """
    target = database.resolve()
    if held(litestream, store) is None:
        raise NoReplica(f"{store.shown} holds no replica")
    if stage is not None:
        stage("fetching", 0, 0)
    with Partial(target) as partial:
        copy = partial.path
        arguments = ["restore", "-o", str(copy), "-json"]
        if at is not None:
            arguments += ["-timestamp", at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")]
        what = f"restore what is at {store.shown}"
        try:
            litestream.run([*arguments, store.url], seconds=_HOURS_AT_MOST * 3600.0, what=what)
        except LitestreamFailed as error:
            if at is not None and "no matching" in str(error):
                raise NoReplica(
                    f"{store.shown} does not go back to {at.astimezone(UTC).isoformat()}: its"
                    " first state is younger, or what was then is not kept any more"
                ) from None
            raise
        copy.chmod(0o600)
        Path(f"{copy}{_SHARED_MEMORY}").unlink(missing_ok=True)
        os.sync()
        return restore(copy, target, live=live, stage=stage)
