"""The errors of a ``Database``: pool timeouts, a writer in use, a write on a reader."""

from collections.abc import Iterable

from oxlite import sqlite3
from oxlite._native import LockedError

__all__ = [
    "described",
    "explain_refusal",
    "is_being_opened",
    "locked",
    "reader_for_itself",
    "readers_in_use",
    "still_in_use",
    "writer_for_itself",
    "writer_in_use",
]


_BEING_OPENED = "it is still being opened"


def described(holders: Iterable[tuple[str, float]]) -> str:
    """Who has connections, by name, and for how many seconds."""
    return ", ".join(f"by {name} for {seconds:.1f} s" for name, seconds in holders)


def readers_in_use(
    count: int,
    timeout: float,
    holders: Iterable[tuple[str, float]],
    queries: int = 0,
    opening: int = 0,
    idle: int = 0,
) -> str:
    """Why no reader came within ``timeout`` seconds, by what they are doing when that is over.

    Args:
        count: How many there are.
        timeout: In seconds.
        holders: Who has one, and for how many seconds.
        queries: How many run queries.
        opening: How many are still being opened.
        idle: How many have come back just now.
    """
    users = [
        described(holders),
        f"by {queries} running queries" if queries else "",
        f"{opening} are still being opened" if opening else "",
        f"{idle} have come back just now" if idle else "",
    ]
    said = ", ".join(filter(None, users)) or "all of them have come back just now"
    return f"all {count} readers have been in use for {timeout:g} s: {said}"


def writer_in_use(
    timeout: float,
    holders: Iterable[tuple[str, float]],
    writes: int = 0,
    opening: int = 0,
    idle: int = 0,
) -> str:
    """Why the writer did not come within ``timeout`` seconds, by what it does when that is over.

    Args:
        timeout: In seconds.
        holders: Who has it, and for how many seconds.
        writes: Whether it is at writes that came before.
        opening: Whether it is still being opened.
        idle: Whether it has come back just now.
    """
    said = described(holders)
    if not said and opening:
        return (
            f"database is locked: this process's writer was not to be had for {timeout:g} s:"
            f" {_BEING_OPENED}"
        )
    if not said and writes:
        said = "by writes that came before"
    elif not said:
        said = "it has come back just now" if idle else "it is on its way to somebody else"
    return f"database is locked: this process's writer has been in use for {timeout:g} s: {said}"


def is_being_opened(error: LockedError) -> bool:
    """Whether the writer was still being opened when the time was up."""
    return str(error).endswith(_BEING_OPENED)


def locked(text: str) -> LockedError:
    """The error of a wait for this process's own writer that has timed out."""
    error = LockedError(text)
    error.holder = None
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error.sqlite_errorname = "SQLITE_BUSY"
    return error


def reader_for_itself(who: str, count: int) -> sqlite3.ProgrammingError:
    """The error of a thread or a task that has all readers, and would wait for one.

    Args:
        who: ``"thread"`` or ``"task"``.
        count: How many readers there are.
    """
    return sqlite3.ProgrammingError(
        f"This {who} is inside db.read() and would wait for itself, since it has all readers: use"
        " the connection that db.read() has given, or open the Database with more than"
        f" {count} readers."
    )


def writer_for_itself(who: str) -> sqlite3.ProgrammingError:
    """The error of a task that has the writer, and would wait for it."""
    return sqlite3.ProgrammingError(
        f"This {who} has the writer (it is inside db.write()) and would wait for itself: write"
        " through the connection that db.write() has given."
    )


def still_in_use(timeout: float, kept: Iterable[str]) -> sqlite3.OperationalError:
    """The error of ``close`` where connections have not come back.

    Args:
        timeout: How long it has waited, in seconds.
        kept: Which, and who has them.
    """
    return sqlite3.OperationalError(
        f"still in use after {timeout:g} s: {'; '.join(kept)}; closed when given back"
    )


def explain_refusal(error: sqlite3.OperationalError) -> None:
    """Say how one writes, where a reader has refused a write."""
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
        error.add_note(
            "db.query(), db.stream() and db.read() have connections that only read: write with"
            " db.execute(), db.executemany() or inside db.write()."
        )
