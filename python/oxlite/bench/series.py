"""All workloads one after the other, with one report at the end.

Each writes its JSON file into a directory as soon as it is done, so a series that was interrupted
goes on where it stopped: a finished file that was made by the same work is kept. The quick series
divides its time among the workloads that are left; the full one measures everything, with the
parameters of the published figures.

Invariants: a workload that cannot run here does not stop the others; whatever ends the series, the
report is of what has been measured by then.
"""

import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from oxlite.bench.errors import LabError, UsageError, require_at_least
from oxlite.bench.harness.model import Result
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import InterruptedRun, Request, UnwrittenError, perform
from oxlite.bench.stored import read, write
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.catalogue import WORKLOADS

QUICK_SECONDS = 240.0
"""What the quick series plans with; it takes more, since rounds that have begun are finished."""

FULL_SECONDS = 7200.0
"""After this no further round of one workload begins in the full series."""

PUBLISHED_PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "kv": {"queries": 15_000},
    "inserts": {"mode": "faithful"},
}
"""Where a workload's defaults are not those of the published figures."""

REPORT = "report.html"


@dataclass(frozen=True)
class Series:
    """What the user asks for.

    Attributes:
        results: the directory of the JSON files and the report; made if it is not there.
        workloads: names of those to measure; all, without any.
        quick: the quick selection of each.
        again: measure what is finished too.
        time_budget_seconds: of all workloads of the quick series, of each of the full one.
        directory: where the databases are.
    """

    results: Path
    workloads: Sequence[str] = ()
    quick: bool = False
    again: bool = False
    time_budget_seconds: float | None = None
    directory: Path | None = None


@dataclass
class Outcome:
    """What has become of a series.

    Attributes:
        report: the file.
        results: what it is of.
        troubles: why workloads have not run, or not been stored, by name.
    """

    report: Path
    results: list[Result] = field(default_factory=list)
    troubles: dict[str, str] = field(default_factory=dict)

    def failed(self) -> bool:
        """Whether a row failed, or a workload."""
        return bool(self.troubles) or any(result.failed() for result in self.results)


class Watcher(Protocol):
    """Somebody who watches a series."""

    def workload(self, place: int, count: int, name: str, left_seconds: float | None) -> None:
        """The workload ``name`` begins, with about so much time left for all that follow."""
        ...

    def kept(self, name: str, path: Path) -> None:
        """It was finished before."""
        ...

    def trouble(self, name: str, why: str) -> None:
        """It cannot run, or not be stored."""
        ...

    def listening(self) -> AbstractContextManager[Listener]:
        """The listener of its rounds."""
        ...


def perform_all(
    series: Series, watcher: Watcher, clock: Callable[[], float] = time.monotonic
) -> Outcome:
    """Measure the workloads of a series and write the report.

    Raises:
        UsageError: it cannot be done as asked; nothing was measured.
        Interrupted: a signal ended it; the finished results and the report are there.
    """
    chosen = [WORKLOADS.get(name) for name in series.workloads] or list(WORKLOADS)
    if series.time_budget_seconds is not None:
        require_at_least("--time-budget", series.time_budget_seconds, 0)
    try:
        series.results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {series.results}: {error.strerror}") from None
    outcome = Outcome(series.results / REPORT)
    begun_at = clock()
    try:
        for place, workload in enumerate(chosen):
            left = None
            if series.quick:
                whole = QUICK_SECONDS
                if series.time_budget_seconds is not None:
                    whole = series.time_budget_seconds
                left = max(0.0, whole - (clock() - begun_at))
            watcher.workload(place + 1, len(chosen), workload.name, left)
            share = None if left is None else left / (len(chosen) - place)
            _one(workload, _request(workload, series, share), series.again, watcher, outcome)
    finally:
        if outcome.results:
            write(outcome.results, html=outcome.report, markdown_file=None)
    return outcome


def _one(
    workload: Workload[Any], request: Request, again: bool, watcher: Watcher, outcome: Outcome
) -> None:
    path = request.json_file
    assert path is not None
    finished = None if again else _finished(workload, request, path)
    if finished is not None:
        watcher.kept(workload.name, path)
        outcome.results.append(finished)
        return
    try:
        with watcher.listening() as listener:
            outcome.results.append(perform(request, listener))
    except InterruptedRun as error:
        outcome.results.append(error.result)
        raise
    except UnwrittenError as error:
        outcome.results.append(error.result)
        outcome.troubles[workload.name] = str(error)
        watcher.trouble(workload.name, str(error))
    except LabError as error:
        outcome.troubles[workload.name] = str(error)
        watcher.trouble(workload.name, str(error))


def _request(workload: Workload[Any], series: Series, share: float | None) -> Request:
    full = series.time_budget_seconds
    return Request(
        workload.name,
        {} if series.quick else PUBLISHED_PARAMETERS.get(workload.name, {}),
        every=not series.quick,
        quick=series.quick,
        time_budget_seconds=share
        if share is not None
        else (FULL_SECONDS if full is None else full),
        directory=series.directory,
        json_file=series.results / f"{workload.name}.json",
        # The quick series has no time for a round that is not measured.
        warm_up=False if series.quick else None,
    )


def _finished(workload: Workload[Any], request: Request, path: Path) -> Result | None:
    """The result in ``path``, if it is a whole run of the same work."""
    if not path.exists():
        return None
    try:
        result = read(path)
    except LabError:
        return None
    parameters = workload.parameters(request.parameters, quick=request.quick)
    flags = shlex.split(result.command)
    same = (
        result.workload == workload.name
        and _plain(result.parameters) == _plain(dataclasses.asdict(parameters))
        and ("--quick" in flags) == request.quick
        and ("--all" in flags) == request.every
        and "--scenario" not in flags
    )
    return result if same and not result.interrupted and not result.failed() else None


def _plain(parameters: Mapping[str, object]) -> dict[str, object]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }
