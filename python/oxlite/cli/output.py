"""Writing to standard output, for every command.

Invariant: a reader that went away is a ``BrokenPipeError`` for the entry point
to deal with, whichever way the output was written.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from rich.console import Console, RenderableType

__all__ = ["print_json", "print_tables"]


class _PipeConsole(Console):
    """rich's console, which would otherwise end the process with code 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as indented JSON and nothing else."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def print_tables(renderable: RenderableType) -> None:
    """Print what rich can render, as wide as the terminal is."""
    _PipeConsole(highlight=False).print(renderable)
