"""``oxlite bench report``: options in, :mod:`oxlite.bench.stored` does it."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite import harmless
from oxlite.bench.report.terminal import ReportConsole, show
from oxlite.bench.stored import read_all, require_apart, write

Files = Annotated[list[Path], typer.Argument(help="Results, as --json writes them.")]


def report(
    files: Files,
    html: Annotated[
        Path | None, typer.Option(help="Write one HTML file here, which opens offline.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the tables here, for a paper.")
    ] = None,
) -> None:
    """Results of earlier runs as a report: on the terminal, or as HTML or Markdown."""
    require_apart(files, [html, markdown])
    results = read_all(files)
    write(results, html=html, markdown_file=markdown)
    if html is None and markdown is None:
        console = ReportConsole()
        for result in results:
            show(result, console)
    for path in (html, markdown):
        if path is not None:
            typer.echo(harmless(f"report: {path}"))
