"""What is said to who has waited for a connection in vain, or would write with one for reading."""

from collections.abc import Iterable

from oxlite import sqlite3
from oxlite._native import LockedError, PoolTimeout

__all__ = ["all_readers_in_use", "described", "explain_refusal", "writer_in_use"]


def described(holders: Iterable[tuple[str, float]]) -> str:
    """Who has connections, by name, and for how many seconds."""
    return ", ".join(f"by {name} for {seconds:.1f} s" for name, seconds in holders)


def all_readers_in_use(
    count: int, timeout: float, holders: Iterable[tuple[str, float]], queries: int = 0
) -> PoolTimeout:
    """No reader came back within ``timeout`` seconds, from these and from queries that run."""
    users = [described(holders), f"by {queries} running queries" if queries else ""]
    return PoolTimeout(
        f"all {count} readers have been in use for {timeout:g} s: {', '.join(filter(None, users))}"
    )


def writer_in_use(timeout: float, holders: Iterable[tuple[str, float]]) -> LockedError:
    """The writer did not come back within ``timeout`` seconds."""
    users = described(holders) or "by writes that came before"
    error = LockedError(
        f"database is locked: this process's writer has been in use for {timeout:g} s: {users}"
    )
    error.holder = None
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error.sqlite_errorname = "SQLITE_BUSY"
    return error


def explain_refusal(error: sqlite3.OperationalError) -> None:
    """Say how one writes, to whoever has tried to through a reader."""
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
        error.add_note(
            "db.query() and db.read() have connections that only read: write with db.execute(),"
            " db.executemany() or inside db.write()."
        )
