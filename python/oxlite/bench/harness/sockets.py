"""Where a server of the lab's has its Unix socket: paths of sockets are short."""

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from oxlite.bench.harness import interrupts
from oxlite.bench.harness.scratch import PREFIX

LONGEST_SOCKET_PATH = 100
"""Of the 107 bytes that a system allows at least."""


def directory_of_sockets(directory: Path, socket: str, undone: ExitStack) -> Path:
    """A new directory for a socket, below another one unless the path would be too long.

    Args:
        directory: the other one.
        socket: the socket's name.
        undone: removes it.
    """
    sockets = directory / "sockets"
    with interrupts.held():
        if len(os.fsencode(sockets / socket)) > LONGEST_SOCKET_PATH:
            sockets = Path(tempfile.mkdtemp(prefix=PREFIX))
        else:
            sockets.mkdir(mode=0o700)
        undone.callback(shutil.rmtree, sockets, ignore_errors=True)
    return sockets
