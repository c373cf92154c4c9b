"""The lab's front door: run a workload as asked and give the result.

The command line and tests use this and :mod:`oxlite.bench.report`; nothing else
of the lab is needed to run a workload.
"""

import datetime
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from oxlite.bench.errors import UsageError, require_at_least
from oxlite.bench.harness import interrupts, machine, record
from oxlite.bench.harness.model import Plan, Result
from oxlite.bench.harness.run import Listener, run
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.scenarios import cells as cells_of
from oxlite.bench.scenarios.scenario import Scenario, parse_filter
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.catalogue import WORKLOADS

TRUSTED_REPEATS = 7
QUICK_BUDGET_SECONDS = 120.0


@dataclass(frozen=True)
class Request:
    """What the user asks for; ``None`` means the default.

    Attributes:
        workload: its name.
        parameters: those given, by name; the rest have the workload's defaults.
        scenarios: filters as the user writes them (``driver=oxlite,journal=wal``).
        every: all cells of the workload.
        quick: the quick selection and parameters.
        repeats: measured rounds.
        time_budget_seconds: no round begins that would probably end later.
        directory: where the working directory is made; the system's temporary one.
        keep: leave the working directory, with the databases of the last round.
        json_file: where to write the result.
    """

    workload: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    scenarios: Sequence[str] = ()
    every: bool = False
    quick: bool = False
    repeats: int | None = None
    time_budget_seconds: float | None = None
    directory: Path | None = None
    keep: bool = False
    json_file: Path | None = None


def perform(request: Request, listener: Listener) -> Result:
    """Run the workload and, if asked, write the result to a file.

    Nothing is left behind, neither processes nor files, however this ends,
    except for what ``keep`` and ``json_file`` ask for.

    Raises:
        UsageError: the request cannot be done as asked.
        Interrupted: a signal ended the run.
    """
    workload = WORKLOADS.get(request.workload)
    parameters = workload.parameters(request.parameters, quick=request.quick)
    plan = _plan(request)
    cells = _cells(workload, request)
    possible = [cell.scenario for cell in cells if cell.reason is None]
    if not possible:
        raise UsageError(f"nothing to run: {cells[0].scenario.label}: {cells[0].reason}")
    if request.json_file is not None:
        record.check_writable(request.json_file)
    parent = request.directory or Path(tempfile.gettempdir())
    with interrupts.handled(), scratch(parent, keep=request.keep) as place:
        notes = machine.notes(parent)
        started_at = datetime.datetime.now(datetime.UTC)
        clock_at_start = time.monotonic()
        with workload.session(parameters, possible, place) as session:
            rows, repeats = run(session, possible, plan, listener, workload.outcome)
        if repeats < min(plan.repeats, TRUSTED_REPEATS):
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
            baselines=_baselines(workload),
            rows=rows,
            impossible=[cell for cell in cells if cell.reason is not None],
            work_digest=workload.work_digest(parameters),
            command=_command(request, parameters, plan),
            started_at=started_at.isoformat(timespec="seconds"),
            duration_seconds=time.monotonic() - clock_at_start,
            notes=notes,
        )
        if request.json_file is not None:
            record.write(request.json_file, result, workload.metrics)
        return result


def _plan(request: Request) -> Plan:
    default = Plan(time_budget_seconds=QUICK_BUDGET_SECONDS) if request.quick else Plan()
    repeats = default.repeats if request.repeats is None else request.repeats
    budget_seconds = (
        default.time_budget_seconds
        if request.time_budget_seconds is None
        else request.time_budget_seconds
    )
    require_at_least("--repeats", repeats, 1)
    require_at_least("--time-budget", budget_seconds, 0)
    return Plan(repeats, budget_seconds, default.warm_ups)


def _cells(workload: Workload[Any], request: Request) -> list[cells_of.Cell]:
    if request.every and request.scenarios:
        raise UsageError("--all and --scenario exclude each other")
    if request.every:
        filters: Sequence[Mapping[str, str]] = ({},)
    elif request.scenarios:
        filters = [parse_filter(text) for text in request.scenarios]
    else:
        filters = workload.quick_selection if request.quick else workload.selection
    return cells_of.cells(workload.axes, filters, workload.baselines)


def _baselines(workload: Workload[Any]) -> list[str]:
    found: list[Scenario] = []
    for chosen in workload.baselines:
        found += cells_of.expand(workload.axes, chosen)
    return [scenario.label for scenario in found]


def _command(request: Request, parameters: object, plan: Plan) -> str:
    """The command line that repeats a run, with every parameter spelt out."""
    words = ["oxlite", "bench", request.workload]
    for name, value in asdict(parameters).items():  # type: ignore[call-overload]
        words += [f"--{name.removesuffix('_seconds').replace('_', '-')}", f"{value}"]
    words += ["--repeats", f"{plan.repeats}", "--time-budget", f"{plan.time_budget_seconds:g}"]
    for text in request.scenarios:
        words += ["--scenario", text]
    flags = {"--all": request.every, "--quick": request.quick, "--keep": request.keep}
    words += [flag for flag, given in flags.items() if given]
    if request.directory is not None:
        words += ["--directory", str(request.directory)]
    return shlex.join(words)
