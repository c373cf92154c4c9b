"""``oxlite bench WORKLOAD``: a command for each workload, made from what it declares.

Every command has the same options of a run; those of its parameters come before them.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from oxlite import harmless
from oxlite.bench.errors import Interrupted
from oxlite.bench.lab import InterruptedRun, Request, UnwrittenError, perform
from oxlite.bench.parameters import Parameter, declared
from oxlite.bench.report.progress import watching
from oxlite.bench.report.terminal import ReportConsole, show
from oxlite.bench.workloads.base import Workload
from oxlite.cli.bench.options import EXIT_FAILED


def command(workload: Workload[Any]) -> Callable[..., None]:
    """The function of a workload's command, to be given to typer."""
    parameters = declared(workload.parameters_type)

    def run_workload(**given: Any) -> None:  # noqa: ANN401 - as annotated below
        named = {one.name: given.pop(one.name) for one in parameters}
        asked = {name: value for name, value in named.items() if value is not None}
        scenarios = given.pop("scenarios") or ()
        run(Request(workload.name, asked, scenarios=scenarios, **given))

    options = _of_a_run(workload)
    chosen = {name: options.pop(name) for name in ("scenarios", "every", "quick")}
    if workload.selection == workload.every:
        del chosen["every"]  # A run without options measures everything.
    every = {**chosen, **{one.name: _of_parameter(one) for one in parameters}, **options}
    run_workload.__doc__ = _help(workload)
    run_workload.__annotations__ = {name: one.annotation for name, one in every.items()}
    run_workload.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        list(every.values())
    )
    return run_workload


def _help(workload: Workload[Any]) -> str:
    """What is declared of a workload, each paragraph a line, which the terminal wraps."""
    paragraphs = [" ".join(part.split()) for part in workload.about.split("\n\n")]
    examples = [f"oxlite bench {workload.name} {one}".strip() for one in workload.examples]
    # Square brackets are markup in a help, and in the name of a package they are not.
    return "\n\n".join([*paragraphs, *examples]).replace("[", "\\[")


def run(request: Request) -> None:
    """Run the workload, print the report, and end with the code that it deserves."""
    console = ReportConsole()
    unwritten: UnwrittenError | None = None
    part: InterruptedRun | None = None
    with watching(console) as listener:
        try:
            result = perform(request, listener)
        except UnwrittenError as error:
            result, unwritten = error.result, error
        except InterruptedRun as stop:
            part = stop
        except Interrupted as stop:
            typer.echo(f"oxlite: {stop} before anything was measured: nothing is kept", err=True)
            raise
    if part is not None:
        show(part.result, console)
        raise part
    show(result, console)
    if unwritten is not None:
        typer.echo(harmless(f"oxlite: error: {unwritten}"), err=True)
    if unwritten is not None or result.failed():
        raise typer.Exit(EXIT_FAILED)


def _of_parameter(parameter: Parameter) -> inspect.Parameter:
    kind: Any = list[parameter.kind] if parameter.is_many else parameter.kind  # type: ignore[name-defined]
    return _option(parameter.name, kind | None, None, parameter.option, parameter.explained())


def _of_a_run(workload: Workload[Any]) -> dict[str, inspect.Parameter]:
    """The options that are no parameters of a workload, by name."""
    hints = get_type_hints(Request)
    found = {}
    for one in dataclasses.fields(Request):
        if one.metadata:
            kind, default = hints[one.name], one.default
            if one.default == ():  # Given several times, or not at all.
                kind, default = list[str] | None, None
            text = one.metadata["help"].format(plan=workload.plan, quick=workload.quick_plan)
            found[one.name] = _option(one.name, kind, default, one.metadata["flag"], text)
    return found


def _option(name: str, kind: Any, default: object, flag: str, text: str) -> inspect.Parameter:  # noqa: ANN401 - a type
    annotation = Annotated[kind, typer.Option(flag, help=text)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
