"""Arguments of the cable: checked before any file is touched; errors say what is taken."""

import math
import os
from collections.abc import Callable
from os import PathLike

__all__ = ["capacity_of", "check_capacity", "check_name", "check_seconds", "file_path"]

_NAME_BYTES_AT_MOST = 255
_CAPACITY_AT_MOST = (1 << 63) - 1


def check_name(what: str, name: object) -> None:
    """Refuse what is no name of a channel, a group or a room.

    Raises:
        TypeError: It is no text.
        ValueError: It is empty, has more than 255 bytes, or what cannot be stored.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} is text, not {type(name).__name__}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the name of a {what} is Unicode text without surrogates") from None
    if not 0 < length <= _NAME_BYTES_AT_MOST or "\0" in name:
        raise ValueError(
            f"the name of a {what} has 1 to {_NAME_BYTES_AT_MOST} bytes, none of them 0,"
            f" not {name[:40]!r}{'...' if name[40:] else ''} with {length}"
        )


def check_seconds(name: str, value: object) -> float:
    """A number of seconds.

    Raises:
        TypeError: It is no number.
        ValueError: It is not greater than 0, or has no end.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of seconds, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds < math.inf:
        raise ValueError(f"{name} is a number of seconds greater than 0, not {value!r}")
    return seconds


def check_capacity(name: str, value: object) -> int:
    """A number of messages.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is not greater than 0, or has more than 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number of messages, not {type(value).__name__}")
    if not 0 < value <= _CAPACITY_AT_MOST:
        raise ValueError(f"{name} is a number of messages greater than 0, not {value!r}")
    return value


def file_path(path: str | PathLike[str]) -> str:
    """The absolute name of a file: it stays the same where the process changes its directory.

    Raises:
        TypeError: It is neither text nor a path.
        ValueError: It is no file: empty, in memory, or a URI.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"the path of a cable is text or a Path, not {type(name).__name__}")
    if not name or name.startswith((":memory:", "file:")):
        raise ValueError(
            f"a cable is a file, which its processes share, not {name!r}: give the path of one"
        )
    return os.path.abspath(name)  # noqa: PTH100 - Path.absolute() leaves .. in it


def capacity_of(function: Callable[[str], int], queue: str) -> int:
    """What a function says of a queue. Raises as ``check_capacity``."""
    return check_capacity(f"what capacity_of says of {queue!r}", function(queue))
