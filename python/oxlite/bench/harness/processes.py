"""Worker processes: started, released together, collected, always ended.

Every worker is a new Python process (never a fork), so that nothing is shared
that a real deployment would not share. A group goes through ready, release,
finished and collected; each step waits for all its workers.

Invariants: when the ``with`` block of a group ends, however it ends, none of
its processes exists; a worker that dies, fails or hangs raises
:class:`~oxlite.bench.errors.WorkerError` with the reason in the waiting parent.

A group must be used from the main thread: on Linux a worker dies with the
*thread* that started it. Workers are in a process group of their own, so
that Ctrl-C in a terminal reaches the lab alone and the lab ends them.
"""

import contextlib
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness import interrupts
from oxlite.bench.harness.channel import Decoder, Message, encode

BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
LEAD_BASE_NS = 20_000_000
LEAD_PER_WORKER_NS = 1_000_000
READY_SECONDS = 120.0
COLLECT_SECONDS = 120.0
STOP_SECONDS = 30.0
LONGEST_SELECT_SECONDS = 3600.0  # epoll counts milliseconds in 32 bits; the loop waits on


class Worker:
    """One process and what it has said so far."""

    def __init__(self, number: int, build: str, stderr: Path, interpreter: str) -> None:
        self.number = number
        self.facts: Message = {}
        self._stderr_path = stderr
        self._decoder = Decoder()
        with stderr.open("wb") as stderr_file, interrupts.held():
            self.process = subprocess.Popen(
                [interpreter, "-P", str(BOOTSTRAP), "--build", build],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr_file,
                bufsize=0,
                process_group=0,
            )

    def descriptor(self) -> int:
        """The descriptor on which its messages arrive."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            WorkerError: it is no longer there.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(encode(message))
        except (BrokenPipeError, ValueError):
            raise self.gone() from None

    def read(self) -> list[tuple[Message, bytes]]:
        """What has arrived; called when something has.

        Raises:
            WorkerError: it is gone, or reports a failure.
        """
        assert self.process.stdout is not None
        data = self.process.stdout.read(1 << 20)
        if not data:
            raise self.gone()
        self._decoder.feed(data)
        frames = []
        while (frame := self._decoder.next()) is not None:
            if frame[0]["event"] == "failed":
                raise WorkerError(f"worker {self.number}: {frame[0]['reason']}")
            frames.append(frame)
        return frames

    def gone(self) -> WorkerError:
        """The error that says how it ended."""
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return WorkerError(f"worker {self.number} closed its pipe and did not end")
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"ended early with exit code {code}"
        with contextlib.suppress(OSError):
            lines = self._stderr_path.read_text(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            how = f"{how}: {last}" if last else how
        return WorkerError(f"worker {self.number} {how}")

    def end(self) -> None:
        """Kill it if it still runs, reap it, close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._stderr_path.unlink(missing_ok=True)


class WorkerGroup:
    """Workers that belong together. A context manager; see the module."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._workers: list[Worker] = []

    @property
    def workers(self) -> Sequence[Worker]:
        """The workers, in the order in which they were started."""
        return self._workers

    def start(
        self, task: str, arguments: Message, build: str, interpreter: str | None = None
    ) -> Worker:
        """Start a worker.

        Args:
            task: what it prepares: ``package.module:Class``.
            arguments: what the task is given.
            build: the build of the extension module that it loads.
            interpreter: the Python it runs on, unless the lab's own.
        """
        number = len(self._workers)
        stderr = self._directory / f"worker-{number}.stderr"
        with interrupts.held():
            worker = Worker(number, build, stderr, interpreter or sys.executable)
            self._workers.append(worker)
        worker.send({"do": "prepare", "task": task, "arguments": arguments})
        return worker

    def wait_ready(self) -> None:
        """Wait until all are prepared; their facts are then in ``worker.facts``."""
        for worker, (message, _) in self._gather("ready", self._workers, READY_SECONDS).items():
            worker.facts = message["facts"]

    def release(
        self, limit_seconds: float, turn: Message | None = None, only: Worker | None = None
    ) -> int:
        """Let all (or ``only`` one) run a turn together, and wait until all have finished.

        Args:
            limit_seconds: when this has passed the turn counts as hung.
            turn: what the task's ``run`` is given.
            only: one worker, where they take turns.

        Returns:
            the instant at which the turn began, in ns of ``perf_counter_ns``.
        """
        chosen = self._workers if only is None else [only]
        lead_ns = LEAD_BASE_NS + LEAD_PER_WORKER_NS * len(chosen)
        start_ns = time.perf_counter_ns() + lead_ns
        for worker in chosen:
            worker.send({"do": "run", "start_ns": start_ns, "turn": turn or {}})
        self._gather("finished", chosen, limit_seconds)
        return start_ns

    def collect(self, only: Worker | None = None) -> list[tuple[Message, bytes]]:
        """The facts and payloads of the last turn, in the order of the workers."""
        chosen = self._workers if only is None else [only]
        for worker in chosen:
            worker.send({"do": "collect"})
        frames = self._gather("collected", chosen, COLLECT_SECONDS)
        return [(frames[worker][0]["facts"], frames[worker][1]) for worker in chosen]

    def environment(self, worker: Worker, driver: str, *, fsync: bool) -> Message:
        """The environment report of the very connection ``worker`` measured."""
        worker.send({"do": "environment", "driver": driver, "fsync": fsync})
        frames = self._gather("environment", [worker], COLLECT_SECONDS)
        report: Message = frames[worker][0]["report"]
        return report

    def stop(self) -> None:
        """Let all close their connections and end by themselves.

        Raises:
            WorkerError: one does not, or reports a failure on its way out.
        """
        for worker in self._workers:
            worker.send({"do": "stop"})
        for worker in self._workers:
            try:
                code = worker.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise WorkerError(f"worker {worker.number} did not end when told to") from None
            if code:
                raise worker.gone()

    def _gather(
        self, event: str, workers: Sequence[Worker], limit_seconds: float
    ) -> dict[Worker, tuple[Message, bytes]]:
        """Wait until each of ``workers`` has sent ``event``."""
        found: dict[Worker, tuple[Message, bytes]] = {}
        deadline = time.monotonic() + limit_seconds
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                selector.register(worker.descriptor(), selectors.EVENT_READ, worker)
            while len(found) < len(workers):
                remaining_seconds = max(0.0, deadline - time.monotonic())
                ready = selector.select(min(remaining_seconds, LONGEST_SELECT_SECONDS))
                if not ready and time.monotonic() >= deadline:
                    raise WorkerError(f"no worker answered {event!r} in {limit_seconds:.0f} s")
                for key, _ in ready:
                    worker = key.data
                    for frame in worker.read():
                        if frame[0]["event"] != event:
                            raise WorkerError(
                                f"worker {worker.number} sent {frame[0]['event']!r}, not {event!r}"
                            )
                        found[worker] = frame
        return found

    def __enter__(self) -> Self:
        """Enter with no workers yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every worker that is still there."""
        with interrupts.held():
            for worker in self._workers:
                worker.end()
