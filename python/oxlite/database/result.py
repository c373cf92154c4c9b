"""What a ``Database`` answers of a write and of a checkpoint."""

from typing import Any, NamedTuple

__all__ = ["Checkpoint", "Result"]


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
        log: The frames in the WAL; -1 if there is none, or if another checkpoint is under way.
        checkpointed: How many of them are in the database; -1 likewise.
    """

    busy: bool
    log: int
    checkpointed: int
