"""What several commands of the lab share."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite.bench.lab import DIRECTORY

EXIT_FAILED = 1

Directory = Annotated[Path | None, typer.Option(help=DIRECTORY)]
