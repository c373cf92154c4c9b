"""What a cache says of itself."""

from dataclasses import dataclass

__all__ = ["CacheStatistics"]


@dataclass(frozen=True)
class CacheStatistics:
    """What a cache holds, and what this process has done with it since it was opened.

    Attributes:
        entries: How many keys there are, of all processes.
        used_bytes: The pages in use, of all processes.
        size_bytes: The limit of those; ``None``: there is none.
        oldest_seconds: For how long the entry that was used least recently has not been used, of a
            sample.
        hits: How often a key was found.
        misses: How often it was not.
        evictions: How many entries were deleted to keep the limit.
        failures: How often the file could not be read or written, which counts as a miss.
        resets: How often a damaged file was emptied.
    """

    entries: int
    used_bytes: int
    size_bytes: int | None
    oldest_seconds: float
    hits: int
    misses: int
    evictions: int
    failures: int
    resets: int
