"""A local server that speaks S3 (moto's), behind a relay that can be killed and begun again.

The server keeps everything in memory; so what is killed is the relay, and what the server holds
stays. All requests go through it.
"""

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["CREDENTIALS", "S3", "moto_server"]

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "campaign", "AWS_SECRET_ACCESS_KEY": "of-the-campaign"}
_BUCKET = "replicas"
_BEGINS_WITHIN_SECONDS = 60.0


def moto_server() -> str | None:
    """The program, if it is installed."""
    beside = Path(sys.executable).with_name("moto_server")
    return str(beside) if beside.is_file() else shutil.which("moto_server")


class S3:
    """The server, for the length of a block.

    Args:
        program: That of moto.
        log: The file that takes what it says.
    """

    def __init__(self, program: str, log: Path) -> None:
        self._program = program
        self._log = log
        self._port = _free_port()
        self._relay_port = _free_port()
        self._relay: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Begin it."""
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                [self._program, "-H", "127.0.0.1", "-p", str(self._port)], stdout=log, stderr=log
            )
        try:
            _await(self._port)
            self.begin_relay()
            self.forget_all()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        self.kill_relay()
        self._server.kill()
        self._server.wait()

    def url(self, name: str) -> str:
        """A place, as Litestream takes it."""
        return (
            f"s3://{_BUCKET}/{name}?endpoint=http://127.0.0.1:{self._relay_port}"
            "&region=us-east-1&force-path-style=true"
        )

    def forget_all(self) -> None:
        """Delete all that it holds."""
        for path, method in (("moto-api/reset", "POST"), (_BUCKET, "PUT")):
            request = urllib.request.Request(f"http://127.0.0.1:{self._port}/{path}", method=method)
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()

    def begin_relay(self) -> None:
        """Let it answer."""
        command = [sys.executable, "-m", "tests.replica_kills.relay"]
        self._relay = subprocess.Popen([*command, str(self._relay_port), str(self._port)])
        _await(self._relay_port)

    def kill_relay(self) -> None:
        """Have it die, in the midst of what it does."""
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
            self._relay = None

    @property
    def is_there(self) -> bool:
        """Whether it answers."""
        return self._relay is not None


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _await(port: int) -> None:
    ends = time.monotonic() + _BEGINS_WITHIN_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)
        else:
            return
