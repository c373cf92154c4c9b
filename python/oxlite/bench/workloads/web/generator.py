"""The clients: ``oha``, a load generator.

Each client asks again as soon as it has its answer (a closed loop), on a connection of its own for
each request. When the time is over no client asks again, and all wait for their answers. oha writes
every request into a database, from which exact percentiles are computed, and counts those
without an answer by what went wrong.

Where a rate is asked for, latencies count from when a request should have been sent, not from when
a client was free to send it (coordinated omission). With a closed loop there is no such moment.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
from array import array
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from oxlite.bench.errors import UsageError, VerificationError
from oxlite.bench.harness.programs import Program

INSTALL = "cargo install oha --locked"
LONGEST_ANSWER_SECONDS = 120
HUNG_SECONDS = 2 * LONGEST_ANSWER_SECONDS + 60.0
VERSION_SECONDS = 60.0
EVERY_REQUEST = "SELECT status, end, duration FROM oha"


@dataclass(frozen=True)
class Load:
    """What the clients have seen.

    Attributes:
        statuses: answers by status.
        unanswered: requests without an answer, by what went wrong.
        done: requests that succeeded before the time was over.
        latencies_ns: of all that succeeded.
        failed_ns: of all that were answered with a failure.
    """

    statuses: Counter[int]
    unanswered: Counter[str]
    done: int
    latencies_ns: "array[int]"
    failed_ns: "array[int]"


def find(generator: str) -> str:
    """Where the load generator is: beside this Python, or on the PATH, unless a path is given.

    Raises:
        UsageError: it is nowhere, or another program.
    """
    beside = Path(sys.executable).parent
    found = shutil.which(generator, path=str(beside)) or shutil.which(generator)
    if found is None:
        raise UsageError(
            f"the load generator {generator!r} is not installed; run `{INSTALL}` "
            "(in a checkout: `make oha`), or say where it is with --generator"
        )
    path = str(Path(found).absolute())
    _require_oha(path)
    return path


def _require_oha(path: str) -> None:
    """Refuse a program that does not say of itself that it is oha.

    Raises:
        UsageError: it does not.
    """
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, timeout=VERSION_SECONDS, check=False
        ).stdout
    except OSError as error:
        raise UsageError(f"cannot run the load generator {path}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        said = b""
    if not said.startswith(b"oha "):
        raise UsageError(f"{path} is not oha, the load generator: `{path} --version` names another")


def run(
    oha: str, url: str, clients: int, duration_seconds: float, directory: Path, *, rate: int = 0
) -> Load:
    """Have the clients ask for as long as that, and say what they have seen.

    Args:
        oha: the program.
        url: what they ask for.
        clients: how many ask at once.
        duration_seconds: for how long.
        directory: for what the program writes.
        rate: requests per second that they are to send together; 0 is a closed loop.

    Raises:
        WorkerError: the generator does not end, or fails.
        VerificationError: what it has written is not of its form.
    """
    requests, summary = directory / "requests.db", directory / "summary.json"
    arguments = [
        *(oha, "--no-tui", "--output-format", "json", "--output", str(summary)),
        *("--db-url", str(requests), "-m", "POST", "--disable-keepalive"),
        *("-c", str(clients), "-z", f"{round(duration_seconds * 1000)}ms"),
        *("--wait-ongoing-requests-after-deadline", "-t", f"{LONGEST_ANSWER_SECONDS}s"),
        *(("-q", str(rate), "--latency-correction") if rate else ()),
        url,
    ]
    output = directory / "generator.log"
    with Program("the load generator", arguments, output, directory=directory) as program:
        program.wait(duration_seconds + HUNG_SECONDS)
    return read(requests, summary, duration_seconds)


def read(requests: Path, summary: Path, duration_seconds: float) -> Load:
    """What the generator has written.

    Args:
        requests: the database with the answered requests; there is none without any.
        summary: the file with its JSON.
        duration_seconds: how long it was to ask.

    Raises:
        VerificationError: it is not of that form, or the two do not agree.
    """
    try:
        found = json.loads(summary.read_text())
        counted = Counter({int(k): n for k, n in found["statusCodeDistribution"].items()})
        unanswered = Counter({str(k): int(n) for k, n in found["errorDistribution"].items()})
        with closing(sqlite3.connect(requests)) as connection:
            rows = connection.execute(EVERY_REQUEST).fetchall() if counted else []
    except (OSError, LookupError, TypeError, ValueError, AttributeError, sqlite3.Error) as error:
        raise VerificationError(f"oha has written something unknown: {error}") from None
    statuses = Counter(status for status, _, _ in rows)
    if statuses != counted:
        raise VerificationError(
            f"oha has counted {counted.total()} answers, and written {statuses.total()}"
        )
    latencies_ns, failed_ns = array("Q"), array("Q")
    done = 0
    for status, end, duration in rows:
        is_failed = status >= 400
        (failed_ns if is_failed else latencies_ns).append(round(duration * 1e9))
        done += not is_failed and end <= duration_seconds
    return Load(statuses, unanswered, done, latencies_ns, failed_ns)
