"""What a ``Database`` answers: of a write, of a checkpoint, and of itself."""

from typing import Any, NamedTuple

from oxlite.sqlite3 import Connection

__all__ = ["Checkpoint", "DatabaseStatistics", "Result", "statistics"]


class Result(NamedTuple):
    """What one write request came to.

    Attributes:
        rowcount: How many rows it has changed; -1 if it was no INSERT, UPDATE, DELETE or REPLACE.
        lastrowid: The row id of the last row that it has inserted; ``None`` if it inserted none.
        rows: The rows of a RETURNING clause, or of a query: tuples, or what the row factory makes.
    """

    rowcount: int
    lastrowid: int | None
    rows: list[Any]


class Checkpoint(NamedTuple):
    """What a checkpoint came to, in the words of ``PRAGMA wal_checkpoint``.

    Attributes:
        busy: Whether somebody was in the way, so that the mode's promise is not kept.
        log: The frames in the log; -1 if there is none, or if another checkpoint is under way.
        checkpointed: How many of them are in the database; -1 likewise.
    """

    busy: bool
    log: int
    checkpointed: int


class DatabaseStatistics(NamedTuple):
    """What a ``Database`` is doing, and what its process has done in the queue for the write lock.

    Attributes:
        readers_idle: Readers that can be had at once, opened already or not.
        readers_lent: Readers in use.
        readers_waiting: Threads that wait for a reader.
        writer_waiting: Threads that wait for the writer.
        batches: How many transactions ``execute`` and ``executemany`` have committed.
        batched_writes: How many calls of them those were.
        passes: How often this process was let through to the write lock.
        lane_waits: How often a connection waited for another one of this process.
        gate_waits: How often this process waited for other processes.
        bypasses: How often it went ahead of a queue that did not move.
        no_gate: Why there is no queue between processes; ``None`` if there is one.
        wal_frames: The frames in the write-ahead log after this process's latest commit.
        checkpoints: Checkpoints that brought all of the log into the database.
        checkpoints_incomplete: Checkpoints that somebody was in the way of.
        checkpoint_errors: Checkpoints that failed.
        checkpoint_error: The text of the latest failure.
        shared_commits: With ``durable_commit="shared"``, the commits of this process; else 0.
        shared_syncs: The syncs that it has made for all processes.
        shared_answers: The commits that another one's sync has made durable.
        no_sharing: Why each commit is synced by itself; ``None`` if syncs are shared, or need not
            be.
        sync_failed: Why nothing is committed any more; ``None`` if all is well.
    """

    readers_idle: int
    readers_lent: int
    readers_waiting: int
    writer_waiting: int
    batches: int
    batched_writes: int
    passes: int
    lane_waits: int
    gate_waits: int
    bypasses: int
    no_gate: str | None
    wal_frames: int
    checkpoints: int
    checkpoints_incomplete: int
    checkpoint_errors: int
    checkpoint_error: str | None
    shared_commits: int
    shared_syncs: int
    shared_answers: int
    no_sharing: str | None
    sync_failed: str | None


def statistics(
    readers: tuple[int, int, int],
    writer: tuple[int, int, int],
    connection: Connection | None,
) -> DatabaseStatistics:
    """Put together what a database is doing.

    Args:
        readers: How many are idle and lent, and how many wait for one.
        writer: How many wait for it; batches, and writes in them.
        connection: The writing connection, if it is open.
    """
    queue = None if connection is None else connection.queue_statistics()
    log = None if connection is None else connection.wal_statistics()
    shared = None if connection is None else connection.shared_commit_statistics()
    idle, lent, waiting = readers
    writer_waiting, batches, batched_writes = writer
    return DatabaseStatistics(
        readers_idle=idle,
        readers_lent=lent,
        readers_waiting=waiting,
        writer_waiting=writer_waiting,
        batches=batches,
        batched_writes=batched_writes,
        passes=queue["passes"] if queue else 0,
        lane_waits=queue["lane_waits"] if queue else 0,
        gate_waits=queue["gate_waits"] if queue else 0,
        bypasses=queue["bypasses"] if queue else 0,
        no_gate=queue["no_gate"] if queue else None,
        wal_frames=log["frames"] if log else 0,
        checkpoints=log["checkpoints"] if log else 0,
        checkpoints_incomplete=log["checkpoints_incomplete"] if log else 0,
        checkpoint_errors=log["checkpoint_errors"] if log else 0,
        checkpoint_error=log["last_error"] if log else None,
        shared_commits=shared["commits"] if shared else 0,
        shared_syncs=shared["syncs_led"] + shared["syncs_beside"] if shared else 0,
        shared_answers=shared["answered_by_others"] if shared else 0,
        no_sharing=shared["no_sharing"] if shared else None,
        sync_failed=shared["poisoned"] if shared else None,
    )
