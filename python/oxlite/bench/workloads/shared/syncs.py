"""Who is in a sync of the disk just now, as the kernel tells.

The number of the system call that a process is in stands in ``/proc/PID/syscall``. A process
that waits for the disk there has been stopped in the middle of its sync; one that has the signal
SIGKILL and is still there will never come out of it.

Invariant: looked at from outside, so that the writers run as they would without.
"""

import platform
from pathlib import Path

from oxlite.bench.errors import WorkerError

SYNCS = {"x86_64": {b"74", b"75"}, "aarch64": {b"82", b"83"}}
"""The numbers of fsync and fdatasync by machine."""

OWN = Path("/proc/self/syscall")


def is_syncing(pid: int) -> bool:
    """Whether a process waits for a sync.

    Args:
        pid: a process of this user's, which may have ended.

    Raises:
        WorkerError: nobody can be seen there, on this system or by this process.
    """
    numbers = SYNCS.get(platform.machine())
    if numbers is None or not OWN.exists():
        raise WorkerError("who is in a sync can be seen on Linux, on x86-64 and aarch64, alone")
    try:
        return Path(f"/proc/{pid}/syscall").read_bytes().split(b" ", 1)[0] in numbers
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError as error:
        raise WorkerError(f"who is in a sync cannot be seen here: {error.strerror}") from error
