"""The site on a real server: uvicorn, with processes that share a socket.

The lab has bound the socket to a free port of the loopback, so no other program can take the port
in between, and whoever connects before the server is up waits in its queue.
"""

import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.programs import Program

LOOPBACK = "127.0.0.1"
SITE = "oxlite.bench.workloads.cable.site:application"
QUIET_SECONDS = 3600
"""Longer than any run: nothing is said on a WebSocket but what the clients say."""


@contextmanager
def served(environment: Mapping[str, str], workers: int, directory: Path) -> Iterator[int]:
    """The site, at the port that is given; it has ended afterwards.

    Raises:
        WorkerError: it has ended before, or whoever asked it had an error: with what it said last.
    """
    listening = socket.create_server((LOOPBACK, 0), backlog=2048)
    with listening:
        port: int = listening.getsockname()[1]
        program = Program(
            "the server",
            [
                *(sys.executable, "-P", "-m", "uvicorn", "--factory", SITE),
                *("--fd", str(listening.fileno()), "--workers", str(workers)),
                *("--loop", "asyncio", "--http", "h11", "--ws", "websockets"),
                *("--ws-per-message-deflate", "false", "--ws-ping-interval", str(QUIET_SECONDS)),
                *("--lifespan", "off", "--log-level", "warning", "--no-access-log"),
            ],
            directory / "server.log",
            directory=directory,
            environment=environment,
            descriptors=[listening.fileno()],
        )
    with program:
        try:
            yield port
        except WorkerError as error:
            program.require()
            raise program.failed(f"is left: {error}") from None
        program.require()
