"""Plays cases on two drivers, each in a process of its own, and keeps what it finds."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fuzz.compare import Comparison, Difference, Play, compare, death
from tests.fuzz.features import Features, shared
from tests.fuzz.generator import Case, case_of
from tests.fuzz.minimise import minimised, without
from tests.fuzz.script import as_script

ROOT = Path(__file__).resolve().parents[2]
STANDARD_LIBRARY = "sqlite3"
OXLITE = "oxlite.sqlite3"

_STARTING_SECONDS = 60
_MINIMISING_SECONDS = 2
"""A case that hangs is tried many times."""

_CASES_PER_PROCESS = 1000
"""A process is replaced now and then, so that no case inherits much from those before it."""


class Child:
    """A process that plays cases on one driver, started anew when it dies."""

    def __init__(self, driver: str, environment: dict[str, str], seconds: int) -> None:
        self.driver = driver
        self.environment = environment
        self.seconds = seconds
        self.features: Features = {}
        self.process: subprocess.Popen[str] | None = None
        self.cases = 0
        self._folder = tempfile.TemporaryDirectory(prefix="oxlite-fuzz-child-")
        self._progress = Path(self._folder.name, "progress")
        self._output = Path(self._folder.name, "output")
        self._unread = b""

    def start(self) -> None:
        """Starts the process, if it does not run."""
        if self.process is not None and self.cases < _CASES_PER_PROCESS:
            return
        self.stop()
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.child", self.driver, str(self._progress)],
                cwd=ROOT,
                env={**os.environ, **self.environment, "PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self._unread = b""
        self.cases = 0
        features = self._answer(_STARTING_SECONDS)
        if features is None:
            raise RuntimeError(f"{self.driver} does not start:\n{self._output.read_text()}")
        self.features = features

    def stop(self) -> None:
        """Ends the process."""
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def close(self) -> None:
        """Ends the process and forgets its files."""
        self.stop()
        self._folder.cleanup()

    def send(self, steps: list[str]) -> None:
        """Begins to play a case."""
        self.start()
        self.cases += 1
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"steps": steps, "seconds": self.seconds}) + "\n")
            self.process.stdin.flush()

    def receive(self) -> Play:
        """What became of the case that was sent."""
        observations = self._answer(self.seconds + 10)
        if observations is not None:
            return Play(observations)
        process, self.process = self.process, None
        assert process is not None
        if process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
        ending = "hung" if process.poll() is None else "crashed"
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert stream is not None
                stream.close()
        output = self._output.read_text(errors="replace")
        if "Timeout (" in output:  # faulthandler's first word
            ending = "hung"
        elif process.returncode < 0:
            ending = f"crashed {signal.Signals(-process.returncode).name}"
        step = int(self._progress.read_text() or -1)
        return Play([], ending, step, output[-6000:])

    def _answer(self, seconds: float) -> Any:  # noqa: ANN401
        """The next line of the process, or None if it died or was silent for too long."""
        assert self.process is not None
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            read = os.read(descriptor, 1 << 20)
            if not read:
                return None
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)


@dataclass
class Finding:
    """A difference, with the case that shows it."""

    signature: str
    case: Case
    difference: Difference
    seed: int | None
    output: str = ""
    times: int = 1
    path: Path | None = None


@dataclass
class Statistics:
    """What a campaign has done."""

    cases: int = 0
    steps: int = 0
    compared: int = 0
    reference_deaths: int = 0
    intended: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each kind of move had each class of outcome."""
    messages: Counter[str] = field(default_factory=Counter)
    """How often each message of an error was seen, particulars aside."""


class Pair:
    """The reference and the driver under test."""

    def __init__(
        self,
        reference: str = STANDARD_LIBRARY,
        driver: str = OXLITE,
        environment: dict[str, str] | None = None,
        seconds: int = 10,
    ) -> None:
        self.reference = Child(reference, environment or {}, seconds)
        self.driver = Child(driver, {}, seconds)

    def __enter__(self) -> Self:
        """Starts both."""
        self.reference.start()
        self.driver.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends both."""
        self.reference.close()
        self.driver.close()

    @property
    def features(self) -> frozenset[str]:
        """What both drivers can do."""
        return shared(self.reference.features, self.driver.features)

    def set_seconds(self, seconds: int) -> None:
        """Sets the time limit of a case."""
        self.reference.seconds = self.driver.seconds = seconds

    def play(self, case: Case) -> tuple[Comparison, Play, Play]:
        """Plays a case on both and compares."""
        self.reference.send(case.steps)
        self.driver.send(case.steps)
        expected, found = self.reference.receive(), self.driver.receive()
        comparison = compare(expected, found, case.steps)
        if found.ending == "hung" and self._diverges_before(case, found.step):
            return Comparison(None, comparison.intended, 0, diverged=True), expected, found
        if comparison.difference is None:
            died = death(found, case.steps)
            if died is not None and expected.ending == "ended":
                comparison.difference = died
        return comparison, expected, found

    def _diverges_before(self, case: Case, step: int) -> bool:
        """Whether the two were in different states already when one of them hung.

        A process that died has said nothing of the steps before, so they are played again.
        """
        comparison, _, _ = self.play(without(case, max(step, 0), len(case.steps)))
        return comparison.diverged or comparison.difference is not None

    def reproduces(self, case: Case, signature: str) -> Difference | None:
        """The difference of a case, if it is of this kind."""
        comparison, _, _ = self.play(case)
        difference = comparison.difference
        if difference is None or difference.signature != signature:
            return None
        return difference


class Campaign:
    """Plays cases until told to stop; finds each kind of difference once.

    Several workers, each a campaign with a pair of its own, may share what they find.
    """

    def __init__(
        self,
        pair: Pair,
        findings: Path | None = None,
        minimise: bool = True,
        shares_with: "Campaign | None" = None,
    ) -> None:
        self.pair = pair
        self.folder = findings
        self.minimise = minimise
        self.seconds = pair.reference.seconds
        self.findings: dict[str, Finding] = shares_with.findings if shares_with else {}
        self.statistics: Statistics = shares_with.statistics if shares_with else Statistics()
        self.lock: threading.Lock = shares_with.lock if shares_with else threading.Lock()

    def run(self, seeds: Iterator[int], goes_on: Callable[[], bool]) -> None:
        """Plays the cases of the seeds."""
        for seed in seeds:
            if not goes_on():
                return
            self.play(case_of(seed, self.pair.features))

    def play(self, case: Case) -> None:
        """Plays a case, and keeps and minimises what it shows."""
        comparison, expected, found = self.pair.play(case)
        with self.lock:
            self.count(case, comparison, expected, found)
            if comparison.difference is None:
                return
            signature = comparison.difference.signature
            known = self.findings.get(signature)
            if known is not None:
                known.times += 1
                return
            finding = Finding(signature, case, comparison.difference, case.seed, found.output)
            self.findings[signature] = finding
        if self.minimise:
            self.pair.set_seconds(min(self.seconds, _MINIMISING_SECONDS))
            finding.case = minimised(
                case, lambda smaller: self.pair.reproduces(smaller, signature) is not None
            )
            finding.difference = self.pair.reproduces(finding.case, signature) or finding.difference
            self.pair.set_seconds(self.seconds)
        self.save(finding)

    def count(self, case: Case, comparison: Comparison, expected: Play, found: Play) -> None:
        """Counts what a case did."""
        statistics = self.statistics
        statistics.cases += 1
        statistics.steps += len(case.steps)
        statistics.compared += comparison.compared
        statistics.reference_deaths += expected.ending != "ended"
        statistics.intended.update(comparison.intended)
        for move, observation in zip(case.moves, found.observations, strict=False):
            value = observation["value"]
            outcome = value.split(" ", 2)[1] if value.startswith("! ") else "value"
            statistics.outcomes[move, outcome] += 1
            if value.startswith("! "):
                statistics.messages[value] += 1

    def save(self, finding: Finding) -> None:
        """Writes the finding's script to the findings' folder."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        number = list(self.findings).index(finding.signature) + 1
        finding.path = self.folder / f"{number:03d}-seed-{finding.seed}.py"
        finding.path.write_text(as_script(finding.case, heading(finding)), errors="replace")


def heading(finding: Finding) -> str:
    """What is known of a finding, for the top of its script."""
    difference = finding.difference
    lines = [
        f"seed: {finding.seed}",
        f"signature: {finding.signature}",
        f"step {difference.step}, {difference.what}",
        f"  standard library: {difference.expected}",
        f"  Oxlite:           {difference.found}",
    ]
    if finding.output:
        lines += ["", *finding.output.splitlines()[-60:]]
    return "\n".join(lines)
