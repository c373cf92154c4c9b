"""``oxlite tasks …``: what waits, runs and has failed in a file; what one does about it."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oxlite.cli.suggestions import SuggestingGroup
from oxlite.sqlite3 import IntegrityError

if TYPE_CHECKING:
    from oxlite.tasks import TaskResult

__all__ = ["tasks"]

tasks = typer.Typer(
    cls=SuggestingGroup,
    no_args_is_help=True,
    help="Look at the tasks of a file, and run those again that have failed.",
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The file that the tasks are in.")]
_Ids = Annotated[
    list[int] | None,
    typer.Argument(
        metavar="[ID]…", help="Tasks, by number.", min=1, max=2**63 - 1, show_default=False
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON and nothing else.")]
_Status = Annotated[
    str | None,
    typer.Option(
        metavar="STATUS",
        help="Only those: scheduled, blocked, ready, running, successful, failed, cancelled or"
        " expired.",
        show_default=False,
    ),
]
_Name = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only those of that task.", show_default=False),
]
_QueueName = Annotated[
    str | None,
    typer.Option("--queue", metavar="NAME", help="Only those of that queue.", show_default=False),
]
_All = Annotated[
    bool, typer.Option("--all", help="All of that status, and not those of some numbers.")
]


@tasks.command("stats")
def _stats(file: _File, as_json: _Json = False) -> None:
    """Show how many tasks there are, how long they wait and how long they take, by queue.

    For example: oxlite tasks stats app.db
    """
    from oxlite.cli.output import print_json, print_tables
    from oxlite.cli.target import queue_of_file

    with queue_of_file(file) as queue:
        found = queue.stats()
    if as_json:
        print_json(asdict(found))
        return
    from rich.table import Table

    counts_of: dict[str, dict[str, int]] = {
        **{name: {} for name in found.paused},
        **found.counts,
    }
    table = Table(title=f"Tasks in {file}; {found.workers} workers", title_justify="left")
    table.add_column("queue", style="bold")
    statuses = sorted({status for counts in found.counts.values() for status in counts})
    for status in statuses:
        table.add_column(status, justify="right")
    for heading in ("ready for", "waited ms\np50, p99", "took ms\np50, p99"):
        table.add_column(heading, justify="right")
    for name, counts in sorted(counts_of.items()):
        table.add_row(
            f"{name} (paused)" if name in found.paused else name,
            *(f"{counts.get(status, 0):,}" for status in statuses),
            f"{found.oldest_seconds.get(name, 0.0):,.1f} s",
            _milliseconds(found.waited_seconds.get(name)),
            _milliseconds(found.took_seconds.get(name)),
        )
    print_tables(table)


@tasks.command("list")
def _list(
    file: _File,
    status: _Status = None,
    name: _Name = None,
    queue_name: _QueueName = None,
    at_most: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="How many, the latest first.")
    ] = 20,
    as_json: _Json = False,
) -> None:
    """List tasks, the latest first, with the last error of each.

    For example: oxlite tasks list app.db --status failed
    """
    from oxlite.cli.output import print_json, print_tables
    from oxlite.cli.target import queue_of_file

    _check_status(status)
    with queue_of_file(file) as queue:
        found = queue.find(status=status, name=name, queue_name=queue_name, at_most=at_most)
    if as_json:
        print_json({"tasks": [_as_json(one) for one in found]})
        return
    from rich.table import Table
    from rich.text import Text

    from oxlite import harmless

    table = Table(title=f"Tasks in {file}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("id", "status", "tries", "enqueued", "queue", "call, last error"):
        table.add_column(
            heading,
            justify="right" if heading in ("id", "tries") else "left",
            no_wrap=heading in ("id", "status", "tries", "enqueued"),
            overflow="fold",
        )
    for one in found:
        errors = one.errors[-1:]
        cells = (
            str(one.id),
            one.status,
            str(one.attempts),
            _time(one.enqueued_at),
            one.queue_name,
            f"{one.name}({_shortened(_call(one))})",
        )
        texts = [Text(harmless(text)) for text in cells]
        for error in errors:
            why = f"{error.exception_class_path}: {error.message}"
            texts[-1] += Text(f"\n{harmless(_shortened(why))}", style="dim")
        table.add_row(*texts)
    print_tables(table)


@tasks.command("retry")
def _retry(
    file: _File, ids: _Ids = None, is_all: _All = False, status: _Status = None, name: _Name = None
) -> None:
    """Run tasks again that have failed, were cancelled or have expired.

    For example: oxlite tasks retry app.db --all --name app.send_mail
    """
    _each(file, ids, is_all, status, name, "retry", "to run again")


@tasks.command("discard")
def _discard(
    file: _File, ids: _Ids = None, is_all: _All = False, status: _Status = None, name: _Name = None
) -> None:
    """Delete tasks that do not run, with what is known of them.

    For example: oxlite tasks discard app.db 17 18
    """
    _each(file, ids, is_all, status, name, "discard", "discarded")


@tasks.command("cancel")
def _cancel(file: _File, ids: _Ids = None) -> None:
    """Cancel tasks that wait; ask those that run to end.

    For example: oxlite tasks cancel app.db 17
    """
    if not ids:
        raise typer.BadParameter("name tasks by their numbers")
    _each(file, ids, False, None, None, "cancel", "cancelled, or asked to end")


@tasks.command("pause")
def _pause(
    file: _File,
    queue_name: Annotated[str, typer.Argument(metavar="[QUEUE]", help="A queue.")] = "default",
) -> None:
    """Begin no more tasks of a queue, in any process, until it is resumed.

    For example: oxlite tasks pause app.db mails
    """
    from oxlite.cli.target import queue_of_file

    with queue_of_file(file) as queue:
        is_known = queue_name in queue.stats().counts
        queue.pause(queue_name)
    typer.echo(f"{queue_name} is paused; go on: oxlite tasks resume {file} {queue_name}")
    if not is_known:
        typer.echo(f"No task is in {queue_name} now", err=True)


@tasks.command("resume")
def _resume(
    file: _File,
    queue_name: Annotated[str, typer.Argument(metavar="[QUEUE]", help="A queue.")] = "default",
) -> None:
    """Begin tasks of a queue again.

    For example: oxlite tasks resume app.db mails
    """
    from oxlite.cli.target import queue_of_file

    with queue_of_file(file) as queue:
        was_paused = queue.resume(queue_name)
    typer.echo(f"{queue_name} {'goes on' if was_paused else 'was not paused'}")


def _each(
    file: Path,
    ids: list[int] | None,
    is_all: bool,
    status: str | None,
    name: str | None,
    method: str,
    done: str,
) -> None:
    """Do something with tasks of those numbers, or with all of a status."""
    from oxlite.cli.target import queue_of_file

    _check_status(status)
    if bool(ids) == is_all:
        raise typer.BadParameter("name tasks by their numbers, or say --all: one of the two")
    if ids and (status or name):
        raise typer.BadParameter("--status and --name go with --all, not with numbers")
    count, refused = 0, 0
    with queue_of_file(file) as queue:
        for number in ids or queue.ids(status=status or "failed", name=name):
            try:
                count += bool(getattr(queue, method)(number))
            except IntegrityError:  # another one with its unique key waits or runs
                refused += 1
    typer.echo(f"{count:,} tasks {done}")
    if refused:
        typer.echo(f"{refused:,} not: others with their unique keys wait or run", err=True)
    if ids and count + refused < len(ids):
        typer.echo(
            f"{len(ids) - count - refused:,} are not there, or not in a status for that", err=True
        )
    if refused or (ids and count < len(ids)):
        raise typer.Exit(1)


def _check_status(status: str | None) -> None:
    from oxlite.tasks.store import STATUSES

    if status is not None and status not in STATUSES:
        raise typer.BadParameter(
            f"{status!r} is none: {', '.join(STATUSES)}", param_hint="--status"
        )


def _as_json(one: "TaskResult[Any]") -> dict[str, Any]:
    found = one.row._asdict()
    found["errors"] = [{**error._asdict(), "at": _time(error.at)} for error in one.errors]
    return found


def _milliseconds(found: tuple[float, float] | None) -> str:
    return "-" if found is None else ", ".join(f"{1000 * seconds:,.2f}" for seconds in found)


def _time(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _call(one: "TaskResult[Any]") -> str:
    """Arguments as one would write them."""
    try:
        args, kwargs = one.args, one.kwargs
    except ValueError:
        return one.row.arguments
    return ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:60]}…" if line[60:] else line
