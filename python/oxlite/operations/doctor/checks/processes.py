"""Who has the database open, and with which SQLite."""

from collections.abc import Iterator
from typing import Final

from oxlite.environment.versions import can_corrupt_wal
from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.subject import Subject
from oxlite.operations.holders import Holder, Lock

__all__ = ["CHECKS", "ILLNESSES"]

_OLD: Final = Illness(
    "old-sqlite",
    "warning",
    "SQLite 3.7.0 to 3.51.2 (but for 3.50.7 and 3.44.6) can corrupt a database in WAL mode when a"
    " checkpoint of one process meets another's.",
)
_UNKNOWN: Final = Illness(
    "unknown-sqlite",
    "hint",
    "A version before 3.51.3 could corrupt a database in WAL mode, and it is not known which one"
    " this is.",
)
_TWO: Final = Illness(
    "two-sqlites",
    "error",
    "When one of them closes the file, the system takes the locks of the other away. Then two"
    " processes write at once, and commits are lost.",
)
_DELETED: Final = Illness(
    "deleted-while-open",
    "error",
    "What it writes goes to a file that has no name any more and is lost when it ends; a WAL of"
    " that name is mixed up with that of the new file.",
)
_STOPPED: Final = Illness(
    "stopped-process",
    "warning",
    "It keeps what it has locked for as long as it is stopped: writers wait, or the WAL grows.",
)
_WRITING: Final = Illness(
    "write-lock-held",
    "warning",
    "Nobody else can write until its transaction ends: database is locked.",
)

_BUG: Final = "https://sqlite.org/wal.html#walresetbug"


def _check_versions(subject: Subject) -> Iterator[Finding]:
    """Which SQLite has a database in WAL mode open: https://sqlite.org/wal.html#walresetbug."""
    header = subject.place.header
    if header is None or not header.is_wal:
        return
    for holder in subject.holders or ():
        versions = sorted(one.version for one in holder.users if one.version is not None)
        old = [version for version in versions if can_corrupt_wal(version)]
        if old:
            number = ".".join(map(str, old[0]))
            yield _OLD.found(
                f"{_capital(holder)} has it open with SQLite {number}.",
                f"Give that program SQLite 3.51.3 or later ({_BUG}), in Python `from oxlite import"
                f" sqlite3`; until then, end it:\nkill {holder.process_id}",
            )
        elif not versions:
            yield _UNKNOWN.found(
                f"{_capital(holder)} has it open; which SQLite is in it cannot be read.",
                f"Ask that program for its sqlite_version(), or end it:\nkill {holder.process_id}",
            )


def _check_two(subject: Subject) -> Iterator[Finding]:
    """Whether two SQLites of one process use it: https://sqlite.org/howtocorrupt.html, 2.2.1."""
    for holder in subject.holders or ():
        if len({lock.is_posix for lock in holder.locks}) > 1 and len(holder.users) > 1:
            names = " and ".join(sorted(one.path.rpartition("/")[2] for one in holder.users))
            yield _TWO.found(
                f"{_capital(holder)} has it open with two SQLites: {names}.",
                "Use one of them for this file, in Python `from oxlite import sqlite3` everywhere;"
                " until"
                f" then, end it:\nkill {holder.process_id}",
            )


def _check_deleted(subject: Subject) -> Iterator[Finding]:
    """Whether a file of that name was replaced under a program: howtocorrupt.html, 2.4."""
    for holder in subject.holders or ():
        if holder.is_of_deleted:
            yield _DELETED.found(
                f"{_capital(holder)} has a file of this name open that was deleted or replaced.",
                f"kill {holder.process_id}  # and start it again, so that it opens the file that is"
                " there",
            )


def _check_stopped(subject: Subject) -> Iterator[Finding]:
    """Whether somebody with locks has been stopped: measured, with SIGSTOP."""
    for holder in subject.holders or ():
        if holder.is_stopped and any(not _is_idle(lock) for lock in holder.locks):
            yield _STOPPED.found(
                f"{_capital(holder)} is stopped, and has locked something.",
                f"kill -CONT {holder.process_id}  # or end it: kill -KILL {holder.process_id}",
            )


def _check_write_lock(subject: Subject) -> Iterator[Finding]:
    """Whether somebody keeps the write lock and writes nothing: two looks, a moment apart."""
    later = {one.process_id: one for one in subject.holders_later or ()}
    if subject.place_later is None or _changed(subject):
        return
    for holder in subject.holders or ():
        then = later.get(holder.process_id)
        if then is not None and holder.as_dict()["writes"] and then.as_dict()["writes"]:
            yield _WRITING.found(
                f"{_capital(holder)} has the write lock and writes nothing.",
                "End its transaction (COMMIT, ROLLBACK), or the process:"
                f"\nkill {holder.process_id}",
            )


def _is_idle(lock: Lock) -> bool:
    # Everybody who has it open shares SHARED in WAL mode, and byte 128 of the index.
    return not lock.is_write and (lock.first == 128 or lock.suffix == "")


def _changed(subject: Subject) -> bool:
    now, later = subject.place, subject.place_later
    assert later is not None
    return (
        now.status.st_mtime_ns != later.status.st_mtime_ns
        or now.bytes.get("-shm", b"")[:48] != later.bytes.get("-shm", b"")[:48]
        or any(now.size(suffix) != later.size(suffix) for suffix in ("-journal", "-wal"))
    )


def _capital(holder: Holder) -> str:
    return holder.label[0].upper() + holder.label[1:]


CHECKS: Final = (_check_versions, _check_two, _check_deleted, _check_stopped, _check_write_lock)

ILLNESSES: Final = (_OLD, _UNKNOWN, _TWO, _DELETED, _STOPPED, _WRITING)
