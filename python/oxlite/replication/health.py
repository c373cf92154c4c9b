"""What a Litestream that runs answers at its socket.

How far behind a replica is is not asked for but proved: all that is committed is to be sent now,
and Litestream answers when it is there. So a Litestream that has stopped in silence, or is frozen,
has no answer, and what it says of itself is not needed.

Litestream is never asked to wait itself (``wait`` or ``timeout``): it then makes its checkpoints in
the time of that request, and lets go of its read transaction when the request ends, without knowing
it. From there on writers overwrite the WAL under it, and what it sends is damaged (0.5.17:
``handleSync``, ``acquireReadLock``).
"""

import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any, Final

from oxlite import harmless
from oxlite.replication.errors import LitestreamFailed

__all__ = ["answers", "read_now", "send_now"]

_PAUSE_SECONDS: Final = 0.05
_PAUSE_AT_MOST_SECONDS: Final = 0.5


class _SocketConnection(http.client.HTTPConnection):
    """HTTP by a socket in the file system."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def send_now(path: str, database: Path, *, seconds: float) -> int:
    """Have all that is committed read now, and wait until it is in the store.

    Args:
        path: Of the socket.
        database: Its file, as Litestream has been told.
        seconds: How long that may take.

    Returns:
        The number of the last transaction that is there, as Litestream counts.

    Raises:
        LitestreamFailed: It does not answer, or could not send it.
    """
    ends = time.monotonic() + seconds
    wanted = None
    pause = _PAUSE_SECONDS
    while True:
        read, sent = _sync(path, database, seconds=max(1.0, ends - time.monotonic()))
        wanted = read if wanted is None else wanted
        if sent >= wanted > 0:
            return sent
        if time.monotonic() + pause > ends:
            raise LitestreamFailed(
                f"Litestream could not send what was committed within {seconds:g} s: the store does"
                " not answer, or is too slow"
            )
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_AT_MOST_SECONDS)


def read_now(path: str, database: Path, *, seconds: float) -> None:
    """Have all that is committed read now, and a checkpoint made if the WAL is long.

    Args:
        path: Of the socket.
        database: Its file, as Litestream has been told.
        seconds: How long that may take.

    Raises:
        LitestreamFailed: It does not answer, or could not read it.
    """
    _sync(path, database, seconds=seconds)


def _sync(path: str, database: Path, *, seconds: float) -> tuple[int, int]:
    """The last transaction that it has read, and the last one that is in the store."""
    connection = _SocketConnection(path, seconds)
    try:
        request = json.dumps({"path": str(database), "wait": False})
        connection.request("POST", "/sync", request, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        document: dict[str, Any] = json.loads(answer.read())
        if answer.status == http.HTTPStatus.OK:
            return int(document["txid"]), int(document["replicated_txid"])
        said = harmless(str(document["error"]))
    except TimeoutError as error:
        raise LitestreamFailed(f"Litestream does not answer within {seconds:.0f} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise LitestreamFailed(f"Litestream does not answer: {harmless(str(error))}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LitestreamFailed(
            f"what Litestream answers is not understood: {harmless(str(error))}"
        ) from error
    finally:
        connection.close()
    raise LitestreamFailed(f"Litestream could not send what was committed: {said}")


def answers(path: str, *, seconds: float) -> bool:
    """Whether Litestream answers at its socket at all."""
    connection = _SocketConnection(path, seconds)
    try:
        connection.request("GET", "/info")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
