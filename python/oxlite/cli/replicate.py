"""``oxlite replicate …``: a database on another machine, and proof that it restores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from oxlite.cli.suggestions import SuggestingGroup

if TYPE_CHECKING:
    from oxlite.replication import Litestream

__all__ = ["replicate"]

_DEFAULT: Final = "run"
_APPLICATION: Final = "oxlite.replicate.application"
"""Under which the context keeps what stands after ``--``."""


class _ReplicateGroup(SuggestingGroup):
    """``run`` may be left out; what stands after ``--`` is another program's."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - see the base class
        """Take the application away, and put the default command in."""
        if "--" in args:
            begin = args.index("--")
            ctx.meta[_APPLICATION] = args[begin + 1 :]
            args = args[:begin]
        if args and args[0] not in (*self.list_commands(ctx), "--help"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


replicate = typer.Typer(
    cls=_ReplicateGroup,
    no_args_is_help=True,
    help="Keep a copy of a database on another machine, by Litestream, and prove that it restores."
    "\n\nrun may be left out: oxlite replicate app.db --to s3://bucket/app -- gunicorn site",
)

_Database = Annotated[Path, typer.Argument(metavar="DB", help="The database.", show_default=False)]
_Databases = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DB...", help="The databases.", show_default=False),
]
_To = Annotated[
    str,
    typer.Option(
        "--to",
        envvar="OXLITE_REPLICA_URL",
        metavar="URL",
        help="Where to: a directory, or a URL of Litestream's (s3://bucket/path, gs, abs, sftp,"
        " nats, oss, webdav), without credentials. Several databases are put below it, each by its"
        " file's name.",
        show_default=False,
    ),
]
_Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        metavar="DIRECTORY",
        help="All databases that are in it when it begins, as well. One that is to be restored if"
        " it is missing has to be named.",
        show_default=False,
    ),
]
_Credentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        help="A file that only its owner reads, with NAME=VALUE on each line, such as"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: for Litestream alone."
        " [dim]\\[default: the environment][/dim]",
        show_default=False,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print it as JSON and nothing else.")]


@replicate.command(_DEFAULT)
def _run(
    context: typer.Context,
    to: _To,
    databases: _Databases = None,
    directory: _Directory = None,
    credentials: _Credentials = None,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="The place holds the replica of this very database, though nothing here says so:"
            " go on with it.",
        ),
    ] = False,
    sync_seconds: Annotated[
        float,
        typer.Option(min=0.1, metavar="SECONDS", help="What is committed is sent within this."),
    ] = 1.0,
    snapshot_hours: Annotated[
        float, typer.Option(min=0.1, metavar="HOURS", help="How often a whole copy is put there.")
    ] = 24.0,
    keep_hours: Annotated[
        float,
        typer.Option(min=1, metavar="HOURS", help="How far back one can restore a point in time."),
    ] = 72.0,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log all that Litestream says.")
    ] = False,
) -> None:
    """Replicate until Ctrl-C or SIGTERM; or beside an application, until that ends.

    A database that is missing is restored first, if there is a replica, and else made. If the store
    does not answer, nothing is begun. What the application commits last is sent before this ends.

    Exit code: the application's, or 0; 2 if it could not begin.

    For example: oxlite replicate app.db --to s3://bucket/app -- gunicorn site.wsgi
    """
    import logging

    from oxlite.replication import Replicator, Settings, replicas_of

    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s",
        level=logging.DEBUG if verbose else logging.INFO,
    )
    replicator = Replicator(
        _litestream(credentials),
        replicas_of(databases or [], to, directory=directory),
        Settings(sync_seconds, snapshot_hours, keep_hours),
        is_taken_over=take_over,
    )
    code = replicator.run(context.meta.get(_APPLICATION, ()))
    if code:
        raise typer.Exit(code)


@replicate.command("status")
def _status(
    database: _Database,
    behind_seconds: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="A replica that is older is not well."),
    ] = 60.0,
    proved_days: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="Nor is one of which no restore was proved for so long.",
            show_default=False,
        ),
    ] = None,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print it in Prometheus' text format.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Say how the replication of a database is: whether it runs, how far behind, when proved.

    No store is asked. All that was committed before the time that is said is in the store.

    Exit code: 0 if it is well, 1 if not, 2 if that cannot be found out.

    For example: oxlite replicate status app.db || alert
    """
    from oxlite.cli.output import print_json
    from oxlite.replication import replication_status, status_as_prometheus, status_as_text

    found = replication_status(database, behind_seconds=behind_seconds, proved_days=proved_days)
    if as_json:
        print_json(found.as_dict())
    elif prometheus:
        typer.echo(status_as_prometheus(found), nl=False)
    else:
        typer.echo(status_as_text(found))
    if not found.is_well:
        raise typer.Exit(1)


@replicate.command("verify")
def _verify(
    database: _Database,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="Where the replica is, if not where it was last replicated to from here.",
            show_default=False,
        ),
    ] = None,
    credentials: _Credentials = None,
    scratch: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where there is room for a copy, which is deleted again."
            " [dim]\\[default: that for temporary files][/dim]",
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How far behind the replica may be."),
    ] = 60.0,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="HOURS",
            help="Do it again and again, and end when the replica is found wrong. If the store does"
            " not answer, or the database is locked, that is logged, and it goes on.",
            show_default=False,
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Prove that a replica restores: write a token, restore elsewhere, find it, verify all.

    The token is a row of the table oxlite_replica_proof.

    Exit code: 0 if it is proved, 1 if the replica is damaged, another one's or too far behind, 2 if
    that cannot be found out, such as when the store does not answer. With --every a store that does
    not answer, and a lock, are no end: that counts as not proved yet, and status --proved-days
    tells if it lasts.

    For example: oxlite replicate verify app.db
    """
    import time

    from oxlite.cli.output import print_json, scan_progress
    from oxlite.replication import NoReplica, NotProved, prove, store_of

    litestream = _litestream(credentials)
    store = None if url is None else store_of(url)
    while True:
        try:
            with scan_progress() as stage:
                proof = prove(
                    litestream, database, store, scratch=scratch, seconds=within, stage=stage
                )
        except (NotProved, NoReplica) as error:
            if as_json:
                print_json({"proved": False, "why": str(error)})
            else:
                typer.echo(f"Not proved: {error}")
            raise typer.Exit(1) from None
        except Exception as error:
            if every is None or not _passes(error):
                raise
            if as_json:
                print_json({"proved": None, "why": str(error)})
            typer.echo(f"Not proved yet: {error}", err=True)
            time.sleep(every * 3600)
            continue
        rows = sum(filter(None, proof.contents.rows.values()))
        if as_json:
            print_json(
                {
                    "proved": True,
                    "replica": proof.store.shown,
                    "behind_seconds": proof.behind_seconds,
                    "restore_seconds": proof.restore_seconds,
                    "tables": len(proof.contents.rows),
                    "rows": rows,
                    "every_row_compared": proof.is_exact,
                    "changed_meanwhile": {name: list(two) for name, two in proof.changed.items()},
                }
            )
        else:
            typer.echo(
                f"Proved: {proof.store.shown} restores in {proof.restore_seconds:.1f} s;"
                f" {len(proof.contents.rows)} tables, {rows:,} rows, verified"
                f"{' and each the same' if proof.is_exact else ''}; what was committed"
                f" {proof.behind_seconds:.1f} s before is there"
            )
        if every is None:
            return
        time.sleep(every * 3600)


def _passes(error: Exception) -> bool:
    """Whether nothing is known now of a replica, and may be the next time."""
    import errno

    from oxlite import sqlite3
    from oxlite.replication import StoreUnreachable
    from oxlite.replication.proof import Undecided

    if isinstance(error, sqlite3.OperationalError):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, StoreUnreachable | Undecided)


@replicate.command("unit")
def _unit(
    context: typer.Context,
    to: _To,
    databases: _Databases = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who runs it. [dim]\\[default: root][/dim]", show_default=False
        ),
    ] = None,
    credentials: _Credentials = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it there instead.", show_default=False),
    ] = None,
) -> None:
    """Print a unit of systemd that does what run does.

    For example: oxlite replicate unit app.db --to s3://bucket/app --user www-data -- gunicorn site
    """
    from oxlite.replication import systemd_unit

    text = systemd_unit(
        databases or [],
        to,
        command=context.meta.get(_APPLICATION, ()),
        user=user,
        credentials=credentials,
    )
    _print_or_write(text, write)


@replicate.command("entrypoint")
def _entrypoint(
    to: _To,
    databases: _Databases = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it there instead.", show_default=False),
    ] = None,
) -> None:
    """Print the entry point of a container, whose command is the application.

    For example: oxlite replicate entrypoint /data/app.db --to s3://bucket/app --write entrypoint.sh
    """
    from oxlite.replication import entry_point

    _print_or_write(entry_point(databases or [], to), write, is_program=True)


def _print_or_write(text: str, file: Path | None, *, is_program: bool = False) -> None:
    if file is None:
        typer.echo(text, nl=False)
        return
    with file.open("x") as made:
        made.write(text)
    if is_program:
        file.chmod(0o755)
    typer.echo(f"{file} was written", err=True)


def _litestream(credentials: Path | None) -> "Litestream":
    from oxlite.replication import find_litestream, read_credentials

    return find_litestream(
        credentials=None if credentials is None else read_credentials(credentials)
    )
