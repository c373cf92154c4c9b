"""Recordings: what a workload has done to its files, and what was there at the end."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.crash import log
from tests.crash.callers import Play
from tests.crash.disk import Content, Disk, UnknowableError
from tests.crash.log import Event, Kind
from tests.crash.verdict import DATABASE
from tests.crash.workloads import WORKLOADS
from tests.faults.judge import scratch
from tests.pages import remove_page_of

ROOT = Path(__file__).resolve().parents[2]
_LOG_BYTES = 1 << 28
_NOT_RECORDED = ("-shm", "-gate")
KILLED = -9


class PlayerError(Exception):
    """A workload has failed where nothing was to fail."""


def files_of(folder: Path) -> Content:
    """The files of a folder, as far as they are recorded."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if not path.name.endswith(_NOT_RECORDED)
    }


@dataclass
class Recording:
    """What was done, from what was there before to what was there at the end."""

    play: Play
    base: Content
    events: list[Event]
    final: Content
    code: int

    @property
    def was_killed(self) -> bool:
        """Whether the process was killed."""
        return self.code == KILLED

    def said(self, what: str) -> list[dict[str, object]]:
        """What the processes have said of one kind."""
        marks = (json.loads(e.content) for e in self.events if e.kind is Kind.MARK)
        return [mark for mark in marks if mark["what"] == what]

    def check(self) -> None:
        """Sees that what was recorded leads from the beginning to the end, byte for byte."""
        disk = Disk(self.base)
        for event in self.events:
            disk.apply(event)
        if disk.current() != self.final:
            different = {
                name
                for name in disk.names.keys() | self.final.keys()
                if name not in self.final or disk.current().get(name) != self.final[name]
            }
            raise UnknowableError(f"not all was recorded that was done to {sorted(different)}")


class Player:
    """A process that plays and records."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="oxlite-crash-play-", dir=scratch()))
        self._errors = self._folder / "errors"
        self._errors.touch()
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.player"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the process and removes its files."""
        self._process.communicate()
        shutil.rmtree(self._folder)

    def record(self, play: Play) -> Recording:
        """Has something played."""
        # That others write meanwhile; with trouble it is the place that counts, not who meets.
        sync_microseconds = 0 if play.trouble else (200, 1_000, 3_000)[play.seed % 3]
        folder, base, path = (self._folder / name for name in ("play", "base", "log"))
        folder.mkdir()
        log.create(path, _LOG_BYTES)
        task = {"folder": str(folder), "base": str(base), "log": str(path)}
        task |= {"play": play.as_json(), "sync_microseconds": sync_microseconds}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        code = json.loads(answer) if answer else None
        if code != 0 and not (code == KILLED and play.trouble is not None):
            errors = self._errors.read_text(errors="replace")
            raise PlayerError(f"{play} ended with {code}:\n{errors[-4000:]}")
        events = log.read(path)
        workload = WORKLOADS.get(play.workload)
        if workload is not None and workload.forgets_failures:
            events = log.with_failures_of_the_killed(events)
        recording = Recording(play, files_of(base), events, files_of(folder), code)
        remove_page_of(folder / DATABASE)
        for made in (folder, base):
            shutil.rmtree(made)
        path.unlink()
        if not recording.was_killed:
            recording.check()
        return recording
