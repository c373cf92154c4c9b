"""The first bytes of a database's files, read by a process of their own.

To open and close a file takes away all POSIX locks that this process has on it, so another SQLite
of this process would lose its locks without hearing of it (https://sqlite.org/howtocorrupt.html,
2.2). A process of its own has none to lose, and can be left behind where a file system does not
answer.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

__all__ = ["first_bytes"]

_LIMIT_SECONDS: Final = 5.0

# Never waits at a FIFO, and follows no link that somebody has put there.
_PROGRAM: Final = """
import json, os, sys
found = {}
for name in sys.argv[2:]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
        found[name] = os.read(descriptor, int(sys.argv[1])).hex()
    except OSError as error:
        found[name] = error.errno
json.dump([found[name] for name in sys.argv[2:]], sys.stdout)
"""


def first_bytes(paths: Mapping[str, Path], count: int) -> dict[str, bytes | OSError]:
    """The first bytes of each file; nothing of one that cannot be read without harm.

    Args:
        paths: The files, by any name.
        count: How many bytes.

    Returns:
        By the same names what was read, or why it was not.
    """
    if not sys.executable:
        return _read_here(paths, count)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(count), *paths.values()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_SECONDS,
            check=True,
        )
        found: list[str | int] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {}
    except (OSError, ValueError, subprocess.SubprocessError):
        return _read_here(paths, count)
    return {
        name: bytes.fromhex(one) if isinstance(one, str) else OSError(one, os.strerror(one))
        for name, one in zip(paths, found, strict=True)
    }


def _read_here(paths: Mapping[str, Path], count: int) -> dict[str, bytes | OSError]:
    own = Path("/proc/self/fd")
    found: dict[str, bytes | OSError] = {}
    try:
        is_open = {(status.st_dev, status.st_ino) for status in _statuses(own)}
    except OSError:  # nothing tells
        return found
    for name, path in paths.items():
        try:
            status = path.lstat()
            if (status.st_dev, status.st_ino) in is_open:
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            found[name] = error
            continue
        try:
            found[name] = os.read(descriptor, count)
        finally:
            os.close(descriptor)
    return found


def _statuses(directory: Path) -> Iterator[os.stat_result]:
    for link in directory.iterdir():
        try:
            yield link.stat()
        except OSError:  # it was closed meanwhile
            continue
