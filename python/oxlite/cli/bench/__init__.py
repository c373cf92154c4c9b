"""``oxlite bench``: run a workload of the lab and print its report.

Each workload is a command in a module of its own; ``options`` has what they share. Beside
them stand the commands for results that were stored.

Exit codes: 0 every row was measured and every file written, 1 a row failed or a
file could not be written after the run; for the others see :mod:`oxlite.cli`.
No logic here: options in, :mod:`oxlite.bench.lab` does it.
"""

import typer

from oxlite.cli.bench.all import every
from oxlite.cli.bench.busy import busy
from oxlite.cli.bench.compare import compare
from oxlite.cli.bench.driver import driver
from oxlite.cli.bench.gate import gate
from oxlite.cli.bench.gil import gil
from oxlite.cli.bench.inserts import inserts
from oxlite.cli.bench.kv import kv
from oxlite.cli.bench.orm import orm
from oxlite.cli.bench.recommend import recommend
from oxlite.cli.bench.report import report
from oxlite.cli.bench.shared import shared
from oxlite.cli.bench.tasks import tasks
from oxlite.cli.bench.web import web
from oxlite.cli.suggesting import SuggestingGroup

__all__ = ["bench"]

bench = typer.Typer(
    cls=SuggestingGroup,
    no_args_is_help=True,
    help="The lab: benchmarks on this machine, with everything to repeat them.",
)


@bench.callback()
def _lab() -> None:
    """Benchmarks on this machine, with everything needed to repeat them."""


for _command in (orm, kv, inserts, driver, gil, gate, shared, busy, web):
    bench.command()(_command)
# Words of Python's, so no function can or should be called so.
bench.command("async")(tasks)
bench.command("all")(every)
bench.command()(report)
bench.command()(compare)
bench.command()(recommend)
