"""The site on a real server, and the server's own account of its answers.

Gunicorn inherits a listening socket that the lab has bound to a free port of the loopback, so no
other program can take the port in between. Its access log has a line for each answer, with what the
answer says it has changed.

Invariants: the server is ready when it has answered pages, by all that comes with a request; its
account is complete once it has ended by itself.
"""

import http.client
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from oxlite.bench.errors import VerificationError, WorkerError
from oxlite.bench.harness.programs import Program
from oxlite.bench.workloads.web.parameters import WebParameters

LOOPBACK = "127.0.0.1"
MODULE = "oxlite.bench.workloads.web.blog.wsgi"
POOLED_MODULE = "oxlite.bench.workloads.web.pooled.application:application()"
SETTINGS = "python:oxlite.bench.workloads.web.gunicorn_settings"
LEAST_POOLED_THREADS = 16
THREADS_FOR_EACH_CONNECTION = 3
READY_SECONDS = 60.0
STOP_SECONDS = 90.0
PAUSE_SECONDS = 0.02
PAGES = ("/", "/posts/1/")
PAGES_FOR_EACH_THREAD = 4

ACCESS_LOG_FORMAT = "%(m)s\t%(s)s\t%({blog-endpoint}o)s\t%({blog-changed}o)s\t%({blog-failure}o)s"
ABSENT = "-"
_CHANGE = re.compile(r"(?=[+-])")


@dataclass
class Account:
    """What the server says it has done for the clients.

    Attributes:
        statuses: answers by status.
        endpoints: answers of each endpoint that did what it was asked for.
        failures: failed requests by what the site says of them.
        changes: by how many rows each table has grown.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    endpoints: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)


def read_account(text: str) -> Account:
    """The account of an access log; what was asked for before the load came by GET.

    Raises:
        VerificationError: it is not such a log.
    """
    account = Account()
    for line in text.splitlines():
        try:
            method, status_text, endpoint, changed, failure = line.split("\t")
            if method != "POST":
                continue
            status = int(status_text)
            # Such as ``posts-1 comments-8``.
            changes = [_CHANGE.split(word) for word in changed.split(" ") if word != ABSENT]
            growth = {table: int(difference) for table, difference in changes}
        except ValueError:
            raise VerificationError(f"the server's log has a line {line[:80]!r}") from None
        account.statuses[status] += 1
        if status >= 400:
            account.failures[f"status {status}" if failure == ABSENT else failure] += 1
        else:
            account.endpoints[endpoint] += 1
            account.changes.update(growth)
    return account


class Server:
    """The site while it is served."""

    def __init__(self, program: Program, port: int, log: Path) -> None:
        self._program = program
        self._log = log
        self.port = port

    def wait_ready(self, pages: int) -> None:
        """Have ``pages`` pages answered, so that every process has loaded what it needs.

        Raises:
            WorkerError: it does not come up, or has no pages.
        """
        deadline = time.monotonic() + READY_SECONDS
        answered = 0
        while answered < pages:
            self._program.require()
            if time.monotonic() >= deadline:
                raise self._program.failed(f"answers no page in {READY_SECONDS:.0f} s")
            # One at a time, and none given up: two at once could already be in each other's way.
            left_seconds = max(1.0, deadline - time.monotonic())
            connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=left_seconds)
            page = PAGES[answered % len(PAGES)]
            try:
                connection.request("GET", page)
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException):
                time.sleep(PAUSE_SECONDS)
                continue
            finally:
                connection.close()
            if status != 200:
                raise WorkerError(f"{self._program.title} answers {status} to GET {page}")
            answered += 1

    def finish(self) -> Account:
        """Let it end, and read its account.

        Raises:
            WorkerError: it does not end as it should.
        """
        self._program.stop(STOP_SECONDS)
        return read_account(self._log.read_text())


def threads_of(parameters: WebParameters, *, pooled: bool) -> int:
    """How many threads each process has.

    Where connections are in a pool there are more threads than those, else nobody waits for one.
    """
    if not pooled:
        return parameters.threads
    wanted = THREADS_FOR_EACH_CONNECTION * parameters.pool
    return max(parameters.threads, wanted, LEAST_POOLED_THREADS)


@contextmanager
def served(
    environment: Mapping[str, str],
    parameters: WebParameters,
    directory: Path,
    *,
    pooled: bool = False,
) -> Iterator[Server]:
    """The site, ready for requests; it has ended afterwards.

    Args:
        environment: variables besides the lab's own.
        parameters: how many processes and threads it has.
        directory: for what the server writes.
        pooled: whether it is the site with pools.

    Raises:
        WorkerError: it does not come up.
    """
    log = directory / "access.log"
    threads = threads_of(parameters, pooled=pooled)
    listening = socket.create_server((LOOPBACK, 0), backlog=2048)
    with listening:
        port: int = listening.getsockname()[1]
        program = Program(
            "the server",
            [
                *(sys.executable, "-P", "-m", "gunicorn", "--config", SETTINGS),
                *("--bind", f"fd://{listening.fileno()}"),
                *("--workers", str(parameters.workers), "--threads", str(threads)),
                *("--access-logfile", str(log), "--worker-tmp-dir", str(directory)),
                POOLED_MODULE if pooled else MODULE,
            ],
            directory / "server.log",
            directory=directory,
            environment=environment,
            descriptors=[listening.fileno()],
        )
    with program:
        server = Server(program, port, log)
        server.wait_ready(PAGES_FOR_EACH_THREAD * parameters.workers * threads)
        yield server
