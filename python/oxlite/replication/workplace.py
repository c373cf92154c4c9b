"""The directory of a Litestream that runs: its socket, and the file of what it is told.

Invariant: nobody else can look into it. Whoever deletes what is old in the system's directory for
temporary files may delete it: it is made anew then, and has another name.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from oxlite.replication.errors import ReplicationError
from oxlite.replication.generation import identity

__all__ = ["Workplace"]

_SOCKET_PATH_BYTES: Final = 107
"""https://man7.org/linux/man-pages/man7/unix.7.html."""


class Workplace:
    """See the module.

    Attributes:
        socket: The path of the socket; empty before ``prepare``.
    """

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._identity: tuple[int, int] | None = None
        self.socket = ""

    def prepare(self) -> bool:
        """See that it is there, and whether it was made anew.

        Raises:
            ReplicationError: A socket in it would have too long a path.
            OSError: It cannot be made.
        """
        before = self._directory
        if before is not None and identity(Path(before.name)) == self._identity:
            return False
        made = tempfile.TemporaryDirectory(prefix="oxlite-", ignore_cleanup_errors=True)
        self._directory, self._identity = made, identity(Path(made.name))
        self.socket = os.path.join(made.name, "socket")  # noqa: PTH118 - text
        if len(os.fsencode(self.socket)) > _SOCKET_PATH_BYTES:
            raise ReplicationError(
                f"{made.name} is too long a path for a socket: set TMPDIR to a shorter one"
            )
        return True

    def write(self, document: dict[str, Any]) -> Path:
        """Write what Litestream is told; it is in the directory of the socket.

        Raises:
            OSError: It cannot be written.
        """
        path = Path(self.socket).with_name("litestream.yml")
        path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        return path

    def delete(self) -> None:
        """Delete it, if there is one."""
        if self._directory is not None:
            self._directory.cleanup()
