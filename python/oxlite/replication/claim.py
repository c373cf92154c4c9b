"""Who replicates a database, and to which place: one at a time.

Beside the database is ``NAME-replica``: its first byte is locked by whoever replicates, and in it
stands where to, since when, and where that process answers. A place in a store is claimed by a lock
of this machine's; one in a directory by a lock in that directory, which others that share it see.

Invariants:
- A lock ends with its holder. What stands in a file says nothing about whether he lives.
- The file is its owner's alone, and has no credentials in it.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from oxlite import harmless
from oxlite.file_locks import FileLock, is_locked
from oxlite.operations.partial import sync_directory
from oxlite.replication.errors import (
    AlreadyReplicated,
    ReplicationError,
    StoreUnreachable,
)
from oxlite.replication.replica import Replica, refuse_lacking
from oxlite.replication.store import Store

__all__ = ["Claim", "State", "is_claimed", "read_state", "state_path"]

_SUFFIX: Final = "-replica"
_FORM: Final = "oxlite replica 1"
_PLACE_LOCK: Final = ".oxlite-replicator"
_READINGS: Final = 5
_PAUSE_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the replication of a database, while it runs and afterwards.

    Attributes:
        url: Where to; it has no credentials in it.
        process_id: Of who replicates, or did last.
        socket: Where Litestream answers.
        began_at: Seconds since 1970.
        sent_at: By when all that was committed is known to be in the store, in seconds since 1970;
            ``None`` if that is not known of any time.
        failing_since: Since when nothing could be sent, in seconds since 1970; ``None`` if all is
            well.
        failure: Why not.
        restarts: How often Litestream had to be begun again.
        sends_anew: Whether all is to be sent once more: what Litestream has noted is not to be gone
            on with, also by who begins after this one was killed.
    """

    url: str
    process_id: int = 0
    socket: str = ""
    began_at: float = 0.0
    sent_at: float | None = None
    failing_since: float | None = None
    failure: str | None = None
    restarts: int = 0
    sends_anew: bool = False


def state_path(database: Path) -> Path:
    """The file of what is known of a database's replication."""
    return database.with_name(f"{database.name}{_SUFFIX}")


def read_state(database: Path) -> State | None:
    """What is known of it; ``None`` if it has never been replicated from here.

    Raises:
        ReplicationError: The file is another program's, or cannot be read.
    """
    path = state_path(database)
    for _ in range(_READINGS):
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ReplicationError(f"{path} cannot be read: {harmless(str(error))}") from error
        if not text:  # made, and nothing was written yet
            return None
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            document: dict[str, Any] = json.loads(text)
            if document.pop("form") == _FORM:
                return State(**document)
        time.sleep(_PAUSE_SECONDS)  # it may be in the midst of being written
    raise ReplicationError(f"{path} is not what Oxlite has written there: move it away")


def is_claimed(database: Path) -> bool:
    """Whether somebody replicates the database now."""
    return is_locked(str(state_path(database)), 0)


class Claim:
    """That this process replicates a database, for the length of a block.

    Args:
        replica: The database, and where to.

    Raises:
        StoreUnreachable: What the place is to be in is not there.
        ReplicationError: Where locks of places are kept is somebody else's.
        OSError: The place cannot be made.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._path = state_path(replica.database)
        self._place_path = _place_lock_path(replica)
        self._lock = FileLock(str(self._path), 0)
        self._place_lock = FileLock(str(self._place_path), 0)

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            AlreadyReplicated: Somebody else has it.
            OSError: No file can be made beside the database.
        """
        if not self._lock.try_acquire():
            raise AlreadyReplicated(_by_whom(self._replica.database))
        try:
            if not self._place_lock.try_acquire():
                raise AlreadyReplicated(_taken(self._replica))
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of it. What is known stays."""
        self._place_lock.release()
        self._lock.release()

    def keep(self) -> None:
        """See that it is still in force, and keep its file from those who delete what is old.

        Raises:
            AlreadyReplicated: Its file beside the database was deleted, and somebody else has
                claimed it since.
            StoreUnreachable: The place is not there any more.
            OSError: The file cannot be made anew.
        """
        if not self._lock.is_in_force:
            self._lock.release()
            if not self._lock.try_acquire():
                raise AlreadyReplicated(_by_whom(self._replica.database))
        if not self._place_lock.is_in_force:
            self._claim_place_again()
        with suppress(OSError):
            os.utime(self._place_path)

    def _claim_place_again(self) -> None:
        if self._replica.store.directory is not None:
            raise StoreUnreachable(
                f"{self._place_path} is gone: {self._replica.store.shown} was deleted, moved or"
                " unmounted; what is sent there now does not restore. Put back what was there, or"
                " move away what is there now, and begin again"
            )
        self._place_lock.release()
        _place_lock_path(self._replica)  # its directory may be gone as well
        if not self._place_lock.try_acquire():
            raise AlreadyReplicated(_taken(self._replica))

    @contextmanager
    def lent(self) -> Iterator[list[int]]:
        """Descriptors to begin a process with, which has the claim too until it ends.

        So whoever replicates goes on to be the only one when this process is killed.
        """
        descriptors: list[int] = []
        try:
            descriptors += [lock.lend() for lock in (self._lock, self._place_lock)]
            yield descriptors
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def write(self, state: State) -> None:
        """Note what is known, in the place of what was.

        It is written in place, since the file's first byte is locked. Who reads it meanwhile may
        read a part, and reads again.

        Raises:
            OSError: There is no room.
        """
        text = json.dumps({"form": _FORM, **asdict(state)}, indent=2)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            before = os.fstat(descriptor).st_size
            os.pwrite(descriptor, text.encode().ljust(before), 0)
            os.ftruncate(descriptor, len(text.encode()))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Note that nothing is known.

        Raises:
            OSError: The file cannot be changed.
        """
        os.truncate(self._path, 0)


def _taken(replica: Replica) -> str:
    where = replica.store.shown
    return f"another process replicates to {where}: end that first, or take another place"


def _by_whom(database: Path) -> str:
    known = read_state(database)
    if known is None:
        return f"{database} is replicated already: end that first"
    where = Store(known.url).shown
    try:
        os.kill(known.process_id, 0)
    except ProcessLookupError:
        return (
            f"{database} was replicated to {where} by process {known.process_id}, which is gone:"
            " its Litestream has still the claim, and ends when it has sent the last. Wait for that"
        )
    except PermissionError:
        pass  # another user's
    by = f"by process {known.process_id}, to {where}"
    return f"{database} is replicated already {by}: end that first"


def _place_lock_path(replica: Replica) -> Path:
    directory = replica.store.directory
    if directory is not None:
        refuse_lacking(replica.store)
        directory.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            sync_directory(directory.parent)
        return directory / _PLACE_LOCK
    own = Path(tempfile.gettempdir(), f"oxlite-replicators-{os.getuid()}")
    own.mkdir(mode=0o700, exist_ok=True)
    status = own.lstat()
    if own.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ReplicationError(f"{own} is somebody else's: remove it")
    return own / hashlib.sha256(replica.store.place.encode()).hexdigest()
