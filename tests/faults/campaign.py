"""Plays points in child processes, several at a time, and gathers what was found.

A child that dies, or hangs, has died of the point that stands in its progress file; that is a
finding, and the next child goes on behind it.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.chapters import CHAPTERS
from tests.faults.kinds import FAULTS

ROOT = Path(__file__).resolve().parents[2]
_POINTS_AT_ONCE = 100


@dataclass(frozen=True)
class Series:
    """A chapter with one kind of fault at each of its points in turn."""

    chapter: str
    fault: str
    is_persistent: bool

    @property
    def mode(self) -> str:
        """How often it fails."""
        return "persistent" if self.is_persistent else "once"


@dataclass
class Findings:
    """What was found, by all children."""

    points: Counter[Series] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    declared: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[Series, int, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, series: Series, answer: dict[str, Any]) -> None:
        """Adds an answer of a child."""
        with self.lock:
            self.points[series] += answer["points"]
            for outcome, times in answer["outcomes"].items():
                self.outcomes[series.fault, outcome] += times
            self.declared.update(answer["declared"])
            self.wrong += [(series, point, what) for point, what in answer["findings"]]

    def add_death(self, series: Series, point: int, how: str) -> None:
        """Adds a point of which a child has died."""
        with self.lock:
            self.points[series] += 1
            self.wrong.append((series, point, how))


class DeathError(Exception):
    """A child has died of a point."""

    def __init__(self, point: int, how: str) -> None:
        super().__init__(how)
        self.point = point
        self.how = how


class Child:
    """A process that plays points, started anew when it dies."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="oxlite-faults-child-")
        self._progress = Path(self._folder.name, "progress")
        self._errors = Path(self._folder.name, "errors")
        self._process: subprocess.Popen[str] | None = None

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """The answer to a task."""
        if self._process is None:
            self._progress.write_text("0")
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.faults.child", str(self._progress)],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env={**os.environ, "PYTHONHASHSEED": "0"},
                )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self._process.wait()
        self.stop()
        errors = self._errors.read_text(errors="replace")
        raise DeathError(
            int(self._progress.read_text()), f"the process ended with {code}:\n{errors}"
        )

    def stop(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.communicate()

    def close(self) -> None:
        """Ends the process and removes its files."""
        self.stop()
        self._folder.cleanup()

    def counts(self, chapter: str) -> dict[str, int]:
        """How many calls of each kind a chapter makes."""
        answer = self.ask({"what": "count", "chapter": chapter})
        self._forget(chapter)
        return answer

    def _forget(self, chapter: str) -> None:
        if chapter in CHAPTERS and CHAPTERS[chapter].is_first:
            self.stop()

    def play(self, series: Series, first: int, last: int) -> dict[str, Any]:
        """Plays points of a series; of the first thing in a process, each in one of its own."""
        task = {"what": "play", "chapter": series.chapter, "fault": series.fault}
        task |= {"is_persistent": series.is_persistent, "first": first, "last": last}
        answer = self.ask(task)
        self._forget(series.chapter)
        return answer


def all_series() -> list[Series]:
    """All there is to play, the longest first."""
    series = [
        Series(chapter, fault.name, is_persistent)
        for chapter in CHAPTERS
        for fault in FAULTS.values()
        for is_persistent in ([False] if fault.transient_only else [False, True])
    ]
    return sorted(
        series, key=lambda one: (not CHAPTERS[one.chapter].is_first, one.fault != "malloc")
    )


def _play_all_of(
    child: Child, series: Series, findings: Findings, progress: Callable[[], None]
) -> None:
    point, at_once = 1, 1 if CHAPTERS[series.chapter].is_first else _POINTS_AT_ONCE
    while True:
        try:
            answer = child.play(series, point, point + at_once)
        except DeathError as death:
            # What the same answer had found before is found again.
            if death.point > point:
                findings.add(series, child.play(series, point, death.point))
            findings.add_death(series, death.point, death.how)
            point = death.point + 1
            continue
        findings.add(series, answer)
        progress()
        if answer["is_over"]:
            return
        point += at_once


def run(
    wanted: list[Series], workers: int, findings: Findings, progress: Callable[[int], None]
) -> None:
    """Plays every point of these series."""
    rest: Iterator[Series] = iter(wanted)
    lock = threading.Lock()
    done = 0

    def tell() -> None:
        progress(done)

    def work() -> None:
        nonlocal done
        child = Child()
        try:
            while True:
                with lock:
                    series = next(rest, None)
                if series is None:
                    return
                _play_all_of(child, series, findings, tell)
                with lock:
                    done += 1
        finally:
            child.close()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    progress(done)
