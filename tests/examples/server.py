"""An example that is served by uvicorn with two workers, as tests use it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Self

import psutil
from tests.wait import LIMIT_SECONDS, until

ROOT = Path(__file__).parents[2]


class Server:
    """An example, served by two workers."""

    def __init__(
        self, example: str, application: str, folder: Path, *options: str, **named: str
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        command = [
            *(sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT / "examples" / example)),
            *("--workers", "2", "--log-level", "warning", *options),
            *(application, "--port", str(self.port)),
        ]
        self.process = subprocess.Popen(command, env={**os.environ, **named}, cwd=folder)
        until(self.is_serving)

    def is_serving(self) -> bool:
        """Whether somebody answers."""
        assert self.process.poll() is None, "the server has ended"
        try:
            return self.ask("GET", "/")[0] == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, content: object = None) -> tuple[int, bytes]:
        """Ask once, by a connection of its own."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request(
                method, path, json.dumps(content), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            return answer.status, answer.read()

    def workers(self) -> list[psutil.Process]:
        """The two processes that serve, once both are there."""
        found: list[psutil.Process] = []

        def are_there() -> bool:
            children = psutil.Process(self.process.pid).children()
            found[:] = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
            return len(found) == 2

        until(are_there)
        return found

    def stop(self) -> int:
        """End it as a supervisor does; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_SECONDS)

    def __enter__(self) -> Self:
        """This one."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            for process in [*psutil.Process(self.process.pid).children(True), self.process]:
                process.kill()
            self.process.wait()
