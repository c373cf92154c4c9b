"""What a ``Database`` tells of itself."""

from typing import NamedTuple

from oxlite.sqlite3 import Connection

__all__ = ["DatabaseStatistics", "statistics"]


class DatabaseStatistics(NamedTuple):
    """What a ``Database`` is doing, and what its process has done in the queue for the write lock.

    Attributes:
        readers_idle: Readers that can be had at once, opened already or not.
        readers_lent: Readers in use.
        readers_waiting: Threads that wait for a reader.
        writer_waiting: Threads that wait for the writer.
        batches: How many transactions ``execute`` and ``executemany`` have committed.
        batched_writes: How many calls of them those were.
        admissions: How often this process was let through to the write lock.
        thread_waits: How often a connection waited for another one of this process.
        process_waits: How often this process waited for other processes.
        queue_skips: How often it went ahead of a queue that did not move.
        process_queue_unavailable: Why processes do not queue; ``None`` if they do.
        wal_frames: The frames in the write-ahead log after this process's latest commit.
        checkpoints: Checkpoints that brought all of the WAL into the database.
        checkpoints_incomplete: Checkpoints that somebody was in the way of.
        checkpoint_waits: Checkpoints for which nobody could write while readers were waited for.
        checkpoint_errors: Checkpoints that failed.
        checkpoint_error: The text of the latest failure.
        shared_commits: With ``durable_commit="shared"``, the commits of this process; else 0.
        shared_syncs: The syncs that it has made for all processes.
        shared_answers: The commits that another one's sync has made durable.
        shared_commit_unavailable: Why each commit is synced by itself; ``None`` if syncs are
            shared, or need not be.
        sync_failed: Why nothing is committed any more; ``None`` if all is well.
    """

    readers_idle: int
    readers_lent: int
    readers_waiting: int
    writer_waiting: int
    batches: int
    batched_writes: int
    admissions: int
    thread_waits: int
    process_waits: int
    queue_skips: int
    process_queue_unavailable: str | None
    wal_frames: int
    checkpoints: int
    checkpoints_incomplete: int
    checkpoint_waits: int
    checkpoint_errors: int
    checkpoint_error: str | None
    shared_commits: int
    shared_syncs: int
    shared_answers: int
    shared_commit_unavailable: str | None
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
        admissions=queue["admissions"] if queue else 0,
        thread_waits=queue["thread_waits"] if queue else 0,
        process_waits=queue["process_waits"] if queue else 0,
        queue_skips=queue["queue_skips"] if queue else 0,
        process_queue_unavailable=queue["process_queue_unavailable"] if queue else None,
        wal_frames=log["frames"] if log else 0,
        checkpoints=log["checkpoints"] if log else 0,
        checkpoints_incomplete=log["checkpoints_incomplete"] if log else 0,
        checkpoint_waits=log["checkpoint_waits"] if log else 0,
        checkpoint_errors=log["checkpoint_errors"] if log else 0,
        checkpoint_error=log["last_error"] if log else None,
        shared_commits=shared["commits"] if shared else 0,
        shared_syncs=shared["syncs_led"] + shared["syncs_beside"] if shared else 0,
        shared_answers=shared["answered_by_others"] if shared else 0,
        shared_commit_unavailable=shared["shared_commit_unavailable"] if shared else None,
        sync_failed=shared["poisoned"] if shared else None,
    )
