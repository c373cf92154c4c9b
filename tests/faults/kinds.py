"""The kinds of fault, and what may become of a statement that meets one.

What may become of it is a set of names: ``MemoryError``, or SQLite's name of the result code of an
``OperationalError``. A statement may also succeed, as if nothing had been: SQLite does without a
mapping, a lookaside slot, a truncated journal. Then its result must be exact.
"""

import errno
from dataclasses import dataclass

SHORT = -1
"""Not a failure: half of what was asked for is transferred."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault."""

    name: str
    call: str
    """What fails, by the interposer's name."""
    effect: int
    """The ``errno`` it leaves."""
    transient_only: bool = False
    """Whether it is no failure but something that happens now and then, as an interruption is."""


FAULTS = {
    fault.name: fault
    for fault in [
        Fault("malloc", "malloc", errno.ENOMEM),
        Fault("open EACCES", "open", errno.EACCES),
        Fault("open ENOENT", "open", errno.ENOENT),
        Fault("open EMFILE", "open", errno.EMFILE),
        Fault("open EINTR", "open", errno.EINTR, True),
        Fault("close EIO", "close", errno.EIO),
        Fault("read EIO", "read", errno.EIO),
        Fault("read ESTALE", "read", errno.ESTALE),
        Fault("read EINTR", "read", errno.EINTR, True),
        Fault("read short", "read", SHORT, True),
        Fault("write EIO", "write", errno.EIO),
        Fault("write ENOSPC", "write", errno.ENOSPC),
        Fault("write EINTR", "write", errno.EINTR, True),
        Fault("write short", "write", SHORT, True),
        Fault("sync EIO", "sync", errno.EIO),
        Fault("truncate EIO", "truncate", errno.EIO),
        Fault("truncate EINTR", "truncate", errno.EINTR, True),
        Fault("lock EIO", "lock", errno.EIO),
        Fault("lock EAGAIN", "lock", errno.EAGAIN),
        Fault("lock ENOLCK", "lock", errno.ENOLCK),
        Fault("shm-lock EIO", "shm-lock", errno.EIO),
        Fault("shm-lock EAGAIN", "shm-lock", errno.EAGAIN),
        Fault("unlock ENOLCK", "unlock", errno.ENOLCK),
        Fault("shm-unlock ENOLCK", "shm-unlock", errno.ENOLCK),
        Fault("control EIO", "control", errno.EIO),
        Fault("stat EIO", "stat", errno.EIO),
        Fault("map ENOMEM", "map", errno.ENOMEM),
        Fault("shm-map ENOMEM", "shm-map", errno.ENOMEM),
        Fault("remap ENOMEM", "remap", errno.ENOMEM),
        Fault("unlink EACCES", "unlink", errno.EACCES),
        Fault("unlink EIO", "unlink", errno.EIO),
        Fault("access EACCES", "access", errno.EACCES),
        Fault("path EACCES", "path", errno.EACCES),
        Fault("owner EPERM", "owner", errno.EPERM),
    ]
}

_CANNOT_LOCK = {"SQLITE_BUSY", "SQLITE_PROTOCOL", "SQLITE_IOERR"}

# Whatever keeps SQLite from opening a file for writing has it opened for reading only.
_CANNOT_OPEN = {"SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR"}


def _allowed(fault: Fault) -> set[str]:
    if fault.transient_only:
        return set()
    match fault.call:
        case "malloc":
            return {"MemoryError"}
        case "open":
            return _CANNOT_OPEN
        # SQLite takes EIO while reading for a broken file system, and calls the database malformed.
        case "read" if fault.effect == errno.EIO:
            return {"SQLITE_IOERR", "SQLITE_CANTOPEN", "DatabaseError SQLITE_CORRUPT"}
        case "write" if fault.effect == errno.ENOSPC:
            return {"SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN"}
        case "lock" | "shm-lock" | "unlock" | "shm-unlock":
            return _CANNOT_LOCK
        # A file whose status cannot be had may have been moved away: SQLite does not write to it.
        case "stat":
            return {"SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY_DBMOVED"}
        case _:
            return {"SQLITE_IOERR", "SQLITE_CANTOPEN"}


def _is_one_of(names: set[str], outcome: str) -> bool:
    """Whether it is one of the codes; a primary code stands for its extended ones."""
    return outcome in names or any(outcome.startswith(f"{name}_") for name in names)


def is_allowed(fault: Fault, outcome: str) -> bool:
    """Whether a statement that meets this fault may end so."""
    return _is_one_of(_allowed(fault), outcome)


def is_allowed_later(fault: Fault, outcome: str) -> bool:
    """Whether a statement on the same connection may end so after a single fault of this kind.

    A lock that could not be let go of is still held, and a database that could only be opened for
    reading stays so; nothing else lasts.
    """
    match fault.call:
        case "unlock" | "shm-unlock":
            return _is_one_of(_CANNOT_LOCK, outcome)
        case "open":
            return _is_one_of({"SQLITE_READONLY"}, outcome)
        case _:
            return False
