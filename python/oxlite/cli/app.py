"""The application: the commands mounted, and expected errors made into one line.

Typer's own handling of errors is passed by, because it prints boxes, ends a
broken pipe with the code that means "a check found a problem", and swallows
which signal interrupted a run.
"""

import sys
from importlib import import_module
from typing import Annotated

import typer

from oxlite.cli.bench import bench
from oxlite.cli.branch import branch
from oxlite.cli.cache import cache
from oxlite.cli.replicate import replicate
from oxlite.cli.snapshot import snapshot
from oxlite.cli.suggestions import SuggestingGroup
from oxlite.cli.tasks import tasks

__all__ = ["COMMANDS", "app", "run"]

COMMANDS = ("backup", "doctor", "env", "promote", "restore", "sample", "top", "worker")
"""Each a function in the module of its name; the lab's group stands beside them."""

app = typer.Typer(
    name="oxlite",
    cls=SuggestingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _name in COMMANDS:
    app.command()(getattr(import_module(f"oxlite.cli.{_name}"), _name))
app.add_typer(bench, name="bench")
app.add_typer(branch, name="branch")
app.add_typer(cache, name="cache")
app.add_typer(replicate, name="replicate")
app.add_typer(snapshot, name="snapshot")
app.add_typer(tasks, name="tasks")


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    import oxlite

    typer.echo(f"oxlite {oxlite.__version__}")
    typer.echo(f"SQLite {oxlite.sqlite_version} ({oxlite.sqlite_source_id})")
    raise typer.Exit


@app.callback()
def _oxlite(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version of Oxlite and of the SQLite inside it.",
        ),
    ] = False,
) -> None:
    """SQLite configured, verified and benchmarked for production web applications."""


def run(arguments: list[str]) -> int:
    """Run one command.

    Args:
        arguments: what follows the program's name.

    Returns:
        The exit code. Interruptions, a broken pipe and unexpected errors are
        raised.
    """
    command = typer.main.get_command(app)
    try:
        with command.make_context("oxlite", arguments) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except (BrokenPipeError, ModuleNotFoundError):
        raise
    except Exception as error:
        message = _expected(error)
        if message is None:
            raise
        if message:
            print(f"oxlite: error: {message}", file=sys.stderr)
        return 2
    return 0


def _expected(error: Exception) -> str | None:
    """The line for an error that a user can cause; None for one that is a mistake of ours."""
    from oxlite.bench import LabError
    from oxlite.environment import ReportError
    from oxlite.operations import OperationsError
    from oxlite.sqlite3 import Error

    if hasattr(error, "format_message"):  # wrong usage, as Typer and Click report it
        if type(error).__name__ == "NoArgsIsHelpError":
            return ""  # the help has been printed
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context else ""
        return _one_line(error.format_message() + hint)
    if isinstance(error, Error | OSError | LabError | OperationsError | ReportError):
        return _one_line(str(error))
    return None


def _one_line(text: str) -> str:
    """An error for a terminal, which does not obey the names of files in it."""
    from oxlite import harmless

    return harmless(" ".join(text.split()))
