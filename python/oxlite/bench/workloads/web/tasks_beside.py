"""Tasks that are enqueued and run in the site's own file while it is asked, by another process.

``python -m oxlite.bench.workloads.web.tasks_beside FILE RATE`` goes on until SIGTERM; its exit code
is 0 if every task has run.

Invariant: who enqueues is on time: what he could not enqueue in time counts as enqueued late, and
not as not at all.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.programs import Program
from oxlite.tasks import Queue

THREADS = 2
STOP_SECONDS = 60.0
MODULE = "oxlite.bench.workloads.web.tasks_beside"


@contextmanager
def tasks_beside(
    path: Path, rate: int, directory: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """Have so many tasks a second enqueued and run in a file; none if that is 0.

    Raises:
        WorkerError: Not all have run.
    """
    if not rate:
        yield
        return
    program = Program(
        "who enqueues and runs tasks",
        [sys.executable, "-P", "-m", MODULE, str(path), str(rate)],
        directory / "tasks.log",
        directory=directory,
        environment=environment,
    )
    with program:
        ready = directory / "tasks.ready"
        ends = time.monotonic() + STOP_SECONDS
        while not ready.exists():
            program.require()
            if time.monotonic() >= ends:
                raise WorkerError(f"{program.title} does not begin")
            time.sleep(0.01)
        yield
        program.stop(STOP_SECONDS)


def main() -> int:
    """Enqueue and run them."""
    path, rate = sys.argv[1], int(sys.argv[2])
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    ran = enqueued = 0
    with Queue(path) as queue:

        @queue.task(name="beside", keep=0.0)
        def beside() -> None:
            nonlocal ran
            ran += 1

        with queue.worker(threads=THREADS):
            beside.enqueue()
            _wait_until_all_have_run(queue)
            Path("tasks.ready").touch()
            begun = time.monotonic()
            while not ended.is_set():
                ended.wait(max(0.0, begun + enqueued / rate - time.monotonic()))
                beside.enqueue()
                enqueued += 1
            _wait_until_all_have_run(queue)
    print(f"{enqueued:,} tasks enqueued, {ran - 1:,} run")
    return 0 if ran == enqueued + 1 else 1


def _wait_until_all_have_run(queue: Queue) -> None:
    """They are kept for no time."""
    limit = time.monotonic() + STOP_SECONDS
    while queue.find(at_most=1) and time.monotonic() < limit:
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
