"""``oxlite bench``: run a workload of the lab and print its report.

``workload`` makes a command of each workload. Beside them stand the commands for results that were
stored, each in a module of its own.

Exit codes: 0 every row was measured and every file written, 1 a row failed or a
file could not be written after the run; for the others see :mod:`oxlite.cli`.
No logic here: options in, :mod:`oxlite.bench.lab` does it.
"""

import typer

from oxlite.bench.workloads.catalogue import WORKLOADS
from oxlite.cli.bench.all import every
from oxlite.cli.bench.compare import compare
from oxlite.cli.bench.recommend import recommend
from oxlite.cli.bench.report import report
from oxlite.cli.bench.workload import command
from oxlite.cli.suggestions import SuggestingGroup

__all__ = ["bench"]

bench = typer.Typer(
    cls=SuggestingGroup,
    no_args_is_help=True,
    help="The lab: benchmarks on this machine, with everything to repeat them.",
)


@bench.callback()
def _lab() -> None:
    """Benchmarks on this machine, with everything needed to repeat them."""


for _workload in WORKLOADS:
    bench.command(_workload.name)(command(_workload))
bench.command("all")(every)
bench.command()(report)
bench.command()(compare)
bench.command()(recommend)
