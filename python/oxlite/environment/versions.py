"""Which versions of SQLite should not be let near a database in WAL mode."""

from collections.abc import Sequence

__all__ = ["can_corrupt_wal"]

_MENDED_IN = ((3, 50, 7), (3, 44, 6))


def can_corrupt_wal(version: Sequence[int]) -> bool:
    """Whether this version of SQLite can corrupt a database when two checkpoints race.

    Source: https://sqlite.org/wal.html#walresetbug
    """
    number = tuple(version)
    if number >= (3, 51, 3) or number < (3, 7, 0):
        return False
    return not any(number[:2] == mended[:2] and number >= mended for mended in _MENDED_IN)
