"""Threads of ours take no signals of the program's, but where they run its functions."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wait import until

import oxlite
import oxlite.aio

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="what a thread keeps back is told on Linux alone"
)

OWN_FAULTS = {
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGSYS,
    signal.SIGTRAP,
}
"""What a thread is sent for something that it has done itself."""

NEVER_KEPT_BACK = {signal.SIGKILL, signal.SIGSTOP}

_HOLDER = """
import sys, oxlite
connection = oxlite.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute(sys.argv[2])
print("done", flush=True)
sys.stdin.read()
"""


def kept_back(status: str) -> set[int]:
    """The signals that a thread does not take, by what the kernel tells of it."""
    (line,) = [line for line in status.splitlines() if line.startswith("SigBlk:")]
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask & 1 << (number - 1)}


def threads(name: str) -> list[str]:
    """What the kernel tells of each thread of this process with that name."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if (task / "comm").read_text().strip() == name:
                found.append((task / "status").read_text())
    return found


def assert_is_quiet(status: str) -> None:
    back = kept_back(status)
    assert set(signal.valid_signals()) - OWN_FAULTS - NEVER_KEPT_BACK <= back
    assert not back & OWN_FAULTS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    return path


def test_the_thread_that_keeps_read_marks(path: Path) -> None:
    with contextlib.closing(oxlite.connect(path)) as connection:

        def is_started() -> list[str]:
            for _ in range(100):
                connection.execute("SELECT * FROM t").fetchall()
            return threads("oxlite-marks")

        found: list[str] = []
        until(lambda: found.extend(is_started()) or found)
        assert_is_quiet(found[0])


def test_the_thread_that_waits_for_another_process(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        # One has the write lock, the other is the first in line.
        for statement in ("BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)"):
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", _HOLDER, str(path), statement],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            stack.callback(process.kill)
            if statement.startswith("BEGIN"):
                assert process.stdout is not None
                assert process.stdout.readline() == b"done\n"
        connection = stack.enter_context(
            contextlib.closing(oxlite.connect(path, isolation_level=None, timeout=0.01))
        )

        def is_started() -> list[str]:
            with pytest.raises(oxlite.LockedError):
                connection.execute("INSERT INTO t VALUES (2)")
            return threads("oxlite-gate")

        until(is_started)
        assert_is_quiet(threads("oxlite-gate")[0])


def test_a_process_that_a_function_starts_takes_signals(path: Path) -> None:
    """It has the mask of the thread in which the function runs, which is a thread of ours."""
    seen: list[str] = []

    def start_one() -> int:
        seen.append(Path("/proc/thread-self/comm").read_text().strip())
        seen.append(subprocess.check_output(["cat", "/proc/self/status"], text=True))
        return 1

    async def run() -> None:
        async with oxlite.aio.connect(path) as connection:
            await connection.create_function("start_one", 0, start_one)
            await connection.execute("SELECT start_one()")

    asyncio.run(run())
    thread, status = seen
    assert thread == "oxlite-worker"
    assert not kept_back(status)
