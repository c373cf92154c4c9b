"""All workloads one after the other, with one report at the end.

Each writes its JSON file into a directory as soon as it is done, so a series that was interrupted
goes on where it stopped: a finished file that was made by the same work, in the same place, by the
same Oxlite is kept, unless there is time for more repeats now. The quick series divides its time
among the workloads that are left; the full one measures everything, with the parameters of the
published figures. Their files have different names.

Invariants: a workload that cannot run here does not stop the others; whatever ends the series, the
report is of all results of its kind that are in the directory by then.
"""

import dataclasses
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from oxlite.bench import parameters
from oxlite.bench.conditions import SUBJECT, conditions, plain
from oxlite.bench.errors import Interrupted, LabError, UsageError, require_at_least
from oxlite.bench.harness.model import Result
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.lab import InterruptedRun, Request, UnwrittenError, perform, planned
from oxlite.bench.stored import QUICK, read, write
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.catalogue import WORKLOADS

QUICK_SECONDS = 170.0
"""What the quick series plans with; three repeats of each workload there are in any case."""

FULL_SECONDS = 14_400.0
"""After this no further round of one workload begins in the full series: a round of all mixes of
``web`` takes more than an hour, and a spread needs three."""

REPORT = "report.html"
QUICK_REPORT = "report.quick.html"

LOCK = ".lock"
"""The file by whose lock a series is alone in its directory; it stays."""

SHORTER = 0.5
"""A quick run is as good as done if it had so large a part of its even share of the time."""


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
        results: what was measured now, or finished before.
        report: the file, if there was anything to report.
        troubles: why workloads have not run, or not been stored, by name.
    """

    results: list[Result] = field(default_factory=list)
    report: Path | None = None
    troubles: dict[str, str] = field(default_factory=dict)

    def failed(self) -> bool:
        """Whether a row failed, or a workload."""
        return bool(self.troubles) or any(result.failed() for result in self.results)


class Watcher(Protocol):
    """Somebody who watches a series."""

    def workload(
        self, place: int, count: int, name: str, spent_seconds: float, planned_seconds: float | None
    ) -> None:
        """The workload ``name`` begins, after so much of the time planned for all, if any is."""
        ...

    def kept(self, name: str, path: Path) -> None:
        """It was finished before."""
        ...

    def trouble(self, name: str, why: str) -> None:
        """It cannot run, or not be stored, or was interrupted."""
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
    except FileExistsError:
        raise UsageError(f"{series.results} is not a directory") from None
    except OSError as error:
        raise UsageError(f"cannot make {series.results}: {error.strerror}") from None
    with scratch(_place(series.directory), keep=False):
        pass  # A place that cannot be written to is refused once, not by every workload.
    with _alone_in(series.results):
        return _perform_all(series, chosen, watcher, clock)


@contextmanager
def _alone_in(results: Path) -> Iterator[None]:
    """Keep a second series from writing the same files while this one measures.

    Raises:
        UsageError: there is another one.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        file = (results / LOCK).open("ab")
    except OSError as error:
        raise UsageError(f"cannot write to {results}: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another series is being measured into {results}: wait for its end, "
                "or name another directory with --results"
            ) from None
        except OSError:
            pass  # A file system without locks: two at once are the user's affair.
        yield


def _perform_all(
    series: Series,
    chosen: Sequence[Workload[Any]],
    watcher: Watcher,
    clock: Callable[[], float],
) -> Outcome:
    outcome = Outcome()
    begun_at = clock()
    try:
        for place, workload in enumerate(chosen):
            spent = clock() - begun_at
            whole = None
            if series.quick:
                given = series.time_budget_seconds
                whole = QUICK_SECONDS if given is None else given
            watcher.workload(place + 1, len(chosen), workload.name, spent, whole)
            share = None if whole is None else max(0.0, whole - spent) / (len(chosen) - place)
            request = _request(workload, series, share)
            finished = None
            if not series.again:
                finished = _finished(workload, request, _enough_seconds(series, len(chosen)))
            _one(workload, request, finished, watcher, outcome)
    finally:
        results = _of_kind(series, outcome)
        if results:
            report = series.results / (QUICK_REPORT if series.quick else REPORT)
            write(results, html=report, markdown_file=None)
            outcome.report = report
    return outcome


def _place(directory: Path | None) -> Path:
    return directory or Path(tempfile.gettempdir())


def _enough_seconds(series: Series, count: int) -> float:
    """The time budget that is no less than what each workload would have now."""
    given = series.time_budget_seconds
    if series.quick:
        return SHORTER * (QUICK_SECONDS if given is None else given) / count
    return FULL_SECONDS if given is None else given


def _file(series: Series, name: str) -> Path:
    return series.results / f"{name}{QUICK if series.quick else '.json'}"


def _of_kind(series: Series, outcome: Outcome) -> list[Result]:
    """All results in the directory of the series, with those that could not be stored."""
    measured = {result.workload: result for result in outcome.results}
    found = []
    for workload in WORKLOADS:
        now = measured.get(workload.name)
        stored = _stored(_file(series, workload.name))
        if stored is not None and (now is None or (now.interrupted and not stored.interrupted)):
            found.append(stored)
        elif now is not None:
            found.append(now)
    return found


def _stored(path: Path) -> Result | None:
    try:
        return read(path)
    except LabError:
        return None


def _one(
    workload: Workload[Any],
    request: Request,
    finished: Result | None,
    watcher: Watcher,
    outcome: Outcome,
) -> None:
    path = request.json_file
    assert path is not None
    if finished is not None:
        watcher.kept(workload.name, path)
        outcome.results.append(finished)
        return
    try:
        with watcher.listening() as listener:
            outcome.results.append(perform(request, listener))
    except InterruptedRun as error:
        outcome.results.append(error.result)
        watcher.trouble(workload.name, error.result.notes[-1])
        raise
    except Interrupted as error:
        watcher.trouble(workload.name, f"{error} before anything of it was measured")
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
        {} if series.quick else published(workload),
        every=not series.quick,
        quick=series.quick,
        time_budget_seconds=share
        if share is not None
        else (FULL_SECONDS if full is None else full),
        directory=series.directory,
        json_file=_file(series, workload.name),
        # The quick series has no time for a round that is not measured.
        warm_up=False if series.quick else None,
    )


def published(workload: Workload[Any]) -> dict[str, object]:
    """The parameters of the published figures, where they are not the defaults."""
    return {
        one.name: one.published
        for one in parameters.declared(workload.parameters_type)
        if one.published != one.default
    }


def _finished(workload: Workload[Any], request: Request, enough_seconds: float) -> Result | None:
    """The stored result, if it is a whole run of the same work, no shorter than it would be now.

    Args:
        workload: of the request.
        request: what would be measured.
        enough_seconds: the time budget of a run that need not be repeated for want of repeats.
    """
    assert request.json_file is not None
    result = _stored(request.json_file)
    if result is None or result.interrupted or _has_failed(result):
        return None
    wanted = workload.parameters(request.parameters, quick=request.quick)
    flags = shlex.split(result.command)
    same = (
        result.workload == workload.name
        and plain(result.parameters) == plain(dataclasses.asdict(wanted))
        and ("--quick" in flags) == request.quick
        and ("--all" in flags) == request.every
        and "--scenario" not in flags
        and _was_here(result, flags, request.directory)
    )
    plan = planned(workload, request)
    whole = result.repeats >= plan.repeats or result.plan.time_budget_seconds >= enough_seconds
    return result if same and whole else None


def _has_failed(result: Result) -> bool:
    """Whether something of Oxlite's has; what a peer cannot do, it cannot the next time either."""
    return any(row.failed() for row in result.rows if row.scenario.driver == SUBJECT)


def _was_here(result: Result, flags: Sequence[str], directory: Path | None) -> bool:
    """Whether a run was made in this directory, on its file system, by this Oxlite."""
    import oxlite
    from oxlite.environment import machine_report

    given = flags[flags.index("--directory") + 1] if "--directory" in flags[:-1] else None
    versions = {
        row.samples[0].detail.get("versions", {}).get("driver")
        for row in result.rows
        if row.scenario.driver == SUBJECT and row.samples
    }
    files = machine_report(_place(directory))["file_system"]["type"]
    return (
        given == (None if directory is None else str(directory))
        and versions <= {oxlite.__version__}
        and conditions(result).get("file system", files) == files
    )
