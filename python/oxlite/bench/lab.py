"""The lab's front door: run a workload as asked and give the result.

The command line and tests use this and :mod:`oxlite.bench.report`; nothing else
of the lab is needed to run a workload.
"""

import datetime
import itertools
import shlex
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.postgresql import PostgreSql
from oxlite.bench.errors import Interrupted, LabError, UsageError, require_at_least
from oxlite.bench.harness import cells as cells_of
from oxlite.bench.harness import interrupts, machine, record
from oxlite.bench.harness.files import Destination, reserved
from oxlite.bench.harness.model import Plan, Result
from oxlite.bench.harness.run import CutShort, Listener, run
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.parameters import Parameters, declared
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.axes import Grid
from oxlite.bench.scenarios.scenario import Scenario, parse_filter
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.catalogue import WORKLOADS

TRUSTED_REPEATS = 7


DIRECTORY = "Where to put the databases (default: the temporary directory)."


def _told(flag: str, help: str) -> Mapping[str, str]:
    """What the command line says of a field; the help may name the workload's plans."""
    return {"flag": flag, "help": help}


@dataclass(frozen=True)
class Request:
    """What the user asks for; ``None`` means the default.

    Attributes:
        workload: its name.
        parameters: those given, by name; the rest have the workload's defaults.
        json_file: a part of a run does not replace a whole one there, but is written beside it
            (see :func:`beside`).
    """

    workload: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    scenarios: Sequence[str] = field(
        default=(),
        metadata=_told("--scenario", "Only these: driver=oxlite,journal=wal. Repeatable."),
    )
    every: bool = field(default=False, metadata=_told("--all", "Every scenario of the workload."))
    quick: bool = field(default=False, metadata=_told("--quick", "Fewer scenarios and less work."))
    repeats: int | None = field(
        default=None,
        metadata=_told(
            "--repeats", "Measured rounds (default {plan.repeats}, quick {quick.repeats})."
        ),
    )
    warm_up: bool | None = field(
        default=None,
        metadata=_told(
            "--warm-up/--no-warm-up", "A round before the measured ones that is not measured."
        ),
    )
    time_budget_seconds: float | None = field(
        default=None,
        metadata=_told(
            "--time-budget",
            "Seconds after which no further round begins "
            "(default {plan.time_budget_seconds:g}, quick {quick.time_budget_seconds:g}, "
            "which has {quick.least_repeats} rounds in any case).",
        ),
    )
    directory: Path | None = field(default=None, metadata=_told("--directory", DIRECTORY))
    keep: bool = field(default=False, metadata=_told("--keep", "Keep the databases and say where."))
    json_file: Path | None = field(
        default=None, metadata=_told("--json", "Write the complete result here.")
    )
    markdown_file: Path | None = field(
        default=None, metadata=_told("--markdown", "Write the tables here, for a paper.")
    )


class UnwrittenError(LabError):
    """The run is over, and a file it was to be written to cannot be.

    Attributes:
        result: the run, which is not lost.
    """

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class InterruptedRun(Interrupted):
    """A signal ended the run when some of it had been measured.

    Attributes:
        result: that part, marked as one; it has been written to the files of the request.
    """

    def __init__(self, signal_number: int, result: Result) -> None:
        super().__init__(signal_number)
        self.result = result


DURABILITY = (
    "PostgreSQL waits for the disk at each commit. SQLite does so with synchronous=FULL; with "
    "NORMAL in WAL mode it does not (pragmas=tuned, step=normal and those above it, settings=wal "
    "and engine), and what was committed last may be lost with the power."
)


def _cautions(scenarios: Sequence[Scenario]) -> list[str]:
    """What must be known to compare these scenarios."""
    servers = {scenario.driver == PostgreSql.name for scenario in scenarios}
    return [DURABILITY] if servers == {True, False} else []


@dataclass(frozen=True)
class _Chosen:
    """The cells of a run, and the labels of those that only ``--all`` measures."""

    cells: list[cells_of.Cell]
    left: list[str] = field(default_factory=list)


def perform(request: Request, listener: Listener) -> Result:
    """Run the workload and, if asked, write the result to files.

    Nothing is left behind, neither processes nor files, however this ends,
    except for what ``keep`` and the files of the request ask for.

    Raises:
        UsageError: the request cannot be done as asked; nothing was measured.
        UnwrittenError: the run was done, and a file cannot be written after all.
        InterruptedRun: a signal ended the run; what was measured has been written.
        Interrupted: a signal ended it before anything was measured; no file has been written.
    """
    workload = WORKLOADS.get(request.workload)
    parameters = workload.parameters(request.parameters, quick=request.quick)
    plan = planned(workload, request)
    chosen = _choose(workload, workload.grids(parameters), request)
    possible = [cell.scenario for cell in chosen.cells if cell.reason is None]
    parent = request.directory or Path(tempfile.gettempdir())
    with interrupts.handled(), ExitStack() as stack:
        files = _reserve(request, stack)
        place = stack.enter_context(scratch(parent, keep=request.keep))
        notes = [*machine.notes(parent), *_cautions(possible)]
        started_at = datetime.datetime.now(datetime.UTC)
        clock_at_start = time.monotonic()
        cut: CutShort | None = None
        try:
            with workload.session(parameters, possible, place) as session:
                rows, orders = run(session, possible, plan, listener, workload.outcome)
        except CutShort as error:
            if not error.orders:
                raise
            cut, rows, orders = error, error.rows, error.orders
        except BrokenPipeError:
            raise  # whoever watches has gone
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot prepare {workload.name} in {parent}: {error}") from None
        repeats = len(orders)
        compared = _compared(workload, possible)
        if cut is not None:
            whole = (
                "" if all(row.samples or row.failure for row in rows) else ", not all rows in it"
            )
            notes.append(
                f"{cut}: this is a part of the run, {repeats} of {plan.repeats} repeats{whole}."
            )
        elif repeats < min(plan.repeats, TRUSTED_REPEATS) and not all(row.failure for row in rows):
            notes.append(
                f"the time budget of {plan.time_budget_seconds:g} s allowed {repeats} of "
                f"{plan.repeats} repeats; --time-budget allows more."
            )
        if request.keep:
            notes.append(f"the databases of the last round are kept in {place.path}")
        result = Result(
            workload=workload.name,
            parameters=asdict(parameters),
            plan=plan,
            repeats=repeats,
            baselines=list(dict.fromkeys(itertools.chain(*compared.values()))),
            compared=compared,
            rows=rows,
            impossible=[cell for cell in chosen.cells if cell.reason is not None],
            work_digest=workload.work_digest(parameters),
            command=_command(request, parameters, plan),
            started_at=started_at.isoformat(timespec="seconds"),
            duration_seconds=time.monotonic() - clock_at_start,
            notes=notes,
            orders=orders,
            left=chosen.left,
            interrupted=cut is not None,
        )
        if cut is not None:
            files = {kind: _spared(file, stack, notes) for kind, file in files.items()}
        _write(result, workload, files)
        if cut is not None:
            raise InterruptedRun(cut.signal_number, result)
        return result


def _reserve(request: Request, stack: ExitStack) -> dict[str, Destination]:
    """The files of the request, by kind, found writable before anything is measured."""
    wanted = {"json": request.json_file, "markdown": request.markdown_file}
    paths = {kind: path for kind, path in wanted.items() if path is not None}
    if len({path.resolve() for path in paths.values()}) < len(paths):
        raise UsageError("--json and --markdown name the same file")
    return {kind: stack.enter_context(reserved(path)) for kind, path in paths.items()}


def beside(path: Path) -> Path:
    """Where a part of a run is written if the file at ``path`` is to be kept."""
    return path.with_name(f"{path.stem}.part{path.suffix}")


def _spared(destination: Destination, stack: ExitStack, notes: list[str]) -> Destination:
    """Where to write a part of a run: not in the place of a whole one, which is noted."""
    if not destination.is_there() or _is_part(destination.path):
        return destination
    other = stack.enter_context(reserved(beside(destination.path)))
    notes.append(f"{destination.path} is kept as it was; this part is in {other.path}")
    return other


def _is_part(path: Path) -> bool:
    """Whether a file is known to be of a run that was interrupted."""
    try:
        return record.read(path).interrupted
    except LabError:
        return False


def _write(result: Result, workload: Workload[Any], files: Mapping[str, Destination]) -> None:
    """Write every file that can be written.

    Raises:
        UnwrittenError: one of them cannot.
    """
    failures = []
    for kind, destination in files.items():
        as_json = kind == "json"
        text = record.dumps(result, workload.metrics) if as_json else markdown.render(result)
        try:
            destination.write(text)
        except OSError as error:
            failures.append(f"cannot write {destination.path}: {error.strerror}")
    if failures:
        raise UnwrittenError("; ".join(failures), result)


def planned(workload: Workload[Any], request: Request) -> Plan:
    """How long and how often a request measures.

    Raises:
        UsageError: it makes no sense.
    """
    default = workload.quick_plan if request.quick else workload.plan
    repeats = default.repeats if request.repeats is None else request.repeats
    budget_seconds = (
        default.time_budget_seconds
        if request.time_budget_seconds is None
        else request.time_budget_seconds
    )
    require_at_least("--repeats", repeats, 1)
    require_at_least("--time-budget", budget_seconds, 0)
    warm_ups = default.warm_ups if request.warm_up is None else int(request.warm_up)
    return Plan(repeats, budget_seconds, warm_ups, min(default.least_repeats, repeats))


def _choose(workload: Workload[Any], grids: Sequence[Grid], request: Request) -> _Chosen:
    """The cells to measure, and those to be listed.

    Where the user names none, every cell that cannot exist is listed, though the
    workload's selection leaves it out, and so is what the selection leaves.

    Raises:
        UsageError: the choice makes no sense, or nothing of it can run here.
    """
    if request.every and request.scenarios:
        raise UsageError("--all and --scenario exclude each other")
    if request.scenarios:
        filters = [parse_filter(text, workload.axes) for text in request.scenarios]
        for text, chosen in zip(request.scenarios, filters, strict=True):
            if not cells_of.selected(grids, chosen):
                raise UsageError(f"{workload.name} has no scenario with {text}")
        asked = cells_of.cells(grids, filters, ())
        if all(cell.reason is not None for cell in asked):
            reasons = dict.fromkeys(f"{cell.reason}" for cell in asked)
            raise UsageError(f"nothing to run: {'; '.join(reasons)}")
        return _Chosen(cells_of.cells(grids, filters, workload.baselines))
    if request.every:
        return _Chosen(cells_of.cells(grids, workload.every, workload.baselines))
    whole = cells_of.cells(grids, ({},), workload.baselines)
    selection = workload.quick_selection if request.quick else workload.selection
    selected = cells_of.cells(grids, selection, workload.baselines)
    others = [cell for cell in whole if cell not in selected]
    return _Chosen(
        [*selected, *(cell for cell in others if cell.reason is not None)],
        [cell.scenario.label for cell in others if cell.reason is None],
    )


def _compared(workload: Workload[Any], possible: Sequence[Scenario]) -> dict[str, list[str]]:
    """The baselines of each cell that can run and that they can run beside, by label."""
    return {
        scenario.label: [
            base.label
            for base in cells_of.baselines_of(scenario, workload.baselines)
            if base in possible
        ]
        for scenario in possible
    }


def _command(request: Request, parameters: Parameters, plan: Plan) -> str:
    """The command line that repeats a run, with every parameter spelt out."""
    words = ["oxlite", "bench", request.workload]
    for option in declared(type(parameters)):
        value = getattr(parameters, option.name)
        if isinstance(value, bool):
            words += [option.option] if value else []
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [option.option, f"{one}"]
    words += ["--repeats", f"{plan.repeats}", "--time-budget", f"{plan.time_budget_seconds:g}"]
    for text in request.scenarios:
        words += ["--scenario", text]
    if request.warm_up is not None:
        words.append("--warm-up" if request.warm_up else "--no-warm-up")
    flags = {"--all": request.every, "--quick": request.quick, "--keep": request.keep}
    words += [flag for flag, given in flags.items() if given]
    if request.directory is not None:
        words += ["--directory", str(request.directory)]
    return shlex.join(words)
