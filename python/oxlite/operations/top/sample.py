"""What one look has seen: the joined sample.

Invariants: all text in it is harmless for a terminal, and it holds only what JSON holds; what is
not known is None, and never 0.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

__all__ = [
    "GAUGES",
    "SCHEMA",
    "JournalMode",
    "Line",
    "Namespace",
    "Process",
    "Reader",
    "Sample",
    "Statement",
    "Wal",
    "Writer",
]

SCHEMA: Final = "oxlite.top/1"
"""The value of ``schema`` in a sample as JSON: its form, and the version of that form."""

GAUGES: Final = frozenset({"waiting", "wal_frames"})
"""What processes tell that is so now; all else they tell is counted."""

JournalMode = Literal["wal", "rollback"]

Namespace = Literal["own", "another", "unknown"]
"""Where the number of a process is one: here, in another container, or nobody knows."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who has the write lock.

    Attributes:
        process_id: Its number, here or in its own PID namespace.
        pid_namespace: Whether that is its number here.
        command: Its command line; None where it cannot be seen.
        thread_id: Its thread, by its number in its own PID namespace; None where it has not told.
        held_seconds: For how long it has it, in seconds.
        is_at_least: Whether it may be longer: it was had when it was first seen.
        sql: A statement of its transaction; None where it has not told: another SQLite, or a write
            of less than ten milliseconds.
    """

    process_id: int
    pid_namespace: Namespace
    command: str | None
    thread_id: int | None
    held_seconds: float
    is_at_least: bool
    sql: str | None


@dataclass(frozen=True, slots=True)
class Line:
    """Who is in line for the write lock.

    Attributes:
        processes: How many processes wait in the queue between processes, with the one at its head
            unless that writes by now; None if unknown.
        threads: How many threads wait in those processes that tell; None if none tells.
        head_process_id: The process whose turn it is, if one has come to the head of that queue.
    """

    processes: int | None
    threads: int | None
    head_process_id: int | None


@dataclass(frozen=True, slots=True)
class Wal:
    """The write-ahead log.

    Attributes:
        size_bytes: The size of the file. It is not cut off at each checkpoint, so more than what is
            valid.
        page_bytes: The size of a page.
        frames: How many frames are valid; each is a page and 24 bytes.
        checkpointed_frames: How many of them are in the database.
        begun_anew: How often it was begun anew since it was made; None while it has no header.
        is_checkpointing: Whether a checkpoint is being made now; None if unknown.
    """

    size_bytes: int
    page_bytes: int
    frames: int
    checkpointed_frames: int
    begun_anew: int | None
    is_checkpointing: bool | None


@dataclass(frozen=True, slots=True)
class Reader:
    """A process that reads a snapshot, or a connection of it that has told so.

    Attributes:
        process_id: Its number, here or in its own PID namespace.
        pid_namespace: Whether that is its number here.
        command: Its command line; None where it cannot be seen.
        thread_id: Its thread, by its number in its own PID namespace; None where it has not told.
        read_mark: Which of the five it has locked, 0 to 4; None where that cannot be seen.
        frames_behind: How many frames of the WAL are newer than its read mark.
        age_seconds: How old its snapshot is, in seconds: told, or else since when this watch has
            seen the WAL be longer than its read mark. None where nothing is newer.
        is_at_least: Whether it may be older: it was so when it was first seen.
        sql: What it reads with; None where it has not told, or is between two statements.
    """

    process_id: int
    pid_namespace: Namespace
    command: str | None
    thread_id: int | None
    read_mark: int | None
    frames_behind: int | None
    age_seconds: float | None
    is_at_least: bool
    sql: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One of the slowest statements that a process of Oxlite has told.

    Attributes:
        process_id: Its number, here or in its own PID namespace.
        pid_namespace: Whether that is its number here.
        sql: Its text, in a line.
        longest_seconds: How long it took when it took longest, in seconds.
        waited_seconds: How much of that it has waited for the write lock.
        count: How often it was among the slow ones.
        ago_seconds: How long ago it ended last.
    """

    process_id: int
    pid_namespace: Namespace
    sql: str
    longest_seconds: float
    waited_seconds: float
    count: int
    ago_seconds: float


@dataclass(frozen=True, slots=True)
class Process:
    """A process that has the database open.

    Attributes:
        process_id: Its number, here or in its own PID namespace.
        pid_namespace: Whether that is its number here.
        command: Its command line; None where it cannot be seen.
        does: What it does now, so far as its locks tell: ``writes``, ``checkpoints``, ``reads``,
            ``in line``, ``at the head``; and what it is: ``stopped``, ``deleted file``.
        tells: Whether it is one of Oxlite's that tells what it does.
        told_ago_seconds: How long ago it has told last, in seconds: it tells ten times a second
            while it does something. None where it does not tell.
        counters: What it has counted since it began to use the file; ``waiting`` and ``wal_frames``
            are what is so now. Empty where it does not tell.
        per_second: What it has counted in each second since the look before. None where that is
            not known yet.
    """

    process_id: int
    pid_namespace: Namespace
    command: str | None
    does: tuple[str, ...]
    tells: bool
    told_ago_seconds: float | None
    counters: Mapping[str, int]
    per_second: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class Sample:
    """What one look at a database has seen.

    Attributes:
        path: The database's file, resolved.
        at_epoch_seconds: When it was looked, in seconds since 1970.
        since_before_seconds: How long after the look before, in seconds; None for the first.
        journal_mode: ``wal`` or ``rollback``.
        size_bytes: The size of the database's file.
        commits: How many transactions were committed since the WAL's index was made, by whatever
            SQLite; in rollback mode since the database was made. None if it cannot be read.
        commits_per_second: The same in each second since the look before.
        wal: The write-ahead log; None where there is none, or nobody has it open.
        writer: Who has the write lock.
        line: Who is in line for it.
        readers: Who reads, the oldest snapshot first.
        statements: The slowest statements, the slowest first.
        processes: Who has the database open; None if that cannot be seen.
        counters: The sums of what processes tell; empty where none tells.
        per_second: The sums of what they have counted in each second; None where that is not known
            yet.
        notes: What could not be seen, and why.
    """

    path: str
    at_epoch_seconds: float
    since_before_seconds: float | None
    journal_mode: JournalMode
    size_bytes: int
    commits: int | None
    commits_per_second: float | None
    wal: Wal | None
    writer: Writer | None
    line: Line
    readers: tuple[Reader, ...]
    statements: tuple[Statement, ...]
    processes: tuple[Process, ...] | None
    counters: Mapping[str, int]
    per_second: Mapping[str, float] | None
    notes: tuple[str, ...]

    @property
    def writes_per_batch(self) -> float | None:
        """How many writes have shared a COMMIT since the look before, on average (group commit)."""
        batches = self.rate("batches")
        return self.rate("batched_writes") / batches if batches else None

    def rate(self, name: str) -> float:
        """What all that tell have counted in each second; 0 where nothing is known."""
        return (self.per_second or {}).get(name, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return {
            "schema": SCHEMA,
            **asdict(self),
            "writes_per_batch": self.writes_per_batch,
        }
