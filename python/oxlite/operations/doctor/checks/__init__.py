"""The checks, one module for each family, and the list of all.

A check is a function of what is known; its docstring names its source. What it finds is of an
illness that its module lists.
"""

from typing import Final

from oxlite.operations.doctor.checks import (
    backups,
    file,
    file_systems,
    integrity,
    processes,
    settings,
    space,
    structure,
    wal,
)
from oxlite.operations.doctor.report import Illness
from oxlite.operations.doctor.subject import Check, Outside

__all__ = ["ILLNESSES", "INSIDE", "OUTSIDE"]

OUTSIDE: Final[tuple[Outside, ...]] = (
    *file.CHECKS,
    *file_systems.CHECKS,
    *processes.CHECKS,
    *wal.CHECKS,
    *backups.CHECKS,
)
"""Those that need no content."""

INSIDE: Final[tuple[Check, ...]] = (
    *settings.CHECKS,
    *integrity.CHECKS,
    *structure.CHECKS,
    *space.CHECKS,
)
"""Those that ask the open database."""

ILLNESSES: Final[tuple[Illness, ...]] = tuple(
    illness
    for family in (
        file,
        file_systems,
        processes,
        wal,
        settings,
        integrity,
        structure,
        space,
        backups,
    )
    for illness in family.ILLNESSES
)
"""All that can be found, by families."""
