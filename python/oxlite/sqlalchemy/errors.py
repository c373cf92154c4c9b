"""What an error of the driver means to SQLAlchemy, and what is added to its text.

The classes themselves pass through: SQLAlchemy wraps ``oxlite.LockedError`` and
``oxlite.StaleSnapshotError`` in its own ``OperationalError``, as it does the class of PEP 249 that
they are subclasses of, and keeps them as ``orig``.
"""

from typing import Final

from oxlite import CommitOutcomeUnknown, SyncFailedError, sqlite3

__all__ = ["INHERITED", "explain_read_only", "is_disconnect", "refusal_to_lock"]

INHERITED: Final = "opened before a fork"
"""What the driver says of a connection that belongs to the parent of this process."""

_GONE: Final = ("Cannot operate on a closed database", INHERITED, "__init__ not called")


def is_disconnect(error: BaseException) -> bool:
    """Whether a connection cannot be used any more, so that the pool should open others.

    It was closed, it belongs to the parent of a forked process, or a COMMIT or a sync has failed so
    that what it would show is unknown.

    Source: https://docs.sqlalchemy.org/en/20/core/pooling.html#dealing-with-disconnects
    """
    if isinstance(error, CommitOutcomeUnknown | SyncFailedError):
        return True
    return isinstance(error, sqlite3.ProgrammingError) and any(text in str(error) for text in _GONE)


def explain_read_only(error: sqlite3.Error, is_read_only: bool, is_query_only: bool) -> None:
    """Say which setting refuses a write, where it was one of ours and not the file's mode.

    Args:
        error: What the driver has raised; its text is extended.
        is_read_only: The execution option ``sqlite_read_only`` is set.
        is_query_only: ``PRAGMA query_only`` is set, as it is on the readers of ``create_engines``.
    """
    if is_read_only or is_query_only:
        error.args = (f"{error}: {_why(is_read_only)}",)


def refusal_to_lock(is_read_only: bool) -> sqlite3.OperationalError:
    """The error for FOR UPDATE on a connection that cannot write.

    Args:
        is_read_only: The execution option ``sqlite_read_only`` is set; else it is a reader of
            ``create_engines``.
    """
    error = sqlite3.OperationalError(f"FOR UPDATE takes the write lock: {_why(is_read_only)}")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    error.sqlite_errorname = "SQLITE_READONLY"
    return error


def _why(is_read_only: bool) -> str:
    if is_read_only:
        return "this connection is read-only: its execution option sqlite_read_only is True"
    return (
        "this connection only reads (PRAGMA query_only): write through the engine that has the"
        " writer; RoutingSession does for flush(), insert(), update(), delete(),"
        " with_for_update() outside subqueries, and after connection()"
    )
