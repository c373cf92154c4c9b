"""Programs that are not the lab's workers, such as a server: started, watched, always ended.

A program is in a process group of its own, with all processes that it starts, and ends with that
group. Its output goes to a file, whose end says what went wrong.

Invariants: when its ``with`` block ends, however it ends, no process of its group exists; the
program itself dies with the lab (on Linux); its process number stays its own until then, because
it is looked at without being reaped.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness import interrupts

LAUNCH = Path(__file__).with_name("launch.py")
POLL_SECONDS = 0.005
LONGEST_REASON = 300

_ERROR = re.compile(r"[\w.]*(?:Error|Exception|Configured|error)\b|.*(?:\berror: |FATAL)")


def _inherited() -> dict[str, str]:
    """The lab's environment, for a program that works in another directory."""
    found = dict(os.environ)
    paths = [path for path in found.get("PYTHONPATH", "").split(os.pathsep) if path]
    if paths:
        found["PYTHONPATH"] = os.pathsep.join(str(Path(path).absolute()) for path in paths)
    return found


class Program(contextlib.AbstractContextManager["Program"]):
    """One program that runs. A context manager; see the module."""

    def __init__(
        self,
        title: str,
        arguments: Sequence[str],
        output: Path,
        *,
        directory: Path,
        environment: Mapping[str, str | None] | None = None,
        descriptors: Sequence[int] = (),
        account: tuple[int, int] | None = None,
        ends_by: int = signal.SIGKILL,
    ) -> None:
        """Start it.

        Args:
            title: what to call it in an error.
            arguments: the program and what it is told.
            output: the file that its standard output and error go to.
            directory: where it works.
            environment: variables besides the lab's own; ``None`` removes one.
            descriptors: open files that it inherits.
            account: the user and the group that it runs as, unless the lab's.
            ends_by: the signal that it is sent when the lab has ended.
        """
        uid, gid = account or (os.geteuid(), os.getegid())
        variables = {**_inherited(), **(environment or {})}
        launch = (os.getpid(), int(ends_by), uid, gid)
        self.title = title
        self._output = output
        with output.open("wb") as file, interrupts.held():
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(LAUNCH), *map(str, launch), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={name: value for name, value in variables.items() if value is not None},
                pass_fds=descriptors,
                process_group=0,
            )

    @property
    def pid(self) -> int:
        """Its process number, which is its group's too."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether it runs no more."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self._process.returncode is not None or (
            os.waitid(os.P_PID, self.pid, options) is not None
        )

    def require(self) -> None:
        """See that it still runs.

        Raises:
            WorkerError: it does not.
        """
        if self.has_ended():
            raise self.failed("has ended")

    def wait(self, limit_seconds: float) -> None:
        """Wait until it ends by itself.

        Raises:
            WorkerError: it does not in that time, or fails.
        """
        deadline = time.monotonic() + limit_seconds
        while not self.has_ended():
            if time.monotonic() >= deadline:
                raise self.failed(f"did not end in {limit_seconds:.0f} s")
            time.sleep(POLL_SECONDS)
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if ended is not None and (ended.si_code != os.CLD_EXITED or ended.si_status):
            how = "exit code" if ended.si_code == os.CLD_EXITED else "signal"
            raise self.failed(f"ended with {how} {ended.si_status}")

    def stop(self, limit_seconds: float, signal_number: int = signal.SIGTERM) -> None:
        """Ask it to end, and wait until it has.

        Raises:
            WorkerError: it had ended before, does not end in that time, or fails.
        """
        self.require()
        os.kill(self.pid, signal_number)
        self.wait(limit_seconds)

    def failed(self, how: str) -> WorkerError:
        """The error that says so, with the last of its output that names an error."""
        reason = ""
        with contextlib.suppress(OSError):
            lines = self._output.read_text(errors="replace").splitlines()
            said = [line.strip() for line in lines if line.strip()]
            reason = next((line for line in reversed(said) if _ERROR.match(line)), "")
            reason = (reason or next(reversed(said), ""))[:LONGEST_REASON]
        return WorkerError(f"{self.title} {how}{': ' if reason else ''}{reason}")

    def __exit__(self, *_: object) -> None:
        """Kill what is left of its group, and reap it."""
        with interrupts.held():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
