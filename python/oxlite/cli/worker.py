"""``oxlite worker``: runs the tasks of a queue."""

from typing import Annotated

import typer

__all__ = ["worker"]


def worker(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:QUEUE", help="Where the queue is: app:queue is queue in app.py."
        ),
    ],
    queues: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The queues whose tasks are run, separated by commas."
            " [dim]\\[default: all that its tasks are in][/dim]",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many processes run tasks.")
    ] = 1,
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many tasks each runs at the same time.")
    ] = 4,
    memory: Annotated[
        int | None,
        typer.Option(
            min=64,
            metavar="MIB",
            help="The address space of each process, in MiB: what asks for more gets a MemoryError."
            " [dim]\\[default: no limit][/dim]",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="After SIGTERM or Ctrl-C: how long what runs may take; then it is handed back.",
        ),
    ] = 30.0,
    overtime: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long after its time limit a task may go on; then its process is killed.",
        ),
    ] = 30.0,
    log_level: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="What is logged: debug, info, warning or error."),
    ] = "info",
) -> None:
    """Run the tasks of a queue, in processes and threads.

    Nothing is polled: a task is begun when the transaction that enqueues it commits. A process that
    has ended is begun again, and its tasks are run by others at once.

    SIGTERM or Ctrl-C: what runs is finished, and nothing more is begun. A second time: what runs is
    handed back to other workers at once.

    For example: oxlite worker app:queue --processes 4 --threads 8
    """
    import logging

    from oxlite.cli.target import imported_queue
    from oxlite.tasks.service import run_worker

    level = logging.getLevelNamesMapping().get(log_level.upper())
    if level is None:
        raise typer.BadParameter(
            f"{log_level!r} is no level: debug, info, warning or error", param_hint="--log-level"
        )
    names = None if queues is None else [name.strip() for name in queues.split(",")]
    code = run_worker(
        lambda told: imported_queue(target).worker(
            names, threads=threads, told=told, overtime=overtime
        ),
        processes=processes,
        memory_mebibytes=memory,
        grace=grace,
        log_level=level,
    )
    raise typer.Exit(code)
