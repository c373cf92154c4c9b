"""``oxlite branch …``: a database for each git branch, in development."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite.cli.suggestions import SuggestingGroup

__all__ = ["branch"]

branch = typer.Typer(
    cls=SuggestingGroup,
    no_args_is_help=True,
    help="Have a database for each git branch, made from its parent's: to try a migration on a"
    " copy of the data.",
)

_Template = Annotated[
    str,
    typer.Argument(metavar="TEMPLATE", help="The path, with {branch} in it: 'app-{branch}.db'."),
]
_Default = Annotated[
    str, typer.Option("--default", metavar="BRANCH", help="The branch that others come from.")
]
_Repository = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        help="The working tree, if it is neither the template's nor the current directory's.",
        show_default=False,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print it as JSON and nothing else.")]


@branch.command("path")
def _path(
    template: _Template,
    parent: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="BRANCH",
            help="Whose database it is made from. [dim]\\[default: that of --default][/dim]",
            show_default=False,
        ),
    ] = None,
    default: _Default = "main",
    repository: _Repository = None,
) -> None:
    """Print the database of the branch that is checked out; it is made if it is not there.

    For example: sqlite3 $(oxlite branch path 'app-{branch}.db')
    """
    from oxlite.operations import branches

    found = branches.database(
        template, debug=True, parent=parent, default=default, repository=repository
    )
    typer.echo(found)


@branch.command("list")
def _list(template: _Template, as_json: _Json = False) -> None:
    """List those that were made.

    For example: oxlite branch list 'app-{branch}.db'
    """
    from oxlite.cli.output import print_json, print_tables
    from oxlite.operations import branches

    found = branches.branch_databases(template)
    if as_json:
        print_json(
            {
                "databases": [
                    {
                        "branch": one.branch,
                        "path": str(one.path),
                        "parent": one.parent,
                        "created_at": one.created_at.isoformat(),
                        "size": one.path.stat().st_size,
                    }
                    for one in found
                ]
            }
        )
        return
    from oxlite import harmless

    if not found:
        typer.echo(f"none was made of {harmless(template)}", err=True)
        return
    from rich.table import Table
    from rich.text import Text

    from oxlite.operations.files import size_text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("branch", "from", "made (UTC)", "size"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for one in found:
        table.add_row(
            Text(harmless(one.branch)),
            Text(harmless(one.parent or "")),
            f"{one.created_at:%Y-%m-%d %H:%M}",
            size_text(one.path.stat().st_size),
        )
    print_tables(table)


@branch.command("prune")
def _prune(template: _Template, default: _Default = "main", repository: _Repository = None) -> None:
    """Delete the databases of branches that are gone, or merged into the default branch.

    One that somebody has open stays, and that of the branch that is checked out.

    For example: oxlite branch prune 'app-{branch}.db'
    """
    from oxlite import harmless
    from oxlite.operations import branches

    deleted = branches.prune_branches(template, default=default, repository=repository)
    for one in deleted:
        typer.echo(f"deleted {harmless(str(one.path))}")
    typer.echo(f"{len(branches.branch_databases(template))} left", err=True)
